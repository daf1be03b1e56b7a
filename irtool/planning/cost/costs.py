"""What one thing costs: a collective, a chain of redistribution, an operator's arithmetic.

Times are those of :mod:`irtool.cluster.machine` (alpha-beta) and a roofline for arithmetic; only
their ratios mean something.  Bytes are what one device receives from others, by ring or pairwise
algorithms: AllReduce ``2 (n - 1) / n S``, AllGather and ReduceScatter ``(n - 1) / n S`` of the
whole tensor ``S``, AlltoAll ``(n - 1) / n`` of the slice.

The backward pass holds the gradient of every operator that the parallel pass inserted: an AllReduce
for an AllReduce, a ReduceScatter for an AllGather and the other way round, an AlltoAll for an
AlltoAll (gradients of these primitives as validate dumps show them).  Splits and slices cost what
they read and write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Literal, TypeAlias

from irtool.cluster.flops import Tensors, flops_of
from irtool.cluster.flops_seconds import LAUNCH_SECONDS, roofline_seconds, touched
from irtool.cluster.machine import Amount, Machine, slices_key
from irtool.cluster.pricing import DEFAULT_FUSION, Launch, seconds_within
from irtool.ir.dataclass import dataclass
from irtool.ir.types import BITS
from irtool.ir.units import seconds_text, share_text
from irtool.operators.call import Operand, OperatorCall
from irtool.operators.judgement import Judgement
from irtool.operators.layout import Shape
from irtool.operators.table import operator_of
from irtool.sharding.network.communications import GRADIENT_OF
from irtool.sharding.redistribution import RedistributionStep

Cause: TypeAlias = Literal[
    "compute", "operator collectives", "redistribution", "gradients", "optimizer parallel",
    "optimizer",
]  # fmt: skip
CAUSES: tuple[Cause, ...] = (
    "compute", "operator collectives", "redistribution", "gradients", "optimizer parallel",
    "optimizer",
)  # fmt: skip
"""Where a step goes. Operator collectives are those of split sums, forward and backward."""

Phase: TypeAlias = Literal["forward", "backward", "optimizer"]

_NO_COPY = ("Reshape", "TupleGetItem", "MakeTuple")
"""Operators of a redistribution that only name what is there."""

SUMS = ("AllReduce", "ReduceScatter")
"""Collectives that add up."""

BACKWARD_WORK = 2
"""Arithmetic of an operator's gradient over that of the operator: two products for one."""

_NOTHING_HIDDEN = "nothing is hidden behind anything else: times add up"
ASSUMPTIONS = (
    _NOTHING_HIDDEN,
    f"the gradient of an operator does {BACKWARD_WORK} times its arithmetic",
    "results are kept that a gradient reads; what is redistributed for an operator that a plan "
    "recomputes is not, and to redistribute it again is not priced",
    "memory is what stays (weights, states, sums of gradients), one batch, kept results, gradients "
    "and the largest buffer of a fused collective, all at once: temporaries come on top",
    "all micro-batches that the dump holds count; a pipeline's bubble is what `irtool pipeline` "
    "says",
    f"an operator takes {seconds_text(LAUNCH_SECONDS)} at least, those of a redistribution too",
    "collectives are rings, or pairwise in a full mesh; nobody else is on the links",
    "a collective across nodes is as slow as the links between nodes (unless the machine's file "
    "says hierarchical = true)",
    "gradients of one element type that the same devices sum are fused and start once, and so are "
    "weights that optimizer parallel gathers and scatters (MindSpore's default fusion ids)",
    "what users of one kind want of one result alike is made once",
)
"""What the model takes for granted; printed with every answer."""


def assumptions_of(machine: Machine) -> list[str]:
    """What a step on a machine takes for granted.

    Args:
        machine: with an ``overlap`` a part of communication counts as hidden, without one nothing
            does.
    """
    hidden = (
        f"{share_text(machine.overlap)} of what computing can hide is hidden: sums of gradients "
        "behind the backward pass, gathers of weights behind what comes before them"
    )
    return [hidden if text is _NOTHING_HIDDEN and machine.overlap else text for text in ASSUMPTIONS]


