"""A matrix on one side that is several on the other: queries, keys and values in one.

Its rows are looked up one by one, so their order, and whether heads are interleaved, makes no
difference.  A vector beside it (its bias) is packed as the matrix is.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from irtool.compare.checkpoints.joining import PickedRows, Whole
from irtool.compare.checkpoints.naming import Pair, numbers_in, starred
from irtool.compare.checkpoints.read import Array
from irtool.compare.tensors.formats.window import BadPayload
from irtool.ir.dataclass import dataclass

_MOST_PARTS = 64
"""Parameters of other layers that are read for the parts of one."""
_Where: TypeAlias = tuple[str, int]
"""A row of a parameter."""
_Order: TypeAlias = tuple[str, tuple[tuple[str, tuple[int, ...]], ...]]
"""A whole by its name without numbers, and its parts by theirs with their rows."""


@dataclass(frozen=True, slots=True)
class PackedPart:
    """A parameter that some rows of another one are.

    Attributes:
        pair: their names.
        left, right: both, one of them the rows of a larger one.
        is_unusual: most other layers pack theirs in another order.
    """

    pair: Pair
    left: Whole
    right: Whole
    is_unusual: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    """Of each part, which rows of the whole it is."""

    rows: Mapping[str, Sequence[int]]
    is_turned: bool


def packed_parts(left: Mapping[str, Whole], right: Mapping[str, Whole]) -> list[PackedPart]:
    """Parameters of one side alone that make up one of the other side alone.

    Of the parts one may hold other numbers: then it is what is left of the whole, in the module
    beside the others.

    Args:
        left: parameters that the left side has alone, by name.
        right: those of the right side.
    """
    made: list[tuple[PackedPart, _Order]] = []
    for is_left, wholes, parts in ((True, left, right), (False, right, left)):
        free = dict(parts)
        for name, whole in wholes.items():
            if len(whole.shape) < 2 or not free:
                continue
            if (found := _found_in_layer(name, whole, free)) is None:
                continue
            together = [(name, whole, found.rows, found.is_turned),
                        *_vectors(name, whole, found, wholes, free)]  # fmt: skip
            for own, packed, rows, is_turned in together:
                order = _order(own, rows)
                for part, numbers in rows.items():
                    picked = PickedRows(own, packed, tuple(numbers), free[part].shape, is_turned)
                    other = free.pop(part)
                    pair = Pair(own, part, "rows") if is_left else Pair(part, own, "rows")
                    both = (picked, other) if is_left else (other, picked)
                    made.append((PackedPart(pair, *both), order))
    return [replace(part, is_unusual=_is_unusual(order, made)) for part, order in made]


def _order(name: str, rows: Mapping[str, Sequence[int]]) -> _Order:
    """What whole it is, whatever its layer, and which rows each part is."""
    parts = sorted((starred(part), tuple(numbers)) for part, numbers in rows.items())
    return starred(name), tuple(parts)


def _is_unusual(order: _Order, made: Sequence[tuple[PackedPart, _Order]]) -> bool:
    """Whether more than half of all that are called so have one other order."""
    alike = Counter(other for _, other in made if other[0] == order[0])
    usual, count = alike.most_common(1)[0]
    return usual != order and 2 * count > alike.total()


def _found_in_layer(name: str, whole: Whole, parts: Mapping[str, Whole]) -> _Found | None:
    """Which parts a whole is made of: those of its layer, else any, where they are few to read."""
    numbers = numbers_in(name)
    layer = {part: one for part, one in parts.items() if numbers_in(part) == numbers}
    try:
        found = _found(whole, layer)
        if found is None and len(layer) < len(parts) <= _MOST_PARTS:
            found = _found(whole, parts)
    except BadPayload:
        return None
    return found


def _found(whole: Whole, parts: Mapping[str, Whole]) -> _Found | None:
    """Which parts a whole is made of."""
    array = whole.array()
    ways = ((array, False), (array.T, True)) if len(whole.shape) == 2 else ((array, False),)
    for rows, is_turned in ways:
        able = {
            name: part
            for name, part in parts.items()
            if part.dtype == whole.dtype and len(part.shape) > 1
            and part.shape[1:] == rows.shape[1:] and part.shape[0] < rows.shape[0]
        }  # fmt: skip
        if len(able) > 1 and (found := _made_of(rows, able)) is not None:
            return _Found(found, is_turned)
    return None


def _made_of(rows: Array, parts: Mapping[str, Whole]) -> dict[str, list[int]] | None:
    """Rows of a whole by the part that they are; None where they are not made of parts."""
    places: dict[bytes, list[_Where]] = {}
    for name, part in parts.items():
        for number, key in enumerate(_keys(part.array())):
            places.setdefault(key, []).append((name, number))
    taken: dict[str, dict[int, int]] = {}
    last = ""
    for number, key in enumerate(_keys(rows)):
        waiting = places.get(key)
        if waiting:
            where = next((item for item in waiting if item[0] == last), waiting[0])
            waiting.remove(where)
            last = where[0]
            taken.setdefault(last, {})[where[1]] = number
    full = {name: [found[n] for n in range(len(found))] for name, found in taken.items()
            if len(found) == parts[name].shape[0]}  # fmt: skip
    used = {number for numbers in full.values() for number in numbers}
    rest = [number for number in range(len(rows)) if number not in used]
    if rest and full:
        modules = {_parent(_parent(name)) for name in full}
        lacking = [
            name
            for name, part in parts.items()
            if name not in full and part.shape[0] == len(rest) and _parent(_parent(name)) in modules
        ]
        if len(lacking) != 1 or len(rest) > len(used):
            return None
        full[lacking[0]] = rest
    return full if len(full) > 1 else None


def _keys(array: Array) -> Iterator[bytes]:
    import numpy as np

    rows: Array = np.ascontiguousarray(array)
    for row in rows.reshape(len(rows), -1):
        yield hashlib.blake2b(row.tobytes(), digest_size=16).digest()


def _vectors(
    name: str, whole: Whole, found: _Found, wholes: Mapping[str, Whole], parts: Mapping[str, Whole]
) -> Iterator[tuple[str, Whole, Mapping[str, Sequence[int]], bool]]:
    """Vectors beside a packed matrix, whose parts lie beside its parts."""
    size = whole.shape[1 if found.is_turned else 0]
    for other, vector in wholes.items():
        if vector.shape != (size,) or _parent(other) != _parent(name):
            continue
        last = other.rpartition(".")[2]
        rows: dict[str, Sequence[int]] = {}
        for part, numbers in found.rows.items():
            beside = f"{_parent(part)}.{last}" if _parent(part) else last
            if beside in parts and parts[beside].shape == (len(numbers),):
                rows[beside] = numbers
        if len(rows) == len(found.rows):
            yield other, vector, rows, False


def _parent(name: str) -> str:
    return name.rpartition(".")[0]
