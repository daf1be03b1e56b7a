"""GitLab's code quality report: a subset of the Code Climate format.

GitLab shows the description alone, in one line: what comes of a finding stands in it.
"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding, Findings
from irtool.report.findings.places import consequences, primary, relative
from irtool.report.json import json_list, json_text
from irtool.report.text import escape

_SEVERITIES = {"error": "critical", "warning": "major", "info": "info"}


def gitlab_pieces(findings: Findings) -> Iterator[str]:
    """A list with one object a finding; fingerprints are unique, as GitLab asks.

    Args:
        findings: with the fingerprints that ``lint`` or ``gate`` gave them.

    Yields:
        pieces that make one JSON text.
    """
    items = (
        {
            "description": escape(_description(finding)),
            "check_name": finding.code,
            "fingerprint": finding.fingerprint,
            "severity": _SEVERITIES[finding.severity],
            "location": {
                "path": relative(primary(finding).path),
                "lines": {"begin": primary(finding).line},
            },
        }
        for finding in findings.items
    )
    yield from json_list(([json_text(item)] for item in items), "")
    yield "\n"


def _description(finding: Finding) -> str:
    text = f"{finding.code}: {finding.message}"
    effects = consequences(finding)
    return f"{text} (what comes of it: {effects})" if effects else text