@dataclass(frozen=True, slots=True)
class Communication:
    """One collective as one device sees it.

    ``size``: bytes of the whole tensor on one rank, the larger of input and output; ``received``:
    bytes that come from other devices. ``fusion``: its fusion id, 0 if it starts alone; of one that
    does not, ``seconds`` hold a part of the common start. ``dtype``: its element type, where fusion
    asks for it.
    """

    op: str
    phase: Phase
    ranks: tuple[int, ...]
    size: int
    received: int
    seconds: float
    fusion: int = 0
    dtype: str | None = None

    @property
    def launch(self) -> Launch:
        """What it is to the model of prices."""
        return Launch(self.op, self.size, self.ranks, self.fusion, self.dtype)


@dataclass(frozen=True, slots=True)
class Fusion:
    """How what serves a weight is fused.

    Attributes:
        dtype: the weight's element type.
        sums: how many gradients may share a bucket with its own.
        gathers: how many gathered weights may share one with it.
        number: the fusion id.
    """

    dtype: str | None = None
    sums: int = 1
    gathers: int = 1
    number: int = DEFAULT_FUSION


ALONE = Fusion()
"""A weight that shares no bucket."""


def item_bytes(dtype: str | None) -> int:
    """Bytes of an element; 4 where the type is not known.

    Args:
        dtype: as a dump names it (``Float16``); what is smaller than a byte takes one.
    """
    return max(BITS.get(dtype or "", 32), 8) // 8


def received_bytes(op: str, size: int, count: int) -> int:
    """Bytes that one of ``count`` ranks receives, where ``size`` is the whole tensor's.

    An AllReduce receives each part twice (ReduceScatter, then AllGather, by ring); an AlltoAll, a
    gather or a scatter once; a Send, Receive or NeighborExchange all of it.

    Args:
        op: the collective.
        size: bytes of the whole tensor on one rank, the larger of input and output.
        count: ranks that take part.
    """
    if op in ("Send", "Receive") or op.startswith("NeighborExchange"):
        return size
    once = size * (count - 1) // count
    return 2 * once if op == "AllReduce" else once


def communication(
    op: str,
    phase: Phase,
    ranks: tuple[int, ...],
    size: int,
    machine: Machine,
    fusion: Fusion | None = None,
) -> Communication:
    """A collective with its price; a fused one with the least part of the common start.

    Args:
        op: the collective.
        phase: of the step.
        ranks: who takes part.
        size: bytes of the whole tensor on one rank, the larger of input and output.
        machine: whose links are used.
        fusion: with how many others it may be fused; None: it starts alone.
    """
    received = received_bytes(op, size, len(ranks))
    if fusion is None:
        return Communication(op, phase, ranks, size, received, machine.seconds(op, size, ranks))
    members = fusion.gathers if op == "AllGather" else fusion.sums
    launch = Launch(op, size, ranks, fusion.number, fusion.dtype)
    seconds = seconds_within(launch, machine, members)
    return Communication(op, phase, ranks, size, received, seconds, fusion.number, fusion.dtype)


def forward_and_backward(
    op: str, ranks: tuple[int, ...], size: int, machine: Machine, *, gradient: bool
) -> list[Communication]:
    """A forward collective, and what its gradient communicates if it has one.

    Args:
        op: the collective.
        ranks: of its group.
        size: bytes of the whole tensor on one rank, the larger of input and output.
        machine: prices both.
        gradient: whether the operator has one.
    """
    collectives = [communication(op, "forward", ranks, size, machine)]
    back = GRADIENT_OF.get(op)
    if gradient and back is not None:
        collectives.append(communication(back, "backward", ranks, size, machine))
    return collectives


def operator_communications(
    call: OperatorCall, judgement: Judgement, machine: Machine, *, gradient: bool
) -> list[Communication]:
    """The collectives that an operator brings with it under a strategy.

    Those of fewer than two ranks, and of a shape that is not known, are left out.

    Args:
        call: the operator's inputs and attributes.
        judgement: what the strategy makes of it.
        machine: whose links are used.
        gradient: whether the collectives of the gradient count, too.
    """
    collectives: list[Communication] = []
    for item in judgement.collectives:
        if item.shape is None or any(size < 0 for size in item.shape) or len(item.ranks) < 2:
            continue
        size = prod(item.shape) * item_bytes(item.dtype_in(call))
        if item.op == "AllGather":
            size *= len(item.ranks)
        both = forward_and_backward(item.op, item.ranks, size, machine, gradient=gradient)
        collectives += both * judgement.parts
    return collectives


