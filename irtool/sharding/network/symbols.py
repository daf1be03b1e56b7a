"""What is known of sizes that are not known when a network is compiled.

A dump prints the symbols of a shape in a second line under a statement:
``S:[s1<[16,inf]|16N>, 64]`` is a size that 16 divides, then 64; ``|8N+4`` leaves a remainder of 4.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import gcd

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.operators.layout import DYNAMIC, Shape

_SIZE = re.compile(r"(?P<number>-?\d+)(?=\s*[,\]])|(?P<symbol>s\d+)(?:<(?P<facts>[^>]*)>)?")
_MULTIPLE = re.compile(r"\|(\d+)N(?:\+(\d+))?")


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is known of one tensor's sizes: what divides each, and what the dump calls it."""

    divisors: Shape
    symbols: tuple[str, ...]


def sizes_of_inputs(node: Node) -> tuple[tuple[Sizes, ...], ...]:
    """What is known of dynamic sizes of a node's operands.

    Args:
        node: with the symbolic line under its statement, or without.

    Returns:
        By operand the sizes of each tensor in it; empty where the dump says nothing.
    """
    for line in node.text_signatures:
        if line.kind == "symbolic":
            return tuple(_tensors(text) for text in line.inputs)
    return ()


def sizes_of_output(node: Node) -> tuple[Sizes, ...]:
    """What is known of dynamic sizes of a node's result.

    Args:
        node: with the symbolic line under its statement, or without.

    Returns:
        The sizes of each tensor in the result; empty where the dump says nothing.
    """
    for line in node.text_signatures:
        if line.kind == "symbolic" and line.outputs:
            return _tensors(line.outputs[0])
    return ()


def sizes_of_parameter(symbolic: str | None) -> Sizes | None:
    """What is known of dynamic sizes of a graph's parameter.

    Args:
        symbolic: the text behind its type, as ``[s1<[16,inf]|16N>, 64]``.

    Returns:
        None where there is no such text, or it is no list of sizes.
    """
    return _tensors(f"S:{symbolic}")[0] if symbolic and symbolic.startswith("[") else None


@lru_cache(maxsize=4096)
def _tensors(text: str) -> tuple[Sizes, ...]:
    """``S:[[s1|8N, 4], [2]]``: a tuple of shapes; ``S:[4]``: one shape."""
    start = text.find("S:[")
    if start < 0:
        return ()
    body = text[start + 2 :].split("]V:")[0].split(", V:")[0]
    return tuple(_sizes(part) for part in _brackets(body))


def _brackets(body: str) -> list[str]:
    """The innermost brackets of a nested list, without what belongs to a range."""
    plain = re.sub(r"<\[[^\]]*\]", lambda match: match[0].replace("[", "(").replace("]", ")"), body)
    return re.findall(r"\[([^\[\]]*)\]", plain)


def _sizes(text: str) -> Sizes:
    divisors: list[int] = []
    symbols: list[str] = []
    for match in _SIZE.finditer(f"{text}]"):
        symbols.append(match["number"] or match["symbol"])
        if match["number"] is not None:
            divisors.append(int(match["number"]))
            continue
        fact = _MULTIPLE.search(match["facts"] or "")
        if fact is None:
            divisors.append(1)
        else:
            rest = int(fact[2] or 0)
            divisors.append(gcd(int(fact[1]), rest) if rest else int(fact[1]))
    return Sizes(tuple(divisors), tuple(symbols))


def fitting(known: Sequence[Sizes], index: int, shape: Shape) -> Sizes | None:
    """What is known of a tensor's dynamic sizes, where it belongs to this shape and it needs that.

    Args:
        known: of all tensors of an operand or result.
        index: of the tensor among them.
        shape: of the tensor, in which -1 is a size that is not known.

    Returns:
        None where no size is dynamic, nothing is known, or the number of dimensions differs.
    """
    if DYNAMIC not in shape or index >= len(known):
        return None
    sizes = known[index]
    return sizes if len(sizes.divisors) == len(shape) else None
