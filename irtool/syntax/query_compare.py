"""How queries compare values: what is missing, or of another kind, never matches."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from irtool.syntax.patterns import Pattern

COMPARISONS: dict[str, Callable[[object, object], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,  # type: ignore[operator]
    "<=": lambda left, right: left <= right,  # type: ignore[operator]
    ">": lambda left, right: left > right,  # type: ignore[operator]
    ">=": lambda left, right: left >= right,  # type: ignore[operator]
}
"""The signs of the language."""


def compared(compare: Callable[[object, object], bool], left: object, right: object) -> bool:
    """Whether a comparison of two values holds; with a missing value, or two kinds, it does not.

    Args:
        compare: an operator of Python, which may raise TypeError.
        left: None: the node has no such value.
        right: None: the node has no such value.
    """
    if left is None or right is None:
        return False
    try:
        return compare(_plain(left), _plain(right))
    except TypeError:  # a text with a number, say
        return False


def _plain(value: object) -> object:
    """Lists as tuples, so that both spellings compare equal."""
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in cast("list[object]", value))
    return value


def contains(item: object, holder: object, scoped: bool, wanted: bool) -> bool:
    """Whether a value is in another one, or is not; false where one of them is missing.

    Args:
        item: a part of a text, or an item of a sequence or dictionary.
        holder: a text, sequence or dictionary; anything else holds nothing.
        scoped: whether the holder is a scope, in which parts end at boundaries of numbers.
        wanted: False asks whether the item is not in it.
    """
    if item is None or holder is None:
        return False
    if isinstance(holder, str):
        if not isinstance(item, str):
            return False
        return (scope_contains(holder, item) if scoped else item in holder) == wanted
    if isinstance(holder, list | tuple | dict):
        items = cast("list[object]", holder)
        return (_plain(item) in [_plain(element) for element in items]) == wanted
    return False


def scope_contains(scope: str, part: str) -> bool:
    """Whether a part occurs in a scope at a boundary: layers.1 is not in layers.10.

    Args:
        scope: the whole scope.
        part: of any length; "" is in every scope.
    """
    start = scope.find(part)
    while start >= 0:
        end = start + len(part)
        if not (scope[end : end + 1].isdigit() and part[-1:].isdigit()):
            return True
        start = scope.find(part, start + 1)
    return False


def matches(pattern: Pattern, value: object, wanted: bool) -> bool:
    """Whether a text has a match (or, if not ``wanted``, has none).

    Args:
        pattern: a regular expression.
        value: of a node's field; of anything but a text the answer is False.
        wanted: False asks whether there is no match.

    Raises:
        PatternError: to find that out takes too long.
    """
    return isinstance(value, str) and pattern.is_in(value) == wanted


def length(value: object) -> int | None:
    """Length of a text or sequence; None for anything else.

    Args:
        value: of a node's field.
    """
    if isinstance(value, str | list | tuple | dict):
        return len(cast("str", value))
    return None
