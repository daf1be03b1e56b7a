"""What a rule is: a class that says what it looks at, what it needs, and what it finds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from inspect import cleandoc
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from irtool.ir.finding import Edit, Finding, Gain, RuleText, Severity, ThresholdText
from irtool.ir.graph import GraphParameter, Node
from irtool.linting.needs import NEEDS, DumpKind, Lacking, Need
from irtool.linting.places import MOST_STATEMENT, located, related_place
from irtool.linting.threshold import GIB, KIB, MIB, Threshold
from irtool.sharding.network.report import CheckResult

if TYPE_CHECKING:
    from irtool.linting.facts import DumpFacts, RunFacts

EVERY_DUMP: tuple[DumpKind, ...] = ()
"""As :attr:`Rule.dumps`: look at each dump, whatever it was taken after."""


class Rule:
    """What all rules declare.  Derive from one of the kinds below, not from this.

    Attributes:
        code: family and three digits; never used again for something else.
        name: in kebab case, understood wherever a code is.
        severity: error only where MindSpore would refuse, the run would hang, or the dump is
            damaged.
        summary: one line, without full stop.
        explanation: Markdown: what is looked for, why it matters, when it is fine.
        hint: what to do about it, one sentence in the imperative.
        bad: statements that trigger the rule, as a dump prints them (may be shortened).
        good: the same, mended.
        references: addresses of documents, names of papers.
        cases: dumps that MindSpore printed, on which the rule speaks, by their path in the
            repository; each is a false case of the rules that don't name it.  ``, damaged``: once
            it is damaged as ``tests/linting/test_fingerprints.py`` does.
        needs: what it has to know; without it, it stays silent.
        dumps: it looks at the first of these that a compilation has; ``EVERY_DUMP``: at each.
        is_default: whether it is on without being asked for.
        follows_from: codes of the rules whose findings may be the cause of this one's, the most
            likely first: where one of them speaks, this one's are told below it.
        follows_where: whether the cause may stand anywhere in the same dump, or has to be at the
            same node (or to name it).
        follows_producer: codes of such rules whose findings may be at a node that this one's name,
            too: of an edge, the end that the tensor comes from.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]
    summary: ClassVar[str]
    explanation: ClassVar[str]
    hint: ClassVar[str] = ""
    bad: ClassVar[str]
    good: ClassVar[str]
    references: ClassVar[tuple[str, ...]] = ()
    cases: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[Need, ...]] = ()
    dumps: ClassVar[tuple[DumpKind, ...]] = ("validate", "end")
    is_default: ClassVar[bool] = True
    follows_from: ClassVar[tuple[str, ...]] = ()
    follows_where: ClassVar[Literal["dump", "node"]] = "dump"
    follows_producer: ClassVar[tuple[str, ...]] = ()

    def __init__(self, values: Mapping[str, int | float] | None = None) -> None:
        self.values: Mapping[str, int | float] = values or {}
        self.chosen_severity: Severity | None = None
        """What the configuration says; goes before the rule's own and a finding's."""

    @classmethod
    def thresholds(cls) -> dict[str, Threshold[int] | Threshold[float]]:
        """The rule's thresholds by name."""
        thresholds: dict[str, Threshold[int] | Threshold[float]] = {}
        for base in reversed(cls.__mro__):
            for name, value in vars(base).items():
                if isinstance(value, Threshold):
                    thresholds[name] = cast("Threshold[int] | Threshold[float]", value)
        return thresholds

    @classmethod
    def text(cls, origin: str = "") -> RuleText:
        """The rule as documentation and reports describe it."""
        return RuleText(
            code=cls.code,
            name=cls.name,
            family=family_of(cls.code),
            severity=cls.severity,
            summary=cls.summary,
            explanation=_dedented(cls.explanation),
            hint=cls.hint,
            bad=_dedented(cls.bad),
            good=_dedented(cls.good),
            references=cls.references,
            needs=tuple(NEEDS[need] for need in cls.needs),
            dumps=_dumps_text(cls.dumps),
            thresholds=tuple(
                ThresholdText(threshold.name, threshold.default, threshold.unit, threshold.meaning)
                for threshold in cls.thresholds().values()
            ),
            is_default=cls.is_default,
            origin=origin,
            cases=cls.cases,
        )

    def finding(
        self,
        message: str,
        node: Node | None = None,
        parameter: GraphParameter | None = None,
        *,
        line: int = 0,
        column: int = 1,
        text: str = "",
        hint: str = "",
        fix: str | None = None,
        edit: Edit | None = None,
        gain: Gain | None = None,
        severity: Severity | None = None,
        related: Iterable[tuple[str, Node]] = (),
        key: str = "",
        rank: int | None = None,
    ) -> Finding:
        """A finding of this rule, with its place; the engine adds whose dump it is.

        Args:
            message: one sentence that names things by what they are, not by ``%4`` (the place says
                that); equal messages at one line of Python are told once.
            node: where; its dump may be another than the one that was walked.
            parameter: a parameter of the entry graph, where no node is meant.
            line: in the dump, where neither is meant.
            column: in that line, from 1.
            text: that line.
            hint: what to do, if the rule's own hint is too general here.
            fix: what to write instead, exactly (a strategy, a line of Python).
            edit: the same as a change of a line or a setting, where it is one.
            gain: what that is worth.
            severity: if it differs from the rule's own here; the configuration goes before both.
            related: other nodes, each with what it has to do with the finding.
            key: what tells this from other findings of the rule at the same node or parameter; must
                not hold numbers of nodes, addresses or hashes.
            rank: of a rule over all ranks: in whose dump the node is.
        """
        return located(
            Finding(
                self.code,
                self.chosen_severity or severity or self.severity,
                message,
                line=line,
                column=column,
                end_column=column,
                statement=text[:MOST_STATEMENT],
                hint=hint or self.hint,
                fix=fix,
                edit=edit,
                gain=gain,
                related=tuple(related_place(message, other) for message, other in related),
                rank=rank,
                key=key or (parameter.name if parameter is not None else ""),
                subject=node or parameter,
            )
        )


