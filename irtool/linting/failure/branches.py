"""Branches of an ``if`` of different types: where each ends, and the cast that is missing."""

from __future__ import annotations

import ast

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.finding import Edit, SourceLine
from irtool.ir.graph import Graph, Node
from irtool.ir.statement import ClosureTarget
from irtool.ir.types import BITS
from irtool.ir.values import GraphReference, NodeReference
from irtool.linting.failure.casts import parsed, span


@dataclass(frozen=True, slots=True)
class Branches:
    """The lines that give what the branches end with, in the order of the types told of them."""

    lines: tuple[SourceLine, ...]
    edit: Edit | None = None

    @property
    def text(self) -> str:
        """``, on lines 309 and 311``; empty where they are not known."""
        numbers = [str(line.line) for line in self.lines]
        return f", on lines {' and '.join(numbers)}" if len(set(numbers)) > 1 else ""


def branches_of(dump: Dump, call: Node, graph: Graph, types: tuple[str, ...]) -> Branches:
    """Where the branches end between which a call could not decide.

    Args:
        dump: the ``analyze_fail.ir``.
        call: the call that failed.
        graph: where it stands.
        types: what each branch gives (``Float32``), as the exception tells.
    """
    lines = tuple(_last_line(callee) for callee in _callees(dump, call, graph))
    known = tuple(line for line in lines if line is not None)
    if len(known) != 2 or known[0].path != known[1].path:
        return Branches(())
    return Branches(known, _cast(known, types) if len(types) == 2 else None)


def _callees(dump: Dump, call: Node, graph: Graph) -> tuple[Graph, ...]:
    """Both graphs of the Switch that a call runs."""
    target = call.target
    if not isinstance(target, ClosureTarget) or not isinstance(target.callee, NodeReference):
        return ()
    number = target.callee.number
    switch = next((node for node in graph.nodes if node.number == number), None)
    if switch is None or switch.op != "Switch":
        return ()
    names = [item.name for item in switch.operands if isinstance(item, GraphReference)]
    held = {each.name: each for each in dump.graphs}
    return tuple(held[name] for name in names if name in held)


def _last_line(graph: Graph) -> SourceLine | None:
    """The line of Python that makes what a graph returns."""
    returned = next((node for node in graph.nodes if node.is_return), None)
    made = returned.inputs[0] if returned is not None and returned.inputs else None
    location = made.location if isinstance(made, Node) else None
    if location is None:
        return None
    text = (location.source or "").strip().strip("/").strip()
    return SourceLine(location.path, location.line, text=text)


def _cast(lines: tuple[SourceLine, ...], types: tuple[str, ...]) -> Edit | None:
    """What the narrower branch assigns or returns, cast to the type of the wider one."""
    if types[0] == types[1] or not all("Float" in dtype and dtype in BITS for dtype in types):
        return None
    narrow = min((0, 1), key=lambda place: (BITS[types[place]], types[place]))
    source = lines[narrow]
    tree = parsed(source.text)
    statement = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    if not isinstance(statement, ast.Assign | ast.Return) or statement.value is None:
        return None
    if isinstance(statement, ast.Assign) and not isinstance(statement.targets[0], ast.Name):
        return None
    place = span(statement.value, source.text)
    if place is None:
        return None
    (start, end), text = place, source.text
    wide = f"mindspore.{types[1 - narrow].lower()}"
    new = f"{text[:start]}ops.cast({text[start:end]}, {wide}){text[end:]}"
    return Edit(file=source.path, line=source.line, old=text, new=new)
