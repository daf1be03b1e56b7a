"""MEM004: weights that optimizer parallel leaves whole."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.units import bytes_text
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import KIB, MIB, ReportRule, Threshold
from irtool.linting.rules.memory.parameters import HeldParameter, held_parameters
from irtool.sharding.network.report import CheckResult


class NotShardedByOptimizer(ReportRule):
    """Optimizer parallel is on, and yet a weight stays whole: too small, or not divisible."""

    code = "MEM004"
    name = "weight-left-whole-by-optimizer-parallel"
    severity = "info"
    summary = "Optimizer parallel leaves a weight whole"
    explanation = """
        Optimizer parallel divides a weight among the devices that hold the same slice if the whole
        weight has at least `parallel_optimizer_threshold` KiB (64 unless set; equal is enough; the
        bytes before slicing count) and the first dimension of its slice can be divided. All others
        are left whole without a word.

        One that is large but cannot be divided (130 rows on 8 devices) is told for itself; those
        below the threshold together, if they are many bytes.
        """
    hint = "pad its first dimension to a multiple of the replicas"
    bad = "w: (1030, 4096) on 8 replicas, slice (1030, 4096)"
    good = "w: (1032, 4096) on 8 replicas, slice (129, 4096)"
    cases = ("tests/linting/evidence/rows_odd_gated.begin",)
    least_bytes = Threshold(MIB, "bytes", "weights that cannot be divided: told from here on")
    least_total = Threshold(64 * MIB, "bytes", "those below the threshold: told from here on")

    def check(self, report: CheckResult, facts: DumpFacts) -> Iterator[Finding]:
        if not report.context.parallel_optimizer:
            return
        threshold = report.context.threshold * KIB
        unsharded = [item for item in held_parameters(report) if self._is_whole(item)]
        for item in unsharded:
            if item.whole >= threshold and item.slice >= self.least_bytes:
                rows = item.report.slice[0] if item.report.slice else 0
                if rows and rows % item.replicas:
                    yield self.finding(
                        f"{item.report.name} stays whole: {rows} rows cannot be divided among "
                        f"{item.replicas} devices",
                        item.report.user,
                        item.report.parameter,
                        key=item.report.name,
                    )
        small = [item for item in unsharded if item.whole < threshold]
        total = sum(item.slice for item in small)
        if total >= self.least_total:
            yield self.finding(
                f"{len(small):,} weights below {report.context.threshold} KiB stay whole: "
                f"{bytes_text(total)} in all",
                parameter=small[0].report.parameter,
                hint="lower parallel_optimizer_threshold",
                key="below the threshold",
            )

    @staticmethod
    def _is_whole(item: HeldParameter) -> bool:
        return not item.is_state and item.replicas > 1 and not item.report.gather_ranks
