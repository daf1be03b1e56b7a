"""Operators whose results have sizes that their operands do not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from irtool.ir.graph import Node
from irtool.operators.axes import dimensions_of
from irtool.operators.case import Case
from irtool.operators.functions.attention import COMPRESSED, KEY, OPTIONAL, QUERY, input_layout
from irtool.operators.functions.common import given_inputs
from irtool.operators.judgement import Unsure
from irtool.operators.table import rule_of
from irtool.planning.scaling.dimensions import (
    ANY_CONTEXT,
    Attended,
    Cut,
    Dimensions,
    Extent,
    Handler,
)
from irtool.planning.scaling.sizes import ONE, Product
from irtool.sharding.network.calls import NodeCall, literal_numbers


def constant(call: NodeCall, position: int) -> object:
    """The value of a constant operand.

    Args:
        call: of a node.
        position: of the operand among all inputs; behind the last one there is None.
    """
    inputs = call.call.inputs
    return inputs[position].value if position < len(inputs) else None


def _rows(
    known: Dimensions, node: Node, call: NodeCall, ins: Sequence[Extent], outs: Sequence[Extent]
) -> bool:
    """Make the result's factors those of the operand: it holds its elements in their order."""
    before = tuple(factor for product in ins[0].dimensions for factor in product)
    after = tuple(factor for product in outs[0].dimensions for factor in product)
    known.sizes.equate(before, after, node)
    return True


def _changed(known: Dimensions, left: Extent, right: Extent) -> list[int]:
    """The dimensions whose sizes differ."""
    sizes = known.sizes
    return [
        dimension
        for dimension, (a, b) in enumerate(zip(left.dimensions, right.dimensions, strict=True))
        if sizes.value(a) != sizes.value(b)
    ]


def _beside(known: Dimensions, node: Node, left: Extent, right: Extent, axis: int) -> None:
    """All dimensions but one are the same."""
    for dimension, (a, b) in enumerate(zip(left.dimensions, right.dimensions, strict=True)):
        if dimension != axis:
            known.sizes.equate(a, b, node)


def _parts(
    known: Dimensions,
    node: Node,
    call: NodeCall,
    ins: Sequence[Extent],
    outs: Sequence[Extent],
    *,
    alike: bool,
) -> bool:
    """A tensor cut along an axis."""
    source = ins[0]
    if len(outs) == 1:
        known.same(source, outs[0], node)
        return True
    axes = {axis for out in outs for axis in _changed(known, source, out)}
    if len(axes) != 1:
        return False
    axis = axes.pop()
    for out in outs:
        _beside(known, node, source, out, axis)
        if alike:
            known.sizes.equate(out.dimensions[axis], outs[0].dimensions[axis], node)
    known.sizes.is_sum(source.dimensions[axis], [out.dimensions[axis] for out in outs], node)
    return True


def _joined(
    known: Dimensions, node: Node, call: NodeCall, ins: Sequence[Extent], outs: Sequence[Extent]
) -> bool:
    """Tensors behind one another along an axis."""
    joined = outs[0]
    if len(ins) == 1:
        known.same(joined, ins[0], node)
        return True
    axes = {axis for tensor in ins for axis in _changed(known, joined, tensor)}
    if len(axes) != 1:
        return False
    axis = axes.pop()
    for tensor in ins:
        _beside(known, node, joined, tensor, axis)
    known.sizes.is_sum(joined.dimensions[axis], [tensor.dimensions[axis] for tensor in ins], node)
    return True


def _halved(
    known: Dimensions, node: Node, call: NodeCall, ins: Sequence[Extent], outs: Sequence[Extent]
) -> bool:
    """One half of an axis gates the other."""
    axes = _changed(known, ins[0], outs[0])
    if len(axes) != 1:
        return False
    _beside(known, node, ins[0], outs[0], axes[0])
    half = outs[0].dimensions[axes[0]]
    known.sizes.is_sum(ins[0].dimensions[axes[0]], (half, half), node)
    return True


def _tiled(
    known: Dimensions, node: Node, call: NodeCall, ins: Sequence[Extent], outs: Sequence[Extent]
) -> bool:
    """Each dimension as often as its multiple says, one after the other."""
    times = literal_numbers(constant(call, 1))
    if times is None or len(times) != len(outs[0].dimensions):
        return False
    missing = len(times) - len(ins[0].dimensions)
    before = (ONE,) * missing + ins[0].dimensions
    repeats = tuple(map(known.sizes.new, times))
    known.repeats[node] = repeats
    for repeat, inner, product in zip(repeats, before, outs[0].dimensions, strict=True):
        known.sizes.equate(product, (*repeat, *inner), node)
    return True


