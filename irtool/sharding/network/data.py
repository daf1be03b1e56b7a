"""Where data comes in and results go out: dataset inputs, and results of an evaluation."""

from __future__ import annotations

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import GraphParameter, Node, Source
from irtool.ir.types import SequenceType
from irtool.ir.values import TensorLiteral
from irtool.operators.layout import Shape, TensorLayout
from irtool.sharding.network.analysis import Analysis, real_source
from irtool.sharding.network.graphs import Network
from irtool.sharding.network.sharded_nodes import primitive


@dataclass(frozen=True, slots=True)
class DatasetSlice:
    """The part of a dataset input that one rank reads.

    ``input`` is the parameter's name (of GetNext: its number); ``offset`` in elements a dimension.
    """

    input: str
    parameter: GraphParameter | None
    slice: Shape
    offset: Shape
    layout: TensorLayout


def dataset_slices(analysis: Analysis) -> list[DatasetSlice]:
    """What this rank reads of each input of the network.

    Args:
        analysis: with every operator judged.

    Returns:
        One slice (shape and offset, in elements of the whole) an input, in the order of the
        operators that read them; an input that several operators split comes once.
    """
    slices: list[DatasetSlice] = []
    for node, judged in analysis.judged.items():
        name = primitive(node)
        if name not in ("_VirtualDataset", "GetNext") or judged.judgement.verdict != "legal":
            continue
        layouts = judged.judgement.output_layouts
        for index, layout in enumerate(layouts):
            source = _input(analysis, node, judged.call.slots.operand(index))
            known = [item for item in slices if item.parameter is source]
            if source is not None and known:
                continue
            context = analysis.operators
            piece = layout.piece(context.own_rank - context.devices[0])
            label = source.name if source is not None else str(index)
            slices.append(DatasetSlice(label, source, piece.shape, piece.offset, layout))
    return slices


def _input(analysis: Analysis, node: Node, position: int | None) -> GraphParameter | None:
    """The input of the whole network that an operand of the virtual dataset is."""
    inputs = analysis.network.inputs[node]
    if position is None or position >= len(inputs):
        return None
    return outer_parameter(analysis.network, inputs[position])


def outer_parameter(network: Network, source: Source | None) -> GraphParameter | None:
    """The entry's parameter behind a parameter of a called or differentiated graph.

    Args:
        network: whose calls are followed; of several calls of a graph the first.
        source: a value; Load, Cast and Depend before it are looked through.

    Returns:
        None where the value is computed, or a constant, or its graph is called nowhere.
    """
    for _ in range(1000):
        while isinstance(source, Node) and primitive(source) in ("Load", "Cast", "Depend"):
            source = network.first(source)
        if not isinstance(source, GraphParameter):
            return None
        if source.declaration is not None:
            return source
        place = network.index_of(source)
        if place is None:
            return None
        graph, index = place
        calls = network.calls.get(graph.name) or _indirect_calls(network, graph.name)
        source = network.argument(calls[0], index) if calls else None
    return None


def _indirect_calls(network: Network, name: str) -> list[Node]:
    """Calls of the differentiated graph: ``J(@G)`` applied to arguments."""
    calls: list[Node] = []
    for node, callee in network.callee.items():
        if isinstance(callee, Node) and primitive(callee) == "J":
            graph = network.first(callee)
            if getattr(graph, "name", None) == name:
                calls.append(node)
    return calls


def check_result(analysis: Analysis) -> None:
    """Refuse an evaluation that returns what one operator with several results gives, as it is.

    MindSpore looks behind each result for its shape, and finds none of a tuple that no MakeTuple
    made. Nor does it find the operator of a result that is a constant, where there is nothing else.

    Args:
        analysis: with every operator judged; takes the refusals.
    """
    network = analysis.network
    result = network.returned(network.entry) if network.entry is not None else None
    if isinstance(result, TensorLiteral) and (analysis.splits_results or _has_inputs_only(network)):
        message = "the network returns a constant, which MindSpore finds no operator of"
        analysis.refuse("constant-result", message, "", network.entry and network.entry.result)
    settled = analysis.is_refused or analysis.is_unknown
    if settled or not analysis.splits_results or result is None:
        return
    source, _ = real_source(analysis, result, through_items=False)
    if not isinstance(source, Node) or source not in analysis.judged:
        return
    results = analysis.judged[source].call.call.results
    type = source.output_type.type if source.output_type is not None else None
    if isinstance(type, SequenceType) and any(tensor.shape for tensor in results):
        message = f"the network returns all results of {primitive(source)} as the tuple they are"
        analysis.refuse("tuple-result", message, "", source)


def _has_inputs_only(network: Network) -> bool:
    """Whether a network has inputs, and no weights."""
    declared = network.dump.parameters
    return bool(declared) and not any(item.has_default for item in declared)


def result_layout(analysis: Analysis, result: Node, item: int) -> TensorLayout | None:
    """How a result of an evaluation lies: the batch over all devices where it divides.

    Args:
        analysis: of a network that is evaluated.
        result: the entry's Return.
        item: which of the returned values; the only one has 0.

    Returns:
        None where MindSpore leaves a result as it comes: a scalar, a batch that does not divide, a
        parameter.
    """
    network = analysis.network
    returned = network.first(result)
    if returned is None:
        return None
    source, _ = real_source(analysis, returned, through_items=False)
    if isinstance(source, Node) and primitive(source) == "MakeTuple":
        inputs = network.inputs[source]
        if item >= len(inputs):
            return None
        source = inputs[item]
    elif isinstance(source, GraphParameter):
        return None
    if not isinstance(source, Node) or source.output_type is None:
        return None
    shape = source.output_type.dimensions
    devices = 1 if analysis.context.full_batch else analysis.context.stage_size
    if not shape or shape[0] % devices:
        return None
    return _batch_layout(analysis, shape, devices)


def _batch_layout(analysis: Analysis, shape: Shape, split: int) -> TensorLayout:
    size = analysis.context.stage_size
    rank = len(shape)
    matrix = (split, *(1 for _ in shape[1:]))
    if split != size:
        matrix = (*matrix, size // split)
    shift = len(matrix) - rank
    return TensorLayout(
        matrix, tuple(rank - 1 - dimension + shift for dimension in range(rank)), shape
    )
