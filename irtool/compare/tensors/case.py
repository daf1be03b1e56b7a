"""A closer look at the first fault: histograms, neighbours, edits around it, what to try next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

from irtool.compare.tensors.comparison import TensorComparison
from irtool.compare.tensors.dtypes import is_float
from irtool.compare.tensors.facts import Kind, kind_of_given
from irtool.compare.tensors.formats.payload import BadPayload, read_stored
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.measuring.values import number_blocks
from irtool.compare.tensors.model import Op
from irtool.compare.tensors.semantics import family
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_HOPS = 2
_CLEAN = 1e-5
"""Relative error of what goes in, up to which nothing before is to blame."""
_MOST_EDITS = 5
BINS = ("0", "1", "2 to 4", "5 to 16", "17 to 256", "more", "sign flips", "NaN or infinite")
"""Units in the last place that elements are apart."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many elements are how many units in the last place apart, and where the error sits.

    ``bias`` is the mean difference over the root mean square of the difference: near 0 for
    rounding, near 1 where everything is shifted to one side.
    """

    dtype: str
    counts: tuple[int, ...]
    bias: float


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A node near an operator that introduces error.

    Attributes:
        role: ``itself``, ``reads`` or ``read by``.
        line: of the dump.
        type: of its result.
    """

    role: str
    node: str
    op: str
    line: int
    type: str


@dataclass(frozen=True, slots=True)
class Case:
    """All that is told of one accused operator.

    ``edits`` is what differs around it in the graphs; ``missing`` are calls in a stretch of which
    only one side has a gradient; ``only_on`` is the side that alone has the operator, such as a
    collective of a run that is cut.
    """

    judged: Judged
    histogram: Histogram | None
    left_neighbours: tuple[Neighbour, ...]
    right_neighbours: tuple[Neighbour, ...]
    advice: tuple[str, ...] = field(default=())
    edits: tuple[str, ...] = field(default=())
    missing: tuple[str, ...] = field(default=())
    only_on: Literal["left", "right"] | None = None

    @property
    def left(self) -> Op:
        """The operator of the left dump that is named."""
        return self.judged.maker_left or self.judged.pair.left

    @property
    def right(self) -> Op:
        """The operator of the right dump that is named."""
        return self.judged.maker_right or self.judged.pair.right


def case_of(comparison: TensorComparison, judged: Judged) -> Case:
    """Look closer at one accused operator.

    Args:
        comparison: that it is part of.
        judged: the operator pair.
    """
    only_on = _only_on(comparison, judged)
    left = judged.maker_left or judged.pair.left
    right = judged.maker_right or judged.pair.right
    return Case(
        judged,
        _histogram(comparison, judged),
        _neighbours(left.node) if only_on != "right" else (),
        _neighbours(right.node) if only_on != "left" else (),
        advice(
            judged,
            any(not op.is_module for op in comparison.left.ops),
            kind_of_given(comparison, judged),
        ),
        tuple(_edits_near(comparison, judged)),
        tuple(_without_gradient(comparison, judged)),
        only_on,
    )


def _is_of_one_run(judged: Judged) -> bool:
    """Whether a verdict holds ranks of one run against each other, and is of no pair."""
    op = judged.pair.left
    return op is judged.pair.right and op in (judged.maker_left, judged.maker_right)


def _only_on(comparison: TensorComparison, judged: Judged) -> Literal["left", "right"] | None:
    """The side that alone has an accused operator, where a verdict of one side is no pair's."""
    op = judged.pair.left
    if not _is_of_one_run(judged):
        return None
    is_right = judged.maker_right is not None
    pairs = (item.pair for item in comparison.judged if item is not judged)
    if any((pair.right if is_right else pair.left).name == op.name for pair in pairs):
        return None
    return "right" if is_right else "left"


def _without_gradient(comparison: TensorComparison, judged: Judged) -> Iterator[str]:
    """Calls of an accused stretch of which the other framework's calls have no gradient."""
    crossing = comparison.crossing
    if crossing is None or judged.pair.left.phase != "backward" or crossing.is_by_figures:
        return
    pair = judged.pair
    calls = {member.call for member in (pair.left if crossing.is_left else pair.right).members}
    yield from (op.name for op in crossing.unseen_gradients if op.call in calls)


