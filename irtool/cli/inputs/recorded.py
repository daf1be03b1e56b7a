"""What commands read of the orders that the ranks of a run recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from irtool.artefacts.damage import Damage
from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.joining import nodes_by_name
from irtool.artefacts.orders import collective_rows, launch_rows
from irtool.artefacts.recorded import RecordedOrder, recorded_order
from irtool.cluster.ranks import Cluster
from irtool.cluster.recorded_scripts import RecordedCollectives
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.syntax.run import Run
from irtool.syntax.source import DumpError

_BUILT = "graph_build_"


def recorded_collectives(
    run: Run,
) -> tuple[Mapping[int, RecordedCollectives], tuple[Finding, ...]]:
    """The collectives that each rank recorded, and what of the records could not be read.

    Args:
        run: the run folder.

    Returns:
        Collectives by rank, of those ranks that recorded some, and findings of severity error.
    """
    by_rank: dict[int, RecordedCollectives] = {}
    problems: list[Finding] = []
    for rank, one in run.by_rank.items():
        path = one.artefact("collective order")
        if path is None:
            continue
        damage = Damage(path)
        try:
            by_rank[rank] = RecordedCollectives(path, tuple(collective_rows(path, damage)))
        except ArtefactError as error:
            problems.append(Finding("ART001", "error", error.message, path, error.line or 1))
        # A collective that can't be read would look like one that was never issued.
        problems += [replace(problem, severity="error") for problem in damage.problems]
    return by_rank, tuple(problems)


def nodes_of_launches(run: Run, graph: int | None) -> Mapping[int, Mapping[int, Node]]:
    """By rank the nodes of its dump, by their index among all launches of a dry run.

    Args:
        run: the run folder.
        graph: number of the compilation; None: the largest training one.

    Returns:
        Ranks and launches that can't be told are left out.
    """
    by_rank: dict[int, dict[int, Node]] = {}
    for rank, one in run.by_rank.items():
        path = one.artefact("launch order")
        if path is None or not one.compilations:
            continue
        try:
            picked = run.compilation(graph, rank)
            built = [file for file in picked.kernel_graphs if file.base.startswith(_BUILT)]
            names = nodes_by_name(picked.read(built[0] if built else picked.main))
            by_rank[rank] = {
                row.index: names[row.node][0]
                for row in launch_rows(path, Damage(path))
                if len(names.get(row.node, ())) == 1
            }
        except (ArtefactError, DumpError, LookupError):
            continue  # places are then those of the record
    return by_rank


def recorded_orders(
    run: Run, cluster: Cluster, graph: int | None
) -> tuple[Mapping[int, RecordedOrder], tuple[Finding, ...]]:
    """The orders of all ranks of a cluster; none where one of them recorded none.

    Args:
        run: the run folder.
        cluster: the ranks whose orders are wanted.
        graph: number of the compilation; None: the largest training one.

    Returns:
        Orders by rank, and what of the records could not be read.
    """
    by_rank: dict[int, RecordedOrder] = {}
    problems: list[Finding] = []
    for rank in cluster.ranks:
        try:
            order, damage = recorded_order(run.rank(rank), run.compilation(graph, rank))
        except LookupError:
            return {}, ()
        if not isinstance(order, RecordedOrder):
            return {}, ()
        by_rank[rank] = order
        problems += damage
    return by_rank, tuple(problems)
