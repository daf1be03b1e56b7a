"""Operators that are written like a name that irtool does not know."""

from __future__ import annotations

from difflib import get_close_matches

from irtool.ir.operators import COMMUNICATION, PLUMBING, VIRTUAL
from irtool.ir.statement import operator_name
from irtool.operators.table import UNKNOWN, entries, operator_of

_NO_PRIMITIVES = frozenset(("call", "Return"))


def near_operators(name: str) -> list[str]:
    """Known operators that are written like one that is not known; none where it is known."""
    fixed = (*COMMUNICATION, *PLUMBING, *VIRTUAL, *_NO_PRIMITIVES)
    if name in fixed or operator_of(name) is not UNKNOWN or not name:
        return []
    if operator_name(name) != name:
        return [operator_name(name)]
    known = dict.fromkeys((*fixed, *entries()))
    small = {word.lower(): word for word in known}
    if name.lower() in small:
        return [small[name.lower()]]
    close = get_close_matches(name.lower(), small, n=3, cutoff=0.8)
    return [small[word] for word in close]


def near_note(name: str) -> str:
    """A sentence with the operators that are written like an unknown one; "" where none is.

    Args:
        name: that the table has no entry for.
    """
    near = near_operators(name)
    return f"irtool knows no operator {name}; did you mean {' or '.join(near)}?" if near else ""
