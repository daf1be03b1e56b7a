"""STR003: devices that compute what others compute as well."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import ReportRule, Threshold
from irtool.linting.rules.strategies.work import gigaflops, repeats
from irtool.operators.table import operator_of
from irtool.sharding.network.report import CheckResult


class IdleDevices(ReportRule):
    """A large product whose strategy uses fewer devices than there are."""

    code = "STR003"
    name = "idle-devices"
    severity = "warning"
    summary = "A strategy leaves devices without work of their own"
    explanation = """
        If the product of a strategy's numbers is smaller than the number of devices of the stage,
        the rest repeats the same computation: it takes as long as on fewer devices, and the
        gradient needs one more collective. Told for large products (MatMul, convolution,
        attention), where the time is.
        """
    hint = "split another dimension, so that the numbers multiply to the devices of a stage"
    bad = "%8(x) = PrimFunc_MatMul(%6, %7, …) {in_strategy: ((2, 1), (1, 1))}     on 8 devices"
    good = "%8(x) = PrimFunc_MatMul(%6, %7, …) {in_strategy: ((2, 1), (1, 4))}    on 8 devices"
    least_repeats = Threshold(2, "devices", "told where so many devices compute the same")
    least_gigaflops = Threshold(10, "gigaflops", "operators of at least so much work are told")

    def check(self, report: CheckResult, facts: DumpFacts) -> Iterator[Finding]:
        devices = report.context.stage_size
        for item in report.operators:
            if (
                not operator_of(item.op).is_heavy
                or item.verdict != "legal"
                or item.strategy is None
            ):
                continue
            times = repeats(item, devices)
            if times >= max(2, self.least_repeats) and gigaflops(item) >= self.least_gigaflops:
                yield self.finding(
                    f"{item.op} with strategy {item.strategy} uses {devices // times} of "
                    f"{devices} devices; each result is computed {times} times",
                    item.node,
                )
