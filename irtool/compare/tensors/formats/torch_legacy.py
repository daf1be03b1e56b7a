"""PyTorch's files of before 1.6, which were no zip archives yet.

``torch.save(…, _use_new_zipfile_serialization=False)`` still writes them.
Pickles stand one behind the other: a magic number, the protocol, the machine, what was saved, and
the keys of its storages; then each storage, its number of elements before its bytes
(``torch/serialization.py``, ``_legacy_save``).
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING

from irtool.compare.tensors.formats.window import Window

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAGIC = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
"""What such a file begins with: the pickle of 0x1950a86a20f9469cfc6c."""
_BEFORE = 3
"""Pickles before the one of what was saved."""
_TEXTS = ("BINUNICODE", "SHORT_BINUNICODE", "UNICODE")


class _Stream(io.RawIOBase):
    """A window as a file that is read from its beginning."""

    def __init__(self, data: Window) -> None:
        self._data = data
        self._place = 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        piece = self._data.read(self._place, self._place + len(view))
        view[: len(piece)] = piece
        self._place += len(piece)
        return len(piece)


def legacy_parts(data: Window, most: int) -> tuple[bytes, list[str], int]:
    """The pickle of what was saved, the keys of the storages, and where these begin.

    Args:
        data: the file.
        most: bytes of the pickle that are looked at.

    Raises:
        ValueError: a pickle is damaged, or ends early.
    """
    stream = io.BufferedReader(_Stream(data))
    for _ in range(_BEFORE):
        _texts(stream)
    start = stream.tell()
    _texts(stream)
    end = stream.tell()
    keys = _texts(stream)
    return bytes(data.read(start, min(end, start + most))), keys, stream.tell()


def _texts(stream: IO[bytes]) -> list[str]:
    """The texts in the next pickle, behind which the stream stands then."""
    return [str(text) for code, text, _ in pickletools.genops(stream) if code.name in _TEXTS]


def storages(
    data: Window, keys: list[str], start: int, widths: Mapping[str, int]
) -> dict[str, tuple[int, int]]:
    """Place and length of each storage, as far as the file goes.

    Args:
        data: the file.
        keys: in the order of the file.
        start: of the first one.
        widths: bytes of an element, by key.
    """
    places: dict[str, tuple[int, int]] = {}
    for key in keys:
        if key not in widths or start + 8 > len(data):
            break
        size = int.from_bytes(data.read(start, start + 8), "little") * widths[key]
        places[key] = start + 8, size
        start += 8 + size
    return places
