"""Calls in source lines whose operators are gone from a begin dump.

MindSpore numbers operators before it removes those that do nothing: a Reshape to the shape that its
operand has, a Cast to its type, one of two that compute the same.  What is left keeps its number,
so ``Reshape-op1`` and ``-op2`` may stand in a dump that has no third one (seen in strategy files
that MindSpore 2.7 saved).  The source lines of what is left still show such a call, and an operator
that a pass put in the place of others (a Reshape of a Reshape) bears a number of that pass.  A line
that left no operator at all shows nothing: if it shifts numbers, the highest one has no entry, and
MindSpore refuses the whole file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from math import inf

from irtool.ir.comments import Location
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.operators import VIRTUAL
from irtool.planning.files.node_names import node_number
from irtool.sharding.network.sharded_nodes import primitive

_DEFINITION = re.compile(r"/?\s*(?:async\s+)?def\b")
_REMARK = re.compile(r"#.*")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ALSO = {"Reshape": ("view", "flatten", "Flatten", r"\w*reshape\w*")}
"""Further names of calls that make a primitive."""

_Body = tuple[Location, ...]
"""The lines that lead to a function body, its definition behind them."""
_Line = tuple[_Body, str, int]
"""A function body, a file, and a line of that body."""


@dataclass(eq=False)
class RemovedOperators:
    """What the source lines of a dump show of operators that are gone from it.

    Attributes:
        dump: the dump.
        operators: those of its nodes that have strategies.
    """

    dump: Dump
    operators: Sequence[Node]

    def line_of(self, nodes: Sequence[Node]) -> Location | None:
        """A line that calls the primitive of some operators more often than operators are left.

        Args:
            nodes: all operators of one scope and primitive.

        Returns:
            None: no line shows that one of them is gone.
        """
        scope = nodes[0].scope or ""
        call = _call_of(nodes)
        left = Counter(line for node in nodes for line in {line for line, _ in _lines_of(node)})
        for line, location in self._lines_in.get(scope, {}).items():
            calls = len(call.findall(_REMARK.sub("", location.source or "")))
            if calls and left[line] < calls * self._runs.get(line, 1):
                return location
        return None

    def is_merged(self, nodes: Sequence[Node]) -> bool:
        """Whether one of some operators was made by a pass, so that others may be gone for it.

        Passes number what they make behind the Loads that a pass puts before them. What they put
        into every network (``_VirtualDataset``) was made of nothing.
        """
        if primitive(nodes[0]) in VIRTUAL:
            return False
        made = [number for node in nodes if (number := node_number(node)) is not None]
        return bool(made) and max(made) > self._first_load

    @cached_property
    def _first_load(self) -> float:
        """The lowest number of what MindSpore puts between weights and those that read them."""
        loads = map(node_number, self.dump.nodes("Load"))
        return min((number for number in loads if number is not None), default=inf)

    @cached_property
    def _lines_in(self) -> dict[str, dict[_Line, Location]]:
        """By scope the lines of the function bodies in which it has operators."""
        scopes: dict[_Body, set[str]] = {}
        lines: dict[_Body, dict[_Line, Location]] = {}
        for node in self.dump.nodes():
            for line, location in _lines_of(node):
                lines.setdefault(line[0], {})[line] = location
        for node in self.operators:
            if led := _lines_of(node):
                scopes.setdefault(led[-1][0][0], set()).add(node.scope or "")
        by_scope: dict[str, dict[_Line, Location]] = {}
        for body, own in scopes.items():
            for scope in own:
                by_scope.setdefault(scope, {}).update(lines[body])
        return by_scope

    @cached_property
    def _runs(self) -> dict[_Line, int]:
        """How often a line ran: in a loop as often as one of its expressions made an operator."""
        made: dict[_Line, Counter[object]] = {}
        for node in self.operators:
            for line, location in _lines_of(node)[-1:]:
                made.setdefault(line, Counter())[node.scope, node.op, location.span] += 1
        return {line: max(counts.values()) for line, counts in made.items()}


def _call_of(nodes: Sequence[Node]) -> re.Pattern[str]:
    """How calls of a primitive are written."""
    name = primitive(nodes[0])
    names = {re.escape(node.instance_name) for node in nodes if node.instance_name}
    names |= {name, name.lower(), _HUMP.sub("_", name).lower(), *_ALSO.get(name, ())}
    return re.compile(rf"\b(?:{'|'.join(sorted(names, key=len, reverse=True))})\s*\(")


def _lines_of(node: Node) -> list[tuple[_Line, Location]]:
    """The lines that led to a node, from the outermost one, each with its function body."""
    lines: list[tuple[_Line, Location]] = []
    body: _Body = ()
    locations = node.comments.locations
    for depth, location in enumerate(locations):
        if _DEFINITION.match(location.source or ""):
            body = tuple(locations[: depth + 1])
        else:
            lines.append(((body, location.path, location.line), location))
    return lines
