"""Text to model: reads a dump, keeps what it cannot read, and says so."""

from __future__ import annotations

import re
from dataclasses import replace

from irtool.ir.comments import CommentLine
from irtool.ir.dump import Dump, LineEnds
from irtool.ir.graph import Graph, Item, Node
from irtool.ir.items import CommentBlock, Head, Marker, Opaque, Text
from irtool.ir.statement import STANDARD_STYLE, ClosureTarget, PrimitiveTarget
from irtool.ir.values import ParameterReference
from irtool.syntax import scanner
from irtool.syntax.collector import CollectorPause
from irtool.syntax.dialect import dialect_of
from irtool.syntax.records import Records, Unreadable
from irtool.syntax.statements import StatementReader
from irtool.syntax.whole_file import whole_file_problems

_SHARED = Records()


def comment_lines(text: str) -> tuple[CommentLine, ...]:
    """Comment lines (whole lines) as the model has them.

    Args:
        text: of whole lines, with line feeds between them.
    """
    return _SHARED.comment_lines(text)


def loads(text: str, path: str = "<text>", records: Records | None = None) -> Dump:
    """Read the text of a dump.

    Never fails: what cannot be read becomes :class:`Opaque` and a problem of the dump.

    Args:
        text: of the whole file; bytes that are not UTF-8 as surrogates.
        path: that findings name.
        records: templates to read with; None: those that all readings share.
    """
    bom = text.startswith("\ufeff")
    body, ends = _line_ends(text[1:] if bom else text)
    reading = _Reading(body, path, records or _SHARED)
    with CollectorPause.over(len(body)):
        items = reading.read()
    dialect = dialect_of(body)
    made = Dump(items, path, tuple(reading.problems), dialect, ends, bom, len(text))
    problems = (*made.problems, *whole_file_problems(made, text))
    ordered = tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))
    object.__setattr__(made, "problems", ordered)
    return made


def _line_ends(text: str) -> tuple[str, LineEnds]:
    last = text.endswith("\n")
    if "\r" not in text or "\r\n" not in text:
        return (text[:-1] if last else text), LineEnds("\n", frozenset(), last)
    crlf, total = text.count("\r\n"), text.count("\n")
    usual = "\r\n" if crlf * 2 > total else "\n"
    exceptions: frozenset[int] = frozenset()
    if crlf != total:
        lines = text.split("\n")[:-1]
        odd = usual == "\n"
        exceptions = frozenset(i for i, line in enumerate(lines, 1) if line.endswith("\r") == odd)
    text = text.replace("\r\n", "\n")
    return (text[:-1] if last else text), LineEnds(usual, exceptions, last)


