"""Plans: legal, no dearer than what they replace, under the constraints, priced as check says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import default_machine
from irtool.ir.dump import Dump
from irtool.planning.cost.structure import structure_of
from irtool.planning.files.shard_lines import shard_lines
from irtool.planning.files.strategy_files import parameter_file
from irtool.planning.plans.plan import CannotPlan, Plan, plain_dump, plan
from irtool.planning.plans.step.report import step_cost
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

SAMPLES = Path(__file__).parents[3] / "samples"
MACHINE = default_machine()


def context(devices: int = 8, **more: object) -> ParallelContext:
    given = {"devices": devices, "full_batch": True, **more}
    return ParallelContext.from_mapping(given, mode="auto_parallel", search="sharding_propagation")


@pytest.fixture(scope="module")
def begin() -> Dump:
    return irtool.load(str(SAMPLES / SAMPLE))


@pytest.fixture(scope="module")
def made(begin: Dump) -> Plan:
    return plan(begin, context(), MACHINE)


SAMPLE = "mlp_recursive_search/step_parallel_begin_0019.ir"


def test_a_plan_passes_check(made: Plan) -> None:
    assert made.report.accepted is True


def test_a_plan_is_no_dearer_than_what_the_dump_had(made: Plan) -> None:
    assert made.before is not None
    assert made.after.seconds <= made.before.seconds * (1 + 1e-9)


def test_without_a_memory_limit_the_plan_is_the_optimum(made: Plan) -> None:
    assert made.gap == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("alltoall", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_the_search_prices_a_plan_as_check_predicts_it(
    begin: Dump, alltoall: bool, shared: bool
) -> None:
    """The bound is of the search's tables, the cost of check's report: equal at the optimum."""
    under = replace(context(), enable_alltoall=alltoall, parallel_optimizer=shared, threshold=0)
    found = plan(begin, under, MACHINE)
    assert found.lower_bound == pytest.approx(found.after.seconds, rel=1e-9)


def test_the_printed_plan_is_read_back_as_the_same_plan(made: Plan) -> None:
    text = irtool.dumps(made.dump)
    again = irtool.load(text.encode("utf-8", "surrogateescape"))
    report = check(again, made.context)
    cost = step_cost(structure_of(again, made.context), report, MACHINE)
    assert cost.seconds == pytest.approx(made.after.seconds)


def test_bytes_by_collective_are_those_of_checks_report() -> None:
    """The second MatMul of this network is split along its sum: an AllReduce follows it."""
    dump = irtool.load(str(SAMPLES / "mlp_semi_auto/step_parallel_begin_0018.ir"))
    under = ParallelContext(devices=8, full_batch=True)
    report = check(dump, under)
    predicted = sum(
        item.bytes or 0
        for each in report.operators
        for item in each.collectives
        if item.op == "AllReduce"
    )
    cost = step_cost(structure_of(dump, under), report, MACHINE)
    priced = sum(
        each.size
        for item in cost.items
        if item.kind == "operator"
        for each in item.communications
        if each.op == "AllReduce" and each.phase == "forward"
    )
    assert predicted > 0
    assert priced == predicted


def test_a_pinned_operator_keeps_its_strategy(begin: Dump) -> None:
    node = next(node for node in begin.nodes() if node.op == "MatMul")
    shape = [len(row) for row in node.in_strategy or ()]
    assert shape == [2, 2]
    found = plan(begin, context(), MACHINE, pinned={node: ((1, 8), (1, 8))})
    item = next(each for each in found.operators if each.node.id == node.id)
    assert item.pinned
    assert item.after == ((1, 8), (1, 8))
    assert found.after.seconds >= plan(begin, context(), MACHINE).after.seconds


def test_an_illegal_pin_is_refused_by_name(begin: Dump) -> None:
    node = next(node for node in begin.nodes() if node.op == "MatMul")
    with pytest.raises(CannotPlan, match=f"line {node.line}"):
        plan(begin, context(), MACHINE, pinned={node: ((7, 1), (1, 1))})


def test_outside_of_a_region_nothing_changes(begin: Dump) -> None:
    region = frozenset(node for node in begin.nodes() if node.op == "MatMul")
    found = plan(begin, context(), MACHINE, region=region)
    assert all(item.node.op == "MatMul" for item in found.operators if item.changes)


def test_a_memory_limit_is_kept(begin: Dump, made: Plan) -> None:
    limit = int(made.after.memory.total * 1.0001)
    found = plan(begin, context(), MACHINE, memory_limit=limit)
    assert found.after.memory.total <= limit
    assert found.lower_bound <= found.after.seconds * (1 + 1e-9)


def test_a_limit_that_nothing_fits_into_is_refused_with_what_is_needed(begin: Dump) -> None:
    with pytest.raises(CannotPlan, match="the least that was found"):
        plan(begin, context(), MACHINE, memory_limit=1000)


def test_an_odd_number_of_devices_is_refused_with_legal_ones(begin: Dump) -> None:
    with pytest.raises(CannotPlan, match="8 or 16 would do"):
        plan(begin, context(), MACHINE, devices=12)


def test_a_dump_without_strategies_is_planned(begin: Dump) -> None:
    found = plan(plain_dump(begin), context(), MACHINE)
    assert found.before is None
    assert found.report.accepted is True


def test_other_numbers_of_devices_can_be_planned_for(begin: Dump) -> None:
    found = plan(begin, context(), MACHINE, devices=16)
    assert found.report.devices == 16
    assert found.report.accepted is True


# -- forms ---------------------------------------------------------------------------------------


def test_the_parameter_file_is_keyed_by_primitive_and_weight(made: Plan) -> None:
    file, _ = parameter_file(made)
    entries = file["parallel_strategy_item"]
    assert isinstance(entries, dict)
    names = {item.name for item in made.report.parameters}
    assert entries
    assert all(key.partition("_")[2] in names for key in entries)


def test_shard_lines_are_calls(made: Plan) -> None:
    lines = [line for line in shard_lines(made) if line and not line.startswith("#")]
    assert all(".shard(in_strategy=((" in line for line in lines)
