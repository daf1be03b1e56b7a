"""Text to model: reads a dump, keeps what it cannot read, and says so."""

from __future__ import annotations

import gc
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace

from irtool.ir.comments import NO_COMMENTS, Comments
from irtool.ir.dump import Dump, LineEnds
from irtool.ir.graph import (
    CommentBlock,
    Graph,
    Head,
    Item,
    Marker,
    Opaque,
    Property,
    Text,
)
from irtool.ir.node import STANDARD_STYLE, ClosureTarget, Node, PrimitiveTarget, StatementStyle
from irtool.ir.problem import Problem, Severity
from irtool.ir.types import Signature, TextSignature
from irtool.ir.values import Attributes, ParameterReference
from irtool.syntax import scanner
from irtool.syntax.dialect import dialect_of
from irtool.syntax.labels import OddLabels
from irtool.syntax.part import Holes
from irtool.syntax.records import Records, Restore, StatementTemplate, Unreadable

MAX_EXCERPT = 2000
"""Characters of the offending line that a problem keeps."""

_SHARED = Records()


def loads(text: str, path: str = "<text>", records: Records | None = None) -> Dump:
    """Read the text of a dump.

    Never fails: what cannot be read becomes :class:`Opaque` and a problem of the dump.
    """
    bom = text.startswith("\ufeff")
    body, ends = _line_ends(text[1:] if bom else text)
    reading = _Reading(body, path, records or _SHARED)
    with _CollectorPause.over(len(body)):
        items = reading.read()
    dialect = dialect_of(body)
    made = Dump(items, path, tuple(reading.problems), dialect, ends, bom, len(text))
    problems = (*made.problems, *_whole_file_problems(made, text))
    ordered = tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))
    object.__setattr__(made, "problems", ordered)
    return made


class _CollectorPause:
    """No garbage collection while a dump is read.

    Reading makes many objects and hardly any garbage, so that collections would take a third of
    the time.  Dumps that the caller has dropped are cyclic garbage, however, and are collected
    once in so many characters of text read.
    """

    _COLLECT_EVERY = 64 << 20
    read = 0

    @classmethod
    @contextmanager
    def over(cls, size: int) -> Generator[None]:
        enabled = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if enabled:
                cls.read += size
                full = cls.read >= cls._COLLECT_EVERY
                cls.read = 0 if full else cls.read
                gc.collect(2 if full else 0)
                gc.enable()


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


