"""Reshape takes the layouts of its neighbours, and is replaced by what leads from one to the other.

The networks are ``GeLU(Reshape(ReLU(x), shape))`` on 8 devices; the chains are what stood between
ReLU and GeLU after MindSpore 2.7.0's parallel pass, as rank 0 has it.
"""

from __future__ import annotations

import pytest

from irtool.operators.layout import Shape
from tests.sharding.families.records import Accepted, Refused

BOTH = (0, 1)
PAIRS = (0, 2)
CHAINS = {
    "slices that are one block": ((8, 1), (8, 16), (8, 1), [("Reshape", ())]),
    "slices that are one block, repeated": ((2, 1), (2, 64), (2, 1), [("Reshape", ())]),
    "columns that are gathered": (
        (1, 8),
        (8, 16),
        (8, 1),
        [
            ("Reshape", ()),
            ("AllGather", tuple(range(8))),
            ("Split", ()),
            ("Concat", ()),
            ("Reshape", ()),
            ("StridedSlice", ()),
        ],
    ),
    "a longer row": (
        (2, 4),
        (4, 32),
        (4, 2),
        [
            ("Reshape", ()),
            ("AllGather", BOTH),
            ("Split", ()),
            ("Concat", ()),
            ("AllGather", PAIRS),
            ("Split", ()),
            ("Concat", ()),
            ("Reshape", ()),
            ("StridedSlice", ()),
        ],
    ),
    "one more dimension": (
        (2, 4),
        (2, 4, 16),
        (2, 2, 2),
        [
            ("Reshape", ()),
            ("AllGather", BOTH),
            ("Split", ()),
            ("Concat", ()),
            ("AllGather", PAIRS),
            ("Split", ()),
            ("Concat", ()),
            ("StridedSlice", ()),
            ("StridedSlice", ()),
            ("Reshape", ()),
        ],
    ),
}


def network(before: Shape, shape: Shape, after: Shape) -> str:
    """The three statements as MindSpore prints them before its parallel pass."""
    target = ", ".join(f"I64({size})" for size in shape)
    numbers = ", ".join("NoShape" for _ in shape)
    return f"""
        %2(CNode_3) = PrimFunc_ReLU(%1) primitive_attrs: {{in_strategy: ({before})}}
            : (<Tensor[Float32], (16, 8)>) -> (<Tensor[Float32], (16, 8)>)

        %3(CNode_4) = PrimFunc_Reshape(%2, ({target}))
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64*{len(shape)}], TupleShape({numbers})>) ->
            (<Tensor[Float32], {shape}>)

        %4(CNode_5) = PrimFunc_GeLU(%3) primitive_attrs: {{in_strategy: ({after})}}
            : (<Tensor[Float32], {shape}>) -> (<Tensor[Float32], {shape}>)
    """


@pytest.mark.parametrize(("before", "shape", "after", "chain"), CHAINS.values(), ids=CHAINS)
def test_what_stands_in_its_place(
    before: Shape, shape: Shape, after: Shape, chain: list[tuple[str, Shape]]
) -> None:
    report = Accepted(network(before, shape, after), op="Reshape").report()
    assert report.accepted
    (inside,) = [item for item in report.redistributions if item.replaces]
    assert [(step.op, step.ranks) for step in inside.operators or ()] == chain
    assert not any(item.operators for item in report.redistributions if item is not inside)


RECORDS = {
    "a strategy of its own": Refused(
        """
        %2(CNode_4) = PrimFunc_Reshape(%1, (I64(8), I64(16))) primitive_attrs: {in_strategy:
            ((2, 4))}
            : (<Tensor[Float32], (16, 8)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>) ->
            (<Tensor[Float32], (8, 16)>)
        """,
        says="Setting strategy for Reshape goes for nothing!",
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_it_has_no_strategy_of_its_own(record: Refused) -> None:
    assert record.report().accepted is False
