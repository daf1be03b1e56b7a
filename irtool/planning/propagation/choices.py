"""What an operator may be given in the propagation: strategies with the layouts that follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from itertools import product
from math import prod
from typing import cast

from irtool.ir.dataclass import dataclass
from irtool.operators.call import OperatorCall, Strategy
from irtool.operators.guard import asking
from irtool.operators.judgement import Context, Judgement
from irtool.operators.layout import WHOLE, Shape, TensorLayout, identity_map
from irtool.operators.table import operator_of
from irtool.planning.cost.costs import item_bytes
from irtool.planning.propagation.network import Vertex
from irtool.planning.propagation.prices import practical
from irtool.planning.recursive.kinds import NotSearchable, fitting
from irtool.planning.search.candidates import candidates_of
from irtool.sharding.judge import judge
from irtool.sharding.network.analysis import Analysis

TRIED = ("batch", "product", "alike", "whole_outputs", "whole_second", "copies")
"""What entries of the table may say that the propagation tries of an operator (``propagates``)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy, with layouts of operands and results.

    ``computation`` and ``forward``: bytes that the operator itself touches and sends, by which ties
    are decided.
    """

    strategy: Strategy
    inputs: tuple[TensorLayout, ...]
    outputs: tuple[TensorLayout, ...]
    computation: float = 0.0
    forward: float = 0.0

    @property
    def rank(self) -> tuple[object, ...]:
        """The last resort of ties: more slices first, then larger numbers."""
        pieces = prod(split for row in self.strategy for split in row)
        return (-pieces, tuple(tuple(-split for split in row) for row in self.strategy))


@dataclass(slots=True)
class Choices:
    """Choices of all operators; equal calls share them."""

    analysis: Analysis
    known: dict[object, tuple[Choice, ...]] = field(
        default_factory=dict[object, tuple[Choice, ...]]
    )

    @property
    def context(self) -> Context:
        """Devices and settings that operators are judged under."""
        return self.analysis.operators

    def of(self, vertex: Vertex) -> tuple[Choice, ...]:
        """All choices, splitting nothing first."""
        if vertex.weight is not None or vertex.dataset is not None or vertex.call is None:
            return self._of_tensor(vertex)
        call = vertex.call.call
        try:
            key: object = (
                call.op,
                call.inputs,
                call.outputs,
                vertex.call.node.primitive_attributes,
            )
            choices = self.known.get(key)
        except TypeError:
            return self._of_call(call)
        if choices is None:
            choices = self.known[key] = self._of_call(call)
        return choices

    def given(
        self, call: OperatorCall, strategy: Strategy, out: Strategy | None = None
    ) -> Choice | None:
        """A strategy that somebody gave; None: it is illegal."""
        judgement = judge(call, strategy, self.context, out_strategy=out)
        if judgement.verdict != "legal":
            return None
        return _choice(call, strategy, judgement, self.context.stage_size)

    def lying_as(
        self, call: OperatorCall, options: Sequence[Choice], layouts: Sequence[TensorLayout]
    ) -> list[Choice]:
        """Options whose operands are split like these layouts, lying on devices as they do."""
        splits = tuple(layout.splits for layout in layouts)
        shapes = zip(layouts, call.tensors, strict=False)
        if any(layout.tensor_shape != (tensor.shape or ()) for layout, tensor in shapes):
            return []
        legal: list[Choice] = []
        for choice in options:
            same = zip(choice.inputs, layouts, strict=False)
            if choice.strategy != splits or all(own.same_as(layout) for own, layout in same):
                continue
            judgement = judge(call, None, self.context, in_layout=tuple(layouts))
            if judgement.verdict == "legal":
                made = _choice(call, choice.strategy, judgement, self.context.stage_size)
                legal.append(replace(made, strategy=choice.strategy))
        return legal

    def _of_call(self, call: OperatorCall) -> tuple[Choice, ...]:
        with asking(call.op, NotSearchable):
            return self._offered(fitting(call))

    def _offered(self, call: OperatorCall) -> tuple[Choice, ...]:
        tried = operator_of(call.op).propagates
        if tried == "batch" or call.attributes.get("strategy_gen_mode") == "data_parallel":
            strategies: list[Strategy] = []
        elif tried == "product":
            strategies = list(product_splits(call, self.context.stage_size))
        else:
            items = candidates_of(call, self.context).items
            strategies = [
                item.strategy
                for item in items
                if item.strategy is not None and item.out_strategy is None
            ]
        strategies = [rows for rows in strategies if _is_offered(call, rows)]
        offered: list[Choice] = []
        for strategy in sorted(strategies):
            choice = self.given(call, strategy)
            if choice is not None:
                offered.append(choice)
        if not offered:
            own = judge(call, None, self.context)
            if own.verdict == "legal":
                offered.append(_choice(call, own.strategy, own, self.context.stage_size))
        return tuple(offered)

    def _of_tensor(self, vertex: Vertex) -> tuple[Choice, ...]:
        """Of the dataset what the context says, of a weight every split."""
        size = self.context.stage_size
        if vertex.dataset is not None:
            layouts = tuple(self._data(shape) for shape in vertex.dataset.shapes)
            return (Choice(tuple(layout.splits for layout in layouts), layouts, layouts),)
        type = vertex.weight.type if vertex.weight is not None else None
        shape = (type.dimensions or ()) if type is not None else ()
        choices: list[Choice] = []
        for splits in sorted(all_splits(shape, size)):
            layout = plain_layout(shape, splits, size)
            choices.append(Choice((splits,), (layout,), (layout,)))
        return tuple(choices)

    def _data(self, shape: Shape) -> TensorLayout:
        size = self.context.stage_size
        if self.analysis.context.full_batch or not shape or shape[0] % size:
            return plain_layout(shape, (1,) * len(shape), size)
        return plain_layout(shape, (size, *(1 for _ in shape[1:])), size)


def holds(layouts: Sequence[TensorLayout], index: int, wanted: TensorLayout) -> bool:
    """Whether the layout of this number is the wanted one.

    Args:
        layouts: of an operator's inputs or outputs.
        index: a number that may lie behind the last of them.
        wanted: a layout; the same in standard form counts.
    """
    return index < len(layouts) and layouts[index].same_as(wanted)


def _is_offered(call: OperatorCall, rows: Strategy) -> bool:
    """Whether MindSpore tries a strategy at all: of some operators not every legal one."""
    match operator_of(call.op).propagates:
        case "alike":
            return rows[0] == rows[1]
        case "whole_outputs":  # of filters the dimension that comes out
            return rows[1][0] == 1
        case "whole_second":
            return rows[1][1] == 1
        case "copies":  # only copies are spread, not what is copied
            times = call.inputs[1].value if len(call.inputs) > 1 else None
            numbers = cast("tuple[object, ...]", times) if isinstance(times, tuple) else ()
            return all(
                split == 1 or copies != 1 for split, copies in zip(rows[0], numbers, strict=False)
            )
        case _:
            return True


def plain_layout(shape: Shape, splits: Shape, devices: int) -> TensorLayout:
    """A tensor split so, its dimensions over devices in their order.

    Args:
        shape: of the whole tensor.
        splits: into how many slices each dimension is cut.
        devices: of the stage; those that are left repeat the tensor, along a last axis.
    """
    matrix = (*splits, devices // prod(splits))
    tensor_map = tuple(
        WHOLE if split == 1 else entry + 1
        for split, entry in zip(splits, identity_map(len(shape)), strict=True)
        if isinstance(entry, int)
    )
    return TensorLayout(matrix, tensor_map, shape)


def all_splits(shape: Shape, devices: int) -> Iterator[Shape]:
    """Every split of a tensor into powers of two.

    Args:
        shape: of the whole tensor.
        devices: of the stage; the number of slices divides it.

    Yields:
        into how many slices each dimension is cut.
    """
    powers = [1 << exponent for exponent in range(devices.bit_length()) if 1 << exponent <= devices]
    choices = [[n for n in powers if size % n == 0] for size in shape]
    for splits in product(*choices):
        if prod(splits) <= devices and devices % prod(splits) == 0:
            yield splits


def product_splits(call: OperatorCall, devices: int) -> Iterator[Strategy]:
    """Every split of batch, rows, the sum and columns of a product; none of what is no product."""
    if len(call.tensors) < 2 or any(len(tensor.shape or ()) < 2 for tensor in call.tensors[:2]):
        return
    first, second = (tensor.divisible_shape for tensor in call.tensors[:2])
    turn_a = _flag(call, 2, "transpose_a")
    turn_b = _flag(call, 3, "transpose_b")
    rows, inner = (first[-1], first[-2]) if turn_a else (first[-2], first[-1])
    columns = second[-2] if turn_b else second[-1]
    rank = max(len(first), len(second)) - 2
    batch: list[int] = []
    for distance in range(rank, 0, -1):
        sizes = [shape[-2 - distance] for shape in (first, second) if len(shape) >= 2 + distance]
        batch.append(max(sizes))
    for splits in all_splits((*batch, rows, inner, columns), devices):
        b, (i, k, j) = splits[:rank], splits[rank:]
        a = (*b[rank - (len(first) - 2) :], *((k, i) if turn_a else (i, k)))
        c = (*b[rank - (len(second) - 2) :], *((j, k) if turn_b else (k, j)))
        yield (
            tuple(1 if size <= 1 else split for size, split in zip(first, a, strict=True)),
            tuple(1 if size <= 1 else split for size, split in zip(second, c, strict=True)),
        )


def _flag(call: OperatorCall, position: int, name: str) -> bool:
    if position < len(call.inputs) and call.inputs[position].is_constant:
        return bool(call.inputs[position].value)
    return bool(call.attributes.get(name, False))


def _choice(call: OperatorCall, strategy: Strategy, judgement: Judgement, devices: int) -> Choice:
    """What the operator itself touches: its operands, and its result where that is summed up."""
    touched = sum(
        prod(shape) * item_bytes(tensor.dtype)
        for shape, tensor in zip(judgement.input_slices, call.tensors, strict=False)
    )
    sent = 0.0
    if any(item.reduce for item in judgement.collectives) and call.results:
        sent = float(prod(judgement.output_slices[0]) * item_bytes(call.results[0].dtype))
    computation, forward = touched + sent, sent
    if strategy and strategy[0] and strategy[0][0] == devices:
        # Splitting the batch over all devices wins ties.
        computation -= computation > 1
        forward -= forward > 1
    return Choice(
        strategy,
        judgement.input_layouts,
        judgement.output_layouts,
        float(computation),
        practical(forward),
    )
