"""Reads the statements of one dump: text between two lines to nodes, problems where it fails."""

from __future__ import annotations

import re
from dataclasses import replace

from irtool.ir.comments import NO_COMMENTS, CommentTexts
from irtool.ir.finding import Finding, Severity
from irtool.ir.graph import Item
from irtool.ir.items import CommentBlock, Opaque
from irtool.ir.statement import StatementStyle
from irtool.ir.types import Signature, TextSignature
from irtool.ir.values import Attributes
from irtool.syntax import scanner
from irtool.syntax.labels import OddLabels
from irtool.syntax.part import Holes
from irtool.syntax.records import Records, Restore, StatementTemplate, Unreadable

MAX_EXCERPT = 2000
"""Characters of the offending line that a problem keeps."""


class StatementReader:
    """Where one pass over a dump's text has come to, and what reads a statement from there."""

    def __init__(self, text: str, path: str, records: Records) -> None:
        self.text = text
        self.path = path
        self.records = records
        self.problems: list[Finding] = []
        self.position = 0
        self.line = 1
        self.odd = OddLabels(text)
        self.has_odd = bool(self.odd)
        self.types: dict[str, tuple[Signature | None, tuple[TextSignature, ...]]] = {}
        self.comments = CommentTexts(records.comment_lines)

    # ---- statements

    def statement(
        self, match: re.Match[str], items: list[Item], style: StatementStyle | None
    ) -> None:
        start, line = self.position, self.line
        self.advance(match.end())
        try:
            items += self._node(match, line, style)
        except (ValueError, RecursionError) as error:
            if not self._pasted_statement(start, line, match, items):
                inset = len(match[1]) - len(match[1].lstrip(" \t>"))
                self.unreadable("SYN001", match[1], line, error, inset)
                items.append(Opaque(match.group().removesuffix("\n"), line))

    def _pasted_statement(
        self, start: int, line: int, match: re.Match[str], items: list[Item]
    ) -> bool:
        """Whether a statement can be read if some of the lines after it are not its own."""
        for pattern in (scanner.LOOSE_STATEMENT, scanner.FIRST_LINE):
            loose = pattern.match(self.text, start)
            if loose is None or loose[1] == match[1]:
                continue
            try:
                items += self._node(loose, line, None)
            except (ValueError, RecursionError):
                continue
            self.position, self.line = start, line
            self.advance(loose.end())
            return True
        return False

    def _node(self, match: re.Match[str], line: int, style: StatementStyle | None) -> list[Item]:
        statement, types, comments = match.group(1, 2, 3)
        if style is None:
            stripped = statement.lstrip(" \t>")
            body = stripped.rstrip(" \t")
            indent = statement[: len(statement) - len(stripped)]
            style = StatementStyle(indent, stripped[len(body) :])
        else:
            body = statement[2:]
        record, restore = self.hidden(body) if self.has_odd else (body, None)
        template, holes = self.records.statement(record, restore)
        known = self.types.get(types)
        if known is not None:
            block = self.comments.comments(comments.removesuffix("\n")) if comments else NO_COMMENTS
            return [template.node(holes, known[0], known[1], block, line, style)]
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
        block = self.comments.comments(comments.removesuffix("\n")) if comments else NO_COMMENTS
        if not types:
            return [template.node(holes, None, (), block, line, style)]
        bare = template.node(holes, None, (), NO_COMMENTS, line, style)
        try:
            signature, texts, strategy = self._type_lines(types)
            if strategy is not None and bare.strategy is not None:
                raise Unreadable("a second strategy of one statement", 0)
        except (ValueError, RecursionError) as error:
            text = types.removesuffix("\n")
            type_line = line + 1
            self.unreadable("SYN002", text, type_line, error)
            items: list[Item] = [bare, Opaque(text, type_line)]
            if comments:
                items.append(CommentBlock(block, type_line + text.count("\n") + 1))
            return items
        if strategy is None:
            self.types[types] = signature, texts
        else:
            style = replace(style, strategy_on_type_line=True)
            node = template.node(holes, signature, texts, block, line, style)
            return [replace(node, strategy=strategy)]
        return [template.node(holes, signature, texts, block, line, style)]

    def _type_lines(
        self, types: str
    ) -> tuple[Signature | None, tuple[TextSignature, ...], Attributes | None]:
        text = types.removesuffix("\n")
        if "\n" not in text:
            read = self.records.type_line(*self.hidden(text))
            if isinstance(read.line, Signature):
                return read.line, (), read.strategy
            if read.strategy is not None:
                raise Unreadable("a strategy before a line without types", 0)
            return None, (read.line,), None
        lines = scanner.TYPE_LINES.findall(text)
        if "\n".join(lines) != text:
            lines = scanner.LOOSE_TYPE_LINES.findall(text)
        if "\n".join(lines) != text:
            raise Unreadable("a blank line among the type lines", 0)
        signature: Signature | None = None
        texts: list[TextSignature] = []
        strategy: Attributes | None = None
        for index, line in enumerate(lines):
            read = self.records.type_line(*self.hidden(line))
            if read.strategy is not None:
                if index or not isinstance(read.line, Signature):
                    raise Unreadable("a strategy that is not before the first type line", 0)
                strategy = read.strategy
            if isinstance(read.line, Signature):
                if index:
                    texts.append(_as_text(read.line))
                else:
                    signature = read.line
            else:
                texts.append(read.line)
        return signature, tuple(texts), strategy

    def hidden(self, record: str) -> tuple[str, Restore | None]:
        if self.has_odd:
            hidden = self.odd.hide(record)
            if hidden != record:
                return hidden, self.odd.restore
        return record, None

    # ---- bookkeeping

    def advance(self, end: int) -> None:
        """Go on behind a record, which ends with its line feed or with the text."""
        self.line += self.text.count("\n", self.position, end)
        ended = end >= len(self.text) and self.text[end - 1 : end] != "\n"
        self.position = end + 1 if ended else end

    def problem(
        self,
        code: str,
        message: str,
        line: int,
        column: int = 1,
        severity: Severity = "error",
        text: str = "",
        hint: str = "",
    ) -> None:
        self.problems.append(
            Finding(
                code,
                severity,
                message,
                self.path,
                max(line, 1),
                column,
                statement=text[:MAX_EXCERPT],
                hint=hint,
            )
        )

    def unreadable(self, code: str, text: str, line: int, error: Exception, inset: int = 0) -> None:
        """Report a record; ``inset``: characters before what the error's column counts in."""
        offset = error.column + inset if isinstance(error, Unreadable) else inset
        before = text[:offset]
        row = before.count("\n")
        self.problem(
            code,
            f"cannot read this {'statement' if code == 'SYN001' else 'type line'}: {error}",
            line + row,
            offset - (before.rfind("\n") + 1) + 1,
            text=text.split("\n")[row],
            hint="it is kept as it stands; the rest of the dump was read",
        )


def _as_text(line: Signature) -> TextSignature:
    """A second line with only ``<null>`` in it: symbolic, but nothing tells so."""
    null = line.null
    outputs = None if line.outputs is None else (null,) * len(line.outputs)
    if any((*line.inputs, *(line.outputs or ()))):
        raise Unreadable("a second type line", 0)
    return TextSignature("symbolic", (null,) * len(line.inputs), outputs, line.lead, line.arrow)