def _broadcast(
    known: Dimensions, node: Node, call: NodeCall, ins: Sequence[Extent], outs: Sequence[Extent]
) -> bool:
    """Dimensions of size 1 come out as large as is asked for."""
    own, after = ins[0].dimensions, outs[0].dimensions
    for inner, product in zip(reversed(own), reversed(after), strict=False):
        if inner != ONE:
            known.sizes.equate(inner, product, node)
    return True


def _repeated(
    known: Dimensions, node: Node, call: NodeCall, ins: Sequence[Extent], outs: Sequence[Extent]
) -> bool:
    """Each element along an axis several times."""
    axes = _changed(known, ins[0], outs[0])
    if len(axes) > 1:
        return False
    axis = axes[0] if axes else -1
    _beside(known, node, ins[0], outs[0], axis)
    if axes:
        before, after = ins[0].dimensions[axis], outs[0].dimensions[axis]
        times, rest = divmod(known.sizes.value(after), known.sizes.value(before))
        if rest:
            return False
        repeat = known.sizes.new(times, fixed=False)
        known.repeats[node] = (repeat,)
        known.sizes.equate(after, (*before, *repeat), node)
    return True


def _made(
    known: Dimensions, node: Node, call: NodeCall, ins: Sequence[Extent], outs: Sequence[Extent]
) -> bool:
    """Tensors whose shape is a constant."""
    return True


def _looked_up(
    known: Dimensions, node: Node, call: NodeCall, ins: Sequence[Extent], outs: Sequence[Extent]
) -> bool:
    """One row of classes for each index: the class axis is made."""
    signature = dimensions_of(call.call, ANY_CONTEXT)
    if signature is None or not signature.inputs:
        return False
    places = {key: dimension for dimension, key in enumerate(signature.outputs[0])}
    for key, product in zip(signature.inputs[0], ins[0].dimensions, strict=True):
        if key in places and product != ONE:
            known.sizes.equate(product, outs[0].dimensions[places[key]], node)
    return all(key is not None for key in signature.outputs[0])


def _best(
    known: Dimensions, node: Node, call: NodeCall, ins: Sequence[Extent], outs: Sequence[Extent]
) -> bool:
    """So many of the largest along an axis: the number is one of the code."""
    for out in outs:
        for inner, product in zip(ins[0].dimensions, out.dimensions, strict=True):
            if known.sizes.value(inner) == known.sizes.value(product):
                known.sizes.equate(inner, product, node)
            else:
                known.sizes.fixed.update(map(known.sizes.root, product))
    return True


def _sliced(
    known: Dimensions, node: Node, call: NodeCall, ins: Sequence[Extent], outs: Sequence[Extent]
) -> bool:
    """Dimensions that are taken whole, and parts of others."""
    signature = dimensions_of(call.call, ANY_CONTEXT)
    if signature is None:
        return False
    begins = literal_numbers(constant(call, 1)) or ()
    places = {
        key: dimension for dimension, key in enumerate(signature.outputs[0]) if key is not None
    }
    source = known.network.inputs[node][0]
    for dimension, (key, inner) in enumerate(
        zip(signature.inputs[0], ins[0].dimensions, strict=True)
    ):
        if key not in places:
            continue
        part = outs[0].dimensions[places[key]]
        size, taken = known.sizes.value(inner), known.sizes.value(part)
        if size == taken:
            known.sizes.equate(inner, part, node)
        else:
            begin = begins[dimension] if dimension < len(begins) else None
            begin = begin + size if begin is not None and begin < 0 else begin
            known.cut(source, dimension, Cut(node, inner, part, begin))
    return True


def _dense(
    known: Dimensions, node: Node, call: NodeCall, ins: Sequence[Extent], outs: Sequence[Extent]
) -> bool:
    """A product with a weight that stands the other way round, and a bias."""
    x, weight, out = ins[0].dimensions, ins[1].dimensions, outs[0].dimensions
    if len(weight) != 2 or len(x) != len(out):
        return False
    known.sizes.equate(x[-1], weight[1], node)
    known.sizes.equate(out[-1], weight[0], node)
    for before, after in zip(x[:-1], out[:-1], strict=True):
        known.sizes.equate(before, after, node)
    if len(ins) > 2:
        known.sizes.equate(ins[2].dimensions[-1], out[-1], node)
    return True


