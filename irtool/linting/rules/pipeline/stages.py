"""Stages of a run: which ranks belong to which, and one dump for each."""

from __future__ import annotations

from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.linting.facts import DumpFacts, RunFacts
from irtool.linting.places import user_frames


def stage_of(rank: int, devices: int, stages: int) -> int:
    """The pipeline stage of a rank: stages are equal blocks of ranks in order.

    Args:
        rank: global, from 0.
        devices: of the run.
        stages: of the pipeline.
    """
    return rank * stages // devices


def one_a_stage(run: RunFacts) -> dict[int, tuple[int, DumpFacts]]:
    """The lowest rank of each stage that has a dump, with its facts, by stage.

    Args:
        run: the ranks whose dumps there are, each with its parallel context.

    Returns:
        A rank and its facts by stage, without stages that have no dump; nothing where the run is no
        pipeline.

    Raises:
        Lacking: nobody says how many devices and stages there are (by ``parallel``).
    """
    by_stage: dict[int, tuple[int, DumpFacts]] = {}
    for rank, facts in run.dumps.items():
        parallel = facts.parallel
        if parallel.stages < 2:
            return {}
        stage = stage_of(rank, parallel.devices, parallel.stages)
        by_stage.setdefault(stage, (rank, facts))
    return by_stage


def micro_batches(dump: Dump) -> int:
    """Micro-batches that the operators of a dump name; 0 where none does.

    Args:
        dump: whose attributes ``micro`` count from 0.
    """
    numbers = [node.micro for node in dump.nodes() if node.micro is not None]
    return max(numbers) + 1 if numbers else 0


def first_of_a_micro_batch(dump: Dump) -> Node | None:
    """A node of a micro-batch, one with a line of the user's Python if there is one.

    Args:
        dump: of any pass.

    Returns:
        None where no operator names a micro-batch.
    """
    first: Node | None = None
    for node in dump.nodes():
        if node.micro is not None:
            first = first or node
            if user_frames(node):
                return node
    return first


def is_training(facts: DumpFacts) -> bool:
    """Whether a dump holds a backward pass; before differentiation, whether one is to come.

    Args:
        facts: of the dump.
    """
    if any(phase == "backward" for phase in facts.phases.values()):
        return True
    return any(node.op == "J" for node in facts.dump.nodes())
