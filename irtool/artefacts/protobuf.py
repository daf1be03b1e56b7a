"""Protobuf messages on the wire, field by field, with the byte at which each stands.

For messages whose schema is known and small; nothing of what a field claims is believed before it
was held to the bytes that are there.  Encoding: the protocol buffers documentation, "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.dataclass import dataclass

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Kinds of fields; 3 and 4 were groups, which no format read here has."""

_LONGEST_VARINT = 10


class Malformed(Exception):
    """No message: what is wrong, and at which byte."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message, offset)
        self.message = message
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Field:
    """One field: ``value`` is a number, or the bytes of a text or an inner message.

    ``offset``: of its first byte; ``start``: of the first byte of ``value`` where that is bytes.
    """

    number: int
    kind: int
    value: int | memoryview
    offset: int
    start: int

    def message(self) -> Iterator[Field]:
        """The fields of the inner message.

        Raises:
            Malformed: it is none.
        """
        return fields(self.bytes(), self.start)

    def bytes(self) -> memoryview:
        """The bytes of a field that holds a message or a text.

        Raises:
            Malformed: it holds a number.
        """
        if isinstance(self.value, int):
            raise Malformed(f"field {self.number} is a number, not a message or text", self.offset)
        return self.value

    def text(self) -> str:
        """The text of a field, in UTF-8.

        Raises:
            Malformed: it is none.
        """
        try:
            return str(self.bytes(), "utf-8")
        except UnicodeDecodeError:
            raise Malformed(f"field {self.number} is no text in UTF-8", self.offset) from None

    def number_of(self) -> int:
        """Its number, signed: a negative int32 or int64 takes ten bytes.

        Raises:
            Malformed: it is none.
        """
        if not isinstance(self.value, int):
            raise Malformed(f"field {self.number} is no number", self.offset)
        return self.value - (1 << 64) if self.value >= 1 << 63 else self.value

    def numbers(self) -> Iterator[int]:
        """Its number, or all numbers where it is packed.

        Raises:
            Malformed: it is neither.
        """
        if isinstance(self.value, int):
            yield self.number_of()
            return
        place = 0
        while place < len(self.value):
            value, place = _varint(self.value, place, self.start)
            yield value - (1 << 64) if value >= 1 << 63 else value


def fields(data: memoryview, start: int = 0) -> Iterator[Field]:
    """The fields of a message, in order.

    Args:
        data: the message.
        start: which byte of the file its first one is.

    Raises:
        Malformed: the bytes are no message, or end within one.
    """
    place = 0
    while place < len(data):
        begin = place
        key, place = _varint(data, place, start)
        number, kind = key >> 3, key & 7
        if not 0 < number < 1 << 29:
            raise Malformed(f"there is no field {number}", start + begin)
        if kind == VARINT:
            value, place = _varint(data, place, start)
            yield Field(number, kind, value, start + begin, start + place)
            continue
        if kind == BYTES:
            size, place = _varint(data, place, start)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise Malformed(f"field {number} is of kind {kind}, which is none", start + begin)
        if size > len(data) - place:
            missing = size - (len(data) - place)
            raise Malformed(
                f"field {number} ends {missing:,} bytes behind the end of what holds it",
                start + begin,
            )
        yield Field(number, kind, data[place : place + size], start + begin, start + place)
        place += size


def _varint(data: memoryview, place: int, start: int) -> tuple[int, int]:
    number = 0
    for count in range(_LONGEST_VARINT):
        if place + count >= len(data):
            raise Malformed("ends within a number", start + place)
        byte = data[place + count]
        number |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return number & ((1 << 64) - 1), place + count + 1
    raise Malformed("a number of more than ten bytes", start + place)
