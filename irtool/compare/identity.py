"""Identity of operators: keys that the same operator has in two dumps, from sure to weak."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from typing import Literal

from irtool.compare.attributes import instance_stem
from irtool.compare.side import Side
from irtool.ir.ties.keys import own_name

Identity = Literal["parameter", "source line", "scope"]

_COUNTED = re.compile(r"(?<=\D)\d+(?=-)|(?<=-op)\d+")


def home(side: Side, index: int) -> Hashable:
    """What tells where an operator stands: name, scope, phase, instance name and micro-batch.

    Args:
        side: of a comparison.
        index: of the operator on that side.
    """
    operator = side.operators[index]
    node = operator.node
    return operator.op, node.scope, operator.phase, instance_stem(node), node.micro


def _lines(side: Side, index: int) -> Hashable:
    """The Python lines that made it, innermost last, without the machine's own folders."""
    lines = side.operators[index].node.comments.locations
    return tuple((line.path.rpartition("/")[2], line.span) for line in lines) or None


def by_parameter(side: Side, index: int) -> Hashable:
    """A key of the parameters that an operator reads, and of where it stands.

    Args:
        side: of a comparison.
        index: of the operator on that side.

    Returns:
        None where it reads none.
    """
    names = side.operators[index].names()
    return (names, home(side, index)) if names else None


def by_update(side: Side, index: int) -> Hashable:
    """The parameters that it reads, wherever it stands."""
    operator = side.operators[index]
    names = operator.names()
    return (names, operator.op, operator.phase, operator.node.micro) if names else None


def by_variable(side: Side, index: int) -> Hashable:
    """A key of the Python variable that holds an operator, and of where it stands.

    Args:
        side: of a comparison.
        index: of the operator on that side.

    Returns:
        None where its name tells no variable.
    """
    name = own_name(side.operators[index].node)
    return (name, home(side, index)) if name else None


def by_line(side: Side, index: int) -> Hashable:
    """A key of the Python lines that made an operator, and of where it stands.

    Args:
        side: of a comparison.
        index: of the operator on that side.

    Returns:
        None where the dump has no lines.
    """
    lines = _lines(side, index)
    return (lines, home(side, index)) if lines is not None else None


def by_scope(side: Side, index: int) -> Hashable:
    """A key of where an operator stands; None of one without a scope.

    Args:
        side: of a comparison.
        index: of the operator on that side.
    """
    return home(side, index) if side.operators[index].node.scope is not None else None


def by_content_and_scope(side: Side, index: int) -> Hashable:
    """Where it stands, and its result's type."""
    return (side.types[index], home(side, index))


def by_place(side: Side, index: int) -> Hashable:
    """A key of operator, scope and phase: what is left when instance names changed.

    Args:
        side: of a comparison.
        index: of the operator on that side.
    """
    operator = side.operators[index]
    return operator.op, operator.node.scope, operator.phase


IDENTITIES: tuple[tuple[Identity, Callable[[Side, int], Hashable]], ...] = (
    ("parameter", by_parameter),
    ("source line", by_line),
    ("parameter", by_update),
    ("source line", by_variable),
    ("scope", by_content_and_scope),
    ("scope", by_scope),
    ("scope", by_place),
)
"""Rounds of identity, the surest first."""

ORDERED: tuple[Callable[[Side, int], Hashable], ...] = (
    by_line,
    by_content_and_scope,
    by_scope,
    by_place,
)
"""Keys by which equal numbers of candidates are taken in order."""


def scope_pattern(scope: str | None) -> str:
    """A scope with ``#`` for the numbers of layers and cells, so that repeated layers agree.

    Args:
        scope: None: "" is its pattern.
    """
    return re.sub(r"(?<=[./_-])\d+(?=[./_-]|$)|(?<![A-Za-z0-9])\d+(?=-)", "#", scope or "")
