"""From raw findings to the report: comments, ignores, baseline, and the places of other tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from irtool.cli.configuration import read_text
from irtool.cli.failing import FailLevel, fails
from irtool.cli.lint.settings import BAD_SETTING, Asked
from irtool.cli.lint.units import Unit
from irtool.cli.report import Failure, note
from irtool.cli.writing import write_file
from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Finding, Findings, RuleText, Silenced
from irtool.linting.baseline import (
    BaselineError,
    Known,
    OlderBaseline,
    apply_baseline,
    read_baseline,
    write_baseline,
)
from irtool.linting.fingerprint import fingerprinted
from irtool.linting.folding import folded
from irtool.linting.nesting import nested
from irtool.linting.sources import SourceFiles
from irtool.linting.suppression import Suppressions, apply_ignores
from irtool.report.findings.places import relative
from irtool.syntax import file_facts


@dataclass(frozen=True, slots=True)
class Gathered:
    """All findings of a call with what was looked at, before anything is left out."""

    findings: Sequence[Finding]
    units: Sequence[Unit]
    silenced: tuple[Silenced, ...]
    files: int


def settled(asked: Asked, gathered: Gathered) -> list[Finding]:
    """Findings with fingerprints; those that comments or the configuration answer for marked.

    Args:
        asked: the settings; findings of rules that they turn off are left out.
        gathered: all findings, in the order of compilations.

    Returns:
        Findings that say the same are one; consequences are related places of their cause.
    """
    sources = SourceFiles(asked.settings.source_map)
    comments = Suppressions(sources, asked.known)
    wanted = [_severe(asked, finding) for finding in gathered.findings if asked.wants(finding.code)]
    findings = comments.apply(wanted)
    findings += comments.complaints(asked.codes)
    for path in sorted(comments.changed):
        note(f"{path} is not what was compiled: its comments # irtool: do not count")
    places = {file.label: file.place for unit in gathered.units for file in unit.files}
    findings = fingerprinted(
        findings, lambda finding: places.get(finding.file) or relative(finding.file)
    )
    findings = apply_ignores(
        findings, asked.settings, asked.known, lambda finding: relative(finding.file)
    )
    return nested(folded(_local(finding, sources) for finding in findings), asked.rules)


def _severe(asked: Asked, finding: Finding) -> Finding:
    """Findings that no rule's own check made get the severity of the settings here."""
    severity = asked.severity(finding.code)
    return replace(finding, severity=severity) if severity is not None else finding


def _local(finding: Finding, sources: SourceFiles) -> Finding:
    """The line of Python by the file's path here, where it can be found."""
    source = finding.source
    path = sources.find(source.path) if source is not None else None
    if source is None or path is None:
        return finding
    return replace(finding, source=replace(source, path=path))


# -- baseline ----------------------------------------------------------------------------------


def save_baseline(asked: Asked, findings: Sequence[Finding]) -> int:
    """Write all findings that nothing else answers for; how many.

    What the file knows of rules that were not run stays in it.

    Args:
        asked: the settings, which name the file.
        findings: suppressed ones are left out.

    Raises:
        Failure: the file cannot be written, or is something else than a baseline.
    """
    path = asked.settings.baseline or ""
    kept = [finding for finding in findings if not finding.suppressed]
    others: list[Known] = []
    if file_facts.exists(path) and file_facts.file_size(path):
        others = [entry for entry in _kept(path) if entry.code not in asked.codes]
    write_file(path, write_baseline(kept, others), over_input=True)
    return len(kept)


def against_baseline(
    asked: Asked, findings: Sequence[Finding]
) -> tuple[Sequence[Finding], tuple[str, ...]]:
    """Findings with the known ones marked, and entries that did not come again.

    Args:
        asked: the settings; where they name no baseline nothing is known.
        findings: with their fingerprints.

    Raises:
        Failure: there is no such file, or it is no baseline.
    """
    path = asked.settings.baseline
    if path is None:
        return findings, ()
    if not file_facts.exists(path):
        hint = f"write it with --baseline {path} --update-baseline"
        raise Failure("there is no such baseline", path, hint=hint, code=BAD_SETTING)
    return apply_baseline(findings, _known(path), asked.codes)


def _kept(path: str) -> Sequence[Known]:
    """What a baseline that is written anew knows already."""
    try:
        return _read(path)
    except OlderBaseline:
        note(f"{path} was of an earlier irtool: what it knew of rules not run now is left out")
        return ()


def _known(path: str) -> Sequence[Known]:
    try:
        return _read(path)
    except OlderBaseline as error:
        raise Failure(f"this baseline {error}", path, code=BAD_SETTING) from None


def _read(path: str) -> Sequence[Known]:
    try:
        return read_baseline(read_text(path))
    except OlderBaseline:
        raise
    except BaselineError as error:
        hint = "name another file, or delete it and write it anew with --update-baseline"
        raise Failure(f"no baseline: {error}", path, hint=hint, code=BAD_SETTING) from None


# -- the report --------------------------------------------------------------------------------


def report_of(
    asked: Asked, gathered: Gathered, findings: Sequence[Finding], stale: tuple[str, ...]
) -> Findings:
    """The findings of a call as reporters take them, suppressed ones apart.

    Args:
        asked: the settings.
        gathered: what was looked at.
        findings: all that are reported, suppressed ones marked.
        stale: entries of the baseline that did not come again.
    """
    return Findings(
        items=tuple(finding for finding in findings if not finding.suppressed),
        rules=_texts(asked, findings),
        suppressed=tuple(finding for finding in findings if finding.suppressed),
        silenced=gathered.silenced,
        stale=stale,
        files=gathered.files,
        compilations=len(gathered.units),
        checked=tuple(sorted(asked.codes)),
    )


def _texts(asked: Asked, findings: Sequence[Finding]) -> tuple[RuleText, ...]:
    known: Mapping[str, object] = asked.known
    codes = dict.fromkeys(finding.code for finding in findings if finding.code in known)
    return tuple(asked.known[code].text() for code in sorted(codes))


def status_of(asked: Asked, findings: Findings) -> int:
    """1 if there is a finding that the settings want to fail on (``--fail-on``).

    Args:
        asked: the settings.
        findings: suppressed ones do not count.
    """
    level = FailLevel(asked.settings.fail_on)
    return fails(level, those=(finding.severity for finding in findings.items))
