"""Suppression: comments in the user's Python source, scopes and files of the configuration.

``# irtool: ignore[STR002, COM] why`` behind a statement, or on the line above it, answers for all
findings about nodes that this statement made, also through functions that it calls;
``# irtool: ignore-file[COM]`` answers for the whole file.  Without codes, all are meant.
"""

from __future__ import annotations

import fnmatch
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Finding, SourceLine
from irtool.linting.registry import RuleEntry
from irtool.linting.rules.engine.eng002_unknown_suppression import UnknownSuppression
from irtool.linting.rules.engine.eng003_unused_suppression import UnusedSuppression
from irtool.linting.settings import Settings, SettingsError, expanded
from irtool.linting.sources import SourceFiles
from irtool.syntax.query_compare import scope_contains

_COMMENT = re.compile(r"#\s*irtool:\s*ignore(-file)?\b\s*(?:\[([^\]]*)\])?", re.IGNORECASE)


@dataclass(slots=True)
class Comment:
    """One suppression comment; ``codes`` is None where all rules are meant."""

    path: str
    line: int
    column: int
    text: str
    codes: frozenset[str] | None
    unknown: tuple[tuple[str, str], ...] = ()
    is_used: bool = False

    def covers(self, code: str) -> bool:
        """Whether it answers for a rule."""
        return self.codes is None or code in self.codes


@dataclass(slots=True)
class _FileComments:
    """The comments of a file by the line that they are about."""

    whole: list[Comment] = field(default_factory=list[Comment])
    by_line: dict[int, list[Comment]] = field(default_factory=dict[int, list[Comment]])

    def __iter__(self) -> Iterator[Comment]:
        yield from self.whole
        for comments in self.by_line.values():
            yield from comments


class Suppressions:
    """Comments of all Python files that findings come from, each read once."""

    def __init__(self, sources: SourceFiles, rules: Mapping[str, RuleEntry]) -> None:
        self._sources = sources
        self._rules = rules
        self._files: dict[str, _FileComments] = {}
        self.changed: set[str] = set()
        """Files whose lines are not those that the dump shows: their comments do not count."""

    def apply(self, findings: Iterable[Finding]) -> list[Finding]:
        """Mark findings that a comment answers for."""
        return [self._marked(finding) for finding in findings]

    def _marked(self, finding: Finding) -> Finding:
        for frame in reversed(finding.frames):
            comment = self._comment_for(frame, finding.code)
            if comment is not None:
                comment.is_used = True
                return replace(finding, suppressed=f"{comment.path}:{comment.line}")
        return finding

    def _comment_for(self, frame: SourceLine, code: str) -> Comment | None:
        path = self._sources.find(frame.path)
        if path is None:
            return None
        comments = self._comments(path)
        covering = [comment for comment in comments.whole if comment.covers(code)]
        last = frame.end_line or frame.line
        for line in range(frame.line, min(last, frame.line + 200) + 1):
            covering += [
                comment for comment in comments.by_line.get(line, ()) if comment.covers(code)
            ]
        if not covering:
            return None
        if not self._is_unchanged(frame, path):
            self.changed.add(path)
            return None
        return covering[-1]

    def _is_unchanged(self, frame: SourceLine, path: str) -> bool:
        lines = self._sources.lines(path)
        if not 0 < frame.line <= len(lines):
            return False
        here = _code(lines[frame.line - 1])
        there = _code(frame.text.split("\n")[0])
        return not there or here.startswith(there) or there.startswith(here)

    def _comments(self, path: str) -> _FileComments:
        if path not in self._files:
            self._files[path] = comments = _FileComments()
            for is_file, line, comment in self._read(path):
                if is_file:
                    comments.whole.append(comment)
                else:
                    comments.by_line.setdefault(line, []).append(comment)
        return self._files[path]

    def _read(self, path: str) -> Iterator[tuple[bool, int, Comment]]:
        lines = self._sources.lines(path)
        for row, column, text, alone in _comments_in(lines):
            named = _COMMENT.search(text)
            if named is None:
                continue
            codes, unknown = self._codes(named[2])
            place = column + 1 + named.start()
            comment = Comment(path, row, place, lines[row - 1], codes, unknown)
            yield named[1] is not None, _next_code(lines, row) if alone else row, comment

    def _codes(self, text: str | None) -> tuple[frozenset[str] | None, tuple[tuple[str, str], ...]]:
        if text is None:
            return None, ()
        codes: set[str] = set()
        unknown: list[tuple[str, str]] = []
        for part in text.split(","):
            if not part.strip():
                continue
            try:
                codes |= expanded([part.strip()], self._rules, "comment")
            except SettingsError as error:
                unknown.append((part.strip(), error.hint))
        return frozenset(codes), tuple(unknown)

    def complaints(self, codes: Iterable[str]) -> list[Finding]:
        """Findings about the comments themselves, for those of the two rules that are on."""
        wanted = frozenset(codes)
        findings: list[Finding] = []
        for comments in self._files.values():
            for comment in comments:
                if UnknownSuppression.code in wanted:
                    findings += [_unknown(comment, *unknown) for unknown in comment.unknown]
                if UnusedSuppression.code in wanted and not comment.is_used and not comment.unknown:
                    findings.append(_unused(comment))
        return findings