class _Reading(StatementReader):
    """One pass over the text of one dump."""

    def __init__(self, text: str, path: str, records: Records) -> None:
        super().__init__(text, path, records)
        self.items: list[Item | Graph] = []
        self.prelude: list[Item] = []
        self.is_excerpt = "IR entry" not in text and "subgraph @" not in text
        self.has_banner = text.startswith(("# ===", "# 1."))

    # ---- the file

    def read(self) -> tuple[Item | Graph, ...]:
        if not _looks_like_a_dump(self.text):
            return self._foreign_language()
        while self.position <= len(self.text):
            self._outside()
        self.items += self.prelude
        return tuple(self.items)

    def _foreign_language(self) -> tuple[Item, ...]:
        if not self.text.strip():
            self.problem("SYN006", "nothing in this file", 1, hint="was the dump finished?")
            return (Text(self.text, "blank", 1),)
        if scanner.ACTOR_SET.search(self.text[:100_000]):
            message = "an actor set, not ANF IR: it lists runtime actors and has no nodes to read"
            hint = "give the dumps beside it (step_parallel_begin_*.ir, *_validate_*.ir, …)"
        else:
            message = "not an ANF IR dump: no header, subgraph or statement in it"
            hint = "a dump begins with '# IR entry: @…'"
        self.problem("SYN005", message, 1, hint=hint)
        return (Opaque(self.text, 1),)

    def _outside(self) -> None:
        """Read one line that stands in no graph, or a whole graph."""
        head = scanner.HEAD.match(self.text, self.position)
        if head is not None:
            self._graph(head.group(), head.end())
            return
        if scanner.LOOSE_STATEMENT.match(self.text, self.position):
            self._flush_prelude()
            self._add_graph(None, None)
            return
        line, number = self._next_line()
        if scanner.PRELUDE.match(line) or (self.prelude and not scanner.HEADER.match(line)):
            self.prelude.append(self._line_item(line, number))
        else:
            self._flush_prelude()
            self.items.append(self._line_item(line, number))
            self._block(line)

    def _block(self, line: str) -> None:
        """After the first line of a block that follows its own rules, read the rest of it."""
        if line in ("# Order:", "# order:"):
            kind, end = "order", re.compile(r"\s*\Z")
        elif line == "symbol engine details:":
            kind, end = "symbols", re.compile(r"\}\Z")
        else:
            return
        while self.position <= len(self.text):
            line, number = self._next_line()
            self.items.append(Text(line, kind, number))
            if end.match(line):
                return

    def _next_line(self) -> tuple[str, int]:
        end = self.text.find("\n", self.position)
        end = len(self.text) if end < 0 else end
        line, number = self.text[self.position : end], self.line
        self.position, self.line = end + 1, self.line + 1
        return line, number

    def _flush_prelude(self) -> None:
        self.items += self.prelude
        self.prelude = []

    def _line_item(self, line: str, number: int) -> Item:
        try:
            return self._known_line(line, number)
        except ValueError as error:
            self._not_a_line(line, number, error)
            return Opaque(line, number)

    def _known_line(self, line: str, number: int) -> Item:
        if not line or line.isspace():
            return Text(line, "blank", number)
        if line.startswith("%para"):
            made = self.records.parameter(*self.hidden(line))
            return replace(made, line=number)
        if line.startswith("# Parameters: "):
            made_list = self.records.parameter_list(*self.hidden(line))
            return replace(made_list, line=number)
        if line.startswith(("# In file ", "# SideEffect: ")):
            return CommentBlock(self.comments.comments(line), number)
        if scanner.ELISION.match(line):
            return Text(line, "elision", number)
        marker = scanner.MARKER.match(line)
        if marker is not None:
            return Marker(marker[2], marker[1], number)
        if line.startswith("#") and not scanner.HEADER.match(line):
            return Text(line, "banner", number)
        if scanner.PROPERTY.match(line):
            return self.records.property(line, number)
        if not (self.has_banner or line in _PLAIN_LINES):
            raise Unreadable("not a line of an ANF IR dump", 0)
        return Text(line, "text", number)

    # ---- graphs

    def _graph(self, text: str, end: int) -> None:
        number = self.line
        self.advance(end + 1)
        try:
            hidden, restore = self.hidden(text)
            head: Head | None = replace(self.records.head(hidden, restore), line=number)
        except ValueError as error:
            self.unreadable("SYN001", text, number, error)
            self.prelude.append(Opaque(text, number))
            head = None
        prelude, self.prelude = self.prelude, []
        self._add_graph(head, text, tuple(prelude))

    def _add_graph(
        self, head: Head | None, text: str | None, prelude: tuple[Item, ...] = ()
    ) -> None:
        items, close = self._body(bounded=text is not None)
        if text is not None and close is None:
            name = f" of @{head.name}" if head else ""
            message = f"the body{name} has no closing brace: the dump is truncated here"
            self.problem("SYN003", message, self.line - 1, hint="was the disk full?")
        labels: set[str | None] = set()
        if head is not None:
            labels |= {p.label for p in head.parameters if isinstance(p, ParameterReference)}
        if labels:
            items = [_call_of_parameter(item, labels) for item in items]
        self.items.append(Graph(head, tuple(items), prelude, close))

    def _body(self, bounded: bool) -> tuple[list[Item], Text | None]:
        """Statements up to the closing brace, or (excerpts) to the next line of another kind."""
        text, items = self.text, list[Item]()
        strict, loose = scanner.STATEMENT.match, scanner.LOOSE_STATEMENT.match
        while self.position <= len(text):
            position = self.position
            match = strict(text, position)
            if match is not None and not scanner.LOOSE_REST.match(text, match.end()):
                self.statement(match, items, STANDARD_STYLE)
                continue
            match = loose(text, position)
            if match is not None:
                self.statement(match, items, None)
                continue
            if text.startswith("}", position):
                line, number = self._next_line()
                return items, Text(line, "close", number)
            if scanner.GRAPH_ENDS.match(text, position):
                return items, None
            if not bounded and scanner.EXCERPT_ENDS.match(text, position):
                return items, None
            line, number = self._next_line()
            items.append(self._body_line(line, number))
        return items, None

    def _body_line(self, line: str, number: int) -> Item:
        if not line or line.isspace():
            return Text(line, "blank", number)
        marker = scanner.MARKER.match(line)
        if marker is not None:
            return Marker(marker[2], marker[1], number)
        if scanner.ELISION.match(line):
            return Text(line, "elision", number)
        if line.lstrip().startswith("#"):
            return CommentBlock(self.comments.comments(line), number)
        self._not_a_line(line, number, Unreadable("expected a statement", 0))
        return Opaque(line, number)

    def _not_a_line(self, line: str, number: int, error: ValueError) -> None:
        """Report a line of no kind; around a pasted excerpt prose is to be expected."""
        if self.is_excerpt and "%" not in line:
            message = "not a line of an ANF IR dump"
            self.problem("SYN001", message, number, 1, "warning", line, "it is kept as it stands")
        else:
            self.unreadable("SYN001", line, number, error)


def _looks_like_a_dump(text: str) -> bool:
    return scanner.DUMP.search(text) is not None


def _call_of_parameter(item: Item, labels: set[str | None]) -> Item:
    """A bare label in call position is a call of that parameter, not an operator."""
    if (
        isinstance(item, Node)
        and isinstance(item.target, PrimitiveTarget)
        and item.target.name in labels
    ):
        return replace(item, target=ClosureTarget(item.target.name))
    return item


_PLAIN_LINES = ("jit config {", "  }", "}", "[shadow]", "No more function graphs.")
