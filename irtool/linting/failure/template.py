"""Patterns of log lines: literal text with named places, matched in linear time.

``"strategy size: {given:int} is not equal to inputs size: {wanted:int}"`` finds the literal pieces
one after the other, each at its first place after the one before.  There is nothing to go back to,
so that no line, however long and whatever it holds, takes more than one look.
"""

from __future__ import annotations

import re

from irtool.ir.dataclass import dataclass
from irtool.ir.units import bytes_text

_PLACE = re.compile(r"\{([a-z_]*)(?::(int|word|bytes))?\}")
_NUMBER = re.compile(r"-?\d+")
_KINDS = {"int": _NUMBER, "bytes": _NUMBER, "word": re.compile(r"[\w.\-/]+")}
_MOST = 400
"""Most characters of a value that are kept."""


@dataclass(frozen=True, slots=True)
class Template:
    """``literals`` has one more item than ``names``; an empty last one takes the rest."""

    literals: tuple[str, ...]
    names: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def anchor(self) -> str:
        """The longest literal: a line without it can't match."""
        return max(self.literals, key=len)

    def match(self, text: str) -> dict[str, str] | None:
        """The values by name, or None.  A value of type int or word is cut to that type."""
        start = text.find(self.literals[0])
        if start < 0:
            return None
        position = start + len(self.literals[0])
        values: dict[str, str] = {}
        for name, kind, literal in zip(self.names, self.kinds, self.literals[1:], strict=True):
            end = text.find(literal, position) if literal else len(text)
            if end < 0:
                return None
            value = text[position : min(end, position + _MOST)].strip()
            if kind:
                match = _KINDS[kind].match(value)
                if match is None:
                    return None
                value = match.group()
            if name:
                values[name] = value
            position = end + len(literal)
        return values


def template(text: str) -> Template:
    """Read a pattern: literal text with places between, ``{name}`` or ``{name:int}``.

    Args:
        text: of the pattern; a place without a name matches, and is not kept.

    Raises:
        ValueError: two places have nothing between them, or there is no text at all.
    """
    pieces = _PLACE.split(text)
    literals = tuple(pieces[0::3])
    if not any(literals) or any(not piece for piece in literals[1:-1]):
        raise ValueError(f"there must be text between places: {text!r}")
    return Template(literals, tuple(pieces[1::3]), tuple(kind or "" for kind in pieces[2::3]))


def filled(text: str, values: dict[str, str]) -> str:
    """The text with the values in its places; a place without value stays empty.

    A place of kind ``bytes`` gets its number in binary units: ``1.5 MiB``.

    Args:
        text: with places as a pattern has them.
        values: by the names of places.
    """

    def value(match: re.Match[str]) -> str:
        given = values.get(match[1], "")
        return _bytes(given) if match[2] == "bytes" else given

    return _PLACE.sub(value, text)


def _bytes(text: str) -> str:
    return text if not text.isdecimal() or len(text) > 30 else bytes_text(int(text))
