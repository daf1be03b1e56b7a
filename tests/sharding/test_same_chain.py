"""When two chains of inserted operators do the same."""

from __future__ import annotations

import pytest

from irtool.sharding.against.edges import Step, same_chain

GATHER: Step = ("AllGather", (0, 1))
SLICE: Step = ("StridedSlice", (0, 0), (4, 8))


@pytest.mark.parametrize(
    ("actual", "wanted", "with_reshapes", "without"),
    [
        ([], [], True, True),
        ([GATHER, SLICE], [GATHER, SLICE], True, True),
        ([SLICE, GATHER], [GATHER, SLICE], False, False),
        ([GATHER], [GATHER, SLICE], False, False),
        ([GATHER, SLICE], [GATHER], False, False),
        ([("AllGather", (0, 2))], [GATHER], False, False),
        ([("StridedSlice", (0, 0), (4, 4))], [SLICE], False, False),
        ([("Reshape", (4, 8)), GATHER], [GATHER], False, True),
        ([("Reshape", (4, 8))], [("Reshape", (4, 8))], True, True),
        ([("Reshape", (4, 8))], [("Reshape", (8, 4))], False, True),
        ([("Reshape", (4, -1))], [("Reshape", (4, 8))], True, True),  # as the user wrote it
        ([("Reshape", (-1, 8))], [("Reshape", (4, 8))], True, True),
        ([("Reshape", (4, 8))], [("Reshape", (4, -1))], False, True),
        ([("Reshape", (4, 1))], [("Reshape", (4, 8))], False, True),
        ([("Reshape", (32,))], [("Reshape", (4, 8))], False, True),
        ([("Reshape", None)], [("Reshape", (4, 8))], True, True),  # a computed shape
        ([("Reshape", (4, 8))], [("Reshape", None)], False, True),
        ([("Reshape", (4, 8))], [GATHER], False, False),
        ([GATHER], [("Reshape", (4, 8))], False, False),
        ([("Concat", 1)], [("Concat", 1)], True, True),
        ([("Concat", 0)], [("Concat", 1)], False, False),
    ],
)
def test_what_is_the_same(
    actual: list[Step], wanted: list[Step], with_reshapes: bool, without: bool
) -> None:
    assert same_chain(actual, wanted, True) == with_reshapes
    assert same_chain(actual, wanted, False) == without
