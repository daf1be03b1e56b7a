"""Of micro-batches that run one by one a device holds one at a time, of a pipeline's a few."""

from __future__ import annotations

import pytest

from irtool.planning.cost.structure import structure_of
from irtool.sharding.network.context import ParallelContext
from tests.planning.plans.test_same_memory import dump_of
from tests.planning.plans.test_same_seconds import PIPELINES


def test_gradients_that_are_accumulated_free_each_micro_batch() -> None:
    structure = structure_of(
        dump_of("accumulate", "step_parallel_begin"), ParallelContext(devices=8, full_batch=True)
    )
    shares = {structure.held(node) for node in structure.calls}
    assert shares <= {1, 1 / 2, 1 / 4}


@pytest.mark.parametrize(("rank", "together"), [(0, 2), (8, 1)])
def test_a_stage_holds_as_many_as_there_are_stages_from_it_on(rank: int, together: int) -> None:
    """A late-inlined cell stands once in the dump and runs for four micro-batches."""
    record = PIPELINES["0175_pipeline"]
    context = record.context
    assert (context.stages, context.devices) == (2, 16)
    own = ParallelContext(devices=16, stages=2, rank=rank, full_batch=context.full_batch)
    structure = structure_of(record.dump("begin"), own)
    assert {structure.held(node) for node in structure.calls if structure.runs(node) == 4} == {
        together
    }
