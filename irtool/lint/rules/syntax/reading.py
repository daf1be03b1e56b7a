"""What the rules about reading share: they tell the problems that the reader found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from irtool.ir.finding import Finding
from irtool.lint.facts import DumpFacts
from irtool.lint.rule import EVERY_DUMP, DumpKind, DumpRule


class ReadingRule(DumpRule):
    """Problems of the reader that bear the rule's own code."""

    dumps: ClassVar[tuple[DumpKind, ...]] = EVERY_DUMP

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        for problem in facts.dump.problems:
            if problem.code == self.code:
                yield self.finding(
                    problem.message,
                    line=problem.line,
                    column=problem.column,
                    text=problem.statement.split("\n", 1)[0],
                    hint=problem.hint,
                    severity=problem.severity,
                    key=problem.statement[:200],
                )


def is_of_failure(facts: DumpFacts) -> bool:
    """Whether the dump is that of a compilation that failed.

    MindSpore prints there what it was compiling, one graph several times if it came to that, and
    states that there are no graphs.
    """
    stated = facts.dump.properties.get("Total subgraphs")
    return stated == "0" or facts.name == "analyze_fail"
