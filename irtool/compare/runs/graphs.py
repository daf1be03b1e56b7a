"""Which graph of a run a tensor dump belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irtool.compare.runs.sides import RunSide
from irtool.compare.tensors.join import Joined, choose, full_names, graph_files, join
from irtool.compare.tensors.model import TensorRun
from irtool.syntax.source import DumpError, read_content

_MOST_GRAPH_FILES = 60


def join_graph(side: RunSide, tensors: TensorRun) -> Joined | None:
    """Join a tensor dump with the graph of its run that knows most of its operators.

    Args:
        side: the run; what of its graphs cannot be read is added to its complaints.
        tensors: the dump, whose operators get their nodes.

    Returns:
        How they came together; None where there is no such graph.
    """
    if tensors.kind not in ("mindspore", "statistics"):
        return None
    files = list(dict.fromkeys(_graph_files(side, tensors)))
    names = (full_names(path, data) for path, data in _read_all(files[:_MOST_GRAPH_FILES], side))
    chosen = choose(tensors, names)
    if chosen is None:
        return None
    path, is_replayed, printed = chosen
    from irtool.syntax.load import load  # the parser, only where there is something to parse

    try:
        return join(tensors, load(path), printed, is_replayed)
    except DumpError as error:
        side.complaints.append(f"{path}: {error.message}")
        return None


def _graph_files(side: RunSide, tensors: TensorRun) -> Iterator[str]:
    """Graphs that may know a dump: kernel graphs, the dump's own, then any late stage."""
    if side.run is not None and tensors.rank in side.run.by_rank:
        for compilation in side.run.by_rank[tensors.rank].compilations:
            yield from (file.path for file in compilation.kernel_graphs)
    yield from graph_files(tensors.path)
    if side.run is not None:
        for compilation in side.run.compilations:
            yield from (file.path for file in compilation.kernel_graphs)
        for compilation in side.run.compilations:
            yield compilation.main.path


def _read_all(paths: Sequence[str], side: RunSide) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        try:
            yield path, read_content(path).data
        except DumpError as error:
            side.complaints.append(f"{path}: {error.message}")
