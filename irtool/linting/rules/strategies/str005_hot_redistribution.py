"""STR005: two strategies that force a redistribution of a large tensor."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import MIB, ReportRule, Threshold
from irtool.linting.rules.strategies.received import pays, received_bytes
from irtool.sharding.network.report import CheckResult


class HotRedistribution(ReportRule):
    """An edge on which collectives are inserted that move many bytes."""

    code = "STR005"
    name = "redistribution-of-large-tensor"
    severity = "warning"
    summary = "Two strategies force a redistribution of a large tensor"
    explanation = """
        Where an operator leaves its result in another layout than the next one wants, MindSpore
        inserts AllGather, Split and Concat, or AlltoAll, on the edge: forward, and the reverse of
        it in the backward pass. Told are edges on which each device receives many bytes. Those that
        `enable_alltoall` makes much cheaper are told together by COM009.
        """
    hint = "give both operators strategies that split this tensor alike"
    bad = """
        %7(a) = PrimFunc_MatMul(%5, %6, …) {in_strategy: ((8, 1), (1, 1))}
        %8(b) = PrimFunc_GeLU(%7) {in_strategy: ((1, 8))}
        """
    good = """
        %7(a) = PrimFunc_MatMul(%5, %6, …) {in_strategy: ((8, 1), (1, 1))}
        %8(b) = PrimFunc_GeLU(%7) {in_strategy: ((8, 1))}
        """
    least_bytes = Threshold(64 * MIB, "bytes", "edges on which a device receives so many are told")

    def check(self, report: CheckResult, facts: DumpFacts) -> Iterator[Finding]:
        for edge in report.redistributions:
            received = received_bytes(edge)
            if received < self.least_bytes or pays(edge, report):
                continue
            collectives = [step.op for step in edge.operators or () if step.is_collective]
            yield self.finding(
                f"{edge.producer.op} to {edge.consumer.op}: {', '.join(collectives)} of "
                f"{received / MIB:,.0f} MiB on each device",
                edge.consumer,
                related=(("the tensor comes from here", edge.producer),),
                key=f"input {edge.input} {edge.item}",
            )
