"""Same network, same machine, same seconds: what ``cost`` predicts, ``comm groups`` counts."""

from __future__ import annotations

from pathlib import Path

import pytest

import irtool
from irtool.cluster.computing import clock_of, overlaps
from irtool.cluster.groups import group_report
from irtool.cluster.machine import Machine, built_in, machine_from
from irtool.cluster.ranks import single
from irtool.planning.cost.structure import structure_of
from irtool.planning.plans.step.axes import axis_costs
from irtool.planning.plans.step.report import StepCost, step_cost
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from tests.records import records
from tests.sharding.network import test_networks as compiled_networks

DUMPS = Path(__file__).parents[2] / "cluster" / "dumps"
PLAIN = ParallelContext(devices=8, full_batch=True)
NETWORKS = {
    "data_parallel": PLAIN,
    "convolutions": PLAIN,
    "mlp_semi_auto": PLAIN,
    "gpt": PLAIN,
    "shard_size_4": ParallelContext(
        devices=8, full_batch=True, parallel_optimizer=True, weight_shard_size=4
    ),
    "recomputed": ParallelContext(
        devices=16,
        dataset=((4, 1), (4, 1)),
        enable_alltoall=True,
        parallel_optimizer=True,
        threshold=0,
        gradients_mean=True,
    ),
    "pipeline_run/rank_0": ParallelContext(devices=8, stages=2, full_batch=True),
    "pipeline_run/rank_4": ParallelContext(devices=8, stages=2, rank=4, full_batch=True),
}
SLOW = machine_from(
    {
        "levels": [
            {"name": "in", "devices": 4, "bandwidth": 3e9, "start": 1e-5},
            {"name": "out", "bandwidth": 1e9, "latency": 2e-5},
        ],
        "flops": {"Float32": 1e12},
        "memory_bandwidth": 1e11,
    }
)
IN_PHASES = machine_from(
    {
        "hierarchical": True,
        "levels": [
            {"name": "in", "devices": 4, "bandwidth": 3e9, "start": 1e-5},
            {"name": "out", "bandwidth": 1e9, "latency": 2e-5},
        ],
        "flops": {"Float32": 1e12},
        "memory_bandwidth": 1e11,
    }
)
MACHINES = (built_in("ascend_910b"), built_in("gpu_a100"), SLOW, IN_PHASES)


def dump_of(samples: Path, network: str, kind: str) -> irtool.Dump:
    own = DUMPS / network
    (file,) = (own if own.exists() else samples / network).glob(f"*{kind}_[0-9]*.ir*")
    return irtool.load(file)


def predicted(samples: Path, network: str, machine: Machine) -> StepCost:
    begin, context = dump_of(samples, network, "step_parallel_begin"), NETWORKS[network]
    return step_cost(structure_of(begin, context), check(begin, context), machine)


@pytest.mark.parametrize("machine", MACHINES, ids=["ascend", "a100", "slow", "in phases"])
@pytest.mark.parametrize("network", NETWORKS)
def test_every_axis_takes_as_long_as_it_is_said_to(
    samples: Path, network: str, machine: Machine
) -> None:
    validate = dump_of(samples, network, "validate")
    cluster = single(validate, NETWORKS[network].rank, NETWORKS[network].devices)
    by_axis = group_report(cluster, machine).by_axis
    counted = {axis: total.seconds for axis, total in by_axis.items()}
    told = {each.axis: each.seconds for each in axis_costs(predicted(samples, network, machine))}
    assert told
    for axis in {*counted, *told}:
        assert told.get(axis) == pytest.approx(counted.get(axis), rel=1e-9), axis


@pytest.mark.parametrize("network", NETWORKS)
def test_what_could_hide_takes_as_long_and_next_to_nothing_of_one_bucket_does(
    samples: Path, network: str
) -> None:
    machine = built_in("ascend_910b")
    one = single(
        dump_of(samples, network, "validate"), NETWORKS[network].rank, NETWORKS[network].devices
    ).ranks
    (rank,) = one.values()
    seen = overlaps(rank, machine, clock_of(rank, machine))
    told = predicted(samples, network, machine).overlaps
    for mine, theirs in zip(told, seen, strict=True):
        assert mine.hideable == pytest.approx(theirs.hideable, rel=1e-9)


def test_one_bucket_of_gradients_waits_for_the_last_one(samples: Path) -> None:
    machine = built_in("ascend_910b")
    sums, _ = predicted(samples, "data_parallel", machine).overlaps
    assert sums.exposed == pytest.approx(sums.hideable)
    (rank,) = single(dump_of(samples, "data_parallel", "validate"), 0, 8).ranks.values()
    seen, _ = overlaps(rank, machine, clock_of(rank, machine))
    assert seen.exposed == pytest.approx(sums.exposed, abs=1e-5)  # small launches beside them


PIPELINES = records(compiled_networks.HERE / "pipelines.jsonl.xz")
SHARED = records(Path(__file__).parent / "shared_sums.jsonl.xz")
"""Accumulated gradients that two of several replicas' optimizers share (MindSpore 2.7.0): summed of
what was scattered in one stage and where the sums are shared, whole in a pipeline; what a pipeline
scatters of each micro-batch has fusion numbers of its own (1, 101, 201, …)."""
COMPILED = {
    name: record
    for name, record in (compiled_networks.NETWORKS | PIPELINES | SHARED).items()
    if "validate" in record.dumps
}
"""Random networks. One clips by the norm of all gradients, whose sum stands at no operator; of one
the stages are cut late, so that its cells run once for each of four micro-batches."""


@pytest.mark.parametrize("name", COMPILED)
def test_what_is_not_told_as_unknown_is_communicated(name: str) -> None:
    """Recomputed cells, losses, micro-batches: all that the compiled graph communicates."""
    record = COMPILED[name]
    begin, context = record.dump("begin"), record.context
    report = check(begin, context)
    cost = step_cost(structure_of(begin, context), report, MACHINES[0])
    cluster = single(record.dump("validate"), context.rank, context.devices)
    counted = group_report(cluster, MACHINES[0]).by_axis
    told = sum(each.seconds for each in axis_costs(cost))
    there = sum(total.seconds for total in counted.values())
    if cost.unknown:
        assert told <= there * (1 + 1e-9)
    else:
        assert told == pytest.approx(there, rel=1e-9)


def test_what_runs_again_is_in_no_share(samples: Path) -> None:
    """A decoder whose cells are recomputed: two sums, two gathers and an exchange once more."""
    cost = predicted(samples, "recomputed", MACHINES[0])
    repeated = [each for item in cost.items for each in item.repeated]
    assert sorted(each.op for each in repeated) == [
        *("AllGather",) * 2, *("AllReduce",) * 2, "AlltoAll",
    ]  # fmt: skip
    assert cost.recompute_seconds > sum(each.seconds for each in repeated)
    assert sum(cost.shares.values()) == pytest.approx(cost.seconds)
    axes = sum(each.seconds for each in axis_costs(cost))
    once = sum(each.seconds for each in cost.communications)
    assert axes == pytest.approx(once + sum(each.seconds for each in repeated))
