"""The order in which a rank really launched its operators, as its artefacts recorded it.

A dry run (``execute_order.csv``) writes every launch of every step; where steps differ from each
other (a CPU launches what is ready, by several threads) there is no one order.  The tensor dump
writes the order of a graph once, under numbers that MindSpore gave up: they are replayed from the
graph that it wrote beside (``graphs/ms_output_trace_code_graph_<g>.ir``), or from
``graph_before_reset_id``; without either nobody can tell which node is meant.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from irtool.artefacts.damage import Damage
from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.joining import replayed
from irtool.artefacts.orders import graph_order, launch_rows
from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Finding
from irtool.syntax.load import load
from irtool.syntax.run import Compilation, RankRun
from irtool.syntax.source import DumpError

_BEFORE = "graph_before_reset_id"
_DUMPED = "ms_output_trace_code_graph"


@dataclass(frozen=True, slots=True)
class RecordedOrder:
    """Full names of what was launched, in order, under the numbers that ``graph_build`` prints.

    ``lines``: where in the file each stands.
    """

    path: str
    names: tuple[str, ...]
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NoOrder:
    """Why there is no recorded order; ``path``: of the record, empty where there is none."""

    path: str
    why: str


def recorded_order(
    rank: RankRun, compilation: Compilation
) -> tuple[RecordedOrder | NoOrder, tuple[Finding, ...]]:
    """The order that a rank recorded, and what of the record could not be read.

    Args:
        rank: with an ``execute_order.csv``, else the one order of a graph that a tensor dump wrote.
        compilation: whose dumps tell which node a number of the tensor dump means.

    Returns:
        The order, or why there is none, with a finding for each line that could not be read.
    """
    path = rank.artefact("launch order")
    if path is not None:
        damage = Damage(path)
        launched = _of_launches(path, damage)
        if isinstance(launched, RecordedOrder) or not _graph_orders(rank):
            return launched, damage.problems
    orders = _graph_orders(rank)
    if not orders:
        return NoOrder("", "nothing recorded one"), ()
    if len(orders) > 1:
        return NoOrder(orders[0], f"{len(orders)} graphs have one each"), ()
    damage = Damage(orders[0])
    return _of_graph(orders[0], compilation, damage), damage.problems


def _graph_orders(rank: RankRun) -> list[str]:
    return [
        path
        for path in rank.execution_order
        if os.path.basename(path).startswith("ms_execution_order_graph_")
    ]


def _of_launches(path: str, damage: Damage) -> RecordedOrder | NoOrder:
    """One step of a dry run, where its steps are alike."""
    try:
        rows = list(launch_rows(path, damage))
    except ArtefactError as error:
        return NoOrder(path, error.message)
    if not rows:
        return NoOrder(path, "it is empty")
    names = [row.node for row in rows]
    size = _period(names)
    if size is None:
        return NoOrder(path, "its steps launch in different orders")
    return RecordedOrder(path, tuple(names[-size:]), tuple(row.line for row in rows[-size:]))


def _period(names: Sequence[str]) -> int | None:
    """How long a step is: names come again in the same order; None where the order changes."""
    size = next((place for place, name in enumerate(names) if place and name == names[0]), None)
    distinct = len(set(names))
    if size is None:
        return len(names) if distinct == len(names) else None
    if size != distinct:
        return None
    steps = [tuple(names[begin : begin + size]) for begin in range(0, len(names), size)]
    complete = [step for step in steps if len(step) == size]
    return size if len(set(complete)) == 1 else None


def _of_graph(path: str, compilation: Compilation, damage: Damage) -> RecordedOrder | NoOrder:
    """The tensor dump's order of a graph, its names renumbered."""
    try:
        rows = list(graph_order(path, damage))
    except ArtefactError as error:
        return NoOrder(path, error.message)
    printed = [file for file in compilation.passes if _BEFORE in file.base or _DUMPED in file.base]
    number = os.path.splitext(path)[0].rpartition("_")[2]
    graphs = [graph for graph in printed if f"_{number}" in graph.base] or printed
    for file in sorted(graphs, key=lambda graph: _DUMPED not in graph.base):
        try:
            dump = load(file.path)
        except DumpError:
            continue
        new = replayed([node.full_name for node in dump.nodes() if node.full_name is not None])
        if all(name in new for _, name in rows):
            names = tuple(new[name] for _, name in rows)
            return RecordedOrder(path, names, tuple(line for line, _ in rows))
    why = (
        "its names have numbers that MindSpore gave up, and the graph that tells the new ones is "
        f"not here ({_DUMPED}_*.ir, {_BEFORE}_*.ir)"
    )
    return NoOrder(path, why)
