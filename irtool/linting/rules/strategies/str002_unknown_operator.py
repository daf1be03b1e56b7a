"""STR002: an operator that could not be judged."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import node_of
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import ReportRule
from irtool.sharding.network.report import CheckResult


class UnknownOperator(ReportRule):
    """What ``irtool check`` has no answer for, and why."""

    code = "STR002"
    name = "unknown-operator"
    severity = "info"
    summary = "The sharding of an operator could not be judged"
    explanation = """
        irtool has no rule for the operator, or the dump lacks what its rule needs. Nothing is said
        of its strategy then, and what lies behind it (layouts, redistributions, collectives) is
        not predicted. An operator of your own can be given a rule in one line: see
        docs/custom-operators.md.
        """
    hint = "write a sharding rule for it (docs/custom-operators.md)"
    bad = "%8(x) = MyFusedOp(%6, %7) {in_strategy: ((2, 4), (4, 1))}      no rule for MyFusedOp"
    good = "%8(x) = MyFusedOp(%6, %7) {in_strategy: ((2, 4), (4, 1))}     rule in irtool.toml"
    cases = ("tests/linting/evidence/own_operator_own.begin",)

    def check(self, report: CheckResult, facts: DumpFacts) -> Iterator[Finding]:
        reported: set[str] = set()
        for finding in report.findings:
            node = node_of(finding)
            if finding.code != "unknown" or finding.severity == "error" or not finding.op:
                continue
            given = node is not None and (node.written_strategy() or node.in_layout) is not None
            if given and finding.op not in reported:
                reported.add(finding.op)
                message = finding.message
                yield self.finding(
                    message if finding.op in message else f"{finding.op}: {message}", node
                )
