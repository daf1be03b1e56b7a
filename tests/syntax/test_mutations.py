"""Whatever happens to a dump's text: no exception, no lost byte, and the rest is still read."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import irtool
from irtool.ir.dump import Dump

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
LARGEST = 30_000

TOKENS = [
    *'"\'()[]{}<>%@$#:,=.\\/-~ \t', "\n", "\n\n", "\r\n", "\r", "\0", "\udcff", "\ufeff",
    "0", "00", "007", "9" * 30, "-1", "1e-07", "inf", "٣", "²",
    "%", "%0", "%00", "%para", "%para0_", "%para1_w (x", "$(@g:x)", "$(g.1:para3_w)", "@", "@@g",
    "call @g", "Return(", "  Return(%0)\n", "  %0(x) = Neg(%1)\n", "Primitive::Return", ") = ",
    "      : (<null>) -> (<null>)\n", "      : (", ": (", " -> (", "<null>", "`<null>`", "<", ">",
    "Tensor(shape=[", ", value=", "value=...", "Tensor[Float32]", "x[const vector][", ", ref_key=",
    "Dictionary[[", "],[", "TupleShape(", "NoShape", "elements_use_flags={", "S:[", "V:", "|=s1",
    "      # Scope: (", "      # In file a:1/", "      # Comment:\n", "      #", "        # x\n",
    " {instance name: ", " primitive_attrs: {", " {in_strategy: (", " { strategy: ",
    "subgraph @g() {\n", "subgraph @", "subgraph attr:\n", "}\n", "}", "} ", "...\n", " ...\n",
    "# IR entry: @g\n", "# Order:\n", "symbol engine details:\n", "jit config {\n", "# Params:\n",
    "#------------------------> 1\n", "Total number of cnodes: 7\n", "None", "Bool(", "I64(",
    "[Key][Parameter]", "Slice[1 : 2 : 3]", "UMonad[U]", "HyperMap{", "Partial(", "::", "{}", "()",
]  # fmt: skip
INSIDE_A_LINE = [token for token in TOKENS if "\n" not in token and "\r" not in token]

patient = settings(
    deadline=timedelta(seconds=20),
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@lru_cache(maxsize=1)
def texts() -> list[str]:
    """The small samples."""
    found = [path.read_text(encoding="utf-8") for path in sorted(SAMPLES.rglob("*.ir"))]
    return [text for text in found if len(text) <= LARGEST]


@lru_cache(maxsize=1)
def statements() -> list[list[str]]:
    """Statements of all samples with their type lines and comments, each form once."""
    found: dict[str, list[str]] = {}
    for path in sorted(SAMPLES.rglob("*.ir")):
        lines = path.read_text(encoding="utf-8").split("\n")
        starts = [node.line - 1 for node in irtool.load(path).nodes()]
        for start in starts:
            end = start + 1
            while lines[end].startswith("      ") and end - start < 6:
                end += 1
            form = "".join(char for char in lines[start] if not char.isdigit())
            found.setdefault(form[:80], lines[start:end])
    return list(found.values())


@st.composite
def mutations(draw: st.DrawFn, text: str, tokens: list[str]) -> str:
    """``text`` with one span deleted, replaced, doubled or reversed, or something inserted."""
    start = draw(st.integers(0, len(text)))
    end = min(len(text), start + draw(st.integers(0, 40)))
    span = text[start:end]
    token = draw(st.sampled_from(tokens))
    new = draw(st.sampled_from(["", token, span + token, span * 2, span[::-1], token * 3]))
    return text[:start] + new + text[end:]


def read_back(text: str) -> Dump:
    """The dump of this text, having checked that it prints back."""
    data = text.encode("utf-8", "surrogatepass" if "\udfff" in text else "surrogateescape")
    read = irtool.load(data)
    assert irtool.dumps(read).encode("utf-8", "surrogateescape") == data
    for node in read.nodes():
        assert node.op is not None
        assert node.inputs is not None
        assert node.location is None or node.location.path
    return read


@given(st.data())
@settings(patient, max_examples=300)
def test_a_dump_may_be_changed_anywhere(data: st.DataObject) -> None:
    # By number, so that a failure does not print all of it.
    text = texts()[data.draw(st.integers(0, len(texts()) - 1), label="number of the dump")]
    for _ in range(data.draw(st.integers(1, 4))):
        text = data.draw(mutations(text, TOKENS))
    read_back(text)


@given(st.data())
@settings(patient, max_examples=600)
def test_statements_around_a_changed_one_are_still_read(data: st.DataObject) -> None:
    lines = list(data.draw(st.sampled_from(statements())))
    at = data.draw(st.integers(0, len(lines) - 1))
    for _ in range(data.draw(st.integers(1, 3))):
        lines[at] = data.draw(mutations(lines[at], INSIDE_A_LINE))
    lines[at] = lines[at].replace("\n", " ").replace("\r", " ")

    read = read_back("\n".join(
        ["subgraph @g() {", "  %900(first) = Neg(%1)", "  %901(guard) = Neg(%1)", *lines,
         "  %902(after) = Neg(%900)", "      : (<null>) -> (<null>)", "  Return(%902)", "}", ""]
    ))  # fmt: skip

    # The statement just before may take what is no longer recognised as one for its own.
    names = [node.name for node in read.nodes()]
    assert names[0] == "first"
    assert names[-2:] == ["after", None]
    after = list(read.nodes())[-2]
    assert after.signature is not None


@given(st.data())
@settings(patient, max_examples=300)
def test_a_statement_may_be_cut_anywhere(data: st.DataObject) -> None:
    text = "\n".join(data.draw(st.sampled_from(statements())))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    read_back(text[start:end])
    read_back(f"subgraph @g() {{\n{text[start:end]}\n  %900(after) = Neg(%1)\n}}\n")


@given(st.lists(st.sampled_from(TOKENS), max_size=30).map("".join))
@settings(patient, max_examples=500)
def test_tokens_of_the_language_in_any_order_are_read(text: str) -> None:
    read_back(text)
    read_back(f"# IR entry: @g\nsubgraph @g() {{\n  %0(a) = Neg({text})\n}}\n")


@given(st.binary(max_size=200))
@settings(patient, max_examples=200)
def test_any_bytes_are_read(data: bytes) -> None:
    for content in (data, b"# IR entry: @g\nsubgraph @g() {\n" + data + b"\n}\n"):
        if content[:2] != b"\x1f\x8b" and content[:4] != b"\xfd7zX":
            assert irtool.dumps(irtool.load(content)).encode("utf-8", "surrogateescape") == content
