"""What lies behind a Gather of which MindSpore notes other rows than each device holds."""

from __future__ import annotations

import pytest

import irtool
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.noted_sizes import _behind
from irtool.sharding.network.report import CheckResult
from irtool.sharding.redistribution import RedistributionStep

ROWS = "(<Tensor[Float32], (16, 8, 64)>)"
INDICES = "Tensor(shape=[16, 8], dtype=Int32, value=[...])"
GATHER = (
    f"  %0(rows) = PrimFunc_Gather(%para1_x, {INDICES}, I64(0), I64(0)) {{instance name: gather}} "
    "primitive_attrs: {in_strategy: ((4, 1), (2, 1)), out_strategy: (OUT)}\n"
    "      : (<Tensor[Float32], (64, 64)>, <Tensor[Int32], (16, 8)>, <Int64, NoShape>, "
    f"<Int64, NoShape>) -> {ROWS}\n"
)
RESHAPE = (
    "  %1(flat) = PrimFunc_Reshape(%0, (I64(128), I64(64))) {instance name: reshape}\n"
    "      : (<Tensor[Float32], (16, 8, 64)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>) -> "
    "(<Tensor[Float32], (128, 64)>)\n"
)


def relu(strategy: str) -> str:
    return (
        "  %1(out) = PrimFunc_ReLU(%0) {instance name: relu} "
        f"primitive_attrs: {{in_strategy: (({strategy}))}}\n      : {ROWS} -> {ROWS}\n"
    )


def checked(behind: str, out: str = "(8, 1, 1)") -> CheckResult:
    result = "%1" if behind else "%0"
    text = (
        "# IR entry: @main\n# Total subgraphs: 1\n\n# Attrs:\n\n# Total params: 1\n# Params:\n"
        "%para1_x: <Tensor[Float32], (64, 64)> : [64, 64]\n\n"
        "subgraph attr:\nsubgraph instance: main : 0x1\nsubgraph @main() {\n"
        f"{GATHER.replace('OUT', out)}{behind}  Return({result})\n      : {ROWS}\n}}\n"
    )
    dump = irtool.loads(text, "net.ir")
    assert not dump.problems
    values = {"device_num": 8, "full_batch": True}
    return check(dump, ParallelContext.from_mapping(values))


# verdicts of MindSpore 2.7.0 for these networks; None: it is not said
@pytest.mark.parametrize(
    ("behind", "accepted"),
    [
        ("", True),
        (RESHAPE, False),
        (relu("4, 1, 1"), False),
        (relu("8, 1, 1"), False),
        (relu("1, 8, 1"), False),
        (relu("2, 4, 1"), True),  # what is gathered is cut to the wanted size again
        (relu("1, 1, 1"), None),
    ],
)
def test_what_follows_decides(behind: str, accepted: bool | None) -> None:
    assert checked(behind).accepted is accepted


def test_the_refusal_says_what_is_held_and_what_is_noted() -> None:
    (finding,) = checked(RESHAPE).findings
    assert (finding.code, finding.op, finding.check) == (
        "out-strategy",
        "Reshape",
        "reshape.cc:InferShape",
    )
    assert "(2, 8, 64)" in finding.message
    assert "(4, 8, 64)" in finding.message


def test_rows_that_are_added_up_everywhere_may_be_reshaped() -> None:
    assert checked(RESHAPE, "(2, 1, 1)").accepted


def test_a_size_that_is_wrong_for_the_next_operator_is_told_with_both() -> None:
    (finding,) = [one for one in checked(relu("1, 1, 1")).findings if "gets" in one.message]
    assert finding.severity == "warning"
    assert "%1 gets (8, 8, 64) instead of (16, 8, 64)" in finding.message
    assert "each device holds (2, 8, 64) of the result of %0" in finding.message


def test_what_the_network_returns_in_a_wrong_size_is_no_reason_to_refuse() -> None:
    report = checked("")
    assert report.accepted
    assert "what the network returns has a wrong size" in report.findings[0].message


@pytest.mark.parametrize("out", ["(2, 1, 1)", "(4, 1, 1)"])
def test_where_as_much_is_held_as_noted_nothing_is_said(out: str) -> None:
    assert not [one for one in checked("", out).findings if "each device holds" in one.message]


CUT = RedistributionStep("StridedSlice", (8, 8), (4, 8), axis=0, count=2, index=1)
GATHERED = RedistributionStep("AllGather", (4, 8), (16, 8), axis=0, ranks=(0, 1, 2, 3))
FOLDED = RedistributionStep("Reshape", (4, 8), (2, 2, 8))


@pytest.mark.parametrize(
    ("held", "steps", "left"),
    [
        ((4, 8), (), (4, 8)),
        ((8, 8), (CUT,), (4, 8)),
        ((16, 8), (CUT,), (4, 8)),  # it ends where it should
        ((7, 8), (CUT,), (3, 8)),  # what is there behind its beginning
        ((4, 8), (CUT,), (0, 8)),
        ((2, 8), (CUT,), (0, 8)),
        ((2, 8), (GATHERED,), (8, 8)),
        ((2, 4), (GATHERED,), (8, 4)),
        ((4, 8), (FOLDED,), (2, 2, 8)),
        ((8, 4), (FOLDED,), (2, 2, 8)),  # as many elements
        ((2, 8), (FOLDED,), None),
        ((8, 8), (FOLDED,), None),
        ((8, 8), (CUT, FOLDED), (2, 2, 8)),
        ((6, 8), (CUT, FOLDED), None),
        ((8, 8), (CUT, GATHERED), (16, 8)),
        ((6, 8), (CUT, GATHERED), (8, 8)),
    ],
)
def test_a_chain_made_for_another_slice_makes_something_else_of_it(
    held: tuple[int, ...], steps: tuple[RedistributionStep, ...], left: tuple[int, ...] | None
) -> None:
    assert _behind(held, steps) == left
