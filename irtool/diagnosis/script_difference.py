"""Why a rank leaves the common script: how its graph and settings differ from another rank's."""

from __future__ import annotations

from dataclasses import replace

from irtool.cluster.context.evidence import evidence_of
from irtool.cluster.context.find import find_context
from irtool.cluster.context.given import ContextError, Given
from irtool.cluster.context.model import RunContext
from irtool.cluster.hang.script import Departure
from irtool.compare.edits import Pattern
from irtool.compare.graph_diff import GraphDiff, diff_graphs
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import GraphParameter
from irtool.ir.operators import OPTIMIZERS
from irtool.syntax.run import Compilation, Run
from irtool.syntax.source import DumpError

_PASSES = ("step_parallel_begin", "validate")
"""Before the cut nothing differs yet but what somebody wrote, so that pass tells most."""
_OF_GROUPS = ("group:", "rank_list:", "group_ranks:", "group_rank_ids:", "dest_rank:", "src_rank:")
"""Details that are each rank's own, whatever it does."""
_MOST_EDITS = 8
_SETTINGS = (
    "device_num", "pipeline_stages", "enable_parallel_optimizer", "enable_alltoall",
    "gradients_mean", "full_batch", "parallel_mode", "search_mode",
)  # fmt: skip
"""Keys that all ranks have alike, what decides more first."""


@dataclass(frozen=True, slots=True)
class ScriptDifference:
    """How two ranks' graphs differ.

    Attributes:
        rank: the one that left the script.
        other: one that keeps to it.
        pass_name: of the dumps that were compared.
        diff: their difference; the left one is that of ``other``.
        edits: what of it is not merely each rank's own, in the order of the flow.
        untrained: weights that are updated on ``other`` and not on ``rank``.
        trained: weights that are updated on ``rank`` alone.
    """

    rank: int
    other: int
    pass_name: str
    diff: GraphDiff
    edits: tuple[Pattern, ...]
    untrained: tuple[str, ...] = ()
    trained: tuple[str, ...] = ()


def script_difference(
    run: Run, departure: Departure, graph: int | None = None
) -> ScriptDifference | None:
    """How the graph of a rank that left the script differs from that of one that keeps to it.

    Args:
        run: the folder of both.
        departure: who left.
        graph: the number of the compilation, as ``--graph`` has it.

    Returns:
        None where there are no dumps of one pass of both, or these are equal.
    """
    rank, other = departure.ranks[0], departure.common[0]
    compilations = run.across_ranks(graph)
    if rank not in compilations or other not in compilations:
        return None
    for name in _PASSES:
        dumps = _read(compilations[other], name), _read(compilations[rank], name)
        if dumps[0] is None or dumps[1] is None:
            continue
        diff = diff_graphs(dumps[0], dumps[1])
        edits = tuple(
            pattern for pattern in diff.patterns if not pattern.detail.startswith(_OF_GROUPS)
        )[:_MOST_EDITS]
        if edits:
            return ScriptDifference(
                rank, other, name, diff, edits,
                _updated_alone(dumps[0], dumps[1]), _updated_alone(dumps[1], dumps[0]),
            )  # fmt: skip
    return None


def _updated_alone(dump: Dump, other: Dump) -> tuple[str, ...]:
    """Weights of both networks that only the first one's optimizer updates."""
    updated, common = _updated(other), {parameter.name for parameter in other.parameters}
    return tuple(name for name in _updated(dump) if name in common and name not in updated)


def _updated(dump: Dump) -> dict[str, None]:
    """Weights that an optimizer updates, in the order of the dump."""
    weights: dict[str, None] = {}
    for node in dump.nodes():
        if OPTIMIZERS.match(node.op):
            names = (item.name for item in node.inputs if isinstance(item, GraphParameter))
            weights.update(dict.fromkeys(name for name in list(names)[:1] if name))
    return weights


@dataclass(frozen=True, slots=True)
class SettingDifference:
    """A key of the parallel context that two ranks were compiled with differently.

    Attributes:
        key: of ``set_auto_parallel_context``.
        value: on the rank that left the script.
        other: on the one that keeps to it.
    """

    key: str
    value: object
    other: object


def setting_difference(
    run: Run, departure: Departure, graph: int | None = None
) -> SettingDifference | None:
    """The setting that the dumps of a rank that left the script show to be another.

    Args:
        run: the folder of both.
        departure: who left.
        graph: the number of the compilation, as ``--graph`` has it.

    Returns:
        None where none is known to differ.
    """
    compilations = run.across_ranks(graph)
    contexts: list[RunContext] = []
    for rank in (departure.ranks[0], departure.common[0]):
        if rank not in compilations:
            return None
        try:
            contexts.append(context_alone(run, compilations[rank], graph))
        except ContextError:
            return None
    left, right = contexts
    for key in _SETTINGS:
        if left.is_known(key) and right.is_known(key) and left.value(key) != right.value(key):
            return SettingDifference(key, left.value(key), right.value(key))
    return None


def context_alone(run: Run, compilation: Compilation, graph: int | None = None) -> RunContext:
    """What the dumps of one rank show of the context, whatever others and logs say.

    Args:
        run: the folder.
        compilation: the rank's.
        graph: the number of the compilation, as ``--graph`` has it; None for the largest training
            one.

    Raises:
        ContextError: they contradict one another.
    """
    evidence = evidence_of(run, compilation, graph=graph)
    alone = replace(evidence, others={}, ranks=(), logs=())
    return find_context(Given(), alone, as_run=True)


def _read(compilation: Compilation, name: str) -> Dump | None:
    try:
        return compilation.dump(name)
    except DumpError:
        return None
