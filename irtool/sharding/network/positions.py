"""Operators without a rule: MindSpore finds their layouts by the place of an operand.

It lists the layouts of an operator's tensors in line, but looks them up by the operand's position,
where constants count (but not those that were left out, None). For operators that it has a rule
for, the list has a gap at each constant. For others it has none: behind a constant an operand gets
the layout of a later tensor, and the last ones get none at all, which MindSpore refuses for
parameters and constant tensors.

Source: compilations with MindSpore 2.7.0 of ``LayerNormExt``, ``ScatterAddExt``, ``DynamicRNN``,
``TransposeView``, ``Einsum`` and ``ParallelConcat``, none of which it has a rule for.
"""

from __future__ import annotations

from dataclasses import replace

from irtool.ir.graph import GraphParameter, Node
from irtool.ir.types import ScalarType
from irtool.ir.values import TensorLiteral
from irtool.operators.judgement import Judgement, Reason
from irtool.operators.table import operator_of
from irtool.sharding.network.analysis import Analysis, Judged, real_source
from irtool.sharding.network.calls import Slots
from irtool.sharding.network.sharded_nodes import TIES, primitive
from irtool.sharding.network.weights import behind

STAND_ALONE = "stand_alone_info.cc:InferTensorInfo"
PARAMETERS = "parallel_preprocessor.cc:SetParallelShape"
CONSTANTS = "parallel_processer.cc:CreateSliceForTensor"
TUPLES = "parallel_processer.cc:Redistribution"


def placed(analysis: Analysis, judged: Judged) -> Judged:
    """The operator with the layouts of its operands found as MindSpore finds them.

    Args:
        analysis: of the network.
        judged: of any kind; one that a rule judges is given back as it is.

    Returns:
        Behind a constant an operand may have the layout of another tensor, or none; an operator
        that stands alone is illegal where a side effect is in the way.
    """
    kind = judged.judgement.kind
    if kind == "stand-alone":
        return _without_side_effects(analysis, judged)
    count = judged.call.slots.count
    if kind != "batch-parallel" or any(held > 1 for held in count):
        return judged
    tensors = sum(count)
    places = _places(judged.node, len(count))
    kept = tuple(held if place < tensors else 0 for place, held in zip(places, count, strict=True))
    slots = Slots(places, kept)
    return replace(judged, call=replace(judged.call, slots=slots))


def _without_side_effects(analysis: Analysis, judged: Judged) -> Judged:
    """Refuse an operator that stands alone and waits for a computed side effect.

    MindSpore asks for the layout of every operand that is no constant; side effects have none.
    Where a part of the dump is missing, it may be the one that shows that no gradient is taken of
    the operator, so that it needs no layouts.
    """
    if any(problem.severity == "error" for problem in analysis.network.dump.problems):
        return judged
    asked = 0
    for position, source in enumerate(analysis.network.inputs[judged.node]):
        if not isinstance(source, (Node, GraphParameter)):
            continue
        asked += 1
        if asked > len(judged.call.call.tensors):
            message = f"operand {position} is a side effect, which has no layout to stand alone in"
            reason = Reason("operand-position", message, STAND_ALONE)
            return replace(judged, judgement=Judgement("illegal", (), (reason,)))
    return judged


def check_positions(analysis: Analysis) -> None:
    """Refuse parameters and constants whose layout MindSpore looks up behind the last one.

    Args:
        analysis: with every operator judged; takes the refusals.
    """
    for node, judged in analysis.judged.items():
        kind = judged.judgement.kind
        if kind == "rule" or judged.judgement.verdict != "legal":
            continue
        if kind == "batch-parallel":
            _check_last_ones(analysis, judged)
            _note_whole_ones(analysis, judged)
        if not operator_of(primitive(node)).is_("tuples") and _takes_results(analysis, node):
            message = f"{primitive(node)} takes a tuple of results, which can not be redistributed"
            analysis.refuse("tuple-operand", message, TUPLES, node)