def chain_communications(
    steps: Iterable[RedistributionStep], element: int, machine: Machine, *, gradient: bool
) -> list[Communication]:
    """The collectives of a redistribution.

    Args:
        steps: its operators; those that only cut or join locally cost no communication.
        element: bytes of one element.
        machine: whose links are used.
        gradient: whether the gradient comes back the opposite way.
    """
    collectives: list[Communication] = []
    for step in steps:
        if not step.is_collective:
            continue
        size = max(prod(step.input_shape), prod(step.output_shape)) * element
        collectives += forward_and_backward(step.op, step.ranks, size, machine, gradient=gradient)
    return collectives


def copy_seconds(size: int, machine: Machine) -> float:
    """Seconds of an operator that reads and writes so many bytes and computes nothing.

    Args:
        size: bytes that are read, and as many that are written.
        machine: without a memory bandwidth only the start of the operator counts.
    """
    if not machine.memory_bandwidth:
        return LAUNCH_SECONDS
    return max(LAUNCH_SECONDS, 2 * size / machine.memory_bandwidth)


def copied_bytes(steps: Iterable[RedistributionStep], element: int) -> list[int]:
    """Bytes that each local operator of a redistribution writes: slices, splits, joins.

    What an AlltoAll exchanges must lie in one piece for each device, and so does what it receives:
    MindSpore's backend puts an operator before it, and one after it, that copy the slice into
    another order (its pass ``all_to_all_unify_mindir``: Transpose, or Split and Concat; the fewest
    of its versions and modes are counted). Along the leading dimension the order is right already.

    Args:
        steps: operators of the redistribution, in order.
        element: bytes of one element.

    Returns:
        one number for each copy, in the order of the steps.
    """
    written: list[int] = []
    for step in steps:
        if step.concat_axis is not None:
            ends = (step.input_shape, step.axis or 0), (step.output_shape, step.concat_axis)
            inside = sum(prod(shape[:axis]) > 1 for shape, axis in ends)
            written += [prod(step.input_shape) * element] * inside
        elif not step.is_collective and step.op not in _NO_COPY:
            parts = step.count or 1 if step.op == "Split" else 1
            written.append(prod(step.output_shape) * parts * element)
    return written


def compute_seconds(
    call: OperatorCall,
    judgement: Judgement,
    machine: Machine,
    *,
    gradient: bool,
    operations: int | None = None,
) -> float:
    """An operator's arithmetic or memory traffic on slices, whichever is longer.

    Operations that nobody knows count none, so that memory traffic decides. The gradient of what
    an operator picks is as large as what it picks from. On a machine that was measured with these
    slices it is what they took; with others, what is fitted to its kind.

    Args:
        call: the operator's inputs and attributes.
        judgement: its slices under a strategy.
        machine: that computes.
        gradient: whether the operator's gradient counts, too: ``BACKWARD_WORK`` times its
            arithmetic.
        operations: on its slices, forward, where they are known already; None: they are counted.

    Returns:
        seconds of one run; those of a start where a size is not known.
    """
    inputs, outputs = judgement.raw_inputs, judgement.raw_outputs
    if any(size < 0 for shape in (*inputs, *outputs) for size in shape):
        return LAUNCH_SECONDS
    if operations is None:
        operations = operations_of(call, judgement)
    dtype = call.tensors[0].dtype if call.tensors else ""
    read, written = _sizes(inputs, call.tensors), _sizes(outputs, call.results)
    bandwidth = machine.memory_bandwidth
    known = machine.measured.get(slices_key(call.op, dtype, inputs)) if machine.measured else None
    masks = _mask_seconds(call, judgement, machine, gradient=gradient)
    if known is None:
        work = operations, touched(call.op, read, written)
        once = work_seconds(call, work, machine, gradient=False)
    else:
        once = known.forward
    if gradient and known is not None and known.backward is not None:
        return known.forward + known.backward + masks
    if not gradient:
        return once + masks
    zeros = read[0] / bandwidth if bandwidth and operator_of(call.op).is_("picks") and read else 0.0
    return once * (1 + BACKWARD_WORK) + zeros + masks


def work_seconds(
    call: OperatorCall, work: tuple[Amount, Amount], machine: Machine, *, gradient: bool
) -> Amount:
    """Arithmetic or memory traffic of an operator that picks nothing and was not measured.

    Args:
        call: the operator.
        work: operations on its slices, and bytes that it reads and writes.
        machine: what these cost.
        gradient: whether one is taken, too.
    """
    dtype = call.tensors[0].dtype if call.tensors else ""
    once = roofline_seconds(call.op, dtype, *work, machine)
    return once * (1 + BACKWARD_WORK) if gradient else once


