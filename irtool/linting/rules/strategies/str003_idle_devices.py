"""STR003: devices that compute what others compute as well."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.units import plural
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
        attention), where the time is; where no product uses all devices that is one finding.

        An info where all that is repeated is a small share of the work of all products.
        """
    hint = "split another dimension, so that the numbers multiply to the devices of a stage"
    bad = "%8(x) = PrimFunc_MatMul(%6, %7, …) {in_strategy: ((2, 1), (1, 1))}     on 8 devices"
    good = "%8(x) = PrimFunc_MatMul(%6, %7, …) {in_strategy: ((2, 1), (1, 4))}    on 8 devices"
    cases = (
        "tests/linting/evidence/alltoall_dense.begin",
        "tests/linting/evidence/table_whole_gated.begin",
        "tests/linting/evidence/random_images_0309.begin",
        "tests/linting/evidence/random_images_0277.begin",
        "tests/linting/evidence/random_moe_0193.begin",
    )
    least_repeats = Threshold(2, "devices", "told where so many devices compute the same")
    least_gigaflops = Threshold(10, "gigaflops", "minimum work of an operator to report")

    least_share = Threshold(2, "percent", "a warning from this share of all products' work on")

    def check(self, report: CheckResult, facts: DumpFacts) -> Iterator[Finding]:
        devices = report.context.stage_size
        heavy = [
            (item, repeats(item, devices))
            for item in report.operators
            if operator_of(item.op).is_heavy and item.verdict == "legal" and item.strategy
        ]
        idle = [
            (item, times)
            for item, times in heavy
            if times >= max(2, self.least_repeats) and gigaflops(item) >= self.least_gigaflops
        ]
        spared = sum(gigaflops(item) * (times - 1) for item, times in idle)
        work = sum(gigaflops(item) * times for item, times in heavy)
        is_little = spared * 100 < self.least_share * work
        least = min((times for _, times in heavy), default=1)
        alike = [item for item, times in idle if times == least > 1 and len(heavy) > 1]
        if alike:
            first, *others = sorted(alike, key=gigaflops, reverse=True)
            more = f", {plural(len(others), 'other')}" if others else ""
            yield self.finding(
                f"no product uses more than {devices // least} of {devices} devices: each result "
                f"is computed {least} times at least ({first.op} with strategy {first.strategy}"
                f"{more})",
                first.node,
                hint="split all products over all devices, or run on fewer",
                related=[(f"{other.op} with strategy {other.strategy}", other.node)
                         for other in others[:20]],
                key="all products",
            )  # fmt: skip
        for item, times in idle:
            if item not in alike:
                yield self.finding(
                    f"{item.op} with strategy {item.strategy} uses {devices // times} of "
                    f"{devices} devices; each result is computed {times} times",
                    item.node,
                    severity="info" if is_little else None,
                )
