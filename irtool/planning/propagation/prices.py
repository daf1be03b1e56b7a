"""What the propagation thinks it costs to turn one layout into another.

Source: MindSpore's cost model of the propagation, as its documentation and the strategies in dumps
after the search show it. Lengths are bytes, but not those on a wire.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from irtool.operators.layout import WHOLE, TensorLayout
from irtool.sharding.redistribution import RedistributionError, RedistributionStep, infer

SMALL = 2048.0
"""Bytes up to which a transfer counts as ``AT_LEAST``; larger ones count ``MORE`` more."""
AT_LEAST = 3072.0
MORE = 1024.0
_EXCHANGE = 2.0
_GATHER = 0.5


@dataclass(frozen=True, slots=True, order=True)
class Price:
    """Communication (forward and backward), then computation: the order in which they count."""

    communication: float = 0.0
    computation: float = 0.0


@dataclass(slots=True)
class Prices:
    """Prices between layouts on the devices of one stage.

    MindSpore remembers a price by the device matrices and tensor maps alone: whoever asks again,
    for a tensor of another shape or type, gets what was found for the first one. So do we.
    """

    ranks: tuple[int, ...]
    enable_alltoall: bool = False
    known: dict[tuple[object, ...], Price | None] = field(
        default_factory=dict[tuple[object, ...], Price | None]
    )

    def of(self, source: TensorLayout, target: TensorLayout, item_bytes: int) -> Price | None:
        """What turning ``source`` into ``target`` costs; None: it cannot be done."""
        key = (standard(source), standard(target))
        if key not in self.known:
            moved = self._moved(source, target)
            self.known[key] = None if moved is None else _edge_price(moved, item_bytes)
        return self.known[key]

    def reshaped(
        self, source: TensorLayout, target: TensorLayout, item_bytes: int, is_batch: bool
    ) -> Price | None:
        """What turning ``source`` into ``target`` costs around a Reshape; None: it cannot be done.

        Args:
            source: what the Reshape is given.
            target: what its user takes.
            item_bytes: of an element.
            is_batch: whether ``source`` cuts its first dimension over all devices: that wins ties,
                by one byte.
        """
        moved = self._moved(source, target)
        if moved is None:
            return None
        forward, backward, computation = (part * item_bytes for part in moved)
        communication = forward + backward
        if is_batch:
            communication -= communication > 1
            computation -= computation > 1
        return Price(practical(communication), computation)

    def _moved(
        self, source: TensorLayout, target: TensorLayout
    ) -> tuple[float, float, float] | None:
        """Elements that are moved forward and backward, and computed."""
        if source.tensor_shape == target.tensor_shape and source.same_as(target):
            return 0.0, 0.0, 0.0
        try:
            steps = infer(
                source, target, self.ranks, self.ranks[0],
                enable_alltoall=self.enable_alltoall, level="abstract", tidy=False,
            )  # fmt: skip
        except RedistributionError:
            return None
        size = float(prod(source.slice_shape))
        forward = backward = computation = 0.0
        if any(step.op == "Reshape" for step in steps):
            computation += 2 * size
        for step in steps:
            one = _step(step, size)
            forward += one[0]
            backward += one[1]
            computation += one[2]
        return forward, backward, computation


def _edge_price(moved: tuple[float, float, float], item_bytes: int) -> Price:
    forward, backward, computation = (part * item_bytes for part in moved)
    return Price(practical(forward) + practical(backward), computation)


def standard(layout: TensorLayout) -> tuple[object, ...]:
    """The device matrix and the tensor map without what splits nothing.

    Args:
        layout: of any tensor; its shape does not count.

    Returns:
        equal for layouts that MindSpore takes for the same when it remembers a price.
    """
    matrix = layout.device_matrix
    kept: list[int] = []
    for entry in layout.tensor_map:
        for axis in entry if isinstance(entry, tuple) else (entry,):
            split = axis != WHOLE and matrix[-1 - axis] > 1
            kept.append(sum(size > 1 for size in matrix[len(matrix) - axis :]) if split else WHOLE)
    return tuple(size for size in matrix if size > 1), tuple(kept)


def practical(size: float) -> float:
    """Bytes with what every transfer costs at least.

    Args:
        size: bytes that are moved; none cost nothing.
    """
    if size <= 1e-6:
        return size
    return AT_LEAST if size <= SMALL else size + MORE


def _step(step: RedistributionStep, size: float) -> tuple[float, float, float]:
    """Elements that one operator moves forward and backward, and computes.

    ``size``: elements of the slice before the first operator, which stands for those before each.
    """
    count = float(step.count or 1)
    if step.op == "Reshape":
        return 0.0, 0.0, 0.0
    if step.op == "PermuteByAxis":
        around = size if step.concat_axis == 0 else size + 2 * size * count
        return size * _EXCHANGE, size * _EXCHANGE, around + size
    if step.op == "AllConcat":
        around = size if step.axis == 0 else size + 2 * size * count
        return size * count * _GATHER, size * _GATHER, around + size
    return 0.0, 0.0, size
