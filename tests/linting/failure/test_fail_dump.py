"""``analyze_fail.ir``: printed by MindSpore 2.7.0 (and the sample by 2.10.0)."""

from __future__ import annotations

from pathlib import Path

import pytest

import irtool
from irtool.ir.finding import Edit
from irtool.linting.failure.fail_dump import explain_dump
from irtool.linting.failure.finding import Explained, LoggedFinding

FAILED = {
    "args": ("arguments", "helper", ("Float32[2]",), 37),
    "attr": ("attribute-missing", "", ("External", "External"), 33),
    "branches": ("type", "", (), 308),
    "broad": ("shape", "Mul", ("Float32[2,5]", "Float32[3,4]"), 46),
    "concat": ("shape", "Concat", ("Tuple[Float32[2,3],Float32[3,3]]",), 23),
    "raise": ("compile-failed", "raise", ("String", "String", "String"), 43),
    "reshape": ("shape", "Reshape", ("Float32[4,5]", "Tuple[Int64,Int64]"), 40),
    "shape": ("shape", "MatMul", ("Float32[2,5]", "Float32[16,8]"), 11),
    "types": ("type", "Add", ("Float32[2,2]", "String"), 19),
}


def explain_text(text: str, path: str = "analyze_fail.ir") -> Explained:
    return explain_dump(irtool.load(text.encode(), name=path), text.split("\n"))


def explain_file(path: Path) -> LoggedFinding:
    (finding,) = explain_text(path.read_text(encoding="utf-8")).findings
    return finding


@pytest.fixture
def sample(samples: Path) -> str:
    path = samples / "analyze_fail" / "rank_0" / "om" / "analyze_fail.ir"
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FAILED)
def test_code_operator_operands_and_line_of_python(material: Path, name: str) -> None:
    finding = explain_file(material / "analyze_fail" / f"{name}.ir")
    assert finding.source is not None
    found = (finding.code, finding.op, finding.operands, finding.source.line)
    assert found == FAILED[name]


def test_the_call_stack_is_outermost_first(sample: str) -> None:
    (finding,) = explain_text(sample).findings
    assert [frame.shown for frame in finding.frames] == [
        "net.py:49: return self.inner(x) + 1",
        "net.py:46: return self.matmul(x, self.w)",
    ]


def test_the_failing_call_is_the_innermost(sample: str) -> None:
    (finding,) = explain_text(sample).findings
    assert finding.call == "%2(CNode_16) = %0(%para0_x, %1)"
    assert finding.line == 117
    assert finding.op == "MatMul"


def test_the_exception_stands_there_as_it_was(sample: str) -> None:
    (finding,) = explain_text(sample).findings
    expected = (
        "For 'MatMul' the input dimensions must be equal, but got 'x1_col': 5 and 'x2_row': 3."
    )
    assert finding.statement == expected


def test_without_exception_the_graphs_tell_the_stack(sample: str) -> None:
    older = sample[sample.index("# IR entry") :]
    (finding,) = explain_text(older).findings
    assert (finding.code, finding.op) == ("compile-failed", "matmul")
    assert [frame.place for frame in finding.frames] == ["net.py:49", "net.py:46"]
    assert finding.operands == ("Float32[2,5]", "Float32[3,4]")


@pytest.mark.parametrize("cut", [200, 900, 2000, 4000, 5500])
def test_a_truncated_dump_gives_what_it_has(sample: str, cut: int) -> None:
    for finding in explain_text(sample[:cut]).findings:
        assert finding.role == "cause"
        assert finding.message


def test_another_dump_holds_no_failure(samples: Path) -> None:
    text = (samples / "mlp_semi_auto" / "step_parallel_begin_0018.ir").read_text(encoding="utf-8")
    found = explain_text(text)
    assert (found.kind, found.findings) == ("dump", ())


@pytest.mark.parametrize(("held", "new"), [("missing", "self.missing"), ("weight", None)])
def test_a_member_of_a_near_name_is_proposed(held: str, new: str | None) -> None:
    cell = "ClassMember: 'Namespace:net..<Net::12>'"
    asked = f"resolve(NameSpace[{cell}], missng)"
    known = f"[0]: ValueNode<Primitive> resolve, [1]: ValueNode<NameSpace> {cell}"
    text = f"""# 1.This shows the exception info:
# Caught exception:
External object has no attribute missng

----------------------------------------------------
- The Traceback of Net Construct Code:
----------------------------------------------------
# 0 In file net.py:7, 8~20
        return self.missng(x)
               ^~~~~~~~~~~
#===============================================================================

# IR entry: @f

subgraph attr:
subgraph @f() {{
  %0(CNode_1) = resolve(NameSpace[{cell}], held)
      : (<External, NoShape>, <External, NoShape>) -> (<null>)

#------------------------> 0
  %1(CNode_2) = {asked}
      : (<External, NoShape>, <External, NoShape>) -> (<null>)
}}
# Order:
#   1: @f:CNode_3{{{known}, [2]: ValueNode<Symbol> {held}}}
"""
    (finding,) = explain_text(text).findings
    assert (None if finding.edit is None else finding.edit.new) == (
        None if new is None else "return self.missing(x)"
    )


def test_branches_that_give_different_types_are_told_with_lines_and_a_cast(material: Path) -> None:
    text = (material / "analyze_fail" / "branches.ir").read_text(encoding="utf-8")
    (finding,) = explain_text(text).findings
    assert finding.message.endswith("different types: Float32 and Float16, on lines 309 and 311")
    assert finding.edit == Edit(
        file="/home/me/net.py", line=311, old="y = self.cast(y, ms.float16)",
        new="y = ops.cast(self.cast(y, ms.float16), mindspore.float32)",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dtype2 = Float16", "dtype2 = Int32"),  # which one is meant nobody can say
        ("                y = self.cast(y, ms.float16)", "                y, _ = self.pair(y)"),
        ("Switch(", "Strange("),
    ],
)
def test_no_cast_is_guessed(material: Path, old: str, new: str) -> None:
    text = (material / "analyze_fail" / "branches.ir").read_text(encoding="utf-8")
    assert old in text
    (finding,) = explain_text(text.replace(old, new)).findings
    assert finding.edit is None


def test_lines_of_two_files_are_not_told_as_if_they_were_of_one(material: Path) -> None:
    text = (material / "analyze_fail" / "branches.ir").read_text(encoding="utf-8")
    text = text.replace("net.py:309", "o.py:309")
    (finding,) = explain_text(text).findings
    assert finding.message.endswith("Float32 and Float16")
    assert finding.edit is None
