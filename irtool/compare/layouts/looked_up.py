"""Tables whose rows ranks cut: what each rank looks up of its own rows, put together.

A rank that holds rows from ``first`` on looks up ``indices - first`` where that is one of its rows,
any row of its own elsewhere, and puts zeros in place of the latter; the sum over ranks is what one
device looks up.  So indices and rows of a rank mean something at its own positions alone: there
``first`` is added to indices, and rows are those of the rank whose position it is.
(Megatron-LM: ``VocabParallelEmbedding``; MindSpore: ``Gather`` of a table cut by ``(n, 1)``.)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from irtool.compare.tensors.dtypes import is_float
from irtool.compare.tensors.model import Columns, Op
from irtool.compare.tensors.semantics import family
from irtool.ir.dataclass import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LOOKUPS = ("lookup", "view")
"""Families that take rows of a table by indices: of views those that are given some."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """The tensors of a call that takes rows of a table.

    Attributes:
        table: label of the table.
        indices: label of which rows.
        rows: label of what it gives.
    """

    table: str
    indices: str
    rows: str


def lookup_of(op: Op, columns: Columns) -> Lookup | None:
    """What is what in a call that takes rows of a table; None of any other call.

    Sizes tell it: rows are as many as indices, each with all axes of the table but the first.

    Args:
        op: a forward call.
        columns: its tensors.
    """
    if op.phase != "forward" or family(op.type) not in _LOOKUPS or not op.outputs:
        return None
    labels, shapes = columns.labels, columns.shapes
    tables = [p for p in op.inputs if is_float(columns.dtypes[p]) and len(shapes[p]) > 1]
    indices = [p for p in op.inputs if "int" in columns.dtypes[p].lower() and shapes[p]]
    if len(tables) != 1 or len(indices) != 1:
        return None
    rows = op.outputs[0]
    if tuple(shapes[rows]) != (*shapes[indices[0]], *shapes[tables[0]][1:]):
        return None
    return Lookup(labels[tables[0]], labels[indices[0]], labels[rows])


def part_sizes(ops: Iterable[Op], columns: Columns) -> frozenset[int]:
    """Sizes of axes that calls may look up rows along: of what whole numbers pick from.

    Args:
        ops: forward calls of one rank.
        columns: their tensors.
    """
    sizes: set[int] = set()
    for op in ops:
        if op.phase == "forward" and family(op.type) in _LOOKUPS:
            kinds = {is_float(columns.dtypes[p]) for p in op.inputs if columns.shapes[p]}
            if kinds == {True, False}:
                sizes.update(size for p in op.inputs for size in columns.shapes[p])
    return frozenset(sizes - {0, 1})


def first_rows(
    numbers: Mapping[int, int], sizes: frozenset[int]
) -> tuple[int, frozenset[int]] | None:
    """Where each rank's part begins (or ends), of a number that ranks are given.

    Args:
        numbers: by part.
        sizes: that parts may have.

    Returns:
        How many rows a part has, and parts that are given another number than that makes; these are
        fewer than half of three or more.  None where the numbers say nothing of parts.
    """
    for size in sorted(sizes):
        begins = Counter(number - part * size for part, number in numbers.items())
        begin, count = begins.most_common(1)[0]
        odd = frozenset(p for p, number in numbers.items() if number - p * size != begin)
        if begin % size == 0 and 2 * count > len(numbers) and (not odd or len(numbers) > 2):
            return size, odd
    return None


def own_positions(indices: NDArray[Any], part: int, size: int) -> NDArray[Any]:
    """Where indices are of rows of one part of a table.

    Args:
        indices: into the whole table.
        part: number of the part.
        size: rows of each part.
    """
    return (indices >= part * size) & (indices < (part + 1) * size)


def whole_indices(
    local: Mapping[int, NDArray[Any]], expected: NDArray[Any], size: int
) -> NDArray[Any]:
    """Indices into the whole table, each from the rank whose row it should be.

    Args:
        local: indices of each part of the table, into that part.
        expected: the indices that say whose position it is.
        size: rows of each part.
    """
    import numpy as np

    joined = np.array(expected)
    for part, values in local.items():
        own = own_positions(expected, part, size)
        joined[own] = values[own] + part * size
    return joined


def whole_rows(
    local: Mapping[int, NDArray[Any]], expected: NDArray[Any], size: int
) -> NDArray[Any]:
    """Rows of the whole table, each from the rank that holds it; zeros where no rank does.

    Args:
        local: what was looked up in each part of the table.
        expected: indices into the whole table.
        size: rows of each part.
    """
    import numpy as np

    joined = np.zeros_like(next(iter(local.values())))
    for part, values in local.items():
        own = own_positions(expected, part, size)
        joined[own] = values[own]
    return joined


def are_local(local: Mapping[int, NDArray[Any]], candidate: NDArray[Any], size: int) -> bool:
    """Whether indices of all parts are made of the same indices into the whole table.

    Args:
        local: indices of each part of the table, into that part.
        candidate: what they may be made of.
        size: rows of each part.
    """
    if any(values.shape != candidate.shape for values in local.values()) or not candidate.size:
        return False
    if candidate.min() < 0 or candidate.max() >= size * len(local):
        return False
    return bool((whole_indices(local, candidate, size) == candidate).all())


def adds_up_to(parts: Sequence[NDArray[Any]], total: NDArray[Any]) -> bool:
    """Whether parts, zero at each other's positions, make up what was looked up.

    Args:
        parts: of all ranks.
        total: the rows of the whole table.
    """
    import numpy as np

    if any(part.shape != total.shape for part in parts) or math.prod(total.shape) == 0:
        return False
    filled = np.sum([part != 0 for part in parts], axis=0)
    return bool(np.max(filled) == 1 and (np.sum(parts, axis=0) == total).all())
