"""Findings for scripts: answers of ``lint`` and ``gate``, and a finding as all commands tell it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, UnsetType

from irtool.ir.finding import Edit, Finding, Findings, Gain, RelatedPlace, Severity, SourceLine
from irtool.report.answer import AnswerObject, doc
from irtool.report.findings.places import code_counts, rule_names, severity_counts
from irtool.report.run_answer import CompilationsAnswer, Known, contexts_fields


class FindingEdit(AnswerObject, frozen=True, kw_only=True):
    """What to change: a line of Python, or a setting."""

    file: Annotated[str | UnsetType, doc("of a change of Python: the file to change")] = UNSET
    line: Annotated[int | UnsetType, doc("of a change of Python: its line")] = UNSET
    old: Annotated[str | UnsetType, doc("the text that stands there, as far as it is to go")] = (
        UNSET
    )
    new: Annotated[str | UnsetType, doc("the text that replaces it")] = UNSET
    setting: Annotated[
        str | UnsetType,
        doc(
            "this and the next key: a key of the parallel context, or MindSpore's name of a switch"
        ),
    ] = UNSET
    value: str | int | float | bool | UnsetType | None = UNSET


class EditGain(AnswerObject, frozen=True, kw_only=True):
    """What an edit is worth."""

    seconds: Annotated[
        float | None, doc("a step is shorter; of `slow-compile`, the compilation; null: unknown")
    ]
    bytes: Annotated[int | None, doc("of a device's memory; null: not known")]


class ToldFinding(AnswerObject, frozen=True, kw_only=True):
    """A finding. Lines and columns count from 1; they are null where the whole file is meant."""

    code: Annotated[str, doc("of the rule; `irtool explain CODE` says more")]
    name: Annotated[str | None, doc("of the rule")]
    severity: Annotated[
        Severity, doc("error: MindSpore would refuse, the run would hang, or the dump is damaged")
    ]
    message: str
    file: Annotated[str, doc("the dump")]
    line: int | None
    column: Annotated[int | None, doc("of a node, where its operator's name begins")]
    end_column: Annotated[int | None, doc("exclusive")]
    node: str | None
    op: str | None
    graph: str | None
    scope: str | None
    statement: Annotated[str, doc("the line of the dump, shortened")]
    source: Annotated[SourceLine | None, doc("null where the dump prints none")]
    check: Annotated[str | None, doc("the place in MindSpore that refuses it: `file.cc:Function`")]
    hint: Annotated[str | None, doc("what to do about findings of this kind")]
    fix: Annotated[str | None, doc("what to write instead, where irtool knows it")]
    edit: Annotated[FindingEdit | None, doc("the same as a change of a line or of a setting")]
    gain: Annotated[EditGain | None, doc("what that is worth")]
    command: Annotated[str | None, doc("the command to type next")]
    related: Sequence[RelatedPlace]
    ranks: Annotated[
        Sequence[int], doc("all that it holds for; empty where the rank of the dump is not known")
    ]
    fingerprint: Annotated[str, doc("what baselines rest on")]
    suppressed: Annotated[
        str | None,
        doc("why it is not reported: `baseline`, the place of a comment, the key of the settings"),
    ]


class FindingCounts(AnswerObject, frozen=True, kw_only=True):
    """How many findings, and in how much."""

    error: int
    warning: int
    info: int
    findings: Annotated[int, doc("all that are reported")]
    suppressed: int
    files: Annotated[int, doc("dumps read")]
    compilations: int
    rules: Annotated[int, doc("that were on")]
    by_code: dict[str, int]


class SilentRule(AnswerObject, frozen=True, kw_only=True):
    """A rule that could not look, since it lacked something."""

    code: str
    need: Annotated[str, doc("`begin`, `validate`, `devices`, `ranks`, `machine` or `environment`")]
    reason: str | None
    compilations: Annotated[int, doc("in how many compilations")]
    of: Annotated[int, doc("of how many")]


class FindingsAnswer(CompilationsAnswer, frozen=True, kw_only=True):
    """What was found, and what could not be looked at."""

    findings: list[ToldFinding]
    counts: FindingCounts
    suppressed: Annotated[list[ToldFinding], doc("findings that are not reported")]
    silent: list[SilentRule]
    stale_baseline: Annotated[
        Sequence[str], doc("fingerprints in the baseline that did not come again")
    ]


class LintAnswer(
    FindingsAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.lint/1"
):
    """What is wrong, or worth a look, in dumps."""


class GateAnswer(
    FindingsAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.gate/1"
):
    """What became worse than in a golden dump; places are those of the new dump.

    Each dump that is judged has a context, and after it the golden one it is held against.
    """


def lint_answer(findings: Findings, known: Known = ()) -> LintAnswer:
    """The answer of ``lint`` for scripts.

    Args:
        findings: what was found.
        known: dumps and context of each compilation.
    """
    return LintAnswer(**_fields(findings), **contexts_fields(known))


def gate_answer(findings: Findings, known: Known = ()) -> GateAnswer:
    """The answer of ``gate`` for scripts.

    Args:
        findings: what was found.
        known: each dump with its context, those that are judged before their golden ones.
    """
    return GateAnswer(**_fields(findings), **contexts_fields(known))


def _fields(findings: Findings) -> dict[str, Any]:
    names = rule_names(findings)
    severities = severity_counts(findings.items)
    return {
        "findings": [told_finding(item, names) for item in findings.items],
        "counts": FindingCounts(
            error=severities["error"],
            warning=severities["warning"],
            info=severities["info"],
            findings=len(findings.items),
            suppressed=len(findings.suppressed),
            files=findings.files,
            compilations=findings.compilations,
            rules=len(findings.checked),
            by_code=code_counts(findings.items),
        ),
        "suppressed": [told_finding(item, names) for item in findings.suppressed],
        "silent": [
            SilentRule(
                code=item.code,
                need=item.need,
                reason=item.reason or None,
                compilations=item.count,
                of=item.total,
            )
            for item in findings.silenced
        ],
        "stale_baseline": findings.stale,
    }


def told_finding(finding: Finding, names: Mapping[str, str]) -> ToldFinding:
    """A finding of ``lint`` or ``gate`` for scripts.

    Args:
        finding: the finding.
        names: of rules by code.
    """
    return ToldFinding(
        code=finding.code,
        name=names.get(finding.code),
        severity=finding.severity,
        message=finding.message,
        file=finding.file,
        line=finding.line or None,
        column=finding.column if finding.line else None,
        end_column=finding.end_column if finding.line else None,
        node=finding.node,
        op=finding.op,
        graph=finding.graph,
        scope=finding.scope,
        statement=finding.statement,
        source=finding.source,
        check=finding.check or None,
        hint=finding.hint or None,
        fix=finding.fix,
        edit=finding_edit(finding.edit),
        gain=edit_gain(finding.gain),
        command=finding.command or None,
        related=finding.related,
        ranks=finding.ranks,
        fingerprint=finding.fingerprint,
        suppressed=finding.suppressed or None,
    )


def finding_edit(edit: Edit | None) -> FindingEdit | None:
    """An edit, as every command that suggests one tells it.

    Args:
        edit: of a line of Python or of a setting; None where there is none.
    """
    if edit is None:
        return None
    if edit.setting:
        return FindingEdit(setting=edit.setting, value=edit.value)
    return FindingEdit(file=edit.file, line=edit.line, old=edit.old, new=edit.new)


def edit_gain(gain: Gain | None) -> EditGain | None:
    """What an edit is worth, as every command tells it.

    Args:
        gain: seconds a step, bytes of a device; None where nothing is known.
    """
    return None if gain is None else EditGain(seconds=gain.seconds, bytes=gain.bytes)
