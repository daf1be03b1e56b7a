"""What the rules about reading share: they tell the problems that the reader found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from irtool.ir.dump import Dump
from irtool.ir.finding import SEVERITIES, Finding, RelatedPlace, Severity
from irtool.ir.graph import Unresolved
from irtool.linting.accepted import REPORT
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import EVERY_DUMP, DumpKind, DumpRule

_DAMAGE = frozenset(("SYN003", "SYN005", "SYN006", "SYN007", "SYN008"))
"""Problems that only damage makes; those that are irtool's own may look like damage elsewhere."""
_MOST_BELOW = 20
"""Unreadable lines below another one that a finding names."""
_PAIRS = {")": "(", "]": "[", "}": "{"}


class ReadingRule(DumpRule):
    """Problems of the reader that bear the rule's own code."""

    dumps: ClassVar[tuple[DumpKind, ...]] = EVERY_DUMP

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        own = [problem for problem in facts.dump.problems if problem.code == self.code]
        for first, *below in _runs(own):
            severity, hint = min(
                (self.blamed(problem, facts) for problem in (first, *below)),
                key=lambda blame: SEVERITIES.index(blame[0]),
            )
            finding = self.finding(
                first.message,
                line=first.line,
                column=first.column,
                text=first.statement.split("\n", 1)[0],
                hint=hint,
                severity=severity,
                key=first.statement[:200],
            )
            places = (RelatedPlace("nor this", facts.path, each.line, each.column)
                      for each in below[:_MOST_BELOW])  # fmt: skip
            yield replace(finding, related=tuple(places))

    def blamed(self, problem: Finding, facts: DumpFacts) -> tuple[Severity, str]:
        """How grave a problem is, and what to do about it."""
        return problem.severity, problem.hint


def _runs(problems: Sequence[Finding]) -> Iterator[list[Finding]]:
    """Problems in lines right below each other together: what follows the first is its rest."""
    run: list[Finding] = []
    for problem in problems:
        if run and problem.line != run[-1].line + 1:
            yield run
            run = []
        run.append(problem)
    if run:
        yield run


class DoubtfulReading(ReadingRule):
    """Problems that are irtool's own doubt, unless the dump shows that it is damaged."""

    def blamed(self, problem: Finding, facts: DumpFacts) -> tuple[Severity, str]:
        damaged = facts.kept("syn.damaged", lambda: is_damaged(facts.dump))
        if damaged or problem.severity != "error" or not is_whole(problem.statement):
            return problem.severity, problem.hint
        return "info", f"nothing else shows damage, so this is irtool's lack: {REPORT}"


def is_damaged(dump: Dump) -> bool:
    """Whether a dump shows itself that a part of it is missing or not its own.

    Args:
        dump: with the problems that reading it showed.
    """
    if any(problem.code in _DAMAGE for problem in dump.problems):
        return True
    unreadable = [problem for problem in dump.problems if problem.code == "SYN001"]
    if unreadable:
        # What nobody could read is missed by what refers to it.
        return any(_has_lost_its_statement(first) for first, *_ in _runs(unreadable))
    return any(
        isinstance(graph.source(reference), Unresolved)
        for graph in dump.graphs
        if graph.head is not None
        for node in graph.nodes
        for reference in node.references()
    )


def _has_lost_its_statement(problem: Finding) -> bool:
    """Whether what cannot be read is the line of types of a statement that is not there."""
    return problem.statement.lstrip().startswith(": (<")


def is_whole(statement: str) -> bool:
    """Whether all brackets of a statement are closed, texts left out: one that was cut has some.

    Args:
        statement: as it is printed.
    """
    depth: list[str] = []
    quoted = False
    for char in statement:
        if char == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif char in "([{":
            depth.append(char)
        elif char in _PAIRS and (not depth or depth.pop() != _PAIRS[char]):
            return False
    return not depth and not quoted


def is_of_failure(facts: DumpFacts) -> bool:
    """Whether the dump is that of a compilation that failed.

    MindSpore prints there what it was compiling, one graph several times if it came to that, and
    states that there are no graphs.

    Args:
        facts: of the dump.
    """
    stated = facts.dump.properties.get("Total subgraphs")
    return stated == "0" or facts.name == "analyze_fail"
