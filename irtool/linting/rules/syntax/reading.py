"""What the rules about reading share: they tell the problems that the reader found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from irtool.ir.dump import Dump
from irtool.ir.finding import Finding, Severity
from irtool.ir.graph import Unresolved
from irtool.linting.accepted import REPORT
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import EVERY_DUMP, DumpKind, DumpRule

_DAMAGE = frozenset(("SYN003", "SYN005", "SYN006", "SYN007", "SYN008"))
"""Problems that only damage makes; those that are irtool's own may look like damage elsewhere."""
_PAIRS = {")": "(", "]": "[", "}": "{"}


class ReadingRule(DumpRule):
    """Problems of the reader that bear the rule's own code."""

    dumps: ClassVar[tuple[DumpKind, ...]] = EVERY_DUMP

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        for problem in facts.dump.problems:
            if problem.code == self.code:
                severity, hint = self.blamed(problem, facts)
                yield self.finding(
                    problem.message,
                    line=problem.line,
                    column=problem.column,
                    text=problem.statement.split("\n", 1)[0],
                    hint=hint,
                    severity=severity,
                    key=problem.statement[:200],
                )

    def blamed(self, problem: Finding, facts: DumpFacts) -> tuple[Severity, str]:
        """How grave a problem is, and what to do about it."""
        return problem.severity, problem.hint


class DoubtfulReading(ReadingRule):
    """Problems that are irtool's own doubt, unless the dump shows that it is damaged."""

    def blamed(self, problem: Finding, facts: DumpFacts) -> tuple[Severity, str]:
        damaged = facts.kept("syn.damaged", lambda: is_damaged(facts.dump))
        if damaged or problem.severity != "error" or not is_whole(problem.statement):
            return problem.severity, problem.hint
        return "info", f"nothing else shows damage, so this is irtool's lack: {REPORT}"


def is_damaged(dump: Dump) -> bool:
    """Whether a dump shows itself that a part of it is missing or not its own."""
    if any(problem.code in _DAMAGE for problem in dump.problems):
        return True
    if any(problem.code == "SYN001" for problem in dump.problems):
        return False  # what nobody could read is missed by what refers to it
    return any(
        isinstance(graph.source(reference), Unresolved)
        for graph in dump.graphs
        if graph.head is not None
        for node in graph.nodes
        for reference in node.references()
    )


def is_whole(statement: str) -> bool:
    """Whether all brackets of a statement are closed, texts left out: one that was cut has some."""
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
    """
    stated = facts.dump.properties.get("Total subgraphs")
    return stated == "0" or facts.name == "analyze_fail"
