"""The cells that a network can be cut between, and what runs from one into another.

MindSpore takes a stage from a cell's ``pipeline_stage``.  Operators outside of such cells go with
the latest stage of what they compute from, those before all of them with whoever uses them.  So a
network can be cut before a cell only: what stands behind it belongs to it.
Source: the stages of operators in dumps of networks with ``pipeline_stage``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from irtool.cluster.memory.layers import NETWORK, layer_of_scope
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Graph, GraphParameter, Node, Source
from irtool.planning.cost.structure import Parameter, Structure
from irtool.sharding.network.analysis import item_of
from irtool.sharding.network.graphs import Network, network_of
from irtool.sharding.network.sharded_nodes import primitive

BEFORE, BETWEEN, BEHIND = "before the layers", "between layers", "behind the layers"
_NO_DATA = frozenset({"UpdateState"})


@dataclass(frozen=True, eq=False)
class StageCell:
    """A cell in its place, with what stands before or behind it outside of any.

    Attributes:
        names: of the cell, and of what goes with it.
        nodes: that have a strategy, or are a Reshape, in the order of the dump.
    """

    names: tuple[str, ...]
    nodes: tuple[Node, ...]

    @property
    def is_cell(self) -> bool:
        """Whether there is a cell, whose ``pipeline_stage`` can be set."""
        return any(name not in (BEFORE, BETWEEN, BEHIND) for name in self.names)


@dataclass(frozen=True, slots=True)
class Flow:
    """A result that one cell makes and others use.

    Attributes:
        node: that makes it, behind all Casts in other cells.
        output: which of its results.
        source: the cell.
        users: other cells, in order.
        gradient: whether one comes back.
    """

    node: Node
    output: int
    source: int
    users: tuple[int, ...]
    gradient: bool


@dataclass(frozen=True, eq=False)
class StageCells:
    """A network as a row of cells.

    Attributes:
        cells: in the order in which they run.
        place: the cell of every node of ``cells``.
        flows: results that cells hand to others.
        shared: weights that several cells use, with the cells.
        loose: trained weights that only operators outside of cells use, with the first place where
            one does. MindSpore does not know their stage, and keeps them whole in every stage: with
            a gradient, states, and an update by zero.
    """

    cells: tuple[StageCell, ...]
    place: Mapping[Node, int]
    flows: tuple[Flow, ...]
    shared: tuple[tuple[Parameter, tuple[int, ...]], ...]
    loose: tuple[tuple[Parameter, int], ...]


def stage_cells(structure: Structure) -> StageCells:
    """The cells of a network without strategies.

    Args:
        structure: of the network.
    """
    network = network_of(structure.dump)
    order = list(_order(network))
    cells = _cells(structure, order)
    place = {node: number for number, cell in enumerate(cells) for node in cell.nodes}
    everywhere = _everywhere(order, cells, place)
    shared: list[tuple[Parameter, tuple[int, ...]]] = []
    loose: list[tuple[Parameter, int]] = []
    for parameter in structure.parameters:
        users = {place[ref.node] for ref in parameter.users if ref.node in place}
        if len(users) > 1:
            shared.append((parameter, tuple(sorted(users))))
        scopes = {layer_of_scope(ref.node.scope) for ref in parameter.users if ref.node in place}
        if parameter.trained and scopes == {NETWORK}:
            loose.append((parameter, min(users)))
    flows = tuple(_flows(network, structure, order, everywhere))
    return StageCells(cells, place, flows, tuple(shared), tuple(loose))


def _order(network: Network) -> Iterator[Node]:
    """Forward nodes as they run: what a call calls stands where the call does."""
    forward = {graph.name for graph in network.forward_graphs}
    called = {
        graph.name
        for node in network.forward
        if (graph := network.called(node)) is not None and node.graph is not None
        if node.graph.name in forward
    }
    seen: set[str] = set()
    todo: list[Iterator[Node]] = []

    def enter(graph: Graph) -> None:
        if graph.name not in seen:
            seen.add(graph.name)
            todo.append(iter(graph.nodes))

    for root in (*(g for g in network.forward_graphs if g.name not in called),
                 *network.forward_graphs):  # fmt: skip
        enter(root)
        while todo:
            node = next(todo[-1], None)
            if node is None:
                todo.pop()
                continue
            graph = network.called(node)
            if graph is not None and graph.name in forward:
                enter(graph)
            yield node


def _cells(structure: Structure, order: list[Node]) -> tuple[StageCell, ...]:
    runs: list[tuple[str, list[Node]]] = []
    for node in order:
        if node not in structure.calls and primitive(node) != "Reshape":
            continue
        name = layer_of_scope(node.scope)
        if not runs or runs[-1][0] != name:
            runs.append((name, []))
        runs[-1][1].append(node)
    joined = _joined(runs)
    first = next(
        (number for number, (name, _) in enumerate(joined) if name != NETWORK), len(joined)
    )
    last = max((number for number, (name, _) in enumerate(joined) if name != NETWORK), default=-1)
    cells: list[StageCell] = []
    names: list[str] = []
    nodes: list[Node] = []
    for number, (name, own) in enumerate(joined):
        if name != NETWORK and number != first and nodes:
            cells.append(StageCell(tuple(names), tuple(nodes)))
            names, nodes = [], []
        if name == NETWORK:
            name = BEFORE if number < first else BEHIND if number > last else BETWEEN
        names.append(name)
        nodes += own
    if nodes:
        cells.append(StageCell(tuple(names), tuple(nodes)))
    return tuple(cells)


def _joined(runs: list[tuple[str, list[Node]]]) -> list[tuple[str, list[Node]]]:
    """Parts of one layer, and what stands between them, are one."""
    joined: list[tuple[str, list[Node]]] = []
    for name, nodes in runs:
        again = next((index for index, run in enumerate(joined) if run[0] == name), None)
        if again is None or name == NETWORK:
            joined.append((name, list(nodes)))
            continue
        for _, more in joined[again + 1 :]:
            joined[again][1].extend(more)
        joined[again][1].extend(nodes)
        del joined[again + 1 :]
    return joined


def _everywhere(
    order: list[Node], cells: tuple[StageCell, ...], place: Mapping[Node, int]
) -> dict[Node, int]:
    """The cell of nodes without a strategy, too: by scope, else that of what ran before."""
    by_name = {name: number for number, cell in enumerate(cells) for name in cell.names}
    for name in (BEFORE, BETWEEN, BEHIND):
        by_name.pop(name, None)
    cell_of: dict[Node, int] = {}
    now = 0
    for node in order:
        now = place.get(node, now)
        cell_of[node] = place.get(node, by_name.get(layer_of_scope(node.scope), now))
    return cell_of


def _flows(
    network: Network, structure: Structure, order: list[Node], place: Mapping[Node, int]
) -> Iterator[Flow]:
    users: dict[tuple[Node, int], set[int]] = {}
    for node in order:
        if primitive(node) in _NO_DATA or network.called(node) is not None or node.is_return:
            continue
        for source in network.inputs[node]:
            made = _made(network, source)
            if made is not None and place.get(made[0], place[node]) != place[node]:
                users.setdefault(made, set()).add(place[node])
    for (node, output), cells in users.items():
        gradient = node in structure.with_gradient or node not in structure.calls
        yield Flow(node, output, place[node], tuple(sorted(cells)), gradient)


def _made(network: Network, source: Source) -> tuple[Node, int] | None:
    """The node that makes a value, and which of its results it is; None: no node does.

    Looks through calls, tuples, and what only waits. Weights, and what is computed of weights or
    constants alone, are no results: every stage has its own.
    """
    output = 0
    for _ in range(10_000):
        if isinstance(source, GraphParameter):
            place = network.index_of(source)
            calls = network.calls.get(place[0].name, ()) if place is not None else ()
            following = network.argument(calls[0], place[1]) if place and calls else None
            if following is None:
                return None
            source = following
            continue
        if not isinstance(source, Node):
            return None
        name, inputs = primitive(source), network.inputs[source]
        graph = network.called(source)
        if graph is not None:
            result = network.returned(graph)
            if result is None:
                return None
            source = result
        elif name in ("TupleGetItem", "list_getitem"):
            output, source = max(item_of(source), 0), inputs[0]
        elif name in ("Load", "Depend") and inputs:
            source = inputs[0]
        elif name in ("MakeTuple", "MakeList") and output < len(inputs):
            output, source = 0, inputs[output]
        elif name == "_VirtualDataset" or name in _NO_DATA:
            return None
        elif name == "Cast":
            return (source, output) if _made(network, inputs[0]) is not None else None
        else:
            return source, output
    return None
