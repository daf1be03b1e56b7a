"""The engine: walks each dump once and calls rules on what they look at."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import partial
from typing import TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Finding, Silenced
from irtool.ir.graph import Node, node_of
from irtool.linting.facts import CompilationFacts, DumpFacts, RunFacts
from irtool.linting.places import placed
from irtool.linting.rule import DumpRule, Lacking, NodeRule, ReportRule, Rule, RunRule
from irtool.linting.rules.engine.eng001_rule_failed import RuleFailed

_NEEDED_DUMPS = ("begin", "validate")


@dataclass(slots=True)
class Linted:
    """What came of one compilation, or of one run."""

    findings: list[Finding] = field(default_factory=list[Finding])
    silenced: list[Silenced] = field(default_factory=list[Silenced])


Predicate: TypeAlias = Callable[[Node], bool]


def lint_compilation(
    facts: CompilationFacts, rules: Sequence[Rule], where: Predicate | None = None
) -> Linted:
    """Findings of all rules that look at dumps, in the order of files and lines.

    Args:
        facts: the compilation.
        rules: which; those over several ranks are passed over.
        where: which nodes; findings about no node are left out then.
    """
    made = _Pass(where)
    by_dump: dict[DumpFacts, list[Rule]] = {dump: [] for dump in facts.dumps}
    for rule in rules:
        if isinstance(rule, NodeRule | DumpRule | ReportRule):
            for dump in _dumps_for(rule, facts, made):
                by_dump[dump].append(rule)
    for dump, chosen in by_dump.items():
        _lint_dump(dump, chosen, made)
    return made.linted


def lint_run(facts: RunFacts, rules: Sequence[Rule], where: Predicate | None = None) -> Linted:
    """Findings of the rules that look at several ranks together.

    Args:
        facts: the ranks of the run; of fewer than two every such rule is silenced.
        rules: which; those that look at one dump are passed over.
        where: which nodes; findings about no node are left out then.
    """
    made = _Pass(where)
    for rule in rules:
        if not isinstance(rule, RunRule):
            continue
        if len(facts.dumps) < 2:
            made.silence(rule, Lacking("ranks"))
            continue
        first = next(iter(facts.dumps.values()))
        for finding in made.findings_of(rule, partial(rule.check, facts), first):
            held = facts.dump(finding.rank) if finding.rank in facts.ranks else None
            made.add(finding, held or first)
    return made.linted


def _dumps_for(rule: Rule, facts: CompilationFacts, made: _Pass) -> Sequence[DumpFacts]:
    """The dumps that a rule looks at; none where it lacks what it needs."""
    try:
        _check_needs(rule, facts)
    except Lacking as lacking:
        made.silence(rule, lacking)
        return ()
    if not rule.dumps:
        return facts.dumps
    dump = facts.first_of(rule.dumps)
    if dump is None:
        made.silence(rule, Lacking("begin" if "begin" in rule.dumps else "validate"))
        return ()
    return (dump,)


def _check_needs(rule: Rule, facts: CompilationFacts) -> None:
    surroundings = facts.surroundings
    for need in rule.needs:
        if need in _NEEDED_DUMPS and facts.of_kind(need) is None:  # type: ignore[arg-type]  # both are kinds
            raise Lacking(need)
        if need == "devices" and surroundings.parallel is None:
            raise Lacking(need, surroundings.why_no_context)
        if need == "machine" and surroundings.machine is None:
            raise Lacking(need)
        if need == "environment" and "environment" not in (surroundings.context or {}):
            raise Lacking(need)


def _lint_dump(facts: DumpFacts, rules: Sequence[Rule], made: _Pass) -> None:
    start = len(made.linted.findings)
    for rule in rules:
        if isinstance(rule, DumpRule):
            for finding in made.findings_of(rule, partial(rule.check, facts), facts):
                made.add(finding, facts)
        elif isinstance(rule, ReportRule):
            for finding in made.findings_of(rule, partial(_check_report, rule, facts), facts):
                made.add(finding, facts)
    _walk(facts, [rule for rule in rules if isinstance(rule, NodeRule)], made)
    findings = made.linted.findings
    findings[start:] = sorted(
        findings[start:], key=lambda finding: (finding.line, finding.code, finding.column)
    )


def _check_report(rule: ReportRule, facts: DumpFacts) -> Iterable[Finding]:
    return rule.check(facts.compilation.report, facts)


def _walk(facts: DumpFacts, rules: Sequence[NodeRule], made: _Pass) -> None:
    """Each node once, for the rules that look at its operator."""
    if not rules:
        return
    table: dict[str, list[NodeRule]] = {}
    for node in _nodes(facts):
        asked = table.get(node.op)
        if asked is None:
            asked = table[node.op] = [rule for rule in rules if rule.looks_at(node.op)]
        for rule in asked:
            if made.failed.get(rule.code) is facts:
                continue
            for finding in made.findings_of(rule, partial(rule.check, node, facts), facts):
                made.add(finding, facts)


def _nodes(facts: DumpFacts) -> Iterator[Node]:
    for graph in facts.dump.graphs:
        yield from graph.nodes


class _Pass:
    """Collects what rules say, and what they fail with."""

    def __init__(self, where: Predicate | None) -> None:
        self.where = where
        self.linted = Linted()
        self.failed: dict[str, object] = {}

    def findings_of(
        self, rule: Rule, check: Callable[[], Iterable[Finding]], facts: DumpFacts
    ) -> list[Finding]:
        """What a rule finds; where it fails, that is a finding about the rule."""
        try:
            return list(check())
        except Lacking as lacking:
            self.silence(rule, lacking)
        except (MemoryError, RecursionError) as error:
            self._fail(rule, error, facts)
        except Exception as error:
            self._fail(rule, error, facts)
        self.failed[rule.code] = facts
        return []

    def add(self, finding: Finding, facts: DumpFacts) -> None:
        """Keep a finding about a dump, unless it is about nodes that nobody asked for."""
        if self._is_wanted(finding):
            self.linted.findings.append(placed(finding, facts))

    def _is_wanted(self, finding: Finding) -> bool:
        if self.where is None or finding.code == RuleFailed.code:
            return True
        node = node_of(finding)
        return node is not None and self.where(node)

    def silence(self, rule: Rule, lacking: Lacking) -> None:
        """Remember that a rule could not look."""
        self.linted.silenced.append(Silenced(rule.code, lacking.need, lacking.reason))

    def _fail(self, rule: Rule, error: BaseException, facts: DumpFacts) -> None:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
        message = f"rule {rule.code} failed here: {what} ({place})"
        key = f"{rule.code} {type(error).__name__} {place}"
        self.add(RuleFailed().finding(message, key=key), facts)
