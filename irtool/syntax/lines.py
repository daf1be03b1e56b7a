"""Lines of logs and tables, plain or packed, of which none fills memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO

from irtool.syntax.reading import opened
from irtool.syntax.unpacking import packed_as, unpacked

MOST_LINE = 1 << 16
"""Most bytes of a line that are looked at; the rest is read over."""
_CHUNK = 1 << 20


def chunks_of(stream: BinaryIO) -> Iterator[bytes]:
    """The bytes of a stream as they come, gzip and xz expanded.

    Args:
        stream: opened for reading, at its beginning.

    Raises:
        OSError: it can't be read.
        Damaged: it is packed, and ends early or is damaged; all before that was given.
        UnpacksTooFar: it is packed, and larger than its size makes likely.
    """
    read = getattr(stream, "read1", stream.read)
    pieces: Iterator[bytes] = iter(lambda: read(_CHUNK) or b"", b"")
    start = b""
    while len(start) < 6 and (piece := next(pieces, b"")):
        start += piece
    chunks = chain([start], pieces) if start else pieces
    kind = packed_as(start)
    return unpacked(chunks, kind) if kind else chunks


def lines_in(chunks: Iterable[bytes], most: int = MOST_LINE) -> Iterator[bytes]:
    """Lines without their ends, of which no more than ``most`` bytes are kept.

    Args:
        chunks: bytes in any pieces, expanded.
        most: bytes of a line that are kept; the rest of it is read over.
    """
    begun = b""
    for chunk in chunks:
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            yield (begun + line[: most - len(begun)]).rstrip(b"\r")
            begun = b""
        begun = (begun + rest)[:most]
    if begun:
        yield begun.rstrip(b"\r")


def text_lines(path: str, most: int = MOST_LINE) -> Iterator[str]:
    """The lines of a file in UTF-8; what is none becomes replacement characters.

    Args:
        path: of a file, plain or packed.
        most: bytes of a line that are kept; the rest of it is read over.

    Raises:
        OSError: it can't be read.
        Damaged, UnpacksTooFar: as of :func:`chunks_of`.
    """
    with opened(path) as stream:
        for line in lines_in(chunks_of(stream), most):
            yield line.decode("utf-8", "replace")
