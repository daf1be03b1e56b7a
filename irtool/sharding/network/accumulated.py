"""Sums of gradients over micro-batches: what MindSpore needs of them, and who may be given them.

Source: compilations with MindSpore 2.7.0 of pipelines, and of gradient accumulation in one stage,
whose step keeps no sums of its own, or hands them to optimizers that share their states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irtool.ir.graph import GraphParameter, Node, Source
from irtool.ir.parameter_roles import is_accumulated
from irtool.operators.layout import Shape
from irtool.operators.table import operator_of
from irtool.sharding.network.analysis import MICRO_BATCHES, SEEN_THROUGH, Analysis, real_source
from irtool.sharding.network.graphs import Use
from irtool.sharding.network.sharded_nodes import primitive
from irtool.sharding.network.states import ParameterReport

SUMMED = "step_parallel_utils.cc:CreateMirrorInput"
IN_ONE_STAGE = "parallel_preprocessor.cc:MicroBatchPreProcess"
LATER = "evaluator.cc:Run"
"""Where the shapes of an operator on each device are looked at, behind the parallel pass."""
MOST = 200
"""Nodes that are looked at between an optimizer and the gradient that it is given."""


def check_accumulated(analysis: Analysis, weights: Iterable[ParameterReport]) -> None:
    """Refuse micro-batches without sums of the gradients that ranks share, and sums of a whole.

    Sums are as long as the weight that operators see, unless ``gradient_accumulation_shard`` cuts
    them: an optimizer that holds a part of the weight and of its states can't take them.

    Args:
        analysis: with every operator judged; takes the refusal, one at most.
        weights: all that the entry keeps, sums (``accu_grads.*``) included.
    """
    if not analysis.accumulates or not analysis.differentiates:
        return
    if _cuts_sums_of_inlined(analysis):
        message = (
            "gradient_accumulation_shard over the micro-batches of one stage needs a network that "
            "is inlined late: none of its cells has @lazy_inline"
        )
        analysis.refuse("gradient-sums", message, IN_ONE_STAGE, None)
        return
    sums = [item.name for item in weights if is_accumulated(item.name)]
    for weight in weights:
        shared = weight.mirror_ranks or weight.scatter_ranks
        if not shared:
            continue
        if not any(weight.name in name for name in sums):
            message = (
                f"no parameter accu_grads.{weight.name} sums up its gradient over the "
                "micro-batches: a step keeps one for every weight whose gradient ranks share"
            )
            analysis.refuse("gradient-sums", message, SUMMED, weight.user, "parameter")
            return
        node = _given_whole(analysis, weight)
        if node is not None:
            message = (
                f"the optimizer holds {weight.slice} of {weight.name} and of its states, but is "
                f"given the sum of its gradient, which is {weight.base}: give it the gradients, or "
                "set gradient_accumulation_shard"
            )
            analysis.refuse("gradient-sums", message, LATER, node)
            return


def _cuts_sums_of_inlined(analysis: Analysis) -> bool:
    """Whether sums are to be cut in one stage although no graph stands for itself any more."""
    network, context = analysis.network, analysis.context
    if context.stages > 1 or not context.accumulation_shard:
        return False
    if any(graph.attributes.get("cell_reuse") == "1" for graph in network.dump.graphs):
        return False
    return any(node.attribute(MICRO_BATCHES) is not None for node in network.inputs)


def _given_whole(analysis: Analysis, weight: ParameterReport) -> Node | None:
    """What takes the part of a weight that is stored together with its gradient's whole sum."""
    if weight.slice == weight.base or analysis.context.accumulation_shard:
        return None
    for use in _uses(analysis, weight.parameter):
        node = use.node
        if node in analysis.judged or operator_of(primitive(node)).is_("any_gradient"):
            continue
        others = (
            one
            for position, one in enumerate(analysis.network.inputs[node])
            if position != use.position
        )
        if any(_is_sum(analysis, one, weight.shape) for one in others):
            return node
    return None


def _uses(analysis: Analysis, parameter: GraphParameter) -> Iterator[Use]:
    """Uses of a parameter, those of what hands it on as it is among them."""
    for use in analysis.network.users_of(parameter):
        if primitive(use.node) not in SEEN_THROUGH:
            yield use
        elif use.position == 0:
            yield from analysis.network.users_of(use.node)


def _is_sum(analysis: Analysis, operand: Source, shape: Shape) -> bool:
    """Whether a value of this shape is computed from the sum of a gradient."""
    todo: list[Source] = [operand]
    seen: set[int] = set()
    while todo and len(seen) < MOST:
        source, _ = real_source(analysis, todo.pop())
        if id(source) in seen:
            continue
        seen.add(id(source))
        if isinstance(source, GraphParameter):
            name = source.declaration.name if source.declaration is not None else ""
            if is_accumulated(name) and _shape(source) == shape:
                return True
        elif isinstance(source, Node):
            todo += [one for one in analysis.network.inputs[source] if _shape(one) == shape]
    return False


def _shape(source: Source) -> Shape | None:
    kind = source.output_type if isinstance(source, Node) else None
    if isinstance(source, GraphParameter):
        kind = source.type
    shapes = [shape for _, shape in kind.tensors] if kind is not None else []
    return shapes[0] if len(shapes) == 1 else None
