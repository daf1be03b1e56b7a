"""The first NaN, infinity or overflow of a single run: which operator made it, of finite inputs.

Nothing has to be compared with: an operator that is given finite numbers alone and makes NaN or
infinity is where they come from, unless infinity is what it was asked for, as by masks.  Where what
was given is broken already and no operator made it, it was read so: a weight or a batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from irtool.compare.tensors.dtypes import FLOATS
from irtool.compare.tensors.formats.payload import BadPayload, read_stored
from irtool.compare.tensors.measuring.values import number_blocks, widened
from irtool.compare.tensors.model import Op, TensorRun
from irtool.ir.dataclass import dataclass
from irtool.ir.operators import COMMUNICATION

MASKING = frozenset(("full", "fill", "fillv2", "fill_", "where", "select", "maskedfill", "tensor"))
"""Operators, in small letters, whose infinities are asked for."""
LARGEST = {"Float16": 65504.0, "BFloat16": 3.3895313892515355e38, "Float32": 3.4028234663852886e38}
"""The largest finite number of a type, where more than it is an overflow."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a tensor holds.

    Attributes:
        nan: elements that are no number.
        infinite: elements that are infinite.
        saturated: elements that are the largest number of their type: where a device saturates,
            that is what an overflow leaves.
        count: all of them; 0 where nobody knows.
        most: the largest finite magnitude; NaN where nobody knows.
    """

    nan: int = 0
    infinite: int = 0
    saturated: int = 0
    count: int = 0
    most: float = math.nan

    @property
    def broken(self) -> int:
        """Elements that are no finite number."""
        return self.nan + self.infinite


@dataclass(frozen=True, slots=True)
class NonFinite:
    """The first operator whose result is not finite.

    Attributes:
        run: the step of the rank that it is in.
        op: the operator.
        label: which of its tensors: ``output.0``, or ``input.1`` where it was read so.
        dtype: of that tensor.
        content: of that tensor.
        is_read: whether the operator was given it, and no operator made it.
        largest_input: the largest finite magnitude that it was given; NaN where nobody knows.
    """

    run: TensorRun
    op: Op
    label: str
    dtype: str
    content: Content
    is_read: bool
    largest_input: float


def first_non_finite(runs: Iterable[TensorRun]) -> NonFinite | None:
    """The first operator of some runs that makes NaN or infinity, or is given it by none.

    Args:
        runs: the ranks of one step.  Of several ranks the one whose operator runs first is told:
            collectives carry what is broken to others.
    """
    firsts = [item for item in map(_first_of, runs) if item is not None]
    return min(
        firsts, key=lambda item: (item.op.type in COMMUNICATION, item.op.index), default=None
    )


def _first_of(run: TensorRun) -> NonFinite | None:
    known: dict[int, Content] = {}

    def content(place: int) -> Content:
        if place not in known:
            known[place] = content_of(run, place)
        return known[place]

    spread = False
    for op in run.ops:
        outputs = [(place, content(place)) for place in op.outputs]
        inputs = [(place, content(place)) for place in op.inputs]
        given = [item for item in inputs if item[1].broken]
        made = next((item for item in outputs if item[1].broken), None)
        if given and not spread and not _is_asked_for(given[0][1]):
            return _told(run, op, *given[0], is_read=True, inputs=[])
        if made is not None and not given and not _is_masked(op, made[1]):
            return _told(run, op, *made, is_read=False, inputs=[operand for _, operand in inputs])
        spread = spread or made is not None
    return None


def _told(
    run: TensorRun, op: Op, place: int, content: Content, *, is_read: bool, inputs: list[Content]
) -> NonFinite:
    columns = run.columns
    largest = max(
        (operand.most for operand in inputs if not math.isnan(operand.most)), default=math.nan
    )
    return NonFinite(
        run, op, columns.labels[place], columns.dtypes[place], content, is_read, largest
    )


def _is_asked_for(content: Content) -> bool:
    """Whether a tensor that nobody made may be meant so: a mask holds infinities, and no NaN."""
    return not content.nan


def _is_masked(op: Op, content: Content) -> bool:
    """Whether infinity is what an operator was asked for."""
    if content.nan:
        return False
    values = op.attributes.values()
    if any(isinstance(value, float) and math.isinf(value) for value in values):
        return True
    return op.type.lower() in MASKING


def content_of(run: TensorRun, place: int) -> Content:
    """What a tensor of a run holds: by its values, else by the figures that the dump states."""
    columns = run.columns
    dtype, file = columns.dtypes[place], columns.files[place]
    if dtype not in FLOATS:
        return Content()
    if file:
        try:
            return _read(file, dtype)
        except BadPayload:
            return Content()
    most, least = columns.most[place], columns.least[place]
    infinite = int(math.isinf(most)) + int(math.isinf(least))
    if columns.broken[place] > 0:
        return Content(infinite=infinite, nan=columns.broken[place] - infinite)
    known = [abs(value) for value in (most, least) if math.isfinite(value)]
    return Content(infinite=infinite, most=max(known, default=math.nan))


def _read(file: str, dtype: str) -> Content:
    """What a file holds, a block at a time."""
    import numpy as np

    nan = infinite = saturated = count = 0
    most = math.nan
    limit = LARGEST.get(dtype, math.inf)
    for block in number_blocks(read_stored(file, dtype)):
        wide = widened(block)
        size = np.abs(wide)
        count += wide.size
        largest = float(size.max()) if size.size else 0.0
        if not largest < limit:  # NaN, infinity or as large as numbers of this type are
            nan += int(np.isnan(wide).sum())
            infinite += int(np.isinf(wide).sum())
            saturated += int((size == limit).sum())
            finite = size[np.isfinite(size)]
            largest = float(finite.max()) if finite.size else math.nan
        if not math.isnan(largest):
            most = largest if math.isnan(most) else max(most, largest)
    return Content(nan, infinite, saturated, count, most)
