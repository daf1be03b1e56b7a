"""``--format json``: the keys that docs/json-lint.md describes."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding, Findings, SourceLine
from irtool.report.findings.places import code_counts, rule_names, severity_counts
from irtool.report.json import json_list, json_text

SCHEMA = "irtool.lint/1"


def json_pieces(findings: Findings, schema: str = SCHEMA) -> Iterator[str]:
    """One object, in pieces to be written one after the other."""
    names = rule_names(findings)
    yield f'{{"schema": {json_text(schema)},\n "findings": '
    yield from _list(findings.items, names)
    counts: dict[str, object] = {
        **severity_counts(findings.items),
        "findings": len(findings.items),
        "suppressed": len(findings.suppressed),
        "files": findings.files,
        "compilations": findings.compilations,
        "rules": len(findings.checked),
        "by_code": code_counts(findings.items),
    }
    yield f',\n "counts": {json_text(counts)}'
    yield ',\n "suppressed": '
    yield from _list(findings.suppressed, names)
    silenced = [
        {
            "code": each.code,
            "need": each.need,
            "reason": each.reason or None,
            "compilations": each.count,
            "of": each.total,
        }
        for each in findings.silenced
    ]
    yield ',\n "silent": '
    yield from json_list(([json_text(each)] for each in silenced), " ")
    yield f',\n "stale_baseline": {json_text(findings.stale)}'
    yield "}\n"


def _list(items: tuple[Finding, ...], names: dict[str, str]) -> Iterator[str]:
    return json_list(([json_text(finding_object(item, names))] for item in items), " ")


def finding_object(finding: Finding, names: dict[str, str]) -> dict[str, object]:
    """One finding with its places."""
    return {
        "code": finding.code,
        "name": names.get(finding.code),
        "severity": finding.severity,
        "message": finding.message,
        "file": finding.file,
        "line": finding.line or None,
        "column": finding.column if finding.line else None,
        "end_column": finding.end_column if finding.line else None,
        "node": finding.node,
        "op": finding.op,
        "graph": finding.graph,
        "scope": finding.scope,
        "statement": finding.statement,
        "source": _source(finding.source),
        "hint": finding.hint or None,
        "fix": finding.fix,
        "related": [
            {
                "message": place.message,
                "file": place.file,
                "line": place.line,
                "column": place.column,
                "node": place.node,
            }
            for place in finding.related
        ],
        "ranks": finding.ranks,
        "fingerprint": finding.fingerprint,
        "suppressed": finding.suppressed or None,
    }


def _source(line: SourceLine | None) -> dict[str, object] | None:
    if line is None:
        return None
    return {
        "path": line.path,
        "line": line.line,
        "column": line.column,
        "end_line": line.end_line,
        "end_column": line.end_column,
        "text": line.text,
    }
