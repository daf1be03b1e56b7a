"""``irtool explain``: what a code means, or what a failed run says."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated

from irtool.cli import complete, options
from irtool.cli.answering import DocumentForm, write_answer
from irtool.cli.failing import FailLevel, FailOn
from irtool.cli.lint.settings import known_rules
from irtool.cli.output import Output
from irtool.cli.parameters import Argument
from irtool.cli.report import Failure
from irtool.ir.finding import RuleText
from irtool.linting.failure.known import KnownLine, known_lines
from irtool.linting.settings import SettingsError, expanded
from irtool.report.rule_pages import codes_markdown, rule_markdown
from irtool.report.rules import codes_answer, codes_report, rule_report, rules_answer
from irtool.syntax.run.expanding import STDIN

_PATHS = "irtool.cli.explain.paths"
_LIKE_A_CODE = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*")


def command(
    what: Annotated[
        list[str],
        Argument(
            metavar="CODE|PATH",
            help="Codes, prefixes, names of rules; or logs, analyze_fail.ir, run folders, -.",
            show_default=False,
            complete=complete.codes,
        ),
    ],
    format: options.DocumentFormat = DocumentForm.table,
    fail_on: FailOn = FailLevel.warning,
    output_file: options.OutputFile = None,
) -> int:
    """What a code means; or what a log or an analyze_fail.ir of a failed run says.

    Exit status: 0 told, or nothing wrong in the log; 1 the run's failure was found; 2 could not
    do it.
    """
    if any(map(_is_path, what)):
        return _explain_paths(what, format, Output(output_file), fail_on)
    output = Output(output_file)
    lines = _known_lines(what)
    if lines:
        write_answer(
            output,
            format,
            answer=lambda: codes_answer(lines),
            report=lambda _: codes_report(lines),
            markdown=lambda: codes_markdown(lines),
        )
        return 0
    rules = _rules(what)
    write_answer(
        output,
        format,
        answer=lambda: rules_answer(rules),
        report=lambda _: rule_report(rules),
        markdown=lambda: "\n".join(rule_markdown(rule) for rule in rules),
    )
    return 0


def _is_path(text: str) -> bool:
    """Whether it is a file or folder, or looks like one more than like a code."""
    if text == STDIN or os.path.exists(text):
        return True
    return _LIKE_A_CODE.fullmatch(text) is None


def _explain_paths(
    paths: Sequence[str], format: DocumentForm, output: Output, fail_on: FailLevel
) -> int:
    if find_spec(_PATHS) is None:
        raise Failure("this irtool does not read logs of failed runs", paths[0])
    status: int = import_module(_PATHS).explain_paths(paths, format, output, fail_on)
    return status


def _known_lines(codes: Sequence[str]) -> list[KnownLine]:
    """What MindSpore's logs say where a finding has this code: those of ``irtool check``."""
    wanted = {code.lower() for code in codes if code.islower()}
    return [line for line in known_lines().entries if line.code in wanted]


def _rules(codes: Sequence[str]) -> list[RuleText]:
    known = known_rules()
    try:
        chosen = expanded(codes, known, "")
    except SettingsError as error:
        hint = error.hint
        raise Failure(error.message, hint=hint, code="RUL005") from None
    return [entry.text() for code, entry in known.items() if code in chosen]
