"""MEM002: optimizer state that several devices hold alike."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.units import bytes_text
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import GIB, ReportRule, Threshold
from irtool.linting.rules.memory.parameters import held_parameters
from irtool.sharding.network.report import CheckResult


class ReplicatedState(ReportRule):
    """Optimizer state of many bytes in all that optimizer parallel would divide."""

    code = "MEM002"
    name = "optimizer-state-not-sharded"
    severity = "warning"
    summary = "Optimizer state is kept alike on several devices"
    explanation = """
        Devices that hold the same slice of a weight keep the same optimizer state: momentum, both
        moments of Adam. Optimizer parallel (`enable_parallel_optimizer`) keeps a share on each of
        them instead, for an AllGather of the weight in the forward pass and a ReduceScatter of the
        gradient instead of its AllReduce: the same bytes on the wire in all.
        """
    hint = "set enable_parallel_optimizer=True"
    bad = "moments.w: slice 4 GiB on each of 8 replicas"
    good = "moments.w: slice 512 MiB on each of 8 replicas"
    cases = ("tests/linting/evidence/table_whole_gated.begin",)
    references = ("https://www.mindspore.cn/tutorials/en/master/parallel/optimizer_parallel.html",)
    least_bytes = Threshold(GIB, "bytes", "minimum saving on a device to report")

    def check(self, report: CheckResult, facts: DumpFacts) -> Iterator[Finding]:
        if report.context.parallel_optimizer:
            return
        states = [item for item in held_parameters(report) if item.is_state and item.replicas > 1]
        kept = sum(item.slice for item in states)
        saved = sum(item.slice - item.slice // item.replicas for item in states)
        if saved < self.least_bytes:
            return
        largest = max(states, key=lambda item: item.slice)
        yield self.finding(
            f"{bytes_text(kept)} of optimizer state on each device are kept alike by up to "
            f"{max(item.replicas for item in states)} of them; {bytes_text(saved)} could go",
            parameter=largest.report.parameter,
            key="optimizer state",
        )