def _check_last_ones(analysis: Analysis, judged: Judged) -> None:
    node = judged.node
    tensors = len(judged.call.call.tensors)
    sources = analysis.network.inputs[node]
    places = _places(node, len(sources))
    first = next((index for index in range(len(sources)) if _shape(node, index) is not None), -1)
    for position, source in enumerate(sources):
        if places[position] < tensors or _shape(node, position) is None:
            continue
        where = f"operand {position} of an operator with {tensors} layouts, one a tensor"
        parameter = behind(analysis, source)
        if parameter is not None:
            message = f"the parameter {parameter.name} is {where}: it gets none"
            analysis.refuse("operand-position", message, PARAMETERS, node)
        elif isinstance(source, TensorLiteral):
            if source.shape not in ((), (1,)):
                message = f"a constant tensor is {where}: it gets none"
                analysis.refuse("operand-position", message, CONSTANTS, node)
        elif position == first or not _comes_whole(analysis, source):
            analysis.doubt(f"a result is {where}: it comes as its producer leaves it", node)


def _comes_whole(analysis: Analysis, source: object) -> bool:
    """Whether the operator that gives a result leaves it whole on every device."""
    if not isinstance(source, Node):
        return False
    producer, item = real_source(analysis, source)
    judged = analysis.judged.get(producer) if isinstance(producer, Node) else None
    layouts = judged.judgement.output_layouts if judged is not None else ()
    return max(item, 0) < len(layouts) and layouts[max(item, 0)].is_whole


def operands_as_long(judged: Judged) -> list[int]:
    """Positions of the operands behind the first one whose first dimension is as long as its.

    Args:
        judged: an operator with one tensor operand at least.

    Returns:
        Positions among the operands, from 1 on; none where the first operand is a scalar.
    """
    first = judged.call.call.tensors[0]
    count = len(judged.node.input_types)
    shapes = ((position, _shape(judged.node, position)) for position in range(1, count))
    return [index for index, shape in shapes if shape and shape[:1] == (first.shape or ())[:1]]


def _note_whole_ones(analysis: Analysis, judged: Judged) -> None:
    """Say of operands as long as the one that is split that they stay whole.

    An operator whose operands must fit each other refuses that, but only after the parallel pass.
    """
    node, strategy = judged.node, judged.judgement.strategy
    first = judged.call.call.tensors[0]
    if not first.shape or strategy[0][0] == 1:
        return
    long = operands_as_long(judged)
    sources = analysis.network.inputs[node]
    results = [
        position
        for position in long
        if isinstance(sources[position], Node) and behind(analysis, sources[position]) is None
    ]
    along = node.attribute("axis")
    if operator_of(primitive(node)).is_("counts_rows") and along in (None, 0):
        analysis.doubt("run batch parallel, it puts out fewer tensors than its users ask for", node)
        return
    aligned = operator_of(primitive(node)).is_("aligned")
    unsplit = long if aligned else results
    if not unsplit:
        return
    message = (
        f"MindSpore has no rule for it: operand 0 is split into {strategy[0][0]}, operand "
        f"{', '.join(map(str, unsplit))} of the same length stays whole, which the operator "
    )
    if aligned and first.shape[0] == strategy[0][0]:
        # one row is left on each device, which some operators broadcast
        analysis.doubt(message + "may refuse, or broadcast its one row to", node)
    elif aligned:
        analysis.refuse("operands-differ", message + "then refuses", "", node)
    else:
        analysis.note(message + "may refuse, or compute something else from", node)


def _places(node: Node, count: int) -> tuple[int, ...]:
    """Where each operand's layout is looked up; what was left out (None) takes no place."""
    places: list[int] = []
    place = 0
    for position in range(count):
        abstract = node.input_types[position] if position < len(node.input_types) else None
        places.append(place)
        type = abstract.type if abstract is not None else None
        place += not (isinstance(type, ScalarType) and type.name == "None")
    return tuple(places)


def _shape(node: Node, position: int) -> tuple[int, ...] | None:
    """The shape of a tensor operand; None for anything else."""
    abstract = node.input_types[position] if position < len(node.input_types) else None
    return abstract.dimensions if abstract is not None else None


def _takes_results(analysis: Analysis, node: Node) -> bool:
    """Whether an operand is a tuple of what sharded operators put out."""
    inputs = analysis.network.inputs
    return any(
        isinstance(source, Node)
        and primitive(source) in TIES
        and any(_is_sharded(analysis, item) for item in inputs[source])
        for source in inputs[node]
    )


def _is_sharded(analysis: Analysis, source: object) -> bool:
    """Whether a result is that of a sharded operator, looked at through items and Load."""
    while isinstance(source, Node) and primitive(source) in ("TupleGetItem", "Load", "Depend"):
        source = analysis.network.first(source)
    return isinstance(source, Node) and source in analysis.judged
