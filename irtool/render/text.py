"""Text for people: nothing in it can steer a terminal, and numbers have units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Control characters, line and paragraph separators, marks that reorder what is seen, and bytes
# that were no text.  A dump is made by others: its names may hold any of them.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_UNSAFE_INLINE = re.compile(_UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def escape(text: str) -> str:
    r"""One line of harmless text: control characters become ``\x1b`` and the like."""
    return _UNSAFE.sub(_escaped, text)


def escape_lines(text: str) -> str:
    """The same, but line feeds and tabs stay: for whole dumps on a terminal."""
    return _UNSAFE_INLINE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    char = found.group()
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8, as surrogateescape keeps it
        return f"\\x{code - 0xDC00:02x}"
    return _SHORT.get(char) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def shortened(text: str, width: int) -> str:
    """At most ``width`` characters, cut in the middle: both ends of a name tell something."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def count_text(number: int) -> str:
    """``12,345``."""
    return f"{number:,}"


def bytes_text(number: int | None) -> str:
    """``1.5 MiB``; ``?`` for an unknown size."""
    if number is None:
        return "?"
    if number < 1024:
        return f"{number} B"
    size = float(number)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        size /= 1024
        if size < 1023.95 or unit == "TiB":
            break
    return f"{size:.1f} {unit}"


def share_text(part: int, whole: int) -> str:
    """``13 of 94 (14 %)``."""
    if not whole:
        return "0 of 0"
    return f"{count_text(part)} of {count_text(whole)} ({100 * part / whole:.0f} %)"


def plural(number: int, noun: str) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{count_text(number)} {noun}{'' if number == 1 else 's'}"


def ranks_text(ranks: Sequence[int] | None) -> str:
    """Ranks with even steps folded: ``0-3``, ``0,4,8…28``, ``0-3,8-11``; ``?`` if unknown."""
    if ranks is None:
        return "?"
    ordered = sorted(set(ranks))
    if len(ordered) > 3:
        step = ordered[1] - ordered[0]
        if step > 1 and ordered == list(range(ordered[0], ordered[-1] + 1, step)):
            return f"{ordered[0]},{ordered[1]}…{ordered[-1]}"
    return ",".join(_run_text(run) for run in _runs(ordered))


def _run_text(run: tuple[int, int]) -> str:
    first, last = run
    if last - first < 2:
        return ",".join(str(rank) for rank in range(first, last + 1))
    return f"{first}-{last}"


def _runs(ordered: Iterable[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for rank in ordered:
        if found and rank == found[-1][1] + 1:
            found[-1] = (found[-1][0], rank)
        else:
            found.append((rank, rank))
    return found


def tuple_text(value: object) -> str:
    """A strategy as dumps print it: ``((4, 1), (1, 2))``, without a comma in a tuple of one."""
    if isinstance(value, tuple | list):
        inner = ", ".join(tuple_text(item) for item in value)  # type: ignore[misc]  # of any items
        return f"({inner})"
    return "" if value is None else str(value)
