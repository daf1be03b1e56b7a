"""What is known of sizes that are not known when a network is compiled.

A dump prints the symbols of a shape in a second line under a statement:
``S:[s1<[16,inf]|16N>, 64]`` is a size that 16 divides, then 64; ``|8N+4`` leaves a remainder of 4.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import gcd

from irtool.ir.node import Node
from irtool.sharding.layout import DYNAMIC, Shape

_SIZE = re.compile(r"(?P<number>-?\d+)(?=\s*[,\]])|(?P<symbol>s\d+)(?:<(?P<facts>[^>]*)>)?")
_MULTIPLE = re.compile(r"\|(\d+)N(?:\+(\d+))?")


def divisors_of_inputs(node: Node) -> tuple[tuple[Shape, ...], ...]:
    """Per operand the divisors of each tensor in it; empty where the dump says nothing."""
    for line in node.text_signatures:
        if line.kind == "symbolic":
            return tuple(_divisors(text) for text in line.inputs)
    return ()


def divisors_of_output(node: Node) -> tuple[Shape, ...]:
    """The divisors of each tensor in the result; empty where the dump says nothing."""
    for line in node.text_signatures:
        if line.kind == "symbolic" and line.outputs:
            return _divisors(line.outputs[0])
    return ()


@lru_cache(maxsize=4096)
def _divisors(text: str) -> tuple[Shape, ...]:
    """``S:[[s1|8N, 4], [2]]``: a tuple of shapes; ``S:[4]``: one shape."""
    start = text.find("S:[")
    if start < 0:
        return ()
    body = text[start + 2 :].split("]V:")[0].split(", V:")[0]
    return tuple(_shape(part) for part in _brackets(body))


def _brackets(body: str) -> list[str]:
    """The innermost brackets of a nested list, without what belongs to a range."""
    plain = re.sub(r"<\[[^\]]*\]", lambda match: match[0].replace("[", "(").replace("]", ")"), body)
    return re.findall(r"\[([^\[\]]*)\]", plain)


def _shape(text: str) -> Shape:
    found: list[int] = []
    for match in _SIZE.finditer(f"{text}]"):
        if match["number"] is not None:
            found.append(int(match["number"]))
            continue
        fact = _MULTIPLE.search(match["facts"] or "")
        if fact is None:
            found.append(1)
        else:
            rest = int(fact[2] or 0)
            found.append(gcd(int(fact[1]), rest) if rest else int(fact[1]))
    return tuple(found)


def fitting(divisors: Sequence[Shape], index: int, shape: Shape) -> Shape | None:
    """The divisors of tensor ``index`` if they belong to this shape and it needs them."""
    if DYNAMIC not in shape or index >= len(divisors):
        return None
    found = divisors[index]
    return found if len(found) == len(shape) else None