def _unknown(comment: Comment, code: str, hint: str) -> Finding:
    message = f"there is no rule {code}"
    return replace(_about(comment, UnknownSuppression.code, message), severity="warning", hint=hint)


def _unused(comment: Comment) -> Finding:
    message = "no finding in these dumps needs this comment"
    return replace(_about(comment, UnusedSuppression.code, message), hint=UnusedSuppression.hint)


def _about(comment: Comment, code: str, message: str) -> Finding:
    text = comment.text.strip()
    source = SourceLine(comment.path, comment.line, None, comment.column, None, text)
    return Finding(
        code,
        "info",
        message,
        comment.path,
        comment.line,
        comment.column,
        comment.column + 1,
        statement=comment.text,
        source=source,
        frames=(source,),
    )


def _comments_in(lines: Sequence[str]) -> Iterator[tuple[int, int, str, bool]]:
    """Line, column (from 0) and text of each comment, and whether it stands alone."""
    text = "\n".join(lines) + "\n"
    if "irtool:" not in text:
        return
    comments: list[tuple[int, int, str, bool]] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                comments.append((row, column, token.string, not lines[row - 1][:column].strip()))
    except (tokenize.TokenError, SyntaxError, ValueError):
        # Not the Python of this interpreter: a comment is then what looks like one.
        comments = [
            (row, line.index("#"), line[line.index("#") :], line.lstrip().startswith("#"))
            for row, line in enumerate(lines, 1)
            if "#" in line
        ]
    yield from comments


def _next_code(lines: Sequence[str], row: int) -> int:
    """The line that a comment on a line of its own is about: the next one with code."""
    for number in range(row, len(lines)):
        stripped = lines[number].strip()
        if stripped and not stripped.startswith("#"):
            return number + 1
    return row


def _code(line: str) -> str:
    """A line without its comment and blanks, roughly: enough to tell whether it is the same."""
    return "".join(line.split("#")[0].split())


# -- scopes and files --------------------------------------------------------------------------


def apply_ignores(
    findings: Iterable[Finding],
    settings: Settings,
    rules: Mapping[str, RuleEntry],
    name_of: Callable[[Finding], str],
) -> list[Finding]:
    """Mark findings that ``per-scope-ignores`` and ``per-file-ignores`` answer for.

    A scope is a part of a scope (``layers.1`` is not in ``layers.10``), or a pattern with ``*``.

    Args:
        findings: in their order.
        settings: with the ignores.
        rules: all that there are, by code.
        name_of: gives the name of a finding's file that patterns are matched with.

    Raises:
        SettingsError: a code does not exist.
    """
    scopes = [
        (pattern, expanded(codes, rules, f"per-scope-ignores.{pattern}"))
        for pattern, codes in settings.scopes
    ]
    files = [
        (pattern, expanded(codes, rules, f"per-file-ignores.{pattern}"))
        for pattern, codes in settings.files
    ]
    return [_ignored(finding, scopes, files, name_of(finding)) for finding in findings]


def _ignored(
    finding: Finding,
    scopes: Sequence[tuple[str, frozenset[str]]],
    files: Sequence[tuple[str, frozenset[str]]],
    name: str,
) -> Finding:
    if finding.suppressed:
        return finding
    for pattern, codes in scopes:
        if finding.code in codes and _in_scope(finding.scope or "", pattern):
            return replace(finding, suppressed=f"per-scope-ignores: {pattern}")
    for pattern, codes in files:
        if finding.code in codes and _is_file(name, pattern):
            return replace(finding, suppressed=f"per-file-ignores: {pattern}")
    return finding


def _in_scope(scope: str, pattern: str) -> bool:
    if "*" in pattern:
        return fnmatch.fnmatchcase(scope, pattern)
    return scope_contains(scope, pattern)


def _is_file(name: str, pattern: str) -> bool:
    """Whether a path, or its end, is like a pattern."""
    plain = name.replace("\\", "/")
    return fnmatch.fnmatchcase(plain, pattern) or fnmatch.fnmatchcase(plain, f"*/{pattern}")
