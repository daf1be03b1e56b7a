"""What operators cost by themselves, of all strategies at once: as it is told of each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import irtool
from irtool.cluster.machine import MeasuredTime, default_machine
from irtool.planning.cost.costs import compute_seconds, operator_communications, seconds_of
from irtool.planning.search.own_costs import (
    Slices,
    carried_bytes,
    kept_bytes,
    own_bytes,
    own_seconds,
    seconds_of_form,
)
from irtool.planning.search.problem import planned_context, problem_of
from irtool.planning.search.tables import Model, model_of
from irtool.sharding.network.context import ParallelContext

MACHINE = default_machine()
SAMPLES = Path(__file__).parents[3] / "samples"
CONTEXT = ParallelContext(devices=8, mode="auto_parallel", full_batch=True)
NETWORKS = ("gpt", "mlp_recursive_search")


def model(network: str, *, counts_all: bool = False) -> Model:
    begin = next((SAMPLES / network).rglob("step_parallel_begin*.ir"))
    target = planned_context(CONTEXT, 16)
    problem = problem_of(irtool.load(str(begin)), CONTEXT, target, counts_all=counts_all)
    return model_of(problem.structure, MACHINE, {}, {})


@pytest.mark.parametrize("network", NETWORKS)
def test_seconds_are_those_of_each_strategy(network: str) -> None:
    tables = model(network)
    structure = tables.structure
    for node, candidates in zip(tables.nodes, tables.candidates, strict=True):
        call = structure.calls[node].call.call
        gradient, back = node in structure.with_gradient, structure.communicates_back(node)
        computing, communicating = own_seconds(structure, node, candidates, MACHINE)
        assert len(computing) == len(communicating) == len(candidates)
        for place, item in enumerate(candidates.items):
            alone = compute_seconds(call, item.judgement, MACHINE, gradient=gradient)
            moved = operator_communications(call, item.judgement, MACHINE, gradient=back)
            assert computing[place] == pytest.approx(alone, rel=1e-12), (node.op, item)
            assert communicating[place] == pytest.approx(seconds_of(moved), rel=1e-12), (
                node.op,
                item,
            )


@pytest.mark.parametrize("counts_all", [False, True])
@pytest.mark.parametrize("network", NETWORKS)
def test_kept_bytes_are_those_of_each_strategy(network: str, counts_all: bool) -> None:
    tables = model(network, counts_all=counts_all)
    structure = tables.structure
    held = kept_bytes if counts_all else carried_bytes
    for node, candidates in zip(tables.nodes, tables.candidates, strict=True):
        column = own_bytes(structure, node, candidates)
        alone = [held(structure, node, item.judgement) for item in candidates.items]
        np.testing.assert_allclose(column, alone, rtol=1e-12)


def test_what_was_measured_or_picks_rows_is_asked_strategy_by_strategy() -> None:
    tables = model("gpt")
    measured = replace(MACHINE, measured={("MatMul", "Float32", ((1, 1),)): MeasuredTime(1.0)})
    at_once: dict[str, bool] = {}
    for node, candidates in zip(tables.nodes, tables.candidates, strict=True):
        for family in candidates.families[:1]:
            slices = Slices(family.form, family.values)
            plain, timed = (
                seconds_of_form(slices, machine, gradient=True, back=True)
                for machine in (MACHINE, measured)
            )
            at_once[node.op] = plain is not None
            assert timed is None
    assert at_once["MatMul"]
    assert not at_once["Gather"]
