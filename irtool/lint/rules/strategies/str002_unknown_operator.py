"""STR002: an operator that could not be judged."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import node_of
from irtool.lint.facts import DumpFacts
from irtool.lint.rule import ReportRule
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

    def check(self, report: CheckResult, facts: DumpFacts) -> Iterator[Finding]:
        for finding in report.findings:
            if finding.code == "unknown" and finding.severity != "error":
                message = finding.message
                if finding.op and finding.op not in message:
                    message = f"{finding.op}: {message}"
                yield self.finding(message, node_of(finding))
