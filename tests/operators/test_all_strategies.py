"""Nothing that is said of an operator, under any small strategy, changes unnoticed.

MindSpore's own answers to some of these strategies are replayed in ``test_records.py``.
"""

from __future__ import annotations

import pytest

from benchmarks import net_judgements
from benchmarks.net_judgements import calls, kept_now, layouts_of, strategies
from irtool.operators.call import OperatorCall, tensor

KEPT = net_judgements.kept()


@pytest.mark.parametrize("operator", calls())
def test_what_is_said_is_what_is_kept(operator: str) -> None:
    """``python benchmarks/net_judgements.py --show NAME`` on both revisions shows what differs."""
    assert kept_now(operator) == KEPT.get(operator), "is it meant? benchmarks/net.py --record"


def test_nothing_else_is_kept() -> None:
    assert list(KEPT) == list(calls())


def test_most_operators_are_legal_under_some_and_illegal_under_others() -> None:
    counts = [line.split("\t")[2] for lines in KEPT.values() for line in lines[1:]]
    assert len(counts) > 800
    assert sum(not text.startswith("0 legal") for text in counts) > 0.9 * len(counts)
    assert sum(", 0 illegal" not in text for text in counts) > 0.8 * len(counts)


def test_strategies_cut_each_dimension_each_pair_and_what_is_alike() -> None:
    call = OperatorCall("MatMul", (tensor(8, 16), tensor(16, 32)), (tensor(8, 32),))
    asked = list(strategies(call))
    assert asked[0] == ((1, 1), (1, 1))
    assert {((2, 1), (1, 1)), ((1, 2), (2, 1)), ((2, 1), (1, 2)), ((3, 1), (1, 1))} <= set(asked)
    assert len(asked) == len(set(asked)) <= net_judgements.MOST
    layouts = layouts_of(call, ((1, 2), (2, 1)))
    assert layouts is not None
    assert [layout.tensor_map for layout in layouts] == [(-1, 0), (0, -1)]
    assert layouts[0].device_matrix == (4, 2)
