"""Places: the way of scopes to a statement, the same for a forward operator and its gradient."""

from __future__ import annotations

import re
from functools import lru_cache

from irtool.ir.graph import Node
from irtool.ir.operators import ACCUMULATED

DEEPEST = 40
"""Scopes inside one another that are told apart; no network is as deep, but a file may be."""
_NUMBERS = re.compile(r"\d+")
_ALONE = re.compile(r"(?<![A-Za-z\d])\d+")


def scope_place(node: Node) -> tuple[str, ...]:
    """``Gradients/Default/net/0-Block/Grad_MatMul`` stands at ``net / 0-Block``.

    Args:
        node: of a dump; one without a scope stands nowhere (empty).
    """
    return _parts(node.scope) if node.scope else ()


@lru_cache(maxsize=8192)
def _parts(scope: str) -> tuple[str, ...]:
    parts = [part for part in scope.split("/") if part]
    if parts and parts[0] == "Gradients":
        parts = parts[1:]
    if parts and parts[-1].startswith("Grad_"):
        parts = parts[:-1]
    if parts and parts[0].startswith("recompute_"):
        parts[0] = parts[0].removeprefix("recompute_")
    if parts and parts[0] == "Default":
        parts = parts[1:]
    return tuple(parts[:DEEPEST])


@lru_cache(maxsize=8192)
def parameter_place(name: str) -> tuple[str, ...]:
    """``blocks.3.q.weight`` stands at ``blocks.3 / q``, and so does the sum of its gradients.

    Args:
        name: of a parameter; the last part, which is its own, is left out.
    """
    parts: list[str] = []
    for part in name.removeprefix(ACCUMULATED).split(".")[:-1]:
        if part.isdecimal() and parts:
            parts[-1] = f"{parts[-1]}.{part}"
        else:
            parts.append(part)
    return tuple(parts[:DEEPEST])


@lru_cache(maxsize=8192)
def pattern(name: str) -> str:
    """A name with its numbers left out: equal for ``3-Block`` and ``12-Block``.

    Args:
        name: of a scope.
    """
    return _NUMBERS.sub("#", name)


@lru_cache(maxsize=8192)
def is_numbered(name: str) -> bool:
    """Whether a number stands by itself in it, as in ``3-Block``; in ``norm1-Norm`` it doesn't.

    Args:
        name: of a scope.
    """
    return _ALONE.search(name) is not None


@lru_cache(maxsize=8192)
def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts ``2-Block`` before ``10-Block``.

    Args:
        name: of any form; of longer numbers 18 digits at a time are compared.
    """
    parts = re.findall(r"\d+|\D+", name)
    return tuple(
        (int(part), "") if part[:1].isdecimal() and len(part) < 19 else (0, part) for part in parts
    )


def range_title(names: list[str]) -> str:
    """``0…23-Block`` for blocks 0 to 23; the first and last name where numbers don't tell.

    Args:
        names: one or more, in the order in which they shall be told.
    """
    if len(names) == 1:
        return names[0]
    first, last = names[0], names[-1]
    numbers = [_NUMBERS.findall(name) for name in (first, last)]
    differing = [
        index for index, pair in enumerate(zip(*numbers, strict=False)) if pair[0] != pair[1]
    ]
    if len(numbers[0]) != len(numbers[1]) or len(differing) != 1:
        return f"{first} … {last}"
    index = differing[0]
    match = list(_NUMBERS.finditer(first))[index]
    return f"{first[: match.start()]}{match.group()}…{numbers[1][index]}{first[match.end() :]}"