class _Reading:
    """One pass over the text of one dump."""

    def __init__(self, text: str, path: str, records: Records) -> None:
        self.text = text
        self.path = path
        self.records = records
        self.problems: list[Problem] = []
        self.position = 0
        self.line = 1
        self.items: list[Item | Graph] = []
        self.prelude: list[Item] = []
        self.has_banner = text.startswith(("# ===", "# 1."))
        self.odd = OddLabels(text)
        self.comments: dict[str, Comments] = {}

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
            self._problem("SYN006", "nothing in this file", 1, hint="was the dump finished?")
            return (Text(self.text, "blank", 1),)
        if scanner.ACTOR_SET.search(self.text[:100_000]):
            message = "an actor set, not ANF IR: it lists runtime actors and has no nodes to read"
            hint = "give the dumps beside it (step_parallel_begin_*.ir, *_validate_*.ir, …)"
        else:
            message = "not an ANF IR dump: no header, subgraph or statement in it"
            hint = "a dump begins with '# IR entry: @…'"
        self._problem("SYN005", message, 1, hint=hint)
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
            self._unreadable("SYN001", line, number, error)
            return Opaque(line, number)

    def _known_line(self, line: str, number: int) -> Item:
        if not line or line.isspace():
            return Text(line, "blank", number)
        if line.startswith("%para"):
            made = self.records.parameter(*self._hidden(line))
            return replace(made, line=number)
        if line.startswith("# Parameters: "):
            made_list = self.records.parameter_list(*self._hidden(line))
            return replace(made_list, line=number)
        if line.startswith(("# In file ", "# SideEffect: ")):
            return CommentBlock(self.records.comments(line), number)
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

    def _hidden(self, record: str) -> tuple[str, Restore | None]:
        if self.odd:
            hidden = self.odd.hide(record)
            if hidden != record:
                return hidden, self.odd.restore
        return record, None

    # ---- graphs

    def _graph(self, text: str, end: int) -> None:
        number = self.line
        self._advance(end + 1)
        try:
            hidden, restore = self._hidden(text)
            head: Head | None = replace(self.records.head(hidden, restore), line=number)
        except ValueError as error:
            self._unreadable("SYN001", text, number, error)
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
            self._problem("SYN003", message, self.line - 1, hint="was the disk full?")
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
            found = strict(text, position)
            if found is not None and not scanner.LOOSE_REST.match(text, found.end()):
                self._statement(found, items, STANDARD_STYLE)
                continue
            found = loose(text, position)
            if found is not None:
                self._statement(found, items, None)
                continue
            if text.startswith("}", position):
                line, number = self._next_line()
                return items, Text(line, "close", number)
            if scanner.GRAPH_ENDS.match(text, position):
                return items, None
            if not bounded and not scanner.ELISION_LINE.match(text, position):
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
            return CommentBlock(self.records.comments(line), number)
        self._unreadable("SYN001", line, number, Unreadable("expected a statement", 0))
        return Opaque(line, number)

    # ---- statements

    def _statement(
        self, found: re.Match[str], items: list[Item], style: StatementStyle | None
    ) -> None:
        start, line = self.position, self.line
        self._advance(found.end())
        try:
            items += self._node(found, line, style)
        except (ValueError, RecursionError) as error:
            if style is None or not self._pasted_statement(start, line, found, items):
                inset = len(found[1]) - len(found[1].lstrip(" \t"))
                self._unreadable("SYN001", found[1], line, error, inset)
                items.append(Opaque(found.group().removesuffix("\n"), line))

    def _pasted_statement(
        self, start: int, line: int, found: re.Match[str], items: list[Item]
    ) -> bool:
        """Whether a statement at MindSpore's column can be read if the lines after it are not."""
        loose = scanner.LOOSE_STATEMENT.match(self.text, start)
        if loose is None or loose[1] == found[1]:
            return False
        try:
            items += self._node(loose, line, None)
        except (ValueError, RecursionError):
            return False
        self.position, self.line = start, line
        self._advance(loose.end())
        return True

    def _node(self, found: re.Match[str], line: int, style: StatementStyle | None) -> list[Item]:
        statement, types, comments = found.group(1, 2, 3)
        if style is None:
            stripped = statement.lstrip(" \t")
            body = stripped.rstrip(" \t")
            indent = statement[: len(statement) - len(stripped)]
            style = StatementStyle(indent, stripped[len(body) :])
        else:
            body = statement[2:]
        record, restore = self._hidden(body) if self.odd else (body, None)
        template, holes = self.records.statement(record, restore)
        return self._with_types(template, holes, types, comments, line, style)

    def _with_types(
        self,
        template: StatementTemplate,
        holes: Holes,
        types: str,
        comments: str,
        line: int,
        style: StatementStyle,
    ) -> list[Item]:
        block = self._comments(comments) if comments else NO_COMMENTS
        if not types:
            return [template.node(holes, None, (), block, line, style)]
        try:
            signature, texts, strategy = self._type_lines(types)
        except (ValueError, RecursionError) as error:
            text = types.removesuffix("\n")
            at = line + 1
            self._unreadable("SYN002", text, at, error)
            items: list[Item] = [template.node(holes, None, (), NO_COMMENTS, line, style)]
            items.append(Opaque(text, at))
            if comments:
                items.append(CommentBlock(block, at + text.count("\n") + 1))
            return items
        if strategy is not None:
            style = replace(style, strategy_on_type_line=True)
            node = template.node(holes, signature, texts, block, line, style)
            return [replace(node, strategy=strategy)]
        return [template.node(holes, signature, texts, block, line, style)]

    def _type_lines(
        self, types: str
    ) -> tuple[Signature | None, tuple[TextSignature, ...], Attributes | None]:
        text = types.removesuffix("\n")
        if "\n" not in text:
            read = self.records.type_line(*self._hidden(text))
            if isinstance(read.line, Signature):
                return read.line, (), read.strategy
            return None, (read.line,), read.strategy
        lines = scanner.TYPE_LINES.findall(text)
        if "\n".join(lines) != text:
            lines = scanner.LOOSE_TYPE_LINES.findall(text)
        if "\n".join(lines) != text:
            raise Unreadable("a blank line among the type lines", 0)
        signature: Signature | None = None
        texts: list[TextSignature] = []
        strategy: Attributes | None = None
        for index, line in enumerate(lines):
            read = self.records.type_line(*self._hidden(line))
            strategy = read.strategy or strategy
            if isinstance(read.line, Signature):
                if index:
                    texts.append(_as_text(read.line))
                else:
                    signature = read.line
            else:
                texts.append(read.line)
        return signature, tuple(texts), strategy

    def _comments(self, text: str) -> Comments:
        known = self.comments.get(text)
        if known is None:
            body = text.removesuffix("\n")
            known = self.comments[text] = self.records.comments(body)
        return known

    # ---- bookkeeping

    def _advance(self, end: int) -> None:
        """Go on behind a record, which ends with its line feed or with the text."""
        self.line += self.text.count("\n", self.position, end)
        ended = end >= len(self.text) and self.text[end - 1 : end] != "\n"
        self.position = end + 1 if ended else end

    def _problem(
        self,
        code: str,
        message: str,
        line: int,
        column: int = 1,
        severity: Severity = "error",
        text: str = "",
        hint: str = "",
    ) -> None:
        excerpt = text[:MAX_EXCERPT]
        made = Problem(code, message, self.path, max(line, 1), column, severity, excerpt, hint)
        self.problems.append(made)

    def _unreadable(
        self, code: str, text: str, line: int, error: Exception, inset: int = 0
    ) -> None:
        """Report a record; ``inset``: characters before what the error's column counts in."""
        at = error.column + inset if isinstance(error, Unreadable) else inset
        before = text[:at]
        row = before.count("\n")
        self._problem(
            code,
            f"cannot read this {'statement' if code == 'SYN001' else 'type line'}: {error}",
            line + row,
            at - (before.rfind("\n") + 1) + 1,
            text=text.split("\n")[row],
            hint="it is kept as it stands; the rest of the dump was read",
        )


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


