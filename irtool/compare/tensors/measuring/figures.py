"""Figures of one tensor: extremes, mean, norm, checksum, sketch, in one pass over its values."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from irtool.compare.tensors.dtypes import is_float
from irtool.compare.tensors.formats.payload import BadPayload, Stored, read_stored
from irtool.compare.tensors.measuring.sketch import Sketcher
from irtool.compare.tensors.measuring.values import number_blocks, widened
from irtool.compare.tensors.model import NAN, Columns


class Figures(NamedTuple):
    """What is known of a tensor without its values.

    Attributes:
        most, least, mean, norm: of the finite elements; NaN where there are none.
        broken: NaN and infinite elements; -1 if the tensor could not be read.
        checksum: CRC-32 of its numbers, as msprobe states it.
        sketch: sums that stand for the values; empty for numbers that are not rounded.
        note: why it could not be read.
    """

    most: float = NAN
    least: float = NAN
    mean: float = NAN
    norm: float = NAN
    broken: int = -1
    checksum: str = ""
    sketch: tuple[float, ...] = ()
    note: str = ""


class File(NamedTuple):
    """A file whose figures are wanted."""

    path: str
    dtype: str


def figures_of_files(files: Sequence[File]) -> list[Figures]:
    """Figures of the tensors of some files; what cannot be read has a note instead.

    Args:
        files: with the types that the dump declares.
    """
    return [figures_of(file) for file in files]


def figures_of(file: File) -> Figures:
    """Figures of the tensor of one file; what cannot be read has a note instead.

    Args:
        file: with the type that the dump declares.
    """
    try:
        return _figures(read_stored(file.path, file.dtype), is_float(file.dtype))
    except BadPayload as error:
        return Figures(note=str(error))


def _figures(stored: Stored, is_sketched: bool) -> Figures:
    import numpy as np

    sketcher = Sketcher() if is_sketched else None
    most, least = -math.inf, math.inf
    total = square = 0.0
    count = broken = checksum = 0
    for plain in number_blocks(stored):
        checksum = zlib.crc32(plain.data, checksum)
        good = block = widened(plain)
        part = float(np.dot(block, block))
        if not math.isfinite(part):
            is_good = np.isfinite(block)
            good = block[is_good]
            part = float(np.dot(good, good))
            block = np.where(is_good, block, 0.0)
            broken += block.size - good.size
        if good.size:
            most, least = max(most, float(good.max())), min(least, float(good.min()))
            total += float(good.sum())
            count += good.size
        square += part
        if sketcher is not None:
            sketcher.add(block)
    return Figures(
        most if count else NAN,
        least if count else NAN,
        total / count if count else NAN,
        math.sqrt(square),
        broken,
        f"{checksum:08x}",
        sketcher.sums() if sketcher is not None else (),
    )


def state(columns: Columns, place: int, figures: Figures) -> None:
    """Put figures where a dump states those of its tensors.

    Args:
        columns: that are written.
        place: of the tensor among them.
        figures: of the tensor; where it could not be read, the reason is put there.
    """
    if figures.note:
        columns.unread[place] = figures.note
        return
    columns.most[place], columns.least[place] = figures.most, figures.least
    columns.mean[place], columns.norm[place] = figures.mean, figures.norm
    columns.broken[place], columns.hashes[place] = figures.broken, figures.checksum
    if figures.sketch:
        columns.sketches[place] = figures.sketch
