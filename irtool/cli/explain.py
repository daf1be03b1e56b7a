"""``irtool explain``: what a code means, or what a failed run says."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated

import typer

from irtool.cli import options
from irtool.cli.lint_settings import known_rules
from irtool.cli.output import Output
from irtool.cli.report import Failure
from irtool.ir.finding import RuleText
from irtool.lint.failure.known import KnownLine, known_lines
from irtool.lint.settings import SettingsError, expanded
from irtool.report.json import json_text
from irtool.report.model import Document, Facts, Heading
from irtool.report.rule_pages import rule_blocks, rule_markdown, rules_json_pieces
from irtool.syntax.run_expand import STDIN

_PATHS = "irtool.cli.explain_path"
_LIKE_A_CODE = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*")


class Format(str, Enum):
    """Output formats."""

    table = "table"
    json = "json"
    markdown = "markdown"


def command(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="CODE|PATH...",
            help="Codes, prefixes, names of rules; or logs, analyze_fail.ir, run folders, -.",
            show_default=False,
        ),
    ],
    format: Annotated[
        Format, typer.Option("--format", "-f", help="table is for people.")
    ] = Format.table,
    output_file: options.OutputFile = None,
) -> int:
    """What a code means; or what a log or an analyze_fail.ir of a failed run says.

    Exit status: 0 told, or nothing wrong in the log; 1 the run's failure was found; 2 could not
    do it.
    """
    if any(map(_is_path, what)):
        return _explain_paths(what, format, Output(output_file))
    output = Output(output_file)
    lines = _known_lines(what)
    if lines:
        _show_lines(lines, format, output)
        return 0
    rules = _rules(what)
    if format is Format.json:
        for piece in rules_json_pieces(rules):
            output.write(piece)
    elif format is Format.markdown:
        output.write("\n".join(rule_markdown(rule) for rule in rules))
    else:
        document = Document()
        for rule in rules:
            document.add(*rule_blocks(rule))
        output.show(document)
    output.close()
    return 0


def _is_path(text: str) -> bool:
    """Whether it is a file or folder, or looks like one more than like a code."""
    if text == STDIN or os.path.exists(text):
        return True
    return _LIKE_A_CODE.fullmatch(text) is None


def _explain_paths(paths: Sequence[str], format: Format, output: Output) -> int:
    if find_spec(_PATHS) is None:
        raise Failure("this irtool does not read logs of failed runs", paths[0])
    status: int = import_module(_PATHS).explain_paths(paths, format.value, output)
    return status


def _known_lines(codes: Sequence[str]) -> list[KnownLine]:
    """What MindSpore's logs say where a finding has this code: those of ``irtool check``."""
    wanted = {code.lower() for code in codes if code.islower()}
    return [line for line in known_lines().entries if line.code in wanted]


def _show_lines(lines: Sequence[KnownLine], format: Format, output: Output) -> None:
    if format is Format.json:
        objects = [
            {"code": line.code, "severity": line.severity, "message": line.message,
             "meaning": line.meaning, "next": line.next, "example": line.examples}
            for line in lines
        ]  # fmt: skip
        output.write(f"{json_text({'schema': 'irtool.explain.codes/1', 'lines': objects})}\n")
    else:
        output.show(_lines_document(lines))
    output.close()


def _lines_document(lines: Sequence[KnownLine]) -> Document:
    document = Document()
    for line in lines:
        pairs = [
            ("means", line.meaning),
            ("next", _as_typed(line.next)),
            ("in logs", line.examples[0]),
        ]
        title = f"{line.code}: {line.message}" if line.message else line.code
        document.add(Heading(title), Facts([pair for pair in pairs if pair[1]]))
    return document


def _as_typed(text: str) -> str:
    """A command with words for what depends on the run."""
    return text.replace("{dumps}", "FOLDER").replace("{op}", "OPERATOR")


def _rules(codes: Sequence[str]) -> list[RuleText]:
    known = known_rules()
    try:
        chosen = expanded(codes, known, "")
    except SettingsError as error:
        hint = error.hint
        raise Failure(error.message, hint=hint, code="RUL005") from None
    return [entry.text() for code, entry in known.items() if code in chosen]
