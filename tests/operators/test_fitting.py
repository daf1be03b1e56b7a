"""A call is held against its rule's signature before the rule is asked."""

from __future__ import annotations

import pytest

from irtool.operators.call import OperatorCall
from irtool.operators.fitting import check_inputs
from irtool.operators.judgement import Unsure
from irtool.operators.notation_reader import read_rules
from irtool.operators.table import rule_of
from irtool.sharding.judge import judge
from tests.sharding.calls import call, context

(FUNCTION,) = read_rules("Mine: function conv2d takes [n c h w] [o i . .] [o]?\n")
(NOTATION,) = read_rules("Mine: [n c] [c]? -> [n c]\n")
(OPEN,) = read_rules("Mine: [*x c] [c]+ -> [*x c]\n")


def mine(*shapes: list[int]) -> OperatorCall:
    return call("Mine", *shapes, out=[1])


@pytest.mark.parametrize(
    ("rule", "fits", "reason"),
    [
        (FUNCTION, mine([1, 1, 1, 1], [1, 1, 1, 1]), ""),
        (FUNCTION, mine([1, 1, 1, 1], [1, 1, 1, 1], [1]), ""),
        (FUNCTION, mine([1, 1, 1, 1], [1, 1, 1, 1], [1], [1, 1]), ""),
        (FUNCTION, mine([1, 1, 1, 1], [1, 1, 1, 1], [1, 1]), "1 axis, input 2 has rank 2"),
        (FUNCTION, mine([1, 1, 1, 1]), "no place for 1 tensor inputs"),
        (FUNCTION, mine([1, 1, 1, 1], [1, 1]), "4 axes, input 1 has rank 2"),
        (FUNCTION, mine([1, 1, 1], [1, 1, 1, 1]), "4 axes, input 0 has rank 3"),
        (NOTATION, mine([2, 2]), ""),
        (NOTATION, mine([2, 2], [2]), ""),
        (NOTATION, mine([2, 2], [2], [2]), "no place for 3 tensor inputs"),
        (NOTATION, mine(), "no place for 0 tensor inputs"),
        (OPEN, mine([2], [2]), ""),
        (OPEN, mine([2, 2, 2], [2], [2]), ""),
        (OPEN, mine([], [2]), "at least 1 axis, input 0 has rank 0"),
    ],
)
def test_inputs_of_another_number_or_rank_are_named(
    rule: object, fits: OperatorCall, reason: str
) -> None:
    if not reason:
        check_inputs(rule, fits)  # type: ignore[arg-type]
        return
    with pytest.raises(Unsure, match=reason):
        check_inputs(rule, fits)  # type: ignore[arg-type]


def test_such_a_call_is_not_judged() -> None:
    found = judge(call("MatMul", [8, 4], out=[8, 4]), ((8, 1),), context(8))
    assert (found.verdict, found.reasons[0].code) == ("unknown", "unknown")
    assert rule_of("MatMul") is not None
    made = judge(call("MatMul", [8, 4], out=[8, 4]), None, context(8))
    assert made.verdict == "unknown"


@pytest.mark.parametrize("strategy", [None, ((2, 1),)])
def test_a_router_without_choices_of_experts_is_not_judged(
    strategy: tuple[tuple[int, ...], ...] | None,
) -> None:
    found = judge(call("TopKRouter", [4, 16], out=[4, 4]), strategy, context(8))
    assert found.verdict == "unknown"
    assert "no choices of experts" in found.reasons[0].message


@pytest.mark.parametrize("given", [(), ((0, 0),), ((0, 0), (4, 16))])
@pytest.mark.parametrize("strategy", [((1, 1),), ((1, 2),)])
def test_a_slice_whose_inputs_are_not_all_there_is_not_judged(
    given: tuple[tuple[int, int], ...], strategy: tuple[tuple[int, ...], ...]
) -> None:
    found = judge(call("StridedSlice", [-1, 16], *given, out=[-1, 16]), strategy, context(8))
    assert found.verdict == "unknown"


@pytest.mark.parametrize("shapes", [([8],), ([8, 8],), ([8], [8, 8]), ([8, 8], [8])])
def test_what_is_no_product_of_matrices_has_no_splits_of_one(shapes: tuple[list[int], ...]) -> None:
    from irtool.planning.propagation.choices import product_splits

    assert list(product_splits(call("MatMul", *shapes, out=[8]), 8)) == []
    assert list(product_splits(call("MatMul", [8, 8], [8, 8], out=[8, 8]), 2))
