"""Half precision: element types, and how much of a number they keep."""

from __future__ import annotations

from irtool.ir.dataclass import dataclass
from irtool.ir.types import Abstract
from irtool.linting.rule import DumpKind

NEAREST: tuple[DumpKind, ...] = ("validate", "end", "begin", "auto_begin", "other")
"""Where types matter, any dump of the graph tells; the one nearest to what runs is looked at."""


@dataclass(frozen=True, slots=True)
class HalfType:
    """A 16-bit float: unit roundoff, smallest normal number, smallest that does not become 0."""

    unit: float
    least_normal: float
    least: float


HALF: dict[str, HalfType] = {
    "Float16": HalfType(2.0**-11, 2.0**-14, 2.0**-25),
    "BFloat16": HalfType(2.0**-8, 2.0**-126, 2.0**-134),
}
"""IEEE 754 binary16 and bfloat16; a number of at most ``least`` is rounded to 0."""


def half_type(value: Abstract | None) -> str | None:
    """``Float16`` or ``BFloat16`` if that is what a tensor holds, else None.

    Args:
        value: what is known of a tensor; None: nothing.
    """
    dtype = value.dtype if value is not None else None
    return dtype if dtype in HALF else None


def elements(value: Abstract | None) -> int | None:
    """Number of elements of a tensor; None where a dimension is unknown.

    Args:
        value: what is known of a tensor; None: nothing.
    """
    if value is None or value.dimensions is None:
        return None
    count = 1
    for dimension in value.dimensions:
        if dimension < 0:
            return None
        count *= dimension
    return count
