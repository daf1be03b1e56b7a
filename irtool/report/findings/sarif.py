"""SARIF 2.1.0 (OASIS Standard, 27 March 2020), for code scanning.

The primary location is the user's line of Python where the dump prints one, so that a pull request
shows the finding there; the statement in the dump is a related location.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from irtool.ir.finding import Finding, Findings, RuleText
from irtool.ir.version import VERSION
from irtool.report.findings.places import Spot, by_severity, dump_spot, primary, uri
from irtool.report.text import escape

MOST_RESULTS = 25_000
"""GitHub takes no more in one run; the gravest are kept."""
INFORMATION_URI = "https://pypi.org/project/irtool/"
SCHEMA_URI = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def sarif_pieces(findings: Findings, command: str = "lint") -> Iterator[str]:
    """One log with one run.

    Args:
        findings: what was found.
        command: that found it: runs of different commands stand beside each other.
    """
    tool = "irtool"
    shown = by_severity((*findings.items, *findings.suppressed))
    places = {rule.code: place for place, rule in enumerate(findings.rules)}
    run: dict[str, object] = {
        "tool": {
            "driver": {
                "name": tool,
                "version": VERSION,
                "informationUri": INFORMATION_URI,
                "semanticVersion": VERSION,
                "rules": [_rule(rule) for rule in findings.rules],
            }
        },
        "automationDetails": {"id": f"{tool}/{command}/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(len(shown))],
        "results": [_result(finding, places) for finding in shown[:MOST_RESULTS]],
    }
    log = {"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]}
    yield json.dumps(log, indent=1) + "\n"


def _invocation(count: int) -> dict[str, object]:
    made: dict[str, object] = {"executionSuccessful": True}
    if count > MOST_RESULTS:
        text = f"{count - MOST_RESULTS} more results were left out"
        made["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": text}}]
    return made


def _rule(rule: RuleText) -> dict[str, object]:
    words = [word.capitalize() for word in rule.name.split("-")]
    help_text = f"{rule.explanation}\n\n{rule.hint}".strip()
    markdown = (
        f"{rule.explanation}\n\n**Instead:** {rule.hint}\n\n"
        f"Bad:\n```\n{rule.bad}\n```\nGood:\n```\n{rule.good}\n```\n"
    )
    return {
        "id": rule.code,
        "name": "".join(words),
        "shortDescription": {"text": f"{rule.summary}."},
        "fullDescription": {"text": rule.explanation},
        "help": {"text": help_text, "markdown": markdown},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.family], "precision": "high"},
    }


def _result(finding: Finding, places: dict[str, int]) -> dict[str, object]:
    made: dict[str, object] = {"ruleId": finding.code}
    if finding.code in places:
        made["ruleIndex"] = places[finding.code]
    made["level"] = _LEVELS[finding.severity]
    made["message"] = {"text": _message(finding)}
    made["locations"] = [_primary(finding)]
    related = [_related(number, *other) for number, other in enumerate(_others(finding), 1)]
    if related:
        made["relatedLocations"] = related
    made["partialFingerprints"] = {"irtoolFinding/v1": finding.fingerprint}
    if finding.suppressed:
        kind = "external" if finding.suppressed == "baseline" else "inSource"
        if finding.suppressed.startswith("per-"):
            kind = "external"
        made["suppressions"] = [{"kind": kind, "justification": escape(finding.suppressed)}]
    if len(finding.ranks) > 1:
        made["properties"] = {"ranks": list(finding.ranks)}
    return made


def _message(finding: Finding) -> str:
    parts = [finding.message]
    if finding.instead:
        parts.append(f"Instead: {finding.instead}")
    if finding.hint:
        parts.append(f"{finding.hint[:1].upper()}{finding.hint[1:]}")
    return escape(". ".join(part.rstrip(".") for part in parts)) + "."


def _primary(finding: Finding) -> dict[str, object]:
    made: dict[str, object] = {"physicalLocation": _physical(primary(finding))}
    if finding.scope:
        name = finding.scope.rpartition("/")[2]
        made["logicalLocations"] = [
            {"name": escape(name), "fullyQualifiedName": escape(finding.scope), "kind": "module"}
        ]
    return made


def _others(finding: Finding) -> Iterator[tuple[Spot, str]]:
    if finding.source is not None:
        node = f" {finding.node}" if finding.node else ""
        yield dump_spot(finding), f"the statement{node} in the dump"
    for place in finding.related:
        yield Spot(place.file, max(place.line, 1), place.column), place.message


def _related(number: int, spot: Spot, message: str) -> dict[str, object]:
    return {
        "id": number,
        "physicalLocation": _physical(spot),
        "message": {"text": escape(message)},
    }


def _physical(spot: Spot) -> dict[str, object]:
    region: dict[str, object] = {"startLine": spot.line}
    if spot.column:
        region["startColumn"] = spot.column
    if spot.end_line:
        region["endLine"] = spot.end_line
    if spot.end_column and (spot.end_line or spot.end_column >= (spot.column or 1)):
        region["endColumn"] = spot.end_column
    return {"artifactLocation": {"uri": uri(spot.path)}, "region": region}