def _as_text(line: Signature) -> TextSignature:
    """A second line with only ``<null>`` in it: symbolic, but nothing tells so."""
    null = line.null
    outputs = None if line.outputs is None else (null,) * len(line.outputs)
    if any((*line.inputs, *(line.outputs or ()))):
        raise Unreadable("a second type line", 0)
    return TextSignature("symbolic", (null,) * len(line.inputs), outputs, line.lead, line.arrow)


def _whole_file_problems(dump: Dump, text: str) -> Iterator[Problem]:
    """Problems that only the whole file shows: counts that disagree, damaged bytes."""
    if any(problem.code in ("SYN005", "SYN006") for problem in dump.problems):
        return
    entries = [i for i in dump.items if isinstance(i, Property) and "IR entry" in i.key]
    if len(entries) > 1:
        message = f"{len(entries)} dumps in one file; the first one's header is used"
        yield Problem("SYN007", message, dump.path, entries[1].line, 1)
    declared = dump.declared_nodes
    read = sum(len(graph.nodes) for graph in dump.graphs)
    if declared is not None and len(entries) == 1 and declared != read:
        message = f"the header states {declared} nodes, {read} were read"
        hint = "the dump is truncated or was edited"
        yield Problem("SYN004", message, dump.path, 1, 1, hint=hint)
    if not dump.graphs and _HEADER_LINE.search(text):
        message = "a header without any graph"
        yield Problem("SYN003", message, dump.path, 1, 1, hint="the dump is truncated")
    stated = dump.properties.get("Total subgraphs") or dump.properties.get("Total subgraph")
    # Dumps of failed compilations state 0 and print those that were being compiled.
    if dump.graphs and len(entries) == 1 and stated not in (None, "0", str(len(dump.graphs))):
        message = f"the header states {stated[:20]} graphs, {len(dump.graphs)} were read"
        hint = "the dump is truncated or was edited"
        yield Problem("SYN004", message, dump.path, 1, 1, hint=hint)
    for name, bad in (("a NUL byte", "\0"), ("bytes that are not UTF-8", None)):
        at = text.find(bad) if bad else _first_surrogate(text)
        if at >= 0:
            line = text.count("\n", 0, at) + 1
            column = at - (text.rfind("\n", 0, at) + 1) + 1
            yield Problem("SYN008", f"{name} in the dump", dump.path, line, column, "warning")


def _first_surrogate(text: str) -> int:
    if text.isascii():
        return -1
    found = _SURROGATE.search(text)
    return found.start() if found else -1


_HEADER_LINE = re.compile(r"^# ?(?:IR entry|Total )", re.MULTILINE)
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN_LINES = ("jit config {", "  }", "}", "[shadow]", "No more function graphs.")
