"""Headers of checkpoints: the parameters in a ``.ckpt`` or ``.safetensors`` file, without values.

``.ckpt`` is protobuf, message ``Checkpoint`` of ``checkpoint.proto`` (a ``Value`` for each
parameter, or for a part of a large one); values are skipped, not read.  ``.safetensors`` begins
with the length of a JSON table.  Read against files that MindSpore 2.7.0 saved.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, BinaryIO, cast

from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.protobuf import BYTES, Malformed
from irtool.ir.dataclass import dataclass
from irtool.syntax.reading import JsonError, opened, parse_json

_HEAD = 1 << 16
"""Bytes of a parameter's beginning that hold its name and shape."""
_MOST_HEADER = 1 << 28


@dataclass(frozen=True, slots=True)
class SavedParameter:
    """A parameter as a checkpoint's header describes it.

    Attributes:
        name: of the parameter.
        dtype: of its elements, as the file spells it.
        shape: its dimensions.
        bytes: of its values.
        places: where these stand in the file, in order: first byte and length.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    places: tuple[tuple[int, int], ...] = ()


def saved_parameters(path: str) -> dict[str, SavedParameter]:
    """The parameters of a checkpoint, by name.

    Args:
        path: the checkpoint; one that ends in ``.safetensors`` is read as such, others as protobuf.

    Raises:
        ArtefactError: it is none, or ends early.
    """
    try:
        with opened(path) as stream:
            if path.endswith(".safetensors"):
                return _safetensors(path, stream)
            return _protobuf(path, stream)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ArtefactError(path, f"{reason[:1].lower()}{reason[1:]}") from None
    except Malformed as error:
        message = f"is no checkpoint: byte {error.offset:,}: {error.message}"
        raise ArtefactError(path, message) from None


def _safetensors(path: str, stream: BinaryIO) -> dict[str, SavedParameter]:
    size = int.from_bytes(stream.read(8), "little")
    if not 2 <= size <= _MOST_HEADER:
        raise ArtefactError(path, "is no safetensors file: its header has no length")
    try:
        table = parse_json(stream.read(size))
    except JsonError as error:
        raise ArtefactError(path, f"is no safetensors file: {error.message}") from None
    by_name: dict[str, SavedParameter] = {}
    entries = cast("dict[str, Any]", table) if isinstance(table, dict) else {}
    for name, entry in entries.items():
        if name == "__metadata__" or not isinstance(entry, dict):
            continue
        values = cast("dict[str, Any]", entry)
        try:
            begin, end = (int(offset) for offset in values["data_offsets"])
            shape = tuple(int(dimension) for dimension in values["shape"])
        except (KeyError, TypeError, ValueError):
            raise ArtefactError(path, f"{name} has no shape or offsets") from None
        places = ((8 + size + begin, end - begin),)
        by_name[name] = SavedParameter(
            name, str(values.get("dtype", "")), shape, end - begin, places
        )
    return by_name


def _protobuf(path: str, stream: BinaryIO) -> dict[str, SavedParameter]:
    end = os.fstat(stream.fileno()).st_size
    by_name: dict[str, SavedParameter] = {}
    place = 0
    while place < end:
        stream.seek(place)
        head = memoryview(stream.read(_HEAD))
        key, size, start = _length(head, place)
        if key != 1 << 3 | BYTES:
            raise Malformed("no value of a parameter begins here", place)
        if place + start + size > end:
            raise Malformed(f"ends {place + start + size - end:,} bytes early", place)
        parameter = _value(head[start : start + size], place + start)
        known = by_name.get(parameter.name)
        # A large parameter stands in several parts, each with the whole shape.
        by_name[parameter.name] = parameter if known is None else _continued(known, parameter)
        place += start + size
    return by_name


def _continued(known: SavedParameter, part: SavedParameter) -> SavedParameter:
    return replace(known, bytes=known.bytes + part.bytes, places=(*known.places, *part.places))


def _length(head: memoryview, place: int) -> tuple[int, int, int]:
    """A field's key, the length of its value, and where that begins."""
    numbers: list[int] = []
    offset = 0
    for _ in range(2):
        value = shift = 0
        while True:
            if offset >= len(head) or shift > 63:
                raise Malformed("ends within a number", place + offset)
            byte = head[offset]
            value |= (byte & 0x7F) << shift
            offset, shift = offset + 1, shift + 7
            if byte < 0x80:
                break
        numbers.append(value)
    return numbers[0], numbers[1], offset


def _value(head: memoryview, start: int) -> SavedParameter:
    """``Value {tag, TensorProto {dims, tensor_type, tensor_content}}``, as far as its head goes."""
    name, dtype, size = "", "", 0
    places: list[tuple[int, int]] = []
    shape: list[int] = []
    for number, value, offset in _partial(head, start):
        if number == 1 and not isinstance(value, int):
            name = str(value, "utf-8", "replace")
        elif number == 2 and not isinstance(value, int):
            for inner, part, place in _partial(value, offset):
                if inner == 1 and isinstance(part, int):
                    shape.append(part)
                elif inner == 2 and not isinstance(part, int):
                    dtype = str(part, "utf-8", "replace")
                elif inner == 3:
                    size = part if isinstance(part, int) else len(part)
                    places.append((place, size))
    if not name:
        raise Malformed("a parameter without a name", start)
    return SavedParameter(name, dtype, tuple(shape), size, tuple(places))


def _partial(head: memoryview, start: int) -> Iterator[tuple[int, int | memoryview, int]]:
    """Fields of a message of which only the beginning is there.

    A value that goes on behind it comes as what is there, or where it is the last field of the
    innermost message as its length.
    """
    offset = 0
    while offset < len(head):
        key, size, begin = _length(head[offset:], start + offset)
        if key & 7 == 0:
            yield key >> 3, size, start + offset
            offset += begin
            continue
        if key & 7 != BYTES:
            raise Malformed(f"field {key >> 3} of a kind that checkpoints lack", start + offset)
        is_complete = offset + begin + size <= len(head)
        if is_complete or key >> 3 != 3:
            yield key >> 3, head[offset + begin : offset + begin + size], start + offset + begin
        else:
            yield key >> 3, size, start + offset + begin
        offset += begin + size
