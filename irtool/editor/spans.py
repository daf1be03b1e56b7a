"""Where the names in a statement stand: its own, those that it refers to, its operator.

The model prints every statement back as it was, so that the place of each part follows from the
lengths of those before it: names may hold blanks, quotes and brackets, which no pattern could tell
from what stands around them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.items import Head, Parameter, Property
from irtool.ir.statement import ClosureTarget, GraphTarget, PrimitiveTarget
from irtool.ir.values import Dictionary, GraphReference, Reference, Sequence, Value
from irtool.syntax.printer import (
    print_attributes,
    print_parameter,
    print_target,
    print_value,
)

Kind: TypeAlias = Literal["definition", "name", "reference", "operator", "attributes"]
_REFERENCES: tuple[type, ...] = Reference.__args__  # type: ignore[attr-defined]  # a union's members


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a line, from column ``start`` (from 0) to before ``end``.

    ``value`` is the reference of a ``reference``, the graph of a head's ``definition`` as a
    reference, the parameter's reference or declaration of its ``definition``; None for others.
    """

    start: int
    end: int
    kind: Kind
    value: Value | Parameter | None = None


def statement_spans(node: Node) -> tuple[Span, ...]:
    """The parts of a statement in the order of the line.

    Args:
        node: the statement; columns are those of its first line as the printer writes it.
    """
    indent = len(node.style.indent)
    if node.number is None:
        word = len(node.style.return_word)
        spans = [Span(indent, indent + word, "definition")]
        position = indent + word + 1
    else:
        number, name = len(node.id), len(node.name or "None")
        spans = [
            Span(indent, indent + number, "definition"),
            Span(indent + number + 1, indent + number + 1 + name, "name"),
        ]
        position = indent + number + name + 5
        spans += _target(node, position)
        position += len(print_target(node.target)) + 1
    for index, operand in enumerate(node.operands):
        position += 2 if index else 0
        spans += _references(operand, position)
        position += len(print_value(operand))
    return (*spans, *_attributes(node, position + 1))


def _target(node: Node, start: int) -> Iterator[Span]:
    target = node.target
    text = print_target(target)
    match target:
        case GraphTarget():
            yield Span(start, start + 4, "operator")
            yield Span(start + 5, start + len(text), "reference", GraphReference(target.graph))
        case PrimitiveTarget():
            begin = start + len(target.kind)
            yield Span(begin, begin + len(target.name), "operator")
        case ClosureTarget():
            position = 0
            if not isinstance(target.callee, str):
                position = len(print_value(target.callee))
                yield Span(start, start + position, "reference", target.callee)
            for graph in target.closure.graphs if target.closure else ():
                place = text.find(f"@{graph}", position)
                if place >= 0:
                    position = place + len(graph) + 1
                    yield Span(start + place, start + position, "reference", GraphReference(graph))
        case _:
            yield Span(start, start + len(text), "operator")


def _references(value: Value, start: int) -> Iterator[Span]:
    """References in an operand, nested ones at their places."""
    if isinstance(value, _REFERENCES):
        yield Span(start, start + len(print_value(value)), "reference", value)
    elif isinstance(value, Sequence):
        position = start + (0 if value.is_bare else 1)
        for item in value.items:
            yield from _references(item, position)
            position += len(print_value(item)) + 2
    elif isinstance(value, Dictionary):
        position = start + 1
        for key, item in value.entries:
            position += len(key) + 2 * len(value.quote) + 2
            yield from _references(item, position)
            position += len(print_value(item)) + 2


def _attributes(node: Node, start: int) -> Iterator[Span]:
    position = start
    if node.instance_name is not None:
        position += len(f" {{instance name: {node.instance_name}}}")
    blocks = [node.primitive_attributes, node.node_attributes, node.primal_attributes]
    if not node.style.strategy_on_type_line:
        blocks.append(node.strategy)
    for block in blocks:
        if block is not None:
            text = print_attributes(block)
            yield Span(position + 1, position + 1 + len(text), "attributes")
            position += len(text) + 1


def head_spans(head: Head) -> tuple[Span, ...]:
    """The graph, the one that encloses it, and its parameters, in the line of its head.

    Args:
        head: ``subgraph @G(…) {`` as read; columns are those of the line as the printer writes it.
    """
    position = len("subgraph ") + len(head.name) + 1
    spans = [Span(len("subgraph "), position, "definition", GraphReference(head.name))]
    if head.parent is not None:
        position += len(" parent: [subgraph ")
        end = position + len(head.parent) + 1
        spans.append(Span(position, end, "reference", GraphReference(head.parent)))
        position = end + 1
    opening, comma, _ = head.spelling
    position += len(opening)
    for item in head.parameters:
        text = print_parameter(item) if isinstance(item, Parameter) else print_value(item)
        end = position + (declared_length(item) if isinstance(item, Parameter) else len(text))
        spans.append(Span(position, end, "definition", item))
        position += len(text) + len(comma)
    return tuple(spans)


def declared_length(item: Parameter) -> int:
    """Characters of ``%para3_name`` in the line that declares it."""
    number = "" if item.number is None else item.number
    return len(f"%para{number}{item.spelling[0]}{item.name}")


def parameter_spans(item: Parameter) -> tuple[Span, ...]:
    """The name in a line of the ``# Params:`` section.

    Args:
        item: the declared parameter.
    """
    return (Span(0, declared_length(item), "definition", item),)


def property_spans(item: Property) -> tuple[Span, ...]:
    """The graph in ``# IR entry: @G``.

    Args:
        item: a line of a key and a value.

    Returns:
        one span; none where the value names no graph.
    """
    text = f"{item.separator}{item.value}"
    start = text.find("@")
    if start < 0 or text[:start].strip() not in (":", ""):
        return ()
    name = text[start + 1 :]
    begin = len(item.key) + start
    return (Span(begin, begin + len(name) + 1, "reference", GraphReference(name)),)


def parameter_key(parameter: GraphParameter) -> tuple[str, int | None, str]:
    """What tells a parameter from all others of a dump.

    Args:
        parameter: of a graph, or of the dump itself.

    Returns:
        its graph's name, its number (None where it has none) and its own name.
    """
    return (parameter.graph, parameter.number, parameter.name)
