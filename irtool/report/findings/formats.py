"""Formats of findings by the names that ``--format`` takes, for every command that judges."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Findings
from irtool.report.findings.github import github_pieces
from irtool.report.findings.gitlab import gitlab_pieces
from irtool.report.findings.junit import junit_pieces
from irtool.report.findings.sarif import sarif_pieces
from irtool.report.findings.text import TextStyle, concise_pieces, text_pieces


@dataclass(frozen=True, slots=True)
class View:
    """What an emitter needs beside the findings.

    Attributes:
        style: of text.
        command: that found them: ``lint``.
        files: that were looked at.
    """

    style: TextStyle
    command: str = "lint"
    files: tuple[str, ...] = ()


Emitter = Callable[[Findings, View], Iterator[str]]

FORMATS: dict[str, Emitter] = {
    "text": lambda findings, view: text_pieces(findings, view.style),
    "concise": lambda findings, view: concise_pieces(findings, view.style),
    "sarif": lambda findings, view: sarif_pieces(findings, view.command),
    "github": lambda findings, view: github_pieces(findings),
    "gitlab": lambda findings, view: gitlab_pieces(findings),
    "junit": lambda findings, view: junit_pieces(findings, view.files, view.command),
}
"""A new format is a module beside this one, and a line here."""
