"""STR001: what MindSpore's parallel pass would refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from irtool.ir.finding import Finding
from irtool.ir.graph import node_of
from irtool.linting.accepted import REPORT, is_accepted
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import ReportRule
from irtool.operators.call import Strategy
from irtool.sharding.network.report import CheckResult
from irtool.sharding.suggest import legal_instead

DEVICE_LIST = "device-list"
"""The check that holds on first-generation Ascend 910 only."""


class IllegalStrategy(ReportRule):
    """Every reason for which ``irtool check`` says that the network is refused."""

    code = "STR001"
    name = "illegal-strategy"
    severity = "error"
    summary = "MindSpore refuses a strategy"
    explanation = """
        MindSpore's parallel pass would stop here: the strategy does not fit the operator's shape,
        asks for more devices than a stage has, or contradicts another one. MindSpore names only the
        first reason; this rule tells all of them. `irtool check` shows the same with device
        matrices and layouts.

        Where a later dump of the same compilation is there, MindSpore did accept the network: then
        the doubt is irtool's, and what it would have refused is told once, as an info.

        Groups that first-generation Ascend 910 cannot form are told as a warning where nobody says
        which chip it is (`soc` in the context).
        """
    hint = "give the operator a legal strategy; irtool check shows which ones are near"
    bad = "%8(x) = PrimFunc_MatMul(%6, %7, Bool(0), Bool(1)) {in_strategy: ((2, 4), (1, 2))}"
    good = "%8(x) = PrimFunc_MatMul(%6, %7, Bool(0), Bool(1)) {in_strategy: ((2, 4), (1, 4))}"
    cases = (
        "tests/linting/evidence/tied_encoder.begin",
        "samples/mlp_rejected",
    )

    def check(self, report: CheckResult, facts: DumpFacts) -> Iterator[Finding]:
        refused = [finding for finding in report.findings if finding.severity == "error"]
        if not refused:
            return
        if is_accepted(facts.compilation):
            yield self._doubt(refused)
            return
        instead = facts.kept("instead", lambda: legal_instead(report))
        context = facts.compilation.surroundings.context or {}
        for finding in refused:
            unsure = finding.code == DEVICE_LIST and "soc" not in context
            yield self.finding(
                f"{finding.op}: {finding.message}" if finding.op else finding.message,
                node_of(finding),
                hint="say which chip it is: --soc Ascend910B" if unsure else "",
                fix=_fix(finding, instead),
                severity="warning" if unsure else None,
                key=finding.code,
            )

    def _doubt(self, refused: Sequence[Finding]) -> Finding:
        first = refused[0]
        others = [(other.message, node_of(other)) for other in refused[1:]]
        return self.finding(
            f"irtool would refuse {first.op or 'this'}, but MindSpore compiled it: {first.message}",
            node_of(first),
            severity="info",
            hint=REPORT,
            related=[(message, node) for message, node in others if node is not None],
            key=first.code,
        )


def _fix(finding: Finding, instead: Mapping[Finding, Sequence[Strategy]]) -> str | None:
    strategies = instead.get(finding, ())
    return "in_strategy " + ", or ".join(map(str, strategies)) if strategies else None
