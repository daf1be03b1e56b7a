"""An open dump: its text, its model, and what stands where."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from typing import TypeAlias

from lsprotocol.types import Location, Position, Range

from irtool.editor.answers import NO_ANSWERS, Answers
from irtool.editor.project import Project
from irtool.editor.spans import (
    Span,
    head_spans,
    parameter_key,
    parameter_spans,
    property_spans,
    statement_spans,
)
from irtool.editor.text import Text
from irtool.ir.comments import Location as SourcePlace
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import (
    AmbiguousReference,
    Graph,
    GraphParameter,
    Item,
    Node,
    Source,
)
from irtool.ir.items import CommentBlock, Head, Parameter, Property
from irtool.ir.values import ParameterReference
from irtool.operators.table import rule_of
from irtool.syntax.load import loads
from irtool.syntax.printer import item_lines, print_statement
from irtool.syntax.query_fields import phase

Thing: TypeAlias = Node | GraphParameter | Graph
"""What a name in a dump stands for."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A line's item, and the graph that it belongs to."""

    line: int
    item: Item
    graph: Graph | None


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in the text, from offset ``start`` to before ``end``, and what it stands for.

    ``others`` are further nodes that the name may mean; ``things`` holds them all.
    """

    start: int
    end: int
    thing: Thing
    is_definition: bool
    others: tuple[Node, ...] = ()

    @property
    def things(self) -> tuple[Thing, ...]:
        """All that the name may mean, the likeliest first."""
        return (self.thing, *self.others)


@dataclass(eq=False)
class Document:
    """One text of an open dump.

    A change makes a new document; ``answers`` alone comes later, as the analyses go on.
    """

    uri: str
    path: str
    text: Text
    dump: Dump
    project: Project
    version: int | None = None
    answers: Answers = field(default=NO_ANSWERS)

    def prepare(self) -> None:
        """Make what the first question would have to wait for: tables of lines, users, phases.

        What the table and the linter load when first asked is loaded, too.
        """
        self.owner(1)
        for graph in self.dump.graphs:
            if graph.nodes:
                _ = graph.nodes[0].users
                phase(graph.nodes[0])
        for op in {node.op for node in self.dump.nodes()}:
            rule_of(op)
        _ = self.project.sources

    # -- what stands in a line -----------------------------------------------------------------

    @cached_property
    def owners(self) -> tuple[Owner, ...]:
        """Every item of the dump in the order of lines."""
        return tuple(sorted(self._owners(), key=lambda owner: owner.line))

    def _owners(self) -> Iterator[Owner]:
        for item in self.dump.items:
            if not isinstance(item, Graph):
                yield Owner(item.line, item, None)
                continue
            for inner in (*item.prelude, *((item.head,) if item.head else ()), *item.items):
                yield Owner(inner.line, inner, item)
            if item.close is not None:
                yield Owner(item.close.line, item.close, item)

    @cached_property
    def _lines(self) -> list[int]:
        return [owner.line for owner in self.owners]

    def owner(self, line: int) -> Owner | None:
        """The item that a line (from 1) belongs to: of a statement, all of its lines."""
        index = bisect_right(self._lines, line) - 1
        return self.owners[index] if index >= 0 else None

    def after(self, line: int) -> Owner | None:
        """The item after the one that a line (from 1) belongs to."""
        index = bisect_right(self._lines, line)
        return self.owners[index] if index < len(self.owners) else None

    def between(self, first: int, last: int) -> tuple[Owner, ...]:
        """The items that begin in lines ``first`` to ``last``."""
        return self.owners[bisect_right(self._lines, first - 1) : bisect_right(self._lines, last)]

    def owner_of_row(self, row: int) -> Owner | None:
        """The item that a line of the protocol (from 0) belongs to."""
        return self.owner(self.text.line_at(self.text.offset(Position(row, 0))))

    def node_at(self, position: Position) -> Node | None:
        """The statement whose lines hold a position."""
        owner = self.owner(self.text.line_at(self.text.offset(position)))
        return owner.item if owner is not None and isinstance(owner.item, Node) else None

    def place_at(self, position: Position) -> SourcePlace | None:
        """The line of Python that a comment line names."""
        line = self.text.line_at(self.text.offset(position))
        owner = self.owner(line)
        if owner is None or not isinstance(owner.item, Node | CommentBlock):
            return None
        lines = owner.item.comments.lines
        before = 0
        if isinstance(owner.item, Node):
            before = 1 + (owner.item.signature is not None) + len(owner.item.text_signatures)
        index = line - owner.line - before
        comment = lines[index] if 0 <= index < len(lines) else None
        return comment if isinstance(comment, SourcePlace) else None

    # -- names ---------------------------------------------------------------------------------

    def spans(self, owner: Owner) -> tuple[Span, ...]:
        """The parts of an item's first line; none where the line is not as it would be printed."""
        item = owner.item
        match item:
            case Node():
                text, spans = print_statement(item), statement_spans
            case Head():
                text, spans = next(item_lines(item)), head_spans
            case Parameter():
                text, spans = next(item_lines(item)), parameter_spans
            case Property():
                text, spans = next(item_lines(item)), property_spans
            case _:
                return ()
        if not self.text.content.startswith(text, self.text.start_of(owner.line)):
            return ()
        return spans(item)  # type: ignore[arg-type]  # each is paired with its kind of item

    def mentions(self, owner: Owner) -> Iterator[Mention]:
        """The names in an item's first line."""
        start = self.text.start_of(owner.line)
        for span in self.spans(owner):
            for thing, *others in self._meant(owner, span):
                is_definition = span.kind in ("definition", "name")
                rest = tuple(other for other in others if isinstance(other, Node))
                yield Mention(start + span.start, start + span.end, thing, is_definition, rest)

    def mention_at(self, position: Position) -> Mention | None:
        """The name at a position, its last character included."""
        offset = self.text.offset(position)
        owner = self.owner(self.text.line_at(offset))
        if owner is None:
            return None
        touching = [m for m in self.mentions(owner) if m.start <= offset <= m.end]
        return next((m for m in touching if offset < m.end), touching[-1] if touching else None)

    def meant(self, owner: Owner, span: Span) -> Thing | None:
        """What a part of an item's line most likely stands for; None for what names nothing."""
        return next((things[0] for things in self._meant(owner, span)), None)

    def _meant(self, owner: Owner, span: Span) -> Iterator[list[Thing]]:
        """What a span stands for: no or one list, the likeliest first."""
        if span.kind in ("definition", "name"):
            thing = self._defined(owner, span)
            if thing is not None:
                yield [thing]
        elif span.kind == "reference" and span.value is not None:
            graph = owner.graph or self.dump.entry
            if graph is not None and not isinstance(span.value, Parameter):
                meant = things_of(graph.source(span.value))
                if meant:
                    yield meant

    def _defined(self, owner: Owner, span: Span) -> Thing | None:
        item = owner.item
        if isinstance(item, Node):
            return item
        if isinstance(item, Parameter):
            return self._declared(item)
        value = span.value
        if owner.graph is not None and isinstance(value, Parameter):
            candidates = (p for p in owner.graph.parameters if p.declaration is value)
            return next(candidates, None)
        if owner.graph is not None and isinstance(value, ParameterReference):
            candidates = (
                p
                for p in owner.graph.parameters
                if p.number == value.number and p.label == value.label
            )
            return next(candidates, None)
        return owner.graph

    def _declared(self, item: Parameter) -> GraphParameter | None:
        parameter = self.dump.parameter_by_number(item.number, item.name)
        return parameter if parameter is not None and parameter.declaration is item else None

    # -- where things stand --------------------------------------------------------------------

    def definition(self, thing: Thing) -> Range | None:
        """Where a thing is defined; None where no line says it."""
        for owner in self._candidates(thing):
            for mention in self.mentions(owner):
                if mention.is_definition and key_of(mention.thing) == key_of(thing):
                    return self.text.range(mention.start, mention.end)
            if isinstance(owner.item, Node) and owner.item is thing:
                return self.text.line_range(owner.line)
        return None

    def _candidates(self, thing: Thing) -> Iterator[Owner]:
        """The items that may define a thing."""
        line = 0
        if isinstance(thing, GraphParameter):
            graph = self.dump.graph(thing.graph)
            if thing.declaration is not None and thing.declaration.line:
                line = thing.declaration.line
            elif graph is not None and graph.head is not None:
                line = graph.head.line
        elif isinstance(thing, Graph):
            line = thing.head.line if thing.head else 0
        else:
            line = thing.line
        owner = self.owner(line) if line else None
        if owner is not None:
            yield owner

    def location(self, thing: Thing) -> Location | None:
        """Where a thing is defined, as the protocol says it."""
        extent = self.definition(thing)
        return None if extent is None else Location(self.uri, extent)

    @cached_property
    def uses(self) -> dict[object, list[Owner]]:
        """For each thing, by :func:`key_of`, the items that refer to it."""
        by_key: dict[object, list[Owner]] = {}
        for owner in self.owners:
            if isinstance(owner.item, Node | Head | Property):
                for mention in self.mentions(owner):
                    for thing in () if mention.is_definition else mention.things:
                        users = by_key.setdefault(key_of(thing), [])
                        if not users or users[-1] is not owner:
                            users.append(owner)
        return by_key


def open_document(
    uri: str, path: str, text: Text, project: Project, version: int | None = None
) -> Document:
    """Read a text: what could not be read stands in the dump's problems.

    Args:
        uri: as the client names the document.
        path: the file; "" where it is none: the dump is then named by the end of the URI.
        text: of the whole document.
        project: the folder that it is opened in.
        version: the client's number of the text; None where it has none.
    """
    dump = loads(text.content, path or os.path.basename(uri))
    return Document(uri, path, text, dump, project, version)


def things_of(source: Source) -> list[Thing]:
    """Nodes, parameters and graphs that an operand may stand for, the likeliest first."""
    if isinstance(source, AmbiguousReference):
        others = [node for node in source.candidates if node is not source.likely]
        return [source.likely, *others]
    return [source] if isinstance(source, Node | GraphParameter | Graph) else []


def key_of(thing: Thing) -> object:
    """What tells a thing from all others of its dump.

    Args:
        thing: a node, parameter or graph.

    Returns:
        something hashable: of a parameter its graph, number and name; of a node or graph its
        identity, so that it holds for this object of the dump alone.
    """
    return parameter_key(thing) if isinstance(thing, GraphParameter) else id(thing)
