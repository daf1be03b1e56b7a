"""MindSpore's own searches as plans: legal, priced like others, refused where MindSpore refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

import irtool
from irtool.cluster.context.model import RunContext
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.planning.plans.imitation import imitate
from irtool.planning.plans.plan import CannotPlan, plan
from irtool.report.planning.answer import plan_answer
from irtool.report.planning.report import answer_text
from irtool.report.planning.view import PlanView
from irtool.sharding.network.context import ParallelContext

MACHINE = default_machine()
BEGIN = "mlp_recursive_search/step_parallel_begin_0019.ir"


@pytest.fixture(scope="module")
def begin(samples: Path) -> Dump:
    return irtool.load(str(samples / BEGIN))


def context(devices: int = 8) -> ParallelContext:
    given = {"devices": devices, "full_batch": True}
    return ParallelContext.from_mapping(given, mode="auto_parallel", search="recursive_programming")


def test_what_mindspore_chose_is_chosen_and_changes_nothing(begin: Dump) -> None:
    made = imitate(begin, context(), MACHINE, "recursive")
    assert made.algorithm == "recursive"
    assert not [item for item in made.operators if item.changes]
    assert made.before is not None
    assert made.before.seconds == pytest.approx(made.after.seconds)


def test_no_search_of_mindspores_is_cheaper_than_the_optimum(begin: Dump) -> None:
    for devices in (8, 16, 64):
        made = imitate(begin, context(), MACHINE, "recursive", devices=devices)
        best = plan(begin, context(), MACHINE, devices=devices)
        assert made.report.accepted is True
        assert best.after.seconds <= made.after.seconds * (1 + 1e-9)


def test_there_is_no_bound(begin: Dump) -> None:
    made = imitate(begin, context(), MACHINE, "recursive")
    view = PlanView(made, BEGIN, None)
    shown = plan_answer(view, RunContext(None))
    assert made.gap is None
    assert shown.algorithm == "recursive"
    assert shown.cost.lower_bound is None
    assert "optimum" not in answer_text(made)


@pytest.mark.parametrize(
    ("devices", "near"),
    [(12, "8 or 16"), (48, "32 or 64"), (2048, "1024")],
)
def test_numbers_of_devices_that_it_does_not_take_are_answered_with_others(
    begin: Dump, devices: int, near: str
) -> None:
    with pytest.raises(CannotPlan, match=f"{near} would do"):
        imitate(begin, context(), MACHINE, "recursive", devices=devices)


def test_the_propagation_is_not_guessed_for_other_numbers_than_powers_of_two(begin: Dump) -> None:
    with pytest.raises(CannotPlan, match="16 or 32 would do"):
        imitate(begin, context(), MACHINE, "propagation", devices=24)


def test_pinned_operators_stay(begin: Dump) -> None:
    product = next(node for node in begin.nodes() if node.op == "MatMul")
    made = imitate(begin, context(), MACHINE, "recursive", pinned={product: ((1, 1), (8, 1))})
    pinned = [item for item in made.operators if item.pinned]
    assert [(item.node.name, item.after) for item in pinned] == [(product.name, ((1, 1), (8, 1)))]


def test_the_propagation_is_a_plan_too(samples: Path) -> None:
    dump = irtool.load(str(samples / "mlp_propagation_layouts" / "step_parallel_begin_0020.ir"))
    made = imitate(dump, context(), MACHINE, "propagation")
    assert made.algorithm == "propagation"
    assert made.report.accepted is True
    assert not [item for item in made.operators if item.changes]
    assert "optimum" not in answer_text(made)