@dataclass(frozen=True, slots=True)
class ChecksumAgreement:
    """What dumps of checksums alone tell.

    Attributes:
        equal: pairs of tensors with the same checksum.
        pairs: all of them.
        first: the first operator pair with a result that differs; None if none does.
        inputs: of that one, ``differ`` already, are ``equal``, or ``unknown``.
        is_across_frameworks: rounding alone makes results differ.
    """

    equal: int
    pairs: int
    first: Judged | None
    inputs: Literal["differ", "equal", "unknown"]
    is_across_frameworks: bool


def checksum_agreement(comparison: TensorComparison) -> ChecksumAgreement | None:
    """How far two dumps agree by their checksums; None where there is more than checksums.

    Args:
        comparison: of two tensor dumps.
    """
    left, right = comparison.left, comparison.right
    if "md5" not in (left.level, right.level):
        return None
    measures = comparison.measures
    first: Judged | None = None
    inputs: Literal["differ", "equal", "unknown"] = "unknown"
    for item in comparison.judged:
        results = [measures[places] for places in item.slots.outputs if places in measures]
        if any(map(_is_other, results)):
            given = [measures[places] for places in item.slots.inputs if places in measures]
            first = item
            if given:
                inputs = "differ" if any(map(_is_other, given)) else "equal"
            break
    return ChecksumAgreement(
        sum(measure.equal for measure in measures.values()),
        len(measures),
        first,
        inputs,
        comparison.crossing is not None or left.framework != right.framework,
    )


def _is_other(measure: Measure) -> bool:
    """Whether two checksums were compared, and are not the same."""
    return not measure.equal and measure.note == "only checksums"


def _edits_near(comparison: TensorComparison, judged: Judged) -> Iterator[str]:
    """What differs in the graphs at an operator, at what it reads, and at what reads that."""
    diff = comparison.graphs
    if diff is None:
        return
    near: set[Node] = set()
    for op in (judged.pair.left, judged.pair.right, judged.maker_left, judged.maker_right):
        if op is not None and op.node is not None:
            near.add(op.node)
    for _ in range(_HOPS):
        near |= {source for node in near for source in node.inputs if isinstance(source, Node)}
    shown: set[str] = set()
    for edit in sorted(diff.edits, key=lambda item: item.order):
        text = f"{edit.kind}: {edit.detail}" if edit.detail else edit.kind
        if text not in shown and any(node in near for node in (*edit.left, *edit.right)):
            shown.add(text)
            yield text
            if len(shown) == _MOST_EDITS:
                return


_BETWEEN = {
    "sum": "add the terms up over the tensor parallel group (all_reduce, reduce_scatter) before "
    "this operator reads them",
    "replica": "look at how these ranks were given this tensor: the slice of the checkpoint, the "
    "sampler of the data, the seed, or the collective that should have made it alike",
}


_GIVEN: Mapping[Kind, str] = {
    "labels": "compare how the labels are made on both sides: data loader, order of samples, "
    "shift, padding, and the label that is ignored",
    "indices": "compare how these indices are made on both sides: data loader, order of samples, "
    "shift, padding",
    "input data": "compare what the data loaders give: order of samples, normalisation, padding",
    "masks": "compare how this mask is made, or drawn, on both sides: its shift, what is true in "
    "it, its seed",
}
"""What to try where something that a run is given differs."""


