"""COM004: many gradients that are reduced one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from irtool.ir.collectives import Collective
from irtool.ir.finding import Finding
from irtool.lint.facts import DumpFacts
from irtool.lint.rule import MIB, DumpRule, Threshold


class UnfusedGradients(DumpRule):
    """Reductions of gradients of one group whose fusion is 0."""

    code = "COM004"
    name = "unfused-gradients"
    severity = "warning"
    summary = "Gradients are reduced one by one, without fusion"
    explanation = """
        `fusion: 0` tells the backend to launch each reduction for itself. Many of them pay the
        start-up time of a collective many times; fused into buckets of tens of megabytes they run
        at the links' bandwidth. MindSpore's own mirrors have fusion 1, so that this comes from
        `comm_fusion={"openstate": False}`, from `Parameter.comm_fusion = 0`, or from user code.
        `irtool comm fuse` shows buckets with their gain.
        """
    hint = "leave comm_fusion on, or give the parameters a comm_fusion above 0"
    bad = "30 × PrimFunc_AllReduce(…) {instance name: grad_mirror_…, fusion: I64(0)}"
    good = "30 × PrimFunc_AllReduce(…) {instance name: grad_mirror_…, fusion: I64(1)}"
    least_count = Threshold(16, "collectives", "told where so many of one group are not fused")
    least_bytes = Threshold(16 * MIB, "bytes", "told where they move at least so many bytes in all")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        alone: dict[tuple[str, str | None], list[Collective]] = defaultdict(list)
        for item in facts.collectives:
            gradient = item.origin in ("mirror", "optimizer parallel") and item.is_gradient
            if gradient and not item.is_virtual and item.fusion == 0:
                alone[item.op, item.group].append(item)
        for (op, group), found in alone.items():
            total = sum(item.bytes or 0 for item in found)
            if len(found) >= self.least_count and total >= self.least_bytes:
                yield self.finding(
                    f"{len(found)} gradients ({total / MIB:,.0f} MiB) are reduced one by one",
                    found[0].node,
                    related=tuple((f"{op} without fusion", item.node) for item in found[1:6]),
                    key=f"{op} {group if group and group.endswith('world_group') else ''}",
                )
