"""What ``irtool recover`` reads of a run: begin dumps by stage, and what all ranks communicate."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from irtool.cli.configuration import Configuration
from irtool.cli.context import ContextArguments, parallel_of
from irtool.cli.inputs.begin import BEGIN, context_of, find_begin
from irtool.cli.inputs.cluster import VALIDATE, Asked, read_cluster
from irtool.cli.inputs.dumps import read_statements
from irtool.cli.inputs.memory import RankDump, layout_of
from irtool.cli.report import Failure, note, report_problems
from irtool.cluster.context.evidence import evidence_beside
from irtool.cluster.context.model import RunContext
from irtool.cluster.machine import Machine
from irtool.cluster.ranks import Cluster
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.run import InputFile
from irtool.ir.units import numbered_text
from irtool.sharding.network.context import ParallelContext
from irtool.syntax import file_facts
from irtool.syntax.run import load_run
from irtool.syntax.run.folders import folder_rank_of
from irtool.syntax.run.names import parse_name
from irtool.syntax.source import DumpError

Stages = Mapping[int, Dump]
"""Begin dumps by pipeline stage."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What was read of a run.

    Attributes:
        context: devices and options.
        known: the same with where each was found.
        begins: begin dumps by stage; none where the run left only later ones.
        cluster: what all ranks communicate, where their ``validate`` dumps are there.
        notes: what is not known.
    """

    context: ParallelContext
    known: RunContext
    begins: Stages
    cluster: Cluster | None
    notes: Sequence[str] = field(default_factory=tuple[str, ...])

    @property
    def classes(self) -> list[tuple[int, ...]]:
        """Ranks with equal graphs."""
        return [] if self.cluster is None else [tuple(ranks) for ranks in self.cluster.classes]

    @property
    def statements(self) -> int:
        """Of the largest graph that one process compiles."""
        dumps = list(self.begins.values())
        if self.cluster is not None:
            dumps = [one.program.dump for one in self.cluster.ranks.values()]
        counted = {id(dump): sum(len(graph.nodes) for graph in dump.graphs) for dump in dumps}
        return max(counted.values(), default=0)


def read_run(
    path: str,
    arguments: ContextArguments,
    configuration: Configuration,
    graph: int | None,
    machine: Machine | None = None,
) -> Inputs:
    """Read a run, or its begin dump; of a run that left only ``validate`` dumps these.

    Args:
        path: a run folder, or a begin dump.
        arguments: what the command line says of the context.
        configuration: ``irtool.toml``.
        graph: number of the compilation; None: the largest training one.
        machine: the one that was named; None where none was.

    Raises:
        Failure: there is nothing to read, or nobody says how many devices there are.
    """
    later = _only_later(path, arguments, configuration, graph, machine)
    if later is not None:
        return later
    file = find_begin(path, arguments.rank, graph)
    begin = _read(file.path)
    known = context_of(file, begin, arguments, configuration, machine, as_run=True)
    context = parallel_of(known, file.path)
    begins = _stages(path, file, context, graph)
    cluster = _cluster(path, file.path, context, graph)
    if cluster is None:
        notes = ["no validate dump is there: groups are those that check predicts"]
    else:
        notes = _missing_ranks(cluster, context)
    return Inputs(context, known, begins, cluster, notes)


def begins_of(
    path: str, context: ParallelContext, graph: int | None, file: InputFile | None = None
) -> Stages:
    """A begin dump that an option names; of a run folder those of all stages.

    Args:
        path: a begin dump or a run folder.
        context: of the run.
        graph: number of the compilation; None: the largest training one.
        file: its begin dump, where it was looked for before.

    Returns:
        Dumps by stage.

    Raises:
        Failure: there is no such dump.
    """
    return _stages(path, file or find_begin(path, None, graph), context, graph)


def _stages(path: str, file: InputFile, context: ParallelContext, graph: int | None) -> Stages:
    """The begin dumps by pipeline stage: each stage's first rank that left one."""
    by_stage = {context.stage: file.path}
    ranks = load_run(path).across_ranks(graph) if file_facts.is_folder(path) else {}
    if len(ranks) == 1 and folder_rank_of(file.path) is None:
        return {context.stage: _read(file.path)}  # no folder says the rank: the context does
    if ranks and context.stages > 1:
        by_stage.clear()
        for rank, compilation in sorted(ranks.items()):
            begin = compilation.file(BEGIN)
            if begin is not None and rank < context.devices:
                by_stage.setdefault(rank // context.stage_size, begin.path)
        others = sorted(stage for stage, begin in by_stage.items() if begin != file.path)
        if others:
            note(f"also reads the begin dumps of {numbered_text('stage', others)}")
    return {stage: _read(source) for stage, source in by_stage.items()}


def _read(path: str) -> Dump:
    dump = read_statements(InputFile(path))
    report_problems(dump.problems)
    return dump


def _cluster(path: str, begin: str, context: ParallelContext, graph: int | None) -> Cluster | None:
    """What the ranks communicate, if their last dumps are there.

    Of a begin dump alone only the validate dump of its own compilation counts: what else stands in
    its folder, or below it, may be any network's.
    """
    if file_facts.is_folder(path):
        dumps = path
    else:
        later = evidence_beside(begin).validate if file_facts.is_file(begin) else None
        if later is None:
            return None
        dumps, graph = later.path, None
    try:
        cluster = read_cluster(Asked([dumps], None, graph, context.devices)).cluster
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
    path: str,
    arguments: ContextArguments,
    configuration: Configuration,
    graph: int | None,
    machine: Machine | None,
) -> Inputs | None:
    """A run without begin dumps, or one ``validate`` dump; None if it is no such thing."""
    if file_facts.is_folder(path):
        if _has_begin(path, graph):
            return None
    elif parse_name(os.path.basename(path)).name != VALIDATE:
        return None
    asked = Asked([path], arguments.rank, graph, _devices(arguments))
    cluster = read_cluster(asked).cluster
    if cluster.partial:
        return None
    folder = path if file_facts.is_folder(path) else ""
    dumps = [
        RankDump(one.path, rank, (rank,), one.program.dump, folder)
        for rank, one in ((ranks[0], cluster.ranks[ranks[0]]) for ranks in cluster.classes)
    ]
    given = {key: value for key, value in arguments.given.items() if key != "global_rank"}
    said = ContextArguments(given, arguments.file)
    known = layout_of(dumps, said, configuration, machine).context
    context = replace(parallel_of(known, dumps[0].path), rank=0)
    notes = [
        "there is no begin dump: which ranks hold the same is read off the collectives of the "
        "validate dumps, and layouts are not known"
    ]
    return Inputs(context, known, {}, cluster, [*notes, *_missing_ranks(cluster, context)])


def _has_begin(path: str, graph: int | None) -> bool:
    try:
        compilations = load_run(path).across_ranks(graph).values()
    except (DumpError, LookupError):
        return True  # whoever reads it says what is wrong
    return any(one.file(BEGIN) is not None for one in compilations)


def _devices(arguments: ContextArguments) -> int | None:
    devices = arguments.given.get("device_num")
    return devices if isinstance(devices, int) else None
