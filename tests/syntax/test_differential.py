"""The fast way to read agrees with the slow one.

The fast way parses each form of record once and fills it with the digits of every other record of
that form.  The reference parses every record by Lark.  Both must give the same model.
"""

from __future__ import annotations

import lzma
import random
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from irtool.ir.comments import Comments
from irtool.ir.dump import Dump
from irtool.ir.graph import Graph, Node
from irtool.ir.values import Attributes, Scalar, String
from irtool.syntax.reader import loads
from irtool.syntax.records import Records

SEED = 20_250_711
BYTES_OF_EACH_FOLDER = 4_000_000
LARGEST = 1_500_000

LINKS = {(Node, "graph"), (Graph, "dump")}
"""Fields that lead back to where one came from."""


def differences(left: Any, right: Any, place: str = "dump") -> Iterator[str]:
    """Every place at which two models differ."""
    if type(left) is not type(right):
        yield f"{place}: {left!r} is not {right!r}"
    elif isinstance(left, tuple | list):
        if len(left) != len(right):
            yield f"{place}: {len(left)} items, not {len(right)}"
        for index, (a, b) in enumerate(zip(left, right, strict=False)):
            yield from differences(a, b, f"{place}[{index}]")
    elif isinstance(left, Comments):
        yield from differences(left.lines, right.lines, f"{place}.lines")
    elif isinstance(left, Attributes):
        for name in ("entries", "label", "separator", "spaced"):
            yield from differences(getattr(left, name), getattr(right, name), f"{place}.{name}")
    elif is_dataclass(left):
        for field in fields(left):
            if (type(left), field.name) not in LINKS:
                a, b = getattr(left, field.name), getattr(right, field.name)
                yield from differences(a, b, f"{place}.{field.name}")
    elif left != right:
        yield f"{place}: {left!r} is not {right!r}"


def text_of(path: Path) -> str:
    data = path.read_bytes()
    data = lzma.decompress(data) if path.suffix == ".xz" else data
    return data.decode("utf-8", "surrogateescape")


def first_difference(texts: dict[str, str]) -> str | None:
    """Read all texts both ways, the fast one after whatever came before it."""
    fast, plain = Records(), Records(plain=True)
    for name, text in texts.items():
        found = next(differences(loads(text, name, fast), loads(text, name, plain)), None)
        if found is not None:
            return f"{name}: {found}"
    return None


def samples_of(folder: Path) -> dict[str, str]:
    """Texts of a chance choice of the folder's dumps, in chance order, always the same."""
    chance = random.Random(SEED)
    paths = sorted(path for path in folder.rglob("*.ir") if path.stat().st_size <= LARGEST)
    chance.shuffle(paths)
    chosen: dict[str, str] = {}
    total = 0
    for path in paths:
        total += path.stat().st_size
        if total > BYTES_OF_EACH_FOLDER:
            break
        chosen[str(path)] = text_of(path)
    return chosen


# ---- the comparison itself ---------------------------------------------------------------------


STATEMENT = "subgraph @g() {{\n  %0(a) = Add(%para1_x, {}) {{in_strategy: ((1, {}))}}\n{}}}\n"


def changed(value: str = "I64(1)", strategy: str = "2", rest: str = "") -> Dump:
    return loads(STATEMENT.format(value, strategy, rest))


@pytest.mark.parametrize(
    "other",
    [
        changed(value="I64(2)"),
        changed(value="1"),
        changed(value='"1"'),
        changed(strategy="4"),
        changed(rest="      : (<null>, <null>) -> (<null>)\n"),
        changed(rest="      # Scope: (Default)\n"),
        changed(rest="  Return(%0)\n"),
    ],
)
def test_the_comparison_sees_every_difference(other: Dump) -> None:
    assert list(differences(changed(), other))


def test_the_comparison_sees_no_difference_where_there_is_none() -> None:
    assert list(differences(changed(), changed(), "dump")) == []


# ---- the two ways ------------------------------------------------------------------------------


def test_samples_give_the_same_model_both_ways(samples: Path) -> None:
    texts = {str(path): text_of(path) for path in sorted(samples.rglob("*.ir"))}
    assert len(texts) >= 15
    assert first_difference(texts) is None


def test_samples_give_the_same_model_in_any_order(samples: Path) -> None:
    paths = sorted(samples.rglob("*.ir"))
    forward, backward = Records(), Records()
    first = {path: loads(text_of(path), str(path), forward) for path in paths}
    for path in reversed(paths):
        again = loads(text_of(path), str(path), backward)
        assert next(differences(first[path], again), None) is None, path


@pytest.mark.parametrize(
    "folder", ["documentation", "versions", "verdicts", "planning", "precision"]
)
def test_dumps_of_the_corpus_give_the_same_model_both_ways(corpus: Path, folder: str) -> None:
    texts = samples_of(corpus / folder)
    assert texts
    assert first_difference(texts) is None


