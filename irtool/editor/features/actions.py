"""Quick fixes: a strategy that is legal, and comments or settings that answer for a finding."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lsprotocol.types import (
    CodeAction,
    CodeActionKind,
    CreateFile,
    CreateFileOptions,
    Diagnostic,
    OptionalVersionedTextDocumentIdentifier,
    Position,
    Range,
    TextDocumentEdit,
    TextEdit,
    WorkspaceEdit,
)
from pygls.uris import from_fs_path

from irtool.editor.document import Document
from irtool.editor.features.diagnostics import finding_range, is_same
from irtool.editor.project import Project
from irtool.editor.spans import Span
from irtool.editor.text import Text
from irtool.ir.finding import Finding, SourceLine
from irtool.ir.graph import Node, node_of
from irtool.ir.units import tuple_text
from irtool.ir.values import Attributes, Scalar, Value, Word
from irtool.ir.values import Sequence as Items
from irtool.operators.call import Strategy
from irtool.syntax.printer import print_attributes, print_value

_KEYS = ("in_strategy", "strategy")
_COMMENT = re.compile(r"(#\s*irtool:\s*ignore\s*\[)([^\]]*)(\])", re.IGNORECASE)
_TABLE = "lint.per-scope-ignores"


def actions(document: Document, where: Range, given: Sequence[Diagnostic] = ()) -> list[CodeAction]:
    """What can be done about the findings in a range.

    Args:
        document: the dump.
        where: lines of it.
        given: the diagnostics that the client shows there; those that an action answers are
            named in it.
    """
    offers = list(_strategies(document, where, given))
    offers += _suppressions(document, where, given)
    return offers


# -- a legal strategy ----------------------------------------------------------------------------


def _strategies(
    document: Document, where: Range, given: Sequence[Diagnostic]
) -> Iterator[CodeAction]:
    proposals = document.answers.proposals
    for finding, options in proposals.strategies.items():
        node = node_of(finding)
        if node is None or not _touches(document.text.line_range(node.line), where):
            continue
        place = strategy_place(document, node)
        for index, strategy in enumerate(options):
            new = _written(place[1], strategy) if place is not None else None
            if place is None or new is None:
                break
            yield CodeAction(
                f"Write in_strategy {tuple_text(strategy)} into this dump",
                CodeActionKind.QuickFix,
                diagnostics=_answered(document, given, finding) or None,
                is_preferred=index == 0 and proposals.together is True,
                edit=WorkspaceEdit({document.uri: [TextEdit(place[0], new)]}),
            )


def strategy_place(document: Document, node: Node) -> tuple[Range, Value] | None:
    """Where the strategy in effect stands in the text, and its value; None: it stands nowhere."""
    owner = document.owner(node.line)
    if owner is None or owner.item is not node:
        return None
    blocks = [span for span in document.spans(owner) if span.kind == "attributes"]
    ordered = [node.primitive_attributes, node.node_attributes, node.primal_attributes]
    on_type_line = node.style.strategy_on_type_line
    if not on_type_line:
        ordered.append(node.strategy)
    spans = dict(
        zip(
            (id(attributes) for attributes in ordered if attributes is not None),
            blocks,
            strict=True,
        )
    )
    for block in (node.strategy, node.primitive_attributes):
        for key in _KEYS if block is not None else ():
            value = dict(block.entries).get(key) if block is not None else None
            if block is None or value is None:
                continue
            if block is node.strategy and on_type_line:
                span = Span(1, 1 + len(print_attributes(block)), "attributes")
                base = document.text.start_of(node.line + 1)
            else:
                span, base = spans[id(block)], document.text.start_of(node.line)
            return _value_place(document.text, block, key, value, base + span.start)
    return None


def _value_place(
    text: Text, block: Attributes, key: str, value: Value, start: int
) -> tuple[Range, Value] | None:
    printed = print_attributes(block)
    if not text.content.startswith(printed, start):
        return None
    written = print_value(value)
    place = printed.find(f"{key}: {written}")
    if place < 0:
        return None
    begin = start + place + len(key) + 2
    return text.range(begin, begin + len(written)), value


def _written(old: Value, strategy: Strategy) -> str | None:
    """A strategy in the spelling of the one that stands there; None where it is of other form."""
    made = _with_numbers(old, strategy)
    return None if made is None else print_value(made)


def _with_numbers(old: Value, new: object) -> Value | None:
    if isinstance(old, Items) and isinstance(new, tuple):
        pairs = list(zip(old.items, new, strict=False))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        made = [_with_numbers(item, number) for item, number in pairs]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        items = tuple(item for item in made if item is not None)
        alike = len(items) == len(old.items) == len(new)  # pyright: ignore[reportUnknownArgumentType]
        return replace(old, items=items) if alike else None
    if isinstance(old, Scalar | Word) and isinstance(new, int):
        return replace(old, text=str(new))
    return None


# -- suppression ---------------------------------------------------------------------------------


def _suppressions(
    document: Document, where: Range, given: Sequence[Diagnostic]
) -> Iterator[CodeAction]:
    done: set[tuple[str, int]] = set()
    for finding in document.answers.findings:
        if (finding.code, finding.line) in done:
            continue
        if not _touches(finding_range(document, finding), where):
            continue
        done.add((finding.code, finding.line))
        answered = _answered(document, given, finding) or None
        for title, edit in (
            *_comment(document.project, finding),
            *_setting(document.project, finding),
        ):
            kind = CodeActionKind.QuickFix
            yield CodeAction(title, kind, diagnostics=answered, edit=edit)


def _comment(project: Project, finding: Finding) -> Iterator[tuple[str, WorkspaceEdit]]:
    """A comment behind the line of Python that made the node, if that line is as it was."""
    source = finding.source
    path = project.python_file(source.path) if source is not None else None
    uri = from_fs_path(path) if path is not None else None
    if source is None or path is None or uri is None:
        return
    lines = project.sources.lines(path)
    line = lines[source.line - 1] if 0 < source.line <= len(lines) else ""
    if not _is_unchanged(line, source) or line.rstrip().endswith("\\"):
        return
    known = _COMMENT.search(line)
    if known is None:
        start, end, new = len(line.rstrip()), len(line), f"  # irtool: ignore[{finding.code}]"
    else:
        start = end = known.end(2)
        new = f", {finding.code}" if known[2].strip() else finding.code
    text = Text(line)
    first, last = text.position(start), text.position(end)
    first.line = last.line = source.line - 1
    title = f"Ignore {finding.code} in {os.path.basename(path)}:{source.line}"
    yield title, WorkspaceEdit({uri: [TextEdit(Range(first, last), new)]})


def _is_unchanged(line: str, source: SourceLine) -> bool:
    there = "".join(source.text.split("\n")[0].split("#")[0].split())
    return bool(there) and there in "".join(line.split())


def _setting(project: Project, finding: Finding) -> Iterator[tuple[str, WorkspaceEdit]]:
    """An entry of ``[lint.per-scope-ignores]``; none where the scope has one already."""
    scope = finding.scope
    if not scope or project.trouble or any(name == scope for name, _ in project.settings.scopes):
        return
    path = project.settings_path or os.path.join(project.folder, "irtool.toml")
    uri = from_fs_path(os.path.abspath(path))
    if uri is None or '"' in scope or "\\" in scope:
        return
    entry = f'"{scope}" = ["{finding.code}"]\n'
    title = f"Ignore {finding.code} in the scope {scope}, in {os.path.basename(path)}"
    prefix = "tool.irtool." if os.path.basename(path) == "pyproject.toml" else ""
    header = f"[{prefix}{_TABLE}]"
    start = Position(0, 0)
    if not os.path.exists(path):
        new = TextEdit(Range(start, start), f"{header}\n{entry}")
        document = OptionalVersionedTextDocumentIdentifier(uri)
        created = CreateFile(uri, options=CreateFileOptions(ignore_if_exists=True))
        changes = [created, TextDocumentEdit(document, [new])]
        yield title, WorkspaceEdit(document_changes=changes)
        return
    lines = project.sources.lines(os.path.abspath(path))
    place = next((i for i, line in enumerate(lines) if line.strip() == header), None)
    if place is None:
        end = Position(len(lines), 0)
        edit = TextEdit(Range(end, end), f"\n{header}\n{entry}")
    else:
        below = Position(place + 1, 0)
        edit = TextEdit(Range(below, below), entry)
    yield title, WorkspaceEdit({uri: [edit]})


# -- which ones are meant ------------------------------------------------------------------------


def _answered(
    document: Document, given: Sequence[Diagnostic], finding: Finding
) -> list[Diagnostic]:
    """The diagnostics of the client that are about a finding."""
    findings = document.answers.findings
    codes = {finding.code, *(other.code for other in findings if is_same(other, finding))}
    start = document.text.position(document.text.start_of(finding.line)).line
    return [
        diagnostic
        for diagnostic in given
        if diagnostic.code in codes and diagnostic.range.start.line == start
    ]


def _touches(one: Range, other: Range) -> bool:
    return one.start.line <= other.end.line and other.start.line <= one.end.line
