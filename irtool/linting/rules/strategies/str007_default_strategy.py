"""STR007: a strategy that nobody gave."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import ReportRule, Threshold
from irtool.linting.rules.strategies.work import gigaflops
from irtool.operators.table import operator_of
from irtool.sharding.network.report import CheckResult


class DefaultStrategy(ReportRule):
    """A large product without a strategy in a network that has strategies elsewhere."""

    code = "STR007"
    name = "default-strategy"
    severity = "info"
    summary = "An operator without a strategy gets MindSpore's default"
    explanation = """
        In semi-automatic mode an operator without `shard()` is split along its batch dimension over
        all devices, or not at all, without a word. In a network where others are split by tensor
        parallelism that forces a redistribution on both sides of it. Told for large products only,
        and only if most of the others do have strategies.
        """
    hint = "give it a strategy with shard()"
    bad = "%8(x) = PrimFunc_MatMul(%6, %7, …)"
    good = "%8(x) = PrimFunc_MatMul(%6, %7, …) {in_strategy: ((2, 1), (1, 4))}"
    cases = ("tests/linting/evidence/random_images_0277.begin",)
    least_gigaflops = Threshold(10, "gigaflops", "minimum work of an operator to report")
    least_share = Threshold(50, "percent", "told if so many of the large products have strategies")

    def check(self, report: CheckResult, facts: DumpFacts) -> Iterator[Finding]:
        if report.context.mode != "semi_auto_parallel":
            return
        products = [item for item in report.operators if operator_of(item.op).is_heavy]
        silent = [item for item in products if item.judgement.generated]
        given = len(products) - len(silent)
        if not silent or given * 100 < self.least_share * len(products):
            return
        for item in silent:
            if item.strategy is not None and gigaflops(item) >= self.least_gigaflops:
                yield self.finding(
                    f"{item.op} has no strategy and gets the default {item.strategy}", item.node
                )
