"""Large input costs time and memory in proportion, and never more."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.syntax.damaged import load_back

# ---- large ---------------------------------------------------------------------------------------


MEASURE = """
import resource, sys
import irtool
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
{make}
before = peak()
read = irtool.load(data)
assert irtool.dumps(read).encode("utf-8", "surrogateescape") == data
print(peak() - before, len(read.problems))
"""


def measured(make: str) -> tuple[int, int]:
    """Mebibytes needed to read and print ``data``, and number of problems."""
    pytest.importorskip("resource")
    code = MEASURE.format(make=make)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    memory, problems = map(int, done.stdout.split())
    return memory, problems


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "  %0(a) = Add({})",
        "  %0({}) = Add()",
        "  %0(a) = Add() {{instance name: {}}}",
        "      # Scope: ({})",
        "      : (<{}>)",
        "%para1_{}: <null>",
        "subgraph @{}() {{",
        "{}",
        '  %0(a) = Add("{}")',
    ],
)
def test_a_line_of_a_hundred_megabytes(line: str) -> None:
    before, after = line.split("{}")
    memory, _ = measured(
        f"data = b'# IR entry: @g\\nsubgraph @g() {{\\n' + {before.replace('{{', '{')!r}.encode()"
        f" + b'x' * 100_000_000 + {after.replace('}}', '}').replace('{{', '{')!r}.encode()"
        " + b'\\n}\\n'"
    )
    assert memory < 1500, "mebibytes"


@pytest.mark.slow
def test_a_statement_of_a_hundred_megabytes_is_a_problem() -> None:
    _, problems = measured("data = b'  %0(a) = Add(\"' + b'x' * 100_000_000 + b'\")\\n'")
    assert problems == 1


DEEP = 100_000


@pytest.mark.parametrize(
    "record",
    [
        "  %0(a) = Add({open}{close})",
        "  %0(a) = Add({open}",
        "  %0(a) = Add({close}",
        "  %0(a) = Add(x) primitive_attrs: {{k: {open}{close}}}",
        "  %0(a) = Add{open}{close}(x)",
        "  %0(a) = %1[@{kind}@g{ends}](x)",
        "  %0(a) = Neg(x)\n      : (<{types}Int8{closes}>)",
        "  %0(a) = Neg(x)\n      : (<Int8, {shapes}{ends}>)",
        "  %0(a) = Neg(x)\n      : (S:{open}{close})",
    ],
)
@pytest.mark.parametrize("brackets", ["()", "[]", "{}"])
def test_nesting_of_a_hundred_thousand_levels(record: str, brackets: str) -> None:
    text = record.format(
        open=brackets[0] * DEEP,
        close=brackets[1] * DEEP,
        kind="Partial(" * DEEP,
        types="Tuple[" * DEEP,
        shapes="TupleShape(" * DEEP,
        ends=")" * DEEP,
        closes="]" * DEEP,
    )
    read = load_back(f"subgraph @g() {{\n{text}\n  Return(%0)\n}}\n".encode())
    assert read.problems
    assert [node.op for node in read.nodes()][-1] == "Return"


@pytest.mark.parametrize(
    "line",
    [
        "x{blanks}y",
        "{blanks}y",
        "{blanks}...y",
        "a: {blanks}b",
        "subgraph @g({blanks}",
        "%para1_x{blanks}: <",
        "# Parameters: 1, ({blanks}",
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_long_lines_of_blanks_take_no_time_to_speak_of(line: str, inside: bool) -> None:
    # Quadratic work would take minutes here, which is what this test shows when it fails.
    text = line.format(blanks=" " * 200_000)
    body = f"subgraph @g() {{\n{text}\n}}\n" if inside else f"{text}\n"
    load_back(f"# IR entry: @g\n{body}".encode())


@pytest.mark.parametrize(
    "text",
    [
        "subgraph @g(\n" + " \n" * 60 + "x\n",
        "subgraph @g(\n  %para1_x: <null>\n" * 2000,
        "  %0(a) = A(\n" + "\n" * 50_000 + ")\n",
        "  %0(a) = A()\n      : (<" + "x" * 100_000 + ">)\n",
        "  %0(a) = A() {instance name: x" + " " * 100_000 + "x\n",
        "  %0(a) = A()" + " {instance name: " * 20_000 + "\n",
        '  %0(a) = A("' + '"a, ' * 20_000 + "\n",
        "  %0(a) = A(" + "$(@a:" * 20_000 + ")\n",
        "  %0(a) = A(" + "Tensor(shape=[" * 20_000 + ")\n",
        "  %0(a) = A()\n      : (<Int8" + ", elements_use_flags={" * 20_000 + ")\n",
        "  %0(a) = A()\n      : (" + "<Int8, ref_key=" * 20_000 + ")\n",
        "  %0(a) = A()\n      : (S:" + "[a][a" * 2000 + ")\n",
        "  %0(a) = A()\n      # In file " + ":1" * 20_000 + "x\n",
    ],
    ids=lambda text: text[:40],
)
def test_ambiguous_text_takes_no_time_to_speak_of(text: str) -> None:
    # Text that may be cut in many ways must not be tried in all of them.
    load_back(f"# IR entry: @g\nsubgraph @g() {{\n{text}}}\n".encode())


@pytest.mark.parametrize("digits", [5_000, 100_000])
@pytest.mark.parametrize(
    "record",
    [
        "Total number of cnodes: {}",
        "# Total subgraphs: {}",
        "%para{}_x: <null>",
        "%para1_x: <Tensor[Float32], ({})>",
        "subgraph @g(%para{}_x) {{",
        "  %{}(a) = Add()",
        "  %0(a) = Add(%{})",
        "  %0(a) = Add(I64({}), {})",
        "  %0(a) = Add()\n      : (<Tuple[Int8*{}]>)",
        "  %0(a) = Add()\n      # In file net.py:{}/x/",
        "#------------------------> {}",
    ],
)
def test_numbers_of_any_length(record: str, digits: int) -> None:
    number = "9" * digits
    read = load_back(f"# IR entry: @g\n{record.format(number, number)}\n".encode())
    for node in read.nodes():
        assert node.attribute("x") is None
        assert node.location is None or node.location.path


@pytest.mark.parametrize("number", ["007", "00", "-01"])
def test_numbers_spelled_in_an_unusual_way_print_back(number: str) -> None:
    load_back(
        f"subgraph @g(%para{number}_x) {{\n  %{number}(a) = Add(%{number}, {number})\n"
        f"      : (<Tensor[Int8], ({number})>)\n}}\n".encode()
    )
