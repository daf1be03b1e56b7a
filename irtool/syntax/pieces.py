"""Pieces of records that many records have in common, wherever they stand in them.

Records of new forms are made of old attributes and types.  What the tables of a grammar make of a
piece of text depends on nothing but the state in which it begins, the piece, and what follows it:
where all three were seen before, what was made of the piece then is what it means now.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Protocol

from irtool.syntax.budget import Aging
from irtool.syntax.part import DIGITS


class Movable(Protocol):
    """What a rule of the grammar makes of a piece."""

    def at(self, start: int) -> Any:
        """What the rule makes of the piece in a record where its first hole is number ``start``."""
        ...


# Texts without quotes, braces and dollar signs, whose tokens could reach beyond the piece, and in
# brackets that are closed.
_INSIDE = r"""[^()\[\]{}"'$]"""
_FLAT = rf"[(\[]{_INSIDE}*[)\]]"
_NESTED = rf"[(\[](?:{_INSIDE}|{_FLAT})*[)\]]"
_BRACKETS = rf"[(\[](?:{_INSIDE}|{_NESTED})*[)\]]"
_KEY = r"""[^\s,()\[\]{}"':=$][^,()\[\]{}"':=$]*(?:: ?|=)"""

PIECES: dict[str, re.Pattern[str]] = {
    "attribute": re.compile(
        rf"""{_KEY}(?:[^,()\[\]{{}}"'$]*(?:{_BRACKETS})?|"[^",()\[\]{{}}'$]*")(?=\}}|, {_KEY})"""
    ),
    # Not those that are one token: they are read as quickly as found.
    "abstract": re.compile(
        r"""(?!<Tensor\[\w+\], \([-0-9, ]*\)>|<\w+, NoShape>)<[^<>{}"'$]*>(?=, <|\))"""
    ),
}
"""By rule of ``grammars/dump.lark``: texts that it may read, up to what can only follow them."""


class Piece(NamedTuple):
    """A piece at the place where it was met: its key, and its first hole."""

    key: tuple[object, ...]
    hole: int


class Pieces:
    """What was made of pieces of records before, by state, rule and text."""

    def __init__(self) -> None:
        self._made: Aging[Movable] = Aging()

    def piece(self, state: int, rule: str, text: str) -> Piece:
        """A piece of a masked record that begins in a state."""
        split = DIGITS.split(text)
        return Piece((state, rule, *split[::2]), int(split[1]) if len(split) > 1 else 0)

    def get(self, piece: Piece) -> Any:
        """What was made of such a piece before, for this place; None where none was met."""
        known = self._made.get(piece.key)
        if known is None and self._made.elder:
            known = self._made.again(piece.key, _size(piece))
        return None if known is None else known.at(piece.hole)

    def keep(self, piece: Piece, made: Movable) -> None:
        """Remember what was made of a piece."""
        self._made.keep(piece.key, made, _size(piece))


def _size(piece: Piece) -> int:
    """Bytes of a piece and what was made of it."""
    return 1000 + 20 * sum(len(text) for text in piece.key[2:] if isinstance(text, str))