class NodeRule(Rule):
    """Looks at nodes one at a time: those of some operators, or all (``operators`` is None).

    Which operators may also follow from the table of operators: then ``looks_at`` asks it.
    """

    operators: ClassVar[Collection[str] | None] = None

    def looks_at(self, op: str) -> bool:
        """Whether the rule has anything to say of nodes of an operator.

        Args:
            op: the operator.
        """
        return self.operators is None or op in self.operators

    def check(self, node: Node, facts: DumpFacts) -> Iterable[Finding]:
        """What is wrong with one node."""
        raise NotImplementedError


class DumpRule(Rule):
    """A rule that looks at a whole dump."""

    def check(self, facts: DumpFacts) -> Iterable[Finding]:
        """What is wrong with the dump."""
        raise NotImplementedError


class ReportRule(Rule):
    """Looks at what ``irtool check`` says of the begin dump; the check runs once for all rules."""

    needs: ClassVar[tuple[Need, ...]] = ("begin", "devices")
    dumps: ClassVar[tuple[DumpKind, ...]] = ("begin",)

    def check(self, report: CheckResult, facts: DumpFacts) -> Iterable[Finding]:
        """What is wrong with the strategies; ``facts`` are those of the begin dump."""
        raise NotImplementedError


class RunRule(Rule):
    """Looks at all ranks of a run together; runs where at least two were given."""

    needs: ClassVar[tuple[Need, ...]] = ("ranks",)

    def check(self, run: RunFacts) -> Iterable[Finding]:
        """What is wrong between ranks; each finding names the rank that its node belongs to."""
        raise NotImplementedError


class EngineRule(Rule):
    """Findings that the engine itself makes: about rules, comments, files."""

    dumps: ClassVar[tuple[DumpKind, ...]] = EVERY_DUMP


def family_of(code: str) -> str:
    """The family of a rule, by its code: ``STR`` of ``STR002``.

    Args:
        code: of a rule.
    """
    return code.rstrip("0123456789")


_DUMP_NAMES: dict[DumpKind, str] = {
    "auto_begin": "step_auto_parallel_begin",
    "begin": "step_parallel_begin",
    "end": "step_parallel_end",
    "validate": "validate",
    "other": "other passes",
}


def _dumps_text(kinds: tuple[DumpKind, ...]) -> str:
    if not kinds:
        return "every dump"
    return ", else ".join(_DUMP_NAMES[kind] for kind in kinds)


def _dedented(text: str) -> str:
    """Text of an indented literal that begins behind its quotes or on the next line."""
    return cleandoc(text).strip("\n")


__all__ = [
    "EVERY_DUMP",
    "GIB",
    "KIB",
    "MIB",
    "DumpKind",
    "DumpRule",
    "EngineRule",
    "Lacking",
    "Need",
    "NodeRule",
    "ReportRule",
    "Rule",
    "RunRule",
    "Threshold",
]
