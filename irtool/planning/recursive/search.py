"""MindSpore's double recursive search of a whole network.

Source: MindSpore 2.7.0's strategies of the networks in benchmarks/searches.py, its log, and its
documentation of the Symbolic Automatic Parallel Planner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.operators.call import Strategy
from irtool.operators.layout import Shape
from irtool.planning.recursive.cut_costs import ROW_COEFFICIENT
from irtool.planning.recursive.elimination import Searched, Vertex, searched_graph
from irtool.planning.recursive.fitting import Devices, unsplit, valid
from irtool.planning.recursive.inserted import DATASET
from irtool.planning.recursive.joined import without_joined
from irtool.planning.recursive.kinds import Kind, NotSearchable
from irtool.planning.recursive.operators import Operator, operators_of, users_of_weights
from irtool.planning.recursive.partition import BY_WEIGHT_ABOVE, Rounds, cut_all
from irtool.planning.recursive.shared_weights import agree_on_weights, follow_shared_tables
from irtool.planning.recursive.spreading import Spread
from irtool.planning.recursive.tensors import WHOLE, H, W, row_of, turned
from irtool.sharding.network.analysis import Analysis
from irtool.sharding.network.sharded_nodes import primitive

MOST_DEVICES = 1024
NO_STRATEGY = frozenset({"Cast", "Reshape"})
"""Operators that take part in the search, but keep nothing of it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the search chose, by node of the dump.

    ``outs``: products of matrices whose sum is scattered have an ``out_strategy``.
    """

    strategies: Mapping[Node, Strategy]
    outs: Mapping[Node, Strategy]


def search(
    analysis: Analysis,
    pinned: Mapping[Node, Strategy] | None = None,
    *,
    row_coefficient: float = ROW_COEFFICIENT,
) -> Choice:
    """Strategies as MindSpore's double recursive search chooses them.

    Args:
        analysis: the network and its context. A number of devices that is no power of two is the
            caller's to refuse.
        pinned: strategies that are given (what ``MS_INTERFERED_SAPP=1`` makes of configured ones).
        row_coefficient: MindSpore's ``rp_matmul_mem_coef``.

    Raises:
        NotSearchable: MindSpore's own search fails on this network.
    """
    context = analysis.context
    analysis = replace(analysis, network=without_joined(analysis.network))
    operators = operators_of(analysis)
    places = {operator.node: operator.index for operator in operators if operator.node is not None}
    given = {places[node]: rows for node, rows in (pinned or {}).items() if node in places}
    graph = searched_graph(operators, given)
    rounds = Rounds(context.devices, context.stages, _micro_batch(analysis), row_coefficient)
    cut_all(graph.vertices, rounds)
    devices = Devices(context.devices, context.stage_size)
    outs = _scattered(operators, graph, devices)
    chosen = _Generator(analysis, operators, graph, devices).strategies()
    nodes = {operator.index: operator.node for operator in operators if operator.node is not None}
    kept = {
        nodes[place]: rows
        for place, rows in chosen.items()
        if place in nodes and rows and operators[place].op not in NO_STRATEGY
    }
    return Choice(
        kept, {nodes[place]: rows for place, rows in outs.items() if nodes[place] in kept}
    )


def _micro_batch(analysis: Analysis) -> int:
    """A pipeline's micro-batch as the search reckons it; without a pipeline 1.

    It looks at GetNext for the batch; where the data come otherwise, it finds 0.
    """
    if analysis.context.stages == 1:
        return 1
    network = analysis.network
    dataset = next((node for node in network.inputs if primitive(node) == DATASET), None)
    if dataset is None:
        return 1
    users = 0
    for item in network.users_of(dataset):
        if primitive(item.node) != "TupleGetItem":
            continue
        readers = network.users_of(item.node)
        if readers and primitive(readers[0].node) != "StridedSlice":
            readers = network.users_of(readers[0].node)
        users = len(readers)
    if not users:
        raise NotSearchable("nothing uses what the dataset gives")
    for node in network.inputs:
        if primitive(node) == "GetNext" and node.output_type is not None:
            shapes = [shape for _, shape in node.output_type.tensors if shape]
            return (shapes[0][0] if shapes else 0) // users
    return 0


def _scattered(
    operators: Sequence[Operator], graph: Searched, devices: Devices
) -> dict[int, Strategy]:
    """``out_strategy`` of products whose result is cut otherwise than its operands say.

    Above 32 devices, where the summed dimension is cut, rows of the result are cut by the same
    number, so that the sum is scattered.
    """
    scattered: dict[int, Strategy] = {}
    for place, vertex in graph.vertex.items():
        if vertex.kind is not Kind.MATMUL:
            continue
        first, second = vertex.inputs_cut[:2]
        if devices.all > BY_WEIGHT_ABOVE and not vertex.pinned:
            rows = vertex.result_cut
            factor = min(first[H] * first[W], devices.stage) // (rows[H] * rows[W])
            if factor > 1:
                vertex.result_cut = (rows[0], rows[1], rows[H] * factor, rows[W])
        if (vertex.result_cut[H], vertex.result_cut[W]) != (first[H], second[W]):
            scattered[place] = (row_of(vertex.result_cut, 2),)
    return scattered


@dataclass(slots=True)
class _Generator:
    """Strategies of all operators, from the cuts of some."""

    analysis: Analysis
    operators: Sequence[Operator]
    graph: Searched
    devices: Devices

    def strategies(self) -> dict[int, Strategy]:
        """By place; operators that stay alone have an empty one."""
        trains = self.analysis.trains
        left = self.graph.left_out
        spread = Spread(
            self.operators,
            self.graph.vertex,
            self.devices,
            self._of_cut(),
            list(left) if trains else left[::-1],
        )
        if trains:
            self._training(spread)
        else:
            self._inference(spread)
        for operator in self.operators:
            rows = spread.strategies.get(operator.index, ())
            spread.strategies[operator.index] = valid(operator, rows)
            if not trains and operator.kind is Kind.VIRTUAL:
                spread.strategies[operator.index] = unsplit(operator)
        return spread.strategies

    def _training(self, spread: Spread) -> None:
        self._without_rule(spread)
        least = self.devices.stage
        while least > 1:
            while spread.forward(least) or spread.backward(least):
                pass
            least //= 2
        spread.to_the_end()
        users = users_of_weights(self.analysis, self.operators)
        shared = [places for places in users.values() if len(places) > 1]
        follow_shared_tables(spread, shared, self.devices)

    def _inference(self, spread: Spread) -> None:
        spread.forward()
        spread.backward()
        spread.to_the_end()
        agree_on_weights(spread, self._weights(), self.devices)

    def _weights(self) -> dict[str, list[int]]:
        """By name of a weight, the operators that read it."""
        return dict(sorted(users_of_weights(self.analysis, self.operators).items()))

    def _of_cut(self) -> dict[int, Strategy]:
        """Strategies of the operators that the search cut."""
        return {
            place: self._of_vertex(self.operators[place], vertex)
            for place, vertex in self.graph.vertex.items()
            if self.operators[place].op != "GetNext"
        }

    def _of_vertex(self, operator: Operator, vertex: Vertex) -> Strategy:
        batch = vertex.kind in (Kind.SEGMENT, Kind.SPARSE_CROSS_ENTROPY)
        data = operator.op == DATASET and not self.analysis.context.full_batch
        if batch or data:
            return self._batch(operator, vertex)
        if operator.op == DATASET:
            vertex.result_cut = WHOLE
            return unsplit(operator)
        rows: list[Shape] = []
        for position, shape in enumerate(operator.inputs):
            if len(shape) > 4:
                raise NotSearchable(f"{operator.op} takes a tensor of {len(shape)} dimensions")
            cuts = vertex.inputs_cut[position]
            if vertex.kind is Kind.MATMUL and position < 2:
                name = ("transpose_a", "transpose_b")[position]
                cuts = turned(cuts) if operator.flag(name) else cuts
            rows.append(row_of(cuts, len(shape)))
        return tuple(rows)

    def _batch(self, operator: Operator, vertex: Vertex) -> Strategy:
        """The first dimension of every operand over all devices, or as many as its size."""
        first = operator.inputs[0]
        split = min(self.devices.stage, first[0]) if first else 1
        rank = len(operator.outputs[0]) if operator.outputs else 0
        cuts = [1, 1, 1, 1]
        if 1 <= rank <= 4:
            cuts[4 - rank] = split
        vertex.result_cut = (cuts[0], cuts[1], cuts[2], cuts[3])
        return tuple(
            tuple(split if axis == 0 else 1 for axis in range(len(shape)))
            for shape in operator.inputs
        )

    def _without_rule(self, spread: Spread) -> None:
        """Operators without a sharding rule are settled before anything is taken over."""
        for operator in self.operators:
            if operator.kind is Kind.STAND_ALONE:
                spread.strategies[operator.index] = ()
            elif operator.kind is Kind.BATCH_PARALLEL and not operator.search.fits:
                spread.strategies[operator.index] = tuple(
                    tuple(
                        self.devices.stage if tensor == 0 and axis == 0 else 1
                        for axis in range(len(shape))
                    )
                    for tensor, shape in enumerate(operator.inputs)
                )
            else:
                continue
            if operator.index in spread.open:
                spread.open.remove(operator.index)
