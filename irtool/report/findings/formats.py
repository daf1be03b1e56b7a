"""Formats by the names that ``--format`` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from irtool.ir.dump import Dump
from irtool.ir.finding import Findings
from irtool.report.findings.github import github_pieces
from irtool.report.findings.gitlab import gitlab_pieces
from irtool.report.findings.html import html_pieces
from irtool.report.findings.json import json_pieces
from irtool.report.findings.junit import junit_pieces
from irtool.report.findings.sarif import sarif_pieces
from irtool.report.findings.text import TextStyle, concise_pieces, text_pieces


@dataclass(frozen=True, slots=True)
class View:
    """What a report needs beside the findings; ``dump`` is the one whose graph a page shows."""

    style: TextStyle
    files: tuple[str, ...] = ()
    dump: Dump | None = None


Reporter = Callable[[Findings, View], Iterator[str]]

FORMATS: dict[str, Reporter] = {
    "text": lambda findings, view: text_pieces(findings, view.style),
    "concise": lambda findings, view: concise_pieces(findings, view.style),
    "json": lambda findings, view: json_pieces(findings),
    "sarif": lambda findings, view: sarif_pieces(findings),
    "github": lambda findings, view: github_pieces(findings),
    "gitlab": lambda findings, view: gitlab_pieces(findings),
    "junit": lambda findings, view: junit_pieces(findings, view.files),
    "html": lambda findings, view: html_pieces(findings, view.dump),
}
"""A new format is a module beside this one, and a line here."""
