"""Expands gzip and xz a piece at a time, and no further than their own size makes likely."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from irtool.ir.limits import ALWAYS_UNPACKED, MAX_RATIO, MAX_UNPACKED_VARIABLE, max_unpacked

_CHUNK = 1 << 20
_MOST_DICTIONARY = 256 << 20
"""Bytes of memory that an xz file may ask for; ``xz -9`` asks for 65 MiB."""


class Damaged(ValueError):
    """A packed file that ends early or is no such file; the message says which."""


class UnpacksTooFar(ValueError):
    """A packed file that would grow beyond all proportion."""

    hint = f"if it is meant to: {MAX_UNPACKED_VARIABLE}=8G lets a file grow to 8 GiB"


def packed_as(start: bytes) -> str:
    """``gzip``, ``xz``, or nothing, by the first bytes of a file.

    Args:
        start: six bytes at least, if there are so many.
    """
    if start[:2] == b"\x1f\x8b":
        return "gzip"
    return "xz" if start[:6] == b"\xfd7zXZ\x00" else ""


class _Decompressor(Protocol):
    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...


def _gzip() -> _Decompressor:
    return zlib.decompressobj(16 + zlib.MAX_WBITS)


def _xz() -> _Decompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_DICTIONARY)


_MAKERS: dict[str, Callable[[], _Decompressor]] = {"gzip": _gzip, "xz": _xz}


def unpacked(chunks: Iterable[bytes], kind: str) -> Iterator[bytes]:
    """What packed bytes hold, member after member, in pieces of at most 1 MiB.

    Args:
        chunks: the bytes of the file.
        kind: as :func:`packed_as` says.

    Raises:
        Damaged: the file ends early, or its bytes make no sense; all before that was given.
        UnpacksTooFar: it holds more than :data:`MAX_RATIO` times its own bytes.
        ValueError: the environment states no sensible limit.
    """
    most = max_unpacked()
    taken = made = 0
    decompressor: _Decompressor | None = None
    try:
        for chunk in chunks:
            taken += len(chunk)
            allowed = max(ALWAYS_UNPACKED, MAX_RATIO * taken) if most is None else most
            pending = chunk
            more = True
            while more:
                if decompressor is None:
                    pending = pending.lstrip(b"\0")  # tapes and block devices pad with these
                    if not pending:
                        break
                    decompressor = _MAKERS[kind]()
                piece = decompressor.decompress(pending, _CHUNK)
                pending = getattr(decompressor, "unconsumed_tail", b"")
                if decompressor.eof:
                    pending, decompressor = decompressor.unused_data, None
                made += len(piece)
                if made > allowed:
                    times = f"{made // taken:,} times its size and more"
                    raise UnpacksTooFar(f"the {kind} file unpacks to {times}")
                if piece:
                    yield piece
                # A full piece may leave something behind, whether or not all input was taken.
                more = bool(pending) or len(piece) == _CHUNK
    except (zlib.error, lzma.LZMAError) as error:
        raise Damaged(f"the {kind} file is damaged: {error}") from None
    if decompressor is not None:
        raise Damaged(f"the {kind} file is truncated")
