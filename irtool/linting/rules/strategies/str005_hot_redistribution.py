"""STR005: two strategies that force a redistribution of a large tensor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.units import bytes_text
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import MIB, ReportRule, Threshold
from irtool.linting.rules.strategies.received import (
    edge_text,
    ends,
    is_tensor_parallel,
    pays,
    received_bytes,
)
from irtool.sharding.network.report import CheckResult, RedistributionReport


class HotRedistribution(ReportRule):
    """An edge on which collectives are inserted that move many bytes."""

    code = "STR005"
    name = "redistribution-of-large-tensor"
    severity = "warning"
    summary = "Two strategies force a redistribution of a large tensor"
    explanation = """
        Where an operator leaves its result in another layout than the next one wants, MindSpore
        inserts AllGather, Split and Concat, or AlltoAll, on the edge: forward, and the reverse of
        it in the backward pass. Told are edges on which each device receives many bytes, those into
        one operator together: its strategy is what would change. Those that `enable_alltoall`
        makes much cheaper are told together by COM009. An info where the devices that gather share
        a product by its weight: sequence parallelism gathers so on purpose.
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
    cases = ("tests/linting/evidence/random_moe_0193.begin",)
    follows_from = ("STR003",)
    follows_where = "node"
    follows_producer = ("STR007",)
    least_bytes = Threshold(64 * MIB, "bytes", "minimum traffic to a device over an edge to report")

    def check(self, report: CheckResult, facts: DumpFacts) -> Iterator[Finding]:
        by_consumer: dict[Node, list[RedistributionReport]] = defaultdict(list)
        for edge in report.redistributions:
            if received_bytes(edge) >= self.least_bytes and not pays(edge, report):
                by_consumer[ends(edge)[1]].append(edge)
        for consumer, edges in by_consumer.items():
            steps = [step.op for edge in edges for step in edge.operators or ()
                     if step.is_collective]  # fmt: skip
            first, *others = edges
            texts = [ends(edge)[0].op for edge in others]
            received = sum(map(received_bytes, edges))
            is_meant = all(is_tensor_parallel(edge, report) for edge in edges)
            yield self.finding(
                f"{' and '.join([*texts, edge_text(first)])}: {', '.join(dict.fromkeys(steps))} of "
                f"{bytes_text(received)} on each device",
                consumer,
                severity="info" if is_meant else None,
                related=[("the tensor comes from here", ends(edge)[0]) for edge in edges],
                key="edges",
            )
