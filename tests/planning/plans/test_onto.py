"""Plans onto an old one: what is the same stays, what cannot stay is named."""

from __future__ import annotations

from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.planning.plans.plan import plain_dump, plan
from irtool.planning.search.tables import CannotPlan
from irtool.sharding.network.context import ParallelContext

SAMPLES = Path(__file__).parents[3] / "samples"
CONTEXT = ParallelContext(
    devices=8, mode="auto_parallel", search="sharding_propagation", full_batch=True
)
MACHINE = default_machine()


def load(name: str) -> Dump:
    return irtool.load(str(SAMPLES / name))


@pytest.fixture(scope="module")
def old() -> Dump:
    return load("mlp_recursive_search/step_parallel_begin_0019.ir")


def test_what_is_unchanged_keeps_its_strategy(old: Dump) -> None:
    found = plan(plain_dump(old), CONTEXT, MACHINE, onto=(old, CONTEXT))
    assert found.onto is not None
    assert not found.onto.added
    pairs = zip(found.dump.nodes(), old.nodes(), strict=True)
    before = {new: same.in_strategy for new, same in pairs}
    assert all(item.after == before[item.node] for item in found.operators)


def test_operators_of_other_shapes_are_planned_anew(old: Dump) -> None:
    found = plan(load("mlp_loop/step_parallel_begin_0019.ir"), CONTEXT, MACHINE,
                 onto=(old, CONTEXT))  # fmt: skip
    assert found.onto is not None
    assert not found.onto.kept
    assert all("operands were" in item.why or "it was" in item.why for item in found.onto.not_kept)


def test_a_pin_goes_before_the_old_plan(old: Dump) -> None:
    node = next(node for node in old.nodes() if node.op == "ReLU")
    found = plan(old, CONTEXT, MACHINE, onto=(old, CONTEXT), pinned={node: ((8, 1),)})
    assert found.onto is not None
    assert [item.node for item in found.onto.not_kept] == [node]
    assert "pinned" in found.onto.not_kept[0].why


def test_an_old_dump_without_strategies_is_refused(old: Dump) -> None:
    with pytest.raises(CannotPlan, match="no strategies"):
        plan(old, CONTEXT, MACHINE, onto=(plain_dump(old), CONTEXT))


def test_the_border_of_everything_costs_nothing(old: Dump) -> None:
    found = plan(old, CONTEXT, MACHINE, region=frozenset(old.nodes()))
    assert found.border is not None
    assert found.border.seconds == pytest.approx(0, abs=1e-12)
    assert found.border.step_seconds == pytest.approx(0, abs=1e-12)


def test_a_frozen_rest_is_no_cheaper_than_a_plan_of_all(old: Dump) -> None:
    region = frozenset(node for node in old.nodes() if node.op == "MatMul")
    found = plan(old, CONTEXT, MACHINE, region=region)
    assert found.border is not None
    assert found.border.frozen.total >= found.border.free.total
    assert found.border.operators == len(region)
