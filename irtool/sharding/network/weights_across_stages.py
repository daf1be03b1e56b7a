"""Weights that one pipeline stage hands to another: where MindSpore refuses them, or errs.

In a plain pipeline a later stage receives the weight cut as the first stage wants it, and nothing
is redistributed. With cells that are inlined late one dump holds all stages: a ``Send`` of the
weight and a ``Receive`` behind it, which later passes find only where a cell is given the weight as
an argument, not where the graphs of cells read it from around them.

Source: compilations of such pipelines with MindSpore 2.7.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from irtool.ir.graph import GraphParameter, Node
from irtool.operators.axes import dimensions_of
from irtool.operators.layout import Shape
from irtool.sharding.network.analysis import Analysis, Judged
from irtool.sharding.network.graphs import Network, depends_on
from irtool.sharding.network.received import RECEIVE, SEND, brings_weight, received_slice
from irtool.sharding.network.sharded_nodes import primitive
from irtool.sharding.network.states import ParameterReport
from irtool.sharding.network.weights import (
    behind,
    handed_weight,
    is_mirrored,
    tensors_of,
    through,
    trained_parameters,
    weight_of,
)

ABNORMAL = "step_parallel.cc:SkipTrivialNodesMoveUp"
NO_PARAMETER = "pipeline_split_utils.cc:HandleReceiveParam"
CYCLE = "graph_utils.cc:TopoSort"
EXTRACTED = "step_parallel_utils.cc:ExtractShapeAndSymbol"


class _HandedUse(NamedTuple):
    """An operator whose operand is brought by a Receive: which tensor, and by which.

    ``given``: the operator's graph is called with what the Receive brings.
    """

    judged: Judged
    tensor: int
    receive: Node
    given: bool


def check_handed(analysis: Analysis, weights: Iterable[ParameterReport]) -> None:
    """Refuse weights that can't be handed to another stage; doubt those that come cut otherwise.

    Args:
        analysis: with every operator judged; takes refusals and doubts.
        weights: that this stage holds.
    """
    if analysis.context.stages == 1:
        return
    _check_sends(analysis, weights)
    for use in _uses(analysis):
        if _is_tuple(use.receive) and len(use.judged.call.call.tensors) > 1:
            message = "another stage hands it a weight that MindSpore gives the type of a tuple"
            analysis.refuse("handed-weight", message, EXTRACTED, use.judged.node)
        elif use.judged.judgement.verdict != "legal":
            continue
        elif brings_weight(use.receive) or use.given:
            _check_slice(analysis, use)
        elif analysis.differentiates:
            _check_mirror(analysis, use)
    for receive in analysis.network.inputs:
        handed = handed_weight(analysis, receive)
        own = receive not in analysis.foreign
        if handed is not None and own and not is_reached(analysis.network, receive):
            message = (
                f"the stage is handed the weight {handed.name}, and cells that are inlined late "
                "read it from around them: MindSpore finds no parameter behind the Receive"
            )
            analysis.refuse("handed-weight", message, NO_PARAMETER, receive)


def _check_sends(analysis: Analysis, weights: Iterable[ParameterReport]) -> None:
    """Refuse a weight that goes to several stages, where optimizer parallel leaves its mirror.

    The mirror of one rank, too, which is kept where micro-batches meet optimizer parallel.
    """
    if not analysis.context.parallel_optimizer:
        return
    for weight in weights:
        users = (use.node for use in analysis.network.users_of(weight.parameter))
        sends = [one for one in users if primitive(one) == SEND and one not in analysis.foreign]
        if len(sends) > 1 and not analysis.foreign and weight.mirror_ranks:
            message = (
                f"the weight {weight.name} is handed to {len(sends)} stages, and its gradient is "
                "summed up beside optimizer parallel: MindSpore makes a cycle of it"
            )
            analysis.refuse("handed-weight", message, CYCLE, sends[0])


def is_reached(network: Network, node: Node) -> bool:
    """Whether a node's own graph computes its result from it, and not the graphs inside alone.

    Args:
        network: that resolves operands.
        node: of a graph that has a Return.
    """
    graph = node.graph
    if graph is None or graph.result is None:
        return False
    return any(other is node for other in depends_on(network, graph.result))


def _uses(analysis: Analysis) -> Iterator[_HandedUse]:
    """Operators that take a weight from a Receive, those of other stages, too."""
    for judged in list(analysis.judged.values()):
        for tensor, _, source in tensors_of(analysis, judged):
            given = False
            while (earlier := through(analysis.network, source)) is not None:
                given = given or isinstance(source, GraphParameter)
                source = earlier
            if isinstance(source, Node) and primitive(source) == RECEIVE:
                yield _HandedUse(judged, tensor, source, given)


def _is_tuple(receive: Node) -> bool:
    """Whether a Receive has the type of several results: that of the operator that takes it."""
    return receive.output_type is not None and len(receive.output_type.tensors) > 1


def _check_mirror(analysis: Analysis, use: _HandedUse) -> None:
    """Refuse a weight whose gradient is to be summed behind a Receive: no place for it is found."""
    weight = handed_weight(analysis, use.receive)
    mirrors = use.judged.judgement.mirrors
    if weight is None or use.tensor >= len(mirrors):
        return
    if not is_mirrored(analysis, use.judged, mirrors[use.tensor]):
        return
    held = weight_of(analysis, weight)
    if held.gather_ranks and held.mirror_ranks is None:
        return  # the optimizer's shards sum it
    message = (
        f"the gradient of the weight {weight.name} is to be summed up where another stage hands it "
        "over: MindSpore takes the Receive for an abnormal node there"
    )
    if any(weight is trained for trained in trained_parameters(analysis)):
        analysis.refuse("handed-weight", message, ABNORMAL, use.judged.node)
    elif use.judged.node in analysis.foreign and not _is_own(analysis, weight):
        analysis.doubt(f"{message}, if it is trained", use.judged.node)


def _is_own(analysis: Analysis, weight: GraphParameter) -> bool:
    """Whether the own stage uses a weight, so that the dump tells whether it is trained."""
    return any(
        behind(analysis, source) is weight
        for judged in analysis.judged.values()
        if judged.node not in analysis.foreign
        for _, _, source in tensors_of(analysis, judged)
    )


def _check_slice(analysis: Analysis, use: _HandedUse) -> None:
    """Doubt, or refuse, an operator that wants another slice than it is handed."""
    slices = list(use.judged.judgement.input_slices)
    weight = handed_weight(analysis, use.receive)
    part = received_slice(use.receive) if weight is None else weight_of(analysis, weight).base
    if (
        use.judged.node in analysis.foreign
        or part is None
        or use.tensor >= len(slices)
        or slices[use.tensor] == part
    ):
        return
    message = (
        f"the first stage hands over slices of {part} of the weight, and slices of "
        f"{slices[use.tensor]} are wanted here: MindSpore redistributes nothing"
    )
    slices[use.tensor] = part
    if _conflicts(analysis, use, slices):
        analysis.refuse("handed-weight", f"{message}, and they fit no other operand", "",
                        use.judged.node)  # fmt: skip
    else:
        analysis.doubt(f"{message}, and computes with what comes", use.judged.node)


def _conflicts(analysis: Analysis, use: _HandedUse, slices: list[Shape]) -> bool:
    """Whether local shapes contradict one another along an axis."""
    dimensions = dimensions_of(use.judged.call.call, analysis.operators)
    if dimensions is None:
        return False
    sizes: dict[object, set[int]] = {}
    for keys, local in zip(dimensions.inputs, slices, strict=False):
        for key, size in zip(keys, local, strict=False):
            if key is not None and size != 1:
                sizes.setdefault(key, set()).add(size)
    return any(len(several) > 1 for several in sizes.values())
