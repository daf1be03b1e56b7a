"""One account of what is kept: ``cost`` predicts what a compiled train step holds."""

from __future__ import annotations

from pathlib import Path

import pytest

import irtool
from irtool.cluster.machine import built_in
from irtool.cluster.memory import memory
from irtool.ir.parameter_roles import parameter_roles
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.cost_report import step_cost
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

DUMPS = Path(__file__).parents[2] / "cluster" / "dumps"
STEPS = [
    "data_parallel", "own_lion", "own_factor", "own_master", "accumulate", "loss_scale",
    "convolutions",
]  # fmt: skip


def dump_of(step: str, kind: str) -> irtool.Dump:
    (file,) = (DUMPS / step).glob(f"*{kind}_[0-9]*.ir*")
    return irtool.load(file)


@pytest.mark.parametrize("step", STEPS)
def test_weights_and_states_are_those_of_the_compiled_step(step: str) -> None:
    begin, validate = dump_of(step, "step_parallel_begin"), dump_of(step, "validate")
    context = ParallelContext(devices=8, full_batch=True)
    told = step_cost(structure_of(begin, context), check(begin, context), built_in("ascend_910b"))
    roles = parameter_roles(validate)
    held = {"weight": 0, "state": 0}
    for item in validate.parameters:
        role = roles[item.name].role
        if role in held:
            held[role] += item.size or 0
    assert told.memory.states == held["state"]
    assert told.memory.weights == held["weight"]


@pytest.mark.parametrize("step", STEPS)
def test_memory_counts_each_parameter_for_what_it_is(step: str) -> None:
    validate = dump_of(step, "validate")
    roles = parameter_roles(validate)
    causes = {item.name: item.cause for item in memory(validate).static}
    expected = {"weight": "parameters", "state": "optimizer state", "input": "inputs",
                "accumulated gradient": "accumulated gradients", "other": "other"}  # fmt: skip
    assert roles
    for name, each in roles.items():
        assert causes[name] == expected[each.role]