def advice(judged: Judged, has_calls: bool = False, given: Kind | None = None) -> tuple[str, ...]:
    """What to try next, that was not done yet.

    Args:
        judged: the operator that is accused.
        has_calls: the dump shows calls already, not modules alone.
        given: what its accused input is, where no operator made it.
    """
    op = judged.pair.left
    if judged.between:
        return (_BETWEEN[judged.between],)
    if judged.gets_other_rows:
        return (
            "compare which rows are picked for this call: the indices before it, a limit to how "
            "many there may be (the capacity of an expert), and what is dropped or padded",
        )
    if judged.may_be_order:
        return (*_by_kind(judged), "dump the tensors that it reads: only values show their order")
    is_made = judged.maker_left is not None or judged.maker_right is not None
    if given is not None and given in _GIVEN and judged.entered and not is_made:
        return (_GIVEN[given],)
    if judged.parameter:
        return ("load the same checkpoint on both sides, and check how it is laid out",)
    if any(not change.is_shape for change in judged.attributes):
        return ("give both sides the same arguments, and compare again",)
    if _is_of_one_run(judged):
        if family(op.type) == "collective":
            return (
                "compare what this collective does: its operation, its group, the ranks that take "
                "part, and what its result is divided by",
            )
        return ("compare what these ranks are given: data loader, sampler, seed, and their slices",)
    if judged.maker_left is not None or judged.maker_right is not None:
        return ("look at the operators that only one side has, just before this one",)
    if judged.is_permuted:
        return ("compare the views before it: what is reshaped, transposed or indexed, and how",)
    if op.parts or judged.pair.right.parts:
        return (
            "both sides agree in what goes in: compare the calls of the stretch one by one, and "
            "what lies between them (views, hooks, stop_gradient, detach)",
        )
    if judged.entered and has_calls:
        return (
            "compare the source lines that lead to this input, after the last operator that made "
            "it alike: views, indexing and arithmetic in place are in no dump of calls",
        )
    if judged.entered:
        return (
            "dump the operations between this one and the one before it (level mix or L1), or "
            "compare the source lines that lead to this input",
        )
    if judged.broken:
        return ("look for a division by zero, a log or an overflow of half precision here",)
    if op.phase == "backward" and judged.error_in < _CLEAN:
        return (
            "every result before agrees: compare the loss (labels, reduction, ignored labels, "
            "scale), and what is done to gradients between it and this operator",
        )
    return _by_kind(judged)


def _by_kind(judged: Judged) -> tuple[str, ...]:
    """What to try with an operator of its kind."""
    op = judged.pair.left
    kind = family(op.type)
    texts = {
        "matmul": "run this product in Float32 on both sides; check the accumulator's precision "
        "(high-precision mode, HF32 or TF32 switches)",
        "norm": "compare epsilon and the axes that are normalised over",
        "softmax": "compare the axis, the mask and the scale before it",
        "collective": "compare the group, the order of ranks and the type on the wire",
        "elementwise": "compare the variant (exact or approximate) of this function",
        "optimizer": "compare learning rate, weight decay, betas, epsilon and gradient scaling",
        "attention": "replace the fused kernel by its parts and compare again",
        "loss": "compare reduction, ignored labels and smoothing",
    }.get(kind, "run this operator alone, with the inputs of the dump, on both devices")
    side = f"the {judged.wrong} side is the one that is off; " if judged.wrong else ""
    return (side + texts,)


def _histogram(comparison: TensorComparison, judged: Judged) -> Histogram | None:
    if judged.output is None:
        return None
    a, b = judged.output
    left, right = comparison.left.columns, comparison.right.columns
    if not left.files[a] or not right.files[b]:
        return None
    try:
        ours = read_stored(left.files[a], left.dtypes[a])
        theirs = read_stored(right.files[b], right.dtypes[b])
    except BadPayload:
        return None
    is_real = all(is_float(stored.dtype) and stored.kind.kind != "c" for stored in (ours, theirs))
    if not is_real or ours.size != theirs.size:
        return None
    is_left = ours.kind.itemsize <= theirs.kind.itemsize
    coarse = left.dtypes[a] if is_left else right.dtypes[b]
    if "BFloat16" in (left.dtypes[a], right.dtypes[b]):
        coarse = "BFloat16"
    pairs = zip(number_blocks(ours), number_blocks(theirs), strict=True)
    try:
        return Histogram(coarse, *histogram_of(pairs, coarse))
    except BadPayload:  # it became shorter while it was read
        return None


