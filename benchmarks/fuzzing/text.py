"""Mutations that know nothing of a format: bytes and lines of any file."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Mutation = Callable[[Random, bytes], bytes]

_TOKENS = (
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b[31m", b"\r", b"\x0b", b"\x85", "\u2028".encode(),
    b"%", b"%s%n", b"{", b"}", b"(", b")", b"[", b"]", b"<", b">", b'"', b"'", b"\\", b"#", b",",
    b"-", b"-1", b"0", b"1e999", b"nan", b"NaN", b"Infinity", b"-0.0", b"99999999999999999999",
    b"9223372036854775808", b"null", b"None", b"true", b"=cmd|' /C calc'!A0", b"<script>", b"]]>",
    b"../../etc/passwd", b"\xed\xa0\x80", "İ".encode(), "٣".encode(), b"()", b"[]", b"{}",
)  # fmt: skip
_NESTING = 3000


def truncated(random: Random, data: bytes) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def beheaded(random: Random, data: bytes) -> bytes:
    return data[random.randrange(len(data) + 1) :]


def flipped(random: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 3, 20))):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def inserted(random: Random, data: bytes) -> bytes:
    for _ in range(random.choice((1, 1, 2, 5))):
        place = random.randrange(len(data) + 1)
        data = data[:place] + random.choice(_TOKENS) + data[place:]
    return data


def removed(random: Random, data: bytes) -> bytes:
    for _ in range(random.choice((1, 1, 2, 5))):
        place = random.randrange(len(data) + 1)
        data = data[:place] + data[place + random.choice((1, 1, 4, 30, 200)) :]
    return data


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def lines_dropped(random: Random, data: bytes) -> bytes:
    lines = _lines(data)
    for _ in range(random.choice((1, 1, 3, 10))):
        if lines:
            start = random.randrange(len(lines))
            del lines[start : start + random.choice((1, 1, 2, 8))]
    return b"".join(lines)


def lines_doubled(random: Random, data: bytes) -> bytes:
    lines = _lines(data)
    for _ in range(random.choice((1, 1, 3))):
        start = random.randrange(len(lines) + 1)
        piece = lines[start : start + random.choice((1, 2, 8, 40))]
        lines[start:start] = piece * random.choice((1, 1, 2, 20))
    return b"".join(lines)


def lines_swapped(random: Random, data: bytes) -> bytes:
    lines = _lines(data)
    for _ in range(random.choice((1, 2, 10))):
        if lines:
            one, other = random.randrange(len(lines)), random.randrange(len(lines))
            lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def concatenated(random: Random, data: bytes) -> bytes:
    return data + data[random.choice((0, random.randrange(len(data) + 1))) :]


def line_ends(random: Random, data: bytes) -> bytes:
    end = random.choice((b"\r\n", b"\r", b"\n\n", b"\x0c\n", b" \n"))
    return data.replace(b"\n", end) if random.random() < 0.7 else data.replace(b"\n", end, 20)


def other_encoding(random: Random, data: bytes) -> bytes:
    kind = random.randrange(4)
    if kind == 0:  # Latin-1 letters in names
        return data.replace(b"weight", b"gewicht\xe9").replace(b"bias", b"\xb5")
    text = data.decode("utf-8", "replace")
    if kind == 1:
        return b"\xef\xbb\xbf" + data
    return text.encode("utf-16" if kind == 2 else "utf-32")


def nested(random: Random, data: bytes) -> bytes:
    opening, closing = random.choice(
        ((b"(", b")"), (b"[", b"]"), (b"{", b"}"), (b"<Tuple[", b"]>"))
    )
    depth = random.choice((40, _NESTING))
    place = random.randrange(len(data) + 1)
    return data[:place] + opening * depth + closing * random.choice((depth, 0)) + data[place:]


def numbers_replaced(random: Random, data: bytes) -> bytes:
    """Some numbers of the text become others, tiny and huge ones among them."""
    import re

    places = [found.span() for found in re.finditer(rb"\d+", data)]
    chosen = random.sample(places, min(len(places), random.choice((1, 1, 3, 12))))
    for start, end in sorted(chosen, reverse=True):
        number = random.choice(
            (b"0", b"1", b"-1", b"3", b"7", b"1000003", b"4294967296", b"1" * 25)
        )
        data = data[:start] + number + data[end:]
    return data


def emptied(random: Random, data: bytes) -> bytes:
    return random.choice((b"", b"\n", b" ", b"\x00", data[:1], b"{}", b"[]", b"null", b"1"))


MUTATIONS: dict[str, Mutation] = {
    "truncated": truncated,
    "beheaded": beheaded,
    "flipped": flipped,
    "inserted": inserted,
    "removed": removed,
    "lines dropped": lines_dropped,
    "lines doubled": lines_doubled,
    "lines swapped": lines_swapped,
    "concatenated": concatenated,
    "line ends": line_ends,
    "encoding": other_encoding,
    "nested": nested,
    "numbers": numbers_replaced,
    "emptied": emptied,
}
"""By the name that they are counted under."""
