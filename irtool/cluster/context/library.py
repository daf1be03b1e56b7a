"""The context of a run from Python: found as commands find it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from irtool.cluster.context.evidence import Evidence, evidence_beside, evidence_of, pass_of
from irtool.cluster.context.find import find_context as find
from irtool.cluster.context.given import Layer, merged
from irtool.cluster.context.model import Origin, RunContext
from irtool.cluster.context.shown import Pass
from irtool.ir.dump import Dump
from irtool.syntax import file_facts
from irtool.syntax.run import Run, load_run
from irtool.syntax.run.context import CASE_FILE, read_case
from irtool.syntax.run.folders import folder_rank_of


def find_context(
    source: str | os.PathLike[str] | Run | Dump,
    context: Mapping[str, object] | None = None,
    *,
    rank: int | None = None,
    graph: int | None = None,
    as_run: bool = False,
) -> RunContext:
    """What a run was compiled for, by what is given, its dumps, logs, files and folders.

    Args:
        source: a run or its folder; a dump or its file, which the other dumps of the same
            compilation may stand beside.
        context: keys of ``set_auto_parallel_context``; they go before what dumps show.
        rank: of a run, whose dumps; of a dump, whose it is.
        graph: of a run, the number of the compilation; else the largest that trains.
        as_run: what dumps show goes before whatever is given.

    Returns:
        Each key with its origin, what was assumed, what contradicts; ``parallel`` is what
        ``irtool.sharding.check.check`` and others take, None where nothing tells how many devices
        there are.

    Raises:
        ContextError: a value makes no sense.
        DumpError: the folder can't be read.
        LookupError: the run has no such rank or compilation.
    """
    evidence, path, folder = _evidence(source, rank, graph)
    layers = list(_files(path, folder))
    whose = folder_rank_of(path) if path else None
    if whose is not None:
        origin = Origin("folder", what=f"the folder rank_{whose}")
        layers.append(Layer({"global_rank": whose}, origin))
    asked = dict(context or {})
    if rank is not None:
        asked["global_rank"] = rank
    layers.append(Layer(asked, Origin("option"), is_asked=True))
    return find(merged(layers), evidence, as_run=as_run)


def _evidence(
    source: str | os.PathLike[str] | Run | Dump, rank: int | None, graph: int | None
) -> tuple[Evidence, str, str]:
    """The evidence, the path of the dump that is asked about, and the run's folder."""
    if isinstance(source, Dump):
        if file_facts.is_file(source.path):
            return evidence_beside(source.path, rank, {source.path: source}), source.path, ""
        paths: dict[Pass, str] = {pass_of(source.path, "begin"): source.path}
        return Evidence(paths, rank, {source.path: source}), "", ""
    if not isinstance(source, Run):
        path = os.fspath(source)
        if not file_facts.is_folder(path):
            return evidence_beside(path, rank), path, ""
        source = load_run(path)
    picked = source.compilation(graph, rank)
    return evidence_of(source, picked, graph=graph), picked.main.path, source.path


def _files(path: str, folder: str) -> Iterator[Layer]:
    """What a ``case.json`` in the run's folder, or beside the dump, says: the inner one last."""
    beside = os.path.dirname(path)
    for place in dict.fromkeys((folder or beside, beside)) if path else ():
        case = os.path.join(place, CASE_FILE)
        if file_facts.exists(case):
            values, _ = read_case(case)
            yield Layer(values or {}, Origin("file", case))
