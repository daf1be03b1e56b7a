"""Which assumptions decide an answer: those that another value would have changed.

What nobody says and no dump shows often makes no difference: no all-to-all where no tensor moves
between two dimensions, no rule of groups where all of them fit any server.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from irtool.cluster.context.model import Assumption, RunContext
from irtool.operators.checks import first_generation_problem
from irtool.sharding.network.context import DEFAULT_THRESHOLD
from irtool.sharding.network.report import CheckResult, ParameterReport
from irtool.sharding.redistribution import RedistributionStep

_SPLITS = ("Split", "StridedSlice")


def weighed(context: RunContext, report: CheckResult) -> RunContext:
    """The context with those assumptions deciding that make a difference to a check's report.

    Args:
        context: with its assumptions.
        report: of ``check`` under this context.
    """
    assumptions = tuple(
        replace(assumption, decides=_decides(assumption, report))
        for assumption in context.assumptions
    )
    return replace(context, assumptions=assumptions)


def _decides(item: Assumption, report: CheckResult) -> bool:
    if report.accepted is False and item.key != "soc":
        return False  # what a refused network would communicate is not told
    match item.key:
        case "soc":
            return any(first_generation_problem(ranks) for ranks in set(_groups(report)))
        case "enable_alltoall":
            return item.decides and any(map(_moves, _redistributions(report)))
        case "enable_parallel_optimizer":
            return item.decides and any(map(_could_be_cut, report.parameters))
        case "dataset_strategy":
            return item.decides and bool(report.dataset)
        case _:
            return item.decides


def _groups(report: CheckResult) -> Iterator[tuple[int, ...]]:
    for operator in report.operators:
        yield from operator.judgement.mirrors
        for collective in operator.collectives:
            yield collective.ranks
    for parameter in report.parameters:
        for ranks in (parameter.mirror_ranks, parameter.gather_ranks):
            yield ranks or ()
    for steps in _redistributions(report):
        for step in steps:
            yield tuple(step.ranks or ())


def _redistributions(report: CheckResult) -> Iterator[tuple[RedistributionStep, ...]]:
    for edge in report.redistributions:
        yield edge.operators or ()


def _moves(steps: tuple[RedistributionStep, ...]) -> bool:
    """Whether a chain gathers one dimension and cuts another: AlltoAll could do it at once."""
    names = {step.op for step in steps}
    return "AlltoAll" in names or ("AllGather" in names and not names.isdisjoint(_SPLITS))


def _could_be_cut(parameter: ParameterReport) -> bool:
    """Whether optimizer parallel with its defaults would cut a weight over its replicas."""
    ranks, base = parameter.mirror_ranks, parameter.base
    size = parameter.parameter.declaration.size if parameter.parameter.declaration else None
    if not ranks or not base or size is None:
        return False
    return size >= DEFAULT_THRESHOLD * 1024 and base[0] % len(ranks) == 0
