"""COM009: edges that enable_alltoall would make much cheaper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from irtool.ir.finding import Edit, Finding
from irtool.ir.units import bytes_text, plural
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import KIB, MIB, ReportRule, Threshold
from irtool.linting.rules.strategies.received import (
    bytes_by_alltoall,
    edge_text,
    ends,
    pays,
    received_bytes,
)
from irtool.sharding.check import check
from irtool.sharding.network.report import CheckResult


class AlltoallPays(ReportRule):
    """A split that moves from one dimension to another by gathering the whole."""

    code = "COM009"
    name = "alltoall-would-pay"
    severity = "warning"
    summary = "enable_alltoall is off where tensors move a split from one dimension to another"
    explanation = """
        Moving a split from one dimension to another takes an AlltoAll. With `enable_alltoall` off
        (the default) MindSpore gathers the whole on every device and cuts it again: a group of `n`
        receives `n` times as many bytes, and the whole stands in memory for a moment. All edges of
        a network where that is so are one finding, at the one that receives most, with what each
        device would receive instead; the whole network was judged with the setting first.

        Some kilobytes a step are an info: a small network shows what a large one will pay.

        Edges that are dear with it too are told by STR005: these need other strategies.
        """
    hint = "set enable_alltoall=True, or let both operators split the same dimension"
    bad = "MatMul ((4, 1), (1, 1)) to Softmax ((1, 4),): AllGather of 96 MiB, StridedSlice"
    good = "MatMul ((4, 1), (1, 1)) to Softmax ((1, 4),): AlltoAll of 24 MiB"
    cases = (
        "tests/linting/evidence/alltoall_dense.begin",
        "tests/linting/evidence/random_zoo2_0044.begin",
    )
    least_bytes = Threshold(16 * KIB, "bytes", "told if a device receives so many fewer a step")
    least_grave = Threshold(MIB, "bytes", "a warning from so many on, else an info")
    least_share = Threshold(10, "percent", "and if that is this share of a step's communication")

    def check(self, report: CheckResult, facts: DumpFacts) -> Iterator[Finding]:
        step = sum((item.bytes or 0) * item.count for item in report.communications)
        # No more can be saved than is received, which is quickly known.
        if not self._is_much(sum(map(received_bytes, report.redistributions)), step):
            return
        edges = [edge for edge in report.redistributions if pays(edge, report)]
        now = sum(map(received_bytes, edges))
        then = sum(bytes_by_alltoall(edge, report) or 0 for edge in edges)
        saved = now - then
        if not edges or not self._is_much(saved, step):
            return
        if check(facts.dump, replace(report.context, enable_alltoall=True)).accepted is False:
            return
        first, *others = sorted(edges, key=received_bytes, reverse=True)
        more = f" and {plural(len(others), 'other edge')} receive" if others else " receives"
        yield self.finding(
            f"{edge_text(first)}{more} {bytes_text(now)} by gathering, "
            f"{bytes_text(then)} by AlltoAll",
            ends(first)[1],
            severity=None if saved >= self.least_grave else "info",
            edit=Edit(setting="enable_alltoall", value=True),
            related=[(edge_text(other), ends(other)[1]) for other in others[:20]],
            key="alltoall",
        )

    def _is_much(self, saved: int, step: int) -> bool:
        return saved >= self.least_bytes and saved * 100 >= self.least_share * step
