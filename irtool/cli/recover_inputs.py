"""What ``irtool recover`` reads: begin dumps by stage, and what all ranks communicate."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from irtool.cli.begin import BEGIN, context_of, find_begin
from irtool.cli.comm_inputs import VALIDATE, Asked, read_cluster
from irtool.cli.configuration import Configuration
from irtool.cli.context import NO_DEVICES, ContextArguments, resolve
from irtool.cli.inputs import read_statements
from irtool.cli.memory_inputs import RankDump, layout_of
from irtool.cli.report import Failure, report_problems
from irtool.cluster.ranks import Cluster
from irtool.ir.dump import Dump
from irtool.ir.run import InputFile
from irtool.sharding.network.context import ParallelContext
from irtool.syntax.run import load_run
from irtool.syntax.run_names import parse_name
from irtool.syntax.source import DumpError

Stages = Mapping[int, Dump]
"""Begin dumps by pipeline stage."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What was read of a run.

    Attributes:
        context: devices and options.
        begins: begin dumps by stage; none where the run left only later ones.
        cluster: what all ranks communicate, where their ``validate`` dumps are there.
        notes: what is not known.
    """

    context: ParallelContext
    begins: Stages
    cluster: Cluster | None
    notes: Sequence[str] = field(default_factory=tuple[str, ...])

    @property
    def classes(self) -> list[tuple[int, ...]]:
        """Ranks with equal graphs."""
        return [] if self.cluster is None else [tuple(each) for each in self.cluster.classes]

    @property
    def statements(self) -> int:
        """Of the largest graph that one process compiles."""
        dumps = list(self.begins.values())
        if self.cluster is not None:
            dumps = [one.program.dump for one in self.cluster.ranks.values()]
        counted = {id(dump): sum(len(graph.nodes) for graph in dump.graphs) for dump in dumps}
        return max(counted.values(), default=0)


def read_run(
    path: str, arguments: ContextArguments, configuration: Configuration, graph: int | None
) -> Inputs:
    """Read a run, or its begin dump; of a run that left only ``validate`` dumps these.

    Raises:
        Failure: there is nothing to read, or nobody says how many devices there are.
    """
    later = _only_later(path, arguments, configuration, graph)
    if later is not None:
        return later
    file = find_begin(path, arguments.rank, graph)
    context = _context(path, file, arguments, configuration, graph)
    begins = _stages(path, file, context, graph)
    cluster = _cluster(path, file.path, context, graph)
    if cluster is None:
        notes = ["no validate dump is there: groups are those that check predicts"]
    else:
        notes = _missing_ranks(cluster, context)
    return Inputs(context, begins, cluster, notes)


def _context(
    path: str,
    file: InputFile,
    arguments: ContextArguments,
    configuration: Configuration,
    graph: int | None,
) -> ParallelContext:
    """Devices and options: as anybody says, else as the last dumps of all ranks show."""
    try:
        resolved = context_of(file, arguments, configuration)
    except Failure as failure:
        if failure.code != NO_DEVICES or not os.path.isdir(path):
            _read(file.path)  # what is no dump at all is told first
            raise
        cluster = read_cluster(Asked([path], arguments.rank, graph)).cluster
        if cluster.partial:
            raise
        return _seen_context(cluster, arguments, configuration)
    if "pipeline_stages" in resolved.origins:
        return resolved.context
    return _with_stages(file, resolved.context, arguments, configuration)


def _with_stages(
    file: InputFile,
    context: ParallelContext,
    arguments: ContextArguments,
    configuration: Configuration,
) -> ParallelContext:
    """The context with the stages that Send and Receive show, where nobody says how many.

    Raises:
        Failure: there is a pipeline, and nothing shows how many stages it has.
    """
    rank = file.rank if file.rank is not None else context.rank
    given = replace(arguments, given={**arguments.given, "device_num": context.devices})
    layout = layout_of([RankDump(file.path, rank, (rank,), _read(file.path))], given, configuration)
    if layout.stages is None:
        hint = "--stages 4"
        raise Failure("how many stages are there? The dump has a pipeline", file.path, hint=hint)
    return replace(context, stages=layout.stages)


def begins_of(path: str, context: ParallelContext, graph: int | None) -> Stages:
    """A begin dump that an option names; of a run folder those of all stages."""
    return _stages(path, find_begin(path, None, graph), context, graph)


def _stages(path: str, file: InputFile, context: ParallelContext, graph: int | None) -> Stages:
    """The begin dumps by pipeline stage: each stage's first rank that left one."""
    found = {context.stage: file.path}
    if os.path.isdir(path) and context.stages > 1:
        found.clear()
        for rank, compilation in sorted(load_run(path).across_ranks(graph).items()):
            begin = compilation.file(BEGIN)
            if begin is not None and rank < context.devices:
                found.setdefault(rank // context.stage_size, begin.path)
    return {stage: _read(each) for stage, each in found.items()}


def _read(path: str) -> Dump:
    dump = read_statements(InputFile(path))
    report_problems(dump.problems)
    return dump


def _cluster(path: str, begin: str, context: ParallelContext, graph: int | None) -> Cluster | None:
    """What the ranks communicate, if their last dumps are there."""
    folder = path if os.path.isdir(path) else os.path.dirname(begin) or "."
    try:
        cluster = read_cluster(Asked([folder], None, graph, context.devices)).cluster
    except Failure:
        return None
    return None if cluster.partial else cluster


def _missing_ranks(cluster: Cluster, context: ParallelContext) -> list[str]:
    missing = context.devices - len(cluster.ranks)
    if missing <= 0:
        return []
    return [f"{missing} ranks left no dump: their groups are those of others, shifted"]


# -- runs that left only the last dumps ----------------------------------------------------------


def _only_later(
    path: str, arguments: ContextArguments, configuration: Configuration, graph: int | None
) -> Inputs | None:
    """A run without begin dumps, or one ``validate`` dump; None if it is no such thing."""
    if os.path.isdir(path):
        if _has_begin(path, graph):
            return None
    elif parse_name(os.path.basename(path)).name != VALIDATE:
        return None
    asked = Asked([path], arguments.rank, graph, _devices(arguments))
    cluster = read_cluster(asked).cluster
    if cluster.partial:
        return None
    context = _seen_context(cluster, arguments, configuration)
    notes = [
        "there is no begin dump: which ranks hold the same is read off the collectives of the "
        "validate dumps, and layouts are not known"
    ]
    return Inputs(context, {}, cluster, [*notes, *_missing_ranks(cluster, context)])


def _seen_context(
    cluster: Cluster, arguments: ContextArguments, configuration: Configuration
) -> ParallelContext:
    """Devices and stages as the last dumps of some ranks show them, where nobody says them.

    Raises:
        Failure: they do not show how many devices there are.
    """
    dumps = [
        RankDump(one.path, rank, (rank,), one.program.dump)
        for rank, one in ((each[0], cluster.ranks[each[0]]) for each in cluster.classes)
    ]
    layout = layout_of(dumps, arguments, configuration)
    devices = layout.devices or (cluster.devices if cluster.exact else None)
    values = dict(arguments.given)
    if devices is not None:
        values["device_num"] = devices
    if layout.stages is not None:
        values["pipeline_stages"] = layout.stages
    values.pop("global_rank", None)
    said = ContextArguments(values, arguments.file)
    return resolve(said, configuration, dumps[0].path).context


def _has_begin(path: str, graph: int | None) -> bool:
    try:
        compilations = load_run(path).across_ranks(graph).values()
    except (DumpError, LookupError):
        return True  # whoever reads it says what is wrong
    return any(one.file(BEGIN) is not None for one in compilations)


def _devices(arguments: ContextArguments) -> int | None:
    found = arguments.given.get("device_num")
    return found if isinstance(found, int) else None
