"""REC001: a collective that runs again for recomputation."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.collectives import Collective
from irtool.ir.finding import Finding
from irtool.ir.units import bytes_text
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import MIB, DumpRule, Threshold


class RecomputedCollective(DumpRule):
    """Collectives among the copies that are made for recomputation."""

    code = "REC001"
    name = "recomputed-collective"
    severity = "info"
    summary = "Recomputation runs collectives a second time"
    explanation = """
        A recomputed cell runs its forward collectives again in the backward pass, where nothing
        hides them. `recompute(mp_comm_recompute=False)` keeps the results of collectives of model
        parallelism instead (for their bytes of memory), and
        `recompute(parallel_optimizer_comm_recompute=False)` those of optimizer parallel. MindSpore
        repeats the former unless told otherwise.
        """
    hint = "recompute(mp_comm_recompute=False) where memory allows"
    bad = "%90(c) = PrimFunc_AllReduce(%89) {group: …} cnode_attrs: {duplicated: Bool(1)}"
    good = "%90(c) = PrimFunc_MatMul(%12, %13) cnode_attrs: {duplicated: Bool(1)}"
    cases = ("tests/linting/evidence/recomputed_sums_gated.validate",)
    dumps = ("validate",)
    least_bytes = Threshold(256 * MIB, "bytes", "minimum traffic of all of them to report")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        again = [collective for collective in facts.collectives if collective.node.is_recomputed]
        moved = sum(collective.bytes or 0 for collective in again)
        if not again or moved < self.least_bytes:
            return
        dearest = max(again, key=_bytes)
        others = tuple(
            (f"{collective.op} again", collective.node)
            for collective in again
            if collective is not dearest
        )
        count = f"{len(again)} collectives" if len(again) > 1 else "a collective"
        yield self.finding(
            f"recomputation runs {count} again: {bytes_text(moved)} a step",
            dearest.node,
            related=others[:20],
        )


def _bytes(item: Collective) -> int:
    return item.bytes or 0
