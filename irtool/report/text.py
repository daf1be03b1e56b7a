"""Text for people: nothing in it can steer a terminal."""

from __future__ import annotations

import re

# Control characters, line and paragraph separators, marks that reorder what is seen, and bytes
# that were no text.  A dump is made by others: its names may hold any of them.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_UNSAFE_INLINE = re.compile(_UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
_STANDS_ALONE = re.compile(r"\s|[-*|#>`]|\d+[.)] ")
"""What a line begins with that continues no paragraph."""
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def escape(text: str) -> str:
    r"""One line of harmless text: control characters become ``\x1b`` and the like.

    Args:
        text: line ends and tabs in it are control characters as well.
    """
    return _UNSAFE.sub(_escaped, text)


def escape_lines(text: str) -> str:
    r"""Harmless text of several lines: line feeds and tabs stay, for whole dumps on a terminal.

    Args:
        text: other control characters become ``\x1b`` and the like.
    """
    return _UNSAFE_INLINE.sub(_escaped, text)


def paragraphs(text: str) -> list[str]:
    """Markdown as lines of running text: those of one paragraph are joined.

    Items of lists, rows of tables and what is indented stay lines of their own.

    Args:
        text: empty lines stay.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        if lines and lines[-1] and line and not _STANDS_ALONE.match(line):
            lines[-1] += f" {line}"
        else:
            lines.append(line)
    return lines


def _escaped(match: re.Match[str]) -> str:
    char = match.group()
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8, as surrogateescape keeps it
        return f"\\x{code - 0xDC00:02x}"
    return _SHORT.get(char) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def shortened(text: str, width: int) -> str:
    """At most ``width`` characters, cut in the middle: both ends of a name tell something.

    Args:
        text: one line.
        width: the ellipsis included.
    """
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"
