"""Baselines: findings that are known, so that only new ones are reported."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Finding
from irtool.syntax.reading import parse_json

SCHEMA = "irtool.lint.baseline/2"
"""2: fingerprints leave numbers of layers out."""
_OLDER = ("irtool.lint.baseline/1", "irtool.linting.baseline/1")


class BaselineError(Exception):
    """A file that is no baseline; the message says why."""


class OlderBaseline(BaselineError):
    """A baseline of an earlier irtool: its fingerprints say nothing now."""


@dataclass(frozen=True, slots=True)
class Known:
    """One entry: ``what`` is for people who read the file."""

    fingerprint: str
    code: str
    what: str = ""


def read_baseline(text: str) -> tuple[Known, ...]:
    """The entries of a baseline file.

    Args:
        text: of the file, JSON.

    Raises:
        OlderBaseline: it is of an earlier irtool.
        BaselineError: it is none.
    """
    try:
        table = parse_json(text)
    except ValueError as error:
        raise BaselineError(f"is no JSON: {error}") from None
    schema = cast("dict[str, object]", table).get("schema") if isinstance(table, dict) else None
    if schema in _OLDER:
        raise OlderBaseline(
            "is of an earlier irtool, whose fingerprints name findings otherwise: write it anew "
            "with --update-baseline"
        )
    if schema != SCHEMA:
        raise BaselineError(f'has no "schema": "{SCHEMA}"')
    items = cast("dict[str, object]", table).get("findings")
    if not isinstance(items, list):
        raise BaselineError("has no list of findings")
    return tuple(_known(item) for item in cast("list[object]", items))


def _known(item: object) -> Known:
    if isinstance(item, Mapping):
        table = cast("Mapping[str, object]", item)
        fingerprint, code = table.get("fingerprint"), table.get("code")
        if isinstance(fingerprint, str) and isinstance(code, str):
            return Known(fingerprint, code, str(table.get("what", "")))
    raise BaselineError("holds an entry without fingerprint and code")


def write_baseline(findings: Iterable[Finding], others: Iterable[Known] = ()) -> str:
    """A baseline of these findings: an entry a line, in an order that makes small differences.

    Args:
        findings: with their fingerprints.
        others: entries of an earlier baseline that stay as they are.

    Returns:
        The text of the file, JSON.
    """
    entries = [*map(_entry, findings), *others]
    entries.sort(key=lambda entry: (entry.code, entry.what, entry.fingerprint))
    lines = ",\n  ".join(
        json.dumps({"code": known.code, "fingerprint": known.fingerprint, "what": known.what})
        for known in entries
    )
    inner = f"\n  {lines}\n " if lines else ""
    return f'{{"schema": "{SCHEMA}",\n "findings": [{inner}]}}\n'


def _entry(finding: Finding) -> Known:
    what = f"{finding.scope or finding.key or finding.op or ''}: {finding.message}"
    return Known(finding.fingerprint, finding.code, what)


def apply_baseline(
    findings: Sequence[Finding], known: Sequence[Known], codes: Iterable[str]
) -> tuple[list[Finding], tuple[str, ...]]:
    """Mark what is known, and tell entries that nothing matched, of rules that were run.

    Args:
        findings: with their fingerprints; suppressed ones stay as they are.
        known: the entries of the baseline.
        codes: of the rules that were run; entries of others are not called stale.

    Returns:
        The findings in their order, and the stale entries as ``CODE WHAT``.
    """
    fingerprints = {entry.fingerprint for entry in known}
    seen = {finding.fingerprint for finding in findings}
    marked = [
        replace(finding, suppressed="baseline")
        if finding.fingerprint in fingerprints and not finding.suppressed
        else finding
        for finding in findings
    ]
    ran = frozenset(codes)
    stale = (entry for entry in known if entry.code in ran and entry.fingerprint not in seen)
    return marked, tuple(f"{entry.code} {entry.what}" for entry in stale)
