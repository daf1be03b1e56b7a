"""An input that holds some of the numbers of an earlier result: rows that indexing has picked.

Indexing is in no dump of calls, so what it picks comes from nowhere.  Where all numbers of an
input stand in the result of a call that only one side has, that call made them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from irtool.compare.tensors.dtypes import is_float, roundoff
from irtool.compare.tensors.formats.payload import BadPayload, read_array
from irtool.compare.tensors.model import Op, Places, TensorRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CALLS = 64
"""How many calls before the reader are looked at."""
_MOST_ELEMENTS = 1 << 22
_BITS = {"BFloat16": 7, "Float16": 10}
"""Binary logarithm of how many numbers of half precision lie between two powers of two."""
_CHANCE = 1e-3
"""Probability from which it may be chance that a tensor holds all numbers of another one."""
_DISTINCT = 4
"""Distinct numbers from which it is no chance that all of them stand in another tensor."""


def picked_from(run: TensorRun, free: frozenset[int], reader: Op, place: int) -> Op | None:
    """The call without a partner in whose result all numbers of an input stand, or None.

    The nearest call that has them counts: where that one has a partner, nobody else made them.
    Behind a cast, which is in no dump either, only calls without a partner are looked at.
    From figures, which tell extremes alone, the nearest call without a partner whose extremes
    enclose those of the input.

    Args:
        run: the dump.
        free: indices of its calls without a partner.
        reader: the operator that reads the input.
        place: of the input.
    """
    if not is_float(run.columns.dtypes[place]):
        return None
    wanted = _numbers(run, place)
    for op in _before(run, reader):
        for result in op.outputs:
            if wanted is None:
                if op.index in free and _encloses(run, result, place):
                    return op
            elif op.index not in free and _rounding(run, result, place):
                continue  # half precision has so few numbers that most tensors hold them all
            elif _encloses(run, result, place) and _holds(run, result, place, wanted):
                if op.index in free:
                    return op
                if not _by_chance(run, result, place, wanted):
                    return None
    return None


def left_out(
    runs: tuple[TensorRun, TensorRun], which: int, free: frozenset[int], reader: Op, places: Places
) -> Op | None:
    """The call of one side alone whose result an input holds, where the other has what it reads.

    Rows that indexing picks are often joined with others before a call reads them: an input may
    hold more than the call gave.  From figures, both extremes of both have to be the same.

    Args:
        runs: both dumps.
        which: the side whose call it is, 0 for the left one.
        free: indices of its calls without a partner.
        reader: the operator of that side that reads the input.
        places: of the input in both dumps.
    """
    run, other = runs[which], runs[1 - which]
    place, theirs = places[which], places[1 - which]
    if not is_float(run.columns.dtypes[place]):
        return None
    for op in _before(run, reader):
        if op.index not in free or len(op.outputs) != 1 or not op.inputs:
            continue
        given, result = op.inputs[0], op.outputs[0]
        is_read = _is_part(run, given, other, theirs) and not _is_part(run, given, run, place)
        if is_read and _is_part(run, result, run, place):
            return op
    return None


def _is_part(run: TensorRun, part: int, other: TensorRun, whole: int) -> bool:
    """Whether all numbers of a tensor stand in another one, of either run, and not by chance."""
    import numpy as np

    ours, theirs = run.columns, other.columns
    dtypes = ours.dtypes[part], theirs.dtypes[whole]
    if not is_float(dtypes[0]) or dtypes[0] != dtypes[1]:
        return False
    wanted, numbers = _numbers(run, part), _numbers(other, whole)
    if wanted is None or numbers is None:
        is_stated = not (ours.files[part] or theirs.files[whole])
        ends = ours.most[part], ours.least[part]
        return (
            is_stated and ends[0] != ends[1] and ends == (theirs.most[whole], theirs.least[whole])
        )
    if not np.isin(wanted, numbers).all():
        return False
    return not _are_many(numbers, wanted, dtypes[0])


def _before(run: TensorRun, reader: Op) -> Iterator[Op]:
    """Calls of the forward pass before one, the nearest first."""
    earlier = [op for op in run.ops if op.index < reader.index and not op.is_module]
    for op in reversed(earlier[-_CALLS:]):
        if op.phase == "forward":
            yield op


def _encloses(run: TensorRun, result: int, place: int) -> bool:
    """Whether a result has at least as many elements, and none of an input's is beyond its own."""
    columns = run.columns
    if not is_float(columns.dtypes[result]):
        return False
    if math.prod(columns.shapes[result]) < math.prod(columns.shapes[place]):
        return False
    ends = columns.most[place], columns.least[place], columns.most[result], columns.least[result]
    if any(map(math.isnan, ends)):
        return bool(columns.files[place])  # values decide
    most, least, highest, lowest = ends
    unit = _rounding(run, result, place)
    return most <= highest + unit * abs(highest) and least >= lowest - unit * abs(lowest)


def _rounding(run: TensorRun, result: int, place: int) -> float:
    """How far a number of an input may be off one of a result: not at all within one type."""
    dtypes = run.columns.dtypes
    return 0.0 if dtypes[result] == dtypes[place] else roundoff(dtypes[place])


def _numbers(run: TensorRun, place: int) -> NDArray[Any] | None:
    """The distinct numbers of a tensor; None where they are few, many, or not in the dump."""
    import numpy as np

    columns = run.columns
    if not columns.files[place] or math.prod(columns.shapes[place]) > _MOST_ELEMENTS:
        return None
    try:
        values = np.unique(read_array(columns.files[place], columns.dtypes[place]))
    except BadPayload:
        return None
    return values if len(values) >= _DISTINCT else None


def _by_chance(run: TensorRun, result: int, place: int, wanted: NDArray[Any]) -> bool:
    """Whether a result of half precision holds so many of all numbers that it may hold any."""
    numbers = _numbers(run, result)
    return numbers is not None and _are_many(numbers, wanted, run.columns.dtypes[place])


def _are_many(numbers: NDArray[Any], wanted: NDArray[Any], dtype: str) -> bool:
    """Whether numbers of half precision are so many that they hold others by chance."""
    import numpy as np

    bits = _BITS.get(dtype)
    if bits is None:
        return False
    size = np.abs(wanted[wanted != 0])
    if not size.size:
        return True
    least, most = float(size.min()), float(size.max())
    between = np.abs(numbers)
    held = int(((between >= least) & (between <= most)).sum())
    count = _ordinal(most, bits) - _ordinal(least, bits) + 1
    share = min(1.0, held / (2 * count))  # of both signs
    return len(wanted) * math.log(max(share, 1e-9)) > math.log(_CHANCE)


def _ordinal(number: float, bits: int) -> int:
    """The place of a positive number among those that have so many bits behind the point."""
    mantissa, exponent = math.frexp(number)
    return int((exponent + 2 * mantissa - 1) * 2**bits)


def _holds(run: TensorRun, result: int, place: int, wanted: NDArray[Any]) -> bool:
    """Whether each number of an input is one of a result, rounded to the input's type."""
    import numpy as np

    numbers = _numbers(run, result)
    if numbers is None:
        return False
    after = np.searchsorted(numbers, wanted).clip(1, len(numbers) - 1)
    nearest = np.minimum(abs(numbers[after] - wanted), abs(numbers[after - 1] - wanted))
    return bool((nearest <= _rounding(run, result, place) * abs(wanted)).all())