@pytest.mark.slow
def test_a_large_dump_gives_the_same_model_both_ways(corpus: Path) -> None:
    (path,) = (corpus / "large").glob("*step_parallel_begin.ir.xz")
    assert first_difference({str(path): text_of(path)}) is None


# ---- digits: what the fast way fills in --------------------------------------------------------


RECORDS = [
    "  %{0}(CNode_{1}) = PrimFunc_Add{2}(%{3}, %para{4}_x{5}) {{instance name: add{6}}}",
    "  %0(a{0}b{1}) = call @{2}_g_{3}($(@{4}_h_{5}:n{6}), $(@h:para{0}_w{1}))",
    "  %0(a) = %{0}[@FuncUnion(@g_{1}, @h_{2})](I{3}({4}), U8({5}), F{6}(1e-{0}))",
    "  %0(a) = A({0}, -{1}, {2}.{3}, {4}e-{5}, x{6}, None{0})",
    '  %0(a) = A("s{0}", "{1}, {2}", [Key][Parameter]w.{4}, Slice[{5} : {6} : {3}])',
    "  %0(a) = A(Tensor(shape=[{0}, {1}], dtype=Float{2}, value=\n[[ {3}]\n [ {4}]]), @g{5})",
    "  %0(a) = A() primitive_attrs: {{k{0}: I64({1}), l: ({2}), m: {{'d{4}': [{5}, a{6}]}}}}",
    "  %0(a) = A() {{in_strategy: (({0}, {1}), ({2})), out_strategy: (({3}))}}",
    "  %0(a) = A()\n      : (<Tensor[Float{0}], ({1}, -{2})>, <Tuple[Int{3}*{4}], "
    "TupleShape(({5}), ({6}))>) -> (<null>)",
    "  %0(a) = A()\n      : (<Ref[Tensor[Float{0}]], ({1}), ref_key=layer{2}.w{3}, is_parameter>, "
    "<Func[(Int{4}), Float{5}], NoShape>, <Dictionary[[k{6},],[Int{0}]], NoShape>)",
    "  %0(a) = A()\n      : (<null>)\n      : (S:[{0}, s{1}<[{2},inf]|{3}N>], V:{4}) -> (S:[{5}])",
    "  %0(a) = A()\n      : (<null>)\n      : (<Float{0}xNCHW[const vector]{{{1}, {2}}}>) -> "
    "(<Int{3}xDefaultFormat[const vector]{{{4}}}>)",
    "  %0(a) = A()\n      # Scope: (Default/l{0})\n      # In file f{2}.py:{3}~{4}, {5}~{6}/x/",
    "  Return(%{0}, %para{1}_x) cnode_attrs: {{checkpoint: Bool({2})}}",
]
DIGITS = ["0", "1", "7", "10", "42", "999", "4096", "00", "007", "18446744073709551616"]


@pytest.mark.parametrize("record", RECORDS, ids=range(len(RECORDS)))
def test_any_digits_give_the_same_model_both_ways(record: str) -> None:
    chance = random.Random(SEED)
    # The first fill is what the template is made from.
    fills = [["1"] * 7, *([chance.choice(DIGITS) for _ in range(7)] for _ in range(200))]
    fast, plain = Records(), Records(plain=True)
    for fill in fills:
        text = f"# IR entry: @g\nsubgraph @g() {{\n{record.format(*fill)}\n}}\n"
        left, right = loads(text, records=fast), loads(text, records=plain)
        # Where a spelling is unusual both refuse it; they need not give the same reason.
        assert bool(left.problems) == bool(right.problems), text
        if not left.problems:
            assert next(differences(left, right), None) is None, text


@pytest.mark.parametrize("digits", DIGITS)
def test_parameters_with_any_digits_give_the_same_model_both_ways(digits: str) -> None:
    fast, plain = Records(), Records(plain=True)
    for number in ("1", digits):
        text = (
            "# IR entry: @g\n"
            f"%para{number}_w{digits}.x: <Ref[Tensor[Float{number}]], ({number}), "
            f"ref_key=w{digits}> : [s{digits}]  :  has_default\n\n"
            f"# Parameters: {number}, (<Int{digits}, NoShape>)\n"
            f"subgraph @g_{digits}(%para{number}_w{digits}) {{\n}}\n"
        )
        left, right = loads(text, records=fast), loads(text, records=plain)
        assert bool(left.problems) == bool(right.problems), text
        if not left.problems:
            assert next(differences(left, right), None) is None, text


def test_scalars_and_strings_of_one_form_are_not_mixed_up() -> None:
    records = Records()
    for text, expected in [
        ('  %0(a) = A("1")', String("1")),
        ("  %0(a) = A(I64(1))", Scalar("I64", "1")),
        ('  %0(a) = A("64")', String("64")),
        ("  %0(a) = A(I32(7))", Scalar("I32", "7")),
        ("  %0(a) = A(I8(007))", Scalar("I8", "007")),
    ]:
        (node,) = loads(text, records=records).nodes()
        assert node.operands == (expected,)