def _attention(
    known: Dimensions, node: Node, call: NodeCall, ins: Sequence[Extent], outs: Sequence[Extent]
) -> bool:
    """Queries, keys and values by their layout; fewer key heads serve several query heads each."""
    rule = rule_of(call.call.op)
    if rule is None:
        return False
    case = Case(rule, call.call, tuple((1,) * len(t.shape or ()) for t in call.call.tensors),
                ANY_CONTEXT)  # fmt: skip
    try:
        layout, heads = input_layout(case), case.number("head_num")
        compressed = case.number("sparse_mode") in COMPRESSED
    except Unsure:
        return False
    if layout not in ("BNSD", "BSND", "BSH", "SBH"):
        return False
    names = ("query", "key", "value", *given_inputs(case, OPTIONAL, 3))
    if len(names) != len(ins):
        return False
    query = _parted(known, ins[0], QUERY[layout], "n", heads)
    width = known.sizes.value(query["d"])
    keys = [_parted(known, extent, KEY[layout], "m", 0, width) for extent in ins[1:3]]
    key, value = keys
    for axis in "btm":
        known.sizes.equate(key[axis], value[axis], node)
    known.sizes.equate(query["b"], key["b"], node)
    known.sizes.equate(query["d"], key["d"], node)
    groups = known.sizes.new(heads // max(1, known.sizes.value(key["m"])))
    known.sizes.equate(query["n"], (*key["m"], *groups), node)
    result = _parted(known, outs[-1], QUERY[layout], "n", heads)
    for axis in "bsn":
        known.sizes.equate(result[axis], query[axis], node)
    known.sizes.equate(result["d"], value["d"], node)
    for name, extent in zip(names[3:], ins[3:], strict=True):
        if name != "attn_mask" or compressed:
            continue
        for product, axis in zip(extent.dimensions[-2:], "st", strict=True):
            wanted = query["s"] if axis == "s" else key["t"]
            if product != ONE:
                known.sizes.equate(product, wanted, node)
        if len(extent.dimensions) == 4 and extent.dimensions[0] != ONE:
            known.sizes.equate(extent.dimensions[0], query["b"], node)
    _statistics(known, node, outs[:2], query)
    axes = Attended(
        query["b"], query["n"], key["m"], query["d"], value["d"], query["s"], key["t"]
    )  # fmt: skip
    known.attended.append((node, axes))
    return True


def _statistics(
    known: Dimensions, node: Node, outs: Sequence[Extent], query: Mapping[str, Product]
) -> None:
    """Maxima and sums of the softmax, by batch, head and position; eight alike of each."""
    for out in outs:
        if len(out.dimensions) == 4:
            for product, axis in zip(out.dimensions, "bns", strict=False):
                known.sizes.equate(product, query[axis], node)
            known.sizes.fixed.update(map(known.sizes.root, out.dimensions[3]))


def _parted(
    known: Dimensions, extent: Extent, pattern: str, name: str, heads: int, width: int = 0
) -> dict[str, Product]:
    """The axes of a query, key or value; heads and their size told apart where they are one.

    Args:
        known: all sizes.
        extent: of the tensor.
        pattern: its axes, without a dot where heads hold their size.
        name: of the axis of heads.
        heads: how many; 0: as many as heads of ``width`` fit.
        width: size of a head.
    """
    axes: dict[str, Product] = {}
    for axis, product in zip(pattern, extent.dimensions, strict=True):
        axes["d" if axis == "." else axis] = product
    if "d" not in axes:
        size = known.sizes.value(axes[name])
        count = heads or size // width
        outer, inner = known.sizes.new(count), known.sizes.new(size // count)
        known.sizes.equate(axes[name], (*outer, *inner))
        axes |= {name: outer, "d": inner}
    return axes


HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(("Reshape", "Flatten", "View", "FlattenExt"), _rows),
    **dict.fromkeys(("Split", "Chunk"), partial(_parts, alike=True)),
    **dict.fromkeys(("SplitV", "SplitWithSize", "SplitTensor"), partial(_parts, alike=False)),
    **dict.fromkeys(("Concat", "Cat"), _joined),
    **dict.fromkeys(("Swiglu", "GLU"), _halved),
    "Tile": _tiled,
    **dict.fromkeys(("BroadcastTo", "ExpandAs"), _broadcast),
    **dict.fromkeys(("RepeatElements", "RepeatInterleave", "RepeatInterleaveInt"), _repeated),
    **dict.fromkeys(("Fill", "FillV2", "Range", "Zeros", "Ones", "DropoutGenMask"), _made),
    **dict.fromkeys(("OneHot", "OneHotExt"), _looked_up),
    **dict.fromkeys(("TopK", "TopkExt"), _best),
    **dict.fromkeys(("StridedSlice", "Slice", "SliceExt"), _sliced),
    "Dense": _dense,
    "FlashAttentionScore": _attention,
}  # fmt: skip
