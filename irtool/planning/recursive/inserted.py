"""Operators that MindSpore puts into a network before it searches: at its inputs and its results.

Source: ``_VirtualDataset`` and ``_VirtualOutput`` in dumps after the search, where the dump before
it has none.
"""

from __future__ import annotations

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Graph, GraphParameter, Node, Source
from irtool.operators.layout import Shape
from irtool.sharding.network.analysis import Analysis
from irtool.sharding.network.sharded_nodes import primitive

DATASET = "_VirtualDataset"
RESULT = "_VirtualOutput"


@dataclass(frozen=True, slots=True)
class Dataset:
    """The operator that splits the inputs of a graph: those that are data."""

    graph: Graph
    parameters: tuple[GraphParameter, ...]

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Shapes of the inputs that are split; ``()`` where one is not known."""
        return tuple(_shape(parameter) for parameter in self.parameters)


def _shape(parameter: GraphParameter) -> Shape:
    return (parameter.type.dimensions or ()) if parameter.type is not None else ()


def inserted_datasets(analysis: Analysis) -> list[Dataset]:
    """Operators that split the inputs: of each differentiated graph, unless there is one already.

    Without differentiation, of the graph that uses the network's inputs.

    Args:
        analysis: of the network.
    """
    network = analysis.network
    if any(primitive(node) == DATASET for node in network.inputs):
        return []
    graphs: dict[str, Graph] = {}
    for node, inputs in network.inputs.items():
        if primitive(node) == "J" and inputs and isinstance(inputs[0], Graph):
            graphs.setdefault(inputs[0].name, inputs[0])
    entry = network.entry
    if entry is not None:
        for parameter in entry.parameters:
            if not _is_input(parameter):
                continue
            for use in network.users_of(parameter):
                called = network.called(use.node)
                owner = use.node.graph
                if owner is not None and (
                    primitive(use.node) or (called is not None and not analysis.trains)
                ):
                    graphs.setdefault(owner.name, owner)
    datasets: list[Dataset] = []
    for graph in graphs.values():
        parameters = tuple(parameter for parameter in graph.parameters if _is_input(parameter))
        if parameters:
            datasets.append(Dataset(graph, parameters))
    return datasets


def _is_input(parameter: GraphParameter) -> bool:
    """Whether a parameter takes data: no weight, and no token of side effects."""
    type = parameter.type
    return not is_weight(parameter) and type is not None and type.dimensions is not None


def marked_results(analysis: Analysis) -> list[Node]:
    """What the network gives back, where MindSpore marks it (inference).

    Args:
        analysis: of the network; results that cannot be cut over the devices are not marked.
    """
    entry, context = analysis.network.entry, analysis.context
    last = context.stage == context.stages - 1
    if analysis.trains or entry is None or context.dataset is not None or not last:
        return []
    source = analysis.network.returned(entry)
    while isinstance(source, Node) and primitive(source) == "Depend":
        source = analysis.network.first(source)
    results: tuple[Source | None, ...] = (source,)
    if isinstance(source, Node) and primitive(source) == "MakeTuple":
        results = analysis.network.inputs[source]
    parts = 1 if context.full_batch else context.stage_size
    return [result for result in results if isinstance(result, Node) and _divides(parts, result)]


def _divides(parts: int, node: Node) -> bool:
    shape = node.output_type.dimensions if node.output_type is not None else None
    return shape is not None and len(shape) > 0 and shape[0] % parts == 0


def is_weight(parameter: GraphParameter) -> bool:
    """Whether a parameter keeps its value from step to step.

    Args:
        parameter: of any graph; those of inner graphs are none.
    """
    return parameter.declaration is not None and parameter.declaration.is_weight