def histogram(left: NDArray[Any], right: NDArray[Any], dtype: str) -> tuple[tuple[int, ...], float]:
    """Elements by units in the last place that they are apart, and the bias of the difference.

    Args:
        left: numbers of one tensor.
        right: those of the other one, as many.
        dtype: the type whose units count.

    Returns:
        Counts by :data:`BINS`; the mean difference over its root mean square, 0 where all are
        equal.
    """
    return histogram_of([(left, right)], dtype)


def histogram_of(
    pairs: Iterable[tuple[NDArray[Any], NDArray[Any]]], dtype: str
) -> tuple[tuple[int, ...], float]:
    """Elements by units in the last place, and the bias, of two tensors that come in blocks.

    Args:
        pairs: blocks of both, with as many elements each.
        dtype: the type whose units count.

    Returns:
        As :func:`histogram` gives them.
    """
    counts = [0] * len(BINS)
    total = square = 0.0
    size = 0
    for left, right in pairs:
        block, deltas = _counted(left, right, dtype)
        counts = [a + b for a, b in zip(counts, block, strict=True)]
        total += float(deltas.sum())
        square += float((deltas * deltas).sum())
        size += deltas.size
    spread = math.sqrt(square / size) if size else 0.0
    return tuple(counts), total / size / spread if spread else 0.0


def _counted(
    left: NDArray[Any], right: NDArray[Any], dtype: str
) -> tuple[list[int], NDArray[np.float64]]:
    """Elements of one block by units in the last place, and the differences of finite ones."""
    import numpy as np

    good = np.isfinite(left) & np.isfinite(right)
    a, b = left[good], right[good]
    distance = np.abs(_ordinals(a, dtype) - _ordinals(b, dtype))
    flips = (np.signbit(a) != np.signbit(b)) & (a != 0) & (b != 0)
    plain = distance[~flips]
    edges = [0, 1, 4, 16, 256]
    counts: list[int] = []
    below = -1
    for edge in edges:
        counts.append(int(((plain > below) & (plain <= edge)).sum()))
        below = edge
    counts += [int((plain > 256).sum()), int(flips.sum()), int(left.size - good.sum())]
    return counts, b.astype(np.float64) - a.astype(np.float64)


def _ordinals(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Places of numbers among all that a type has, so that neighbours differ by one."""
    import numpy as np

    if dtype == "Float16":
        bits = _bits(values.astype(np.float16), np.dtype(np.int16))
        return np.where(bits < 0, -(bits & 0x7FFF), bits)
    bits = _bits(values.astype(np.float32), np.dtype(np.int32))
    if dtype == "BFloat16":
        bits = np.where(bits < 0, bits & 0x7FFFFFFF, bits) >> 16
        signs = np.signbit(values)
        return np.where(signs, -bits, bits)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def _bits(values: NDArray[Any], kind: np.dtype[Any]) -> NDArray[np.int64]:
    """The bit patterns of numbers, as whole numbers."""
    import numpy as np

    return np.frombuffer(np.ascontiguousarray(values).tobytes(), kind).astype(np.int64)


def _neighbours(node: Node | None) -> tuple[Neighbour, ...]:
    """The node, what it reads and what reads it."""
    if node is None:
        return ()
    neighbours = [_neighbour("itself", node)]
    neighbours += [_neighbour("reads", other) for other in node.inputs if isinstance(other, Node)]
    neighbours += [_neighbour("read by", other) for other in list(node.users)[:6]]
    return tuple(neighbours)


def _neighbour(role: str, node: Node) -> Neighbour:
    kind = node.output_type.short() if node.output_type is not None else ""
    return Neighbour(role, node.id, node.op, node.line, kind)


def lone_operators(ops: Sequence[Op]) -> list[tuple[str, int, str]]:
    """Operators without a partner by type, the most frequent type first.

    Args:
        ops: of one side.

    Returns:
        Type, how many there are, and the first one's name.
    """
    by_type: dict[str, list[Op]] = {}
    for op in ops:
        by_type.setdefault(op.type, []).append(op)
    rows = [(kind, len(members), members[0].name) for kind, members in by_type.items()]
    return sorted(rows, key=lambda row: -row[1])