def _sizes(shapes: Sequence[Shape], operands: Sequence[Operand]) -> list[int]:
    """Bytes of each slice, by the data type of its operand."""
    pairs = zip(shapes, operands, strict=False)
    return [prod(shape) * item_bytes(operand.dtype) for shape, operand in pairs]


def _mask_seconds(
    call: OperatorCall, judgement: Judgement, machine: Machine, *, gradient: bool
) -> float:
    """What a Gather takes besides where the rows of its table are split.

    Each device looks up the rows that it has: indices less its first row (Sub), moved into its part
    (ReLU, Minimum), compared with what they were (Equal, Cast); what it doesn't have becomes 0
    (Mul, and a Mul of the gradient). Source: validate dumps of MindSpore 2.7.
    """
    if not operator_of(call.op).is_("masks") or not any(
        item.op in SUMS for item in judgement.collectives
    ):
        return 0.0
    indices = prod(judgement.raw_inputs[1]) * item_bytes(call.tensors[1].dtype)
    looked_up = prod(judgement.raw_outputs[0]) * item_bytes(call.results[0].dtype)
    products = 2 if gradient else 1
    return 5 * copy_seconds(indices, machine) + products * copy_seconds(looked_up, machine)


def operations_of(call: OperatorCall, judgement: Judgement) -> int:
    """Operations of an operator on its slices, forward; 0 where nobody knows.

    Args:
        call: the operator's inputs and attributes.
        judgement: its slices under a strategy.
    """
    inputs, outputs = judgement.raw_inputs, judgement.raw_outputs
    if any(size < 0 for shape in (*inputs, *outputs) for size in shape):
        return 0
    return flops_of(call.op, _tensors(call, inputs, outputs)) or 0


def _tensors(call: OperatorCall, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> Tensors:
    """The call's tensors with the shapes of slices."""
    rest = iter(inputs)
    operands = [[next(rest, ()) for _ in operand.tensors] for operand in call.inputs]

    def attribute(key: str | int) -> object:
        if isinstance(key, str):
            return call.attributes.get(key)
        return call.inputs[key].value if key < len(call.inputs) else None

    return Tensors(operands, outputs, attribute)


def gradient_communications(
    size: int,
    mirror: tuple[int, ...] | None,
    gather: tuple[int, ...] | None,
    machine: Machine,
    fusion: Fusion = ALONE,
    *,
    whole: bool = False,
) -> tuple[list[Communication], list[Communication]]:
    """What a parameter's gradient and, with optimizer parallel, the parameter itself communicate.

    Args:
        size: bytes of the slice that operators see.
        mirror: ranks that sum the gradient; None: nobody does.
        gather: ranks that share the optimizer state; None: it is not shared.
        machine: the machine.
        fusion: with how many others they may be fused.
        whole: whether the gradient is summed before it is scattered.

    Returns:
        The mirror's collectives, and those of optimizer parallel.
    """
    mirrors: list[Communication] = []
    shared: list[Communication] = []
    if gather is not None and len(gather) > 1:
        shared.append(communication("AllGather", "forward", gather, size, machine, fusion))
        shared.append(communication("ReduceScatter", "backward", gather, size, machine, fusion))
        size //= 1 if whole else len(gather)
    if mirror is not None and len(mirror) > 1:
        mirrors.append(communication("AllReduce", "backward", mirror, size, machine, fusion))
    return mirrors, shared


def update_seconds(size: int, states: int, machine: Machine) -> float:
    """The optimizer's step of a parameter.

    It reads weight, gradient and states, and writes weight and states: ``3 size + 2 states`` bytes.

    Args:
        size: bytes of the stored slice.
        states: bytes of its states.
        machine: without a memory bandwidth only the start of the operator counts.
    """
    if not machine.memory_bandwidth:
        return LAUNCH_SECONDS
    return max(LAUNCH_SECONDS, (3 * size + 2 * states) / machine.memory_bandwidth)


def seconds_of(items: Iterable[Communication]) -> float:
    """Seconds of collectives, one after another.

    Args:
        items: with their prices.
    """
    return sum(item.seconds for item in items)
