"""COM005: many collectives of a few bytes each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from irtool.ir.collectives import Collective
from irtool.ir.finding import Finding
from irtool.ir.operators import POINT_TO_POINT
from irtool.lint.facts import DumpFacts
from irtool.lint.rule import KIB, DumpRule, Threshold


class TinyCollectives(DumpRule):
    """Collectives of one operator and group that move almost nothing and are not fused."""

    code = "COM005"
    name = "tiny-collectives"
    severity = "info"
    summary = "Many collectives move a few bytes each"
    explanation = """
        Below some tens of kilobytes a collective takes as long as its start-up, whatever it moves.
        Many small ones in a row (norms of gradients, statistics, sums of small parameters) can be
        put into one tensor first, or be fused by giving them the same fusion number.
        """
    hint = "concatenate the tensors and communicate once, or let them be fused"
    bad = "64 × PrimFunc_AllReduce(…) {fusion: I64(0)}     of 4 bytes each"
    good = "1 × PrimFunc_AllReduce(…)     of 256 bytes"
    most_bytes = Threshold(4 * KIB, "bytes", "collectives of at most so many bytes are tiny")
    least_count = Threshold(32, "collectives", "told where there are so many in one group")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        tiny: dict[tuple[str, str | None, bool], list[Collective]] = defaultdict(list)
        for item in facts.collectives:
            if item.is_virtual or item.fusion or item.op in POINT_TO_POINT:
                continue
            if item.bytes is not None and item.bytes <= self.most_bytes:
                tiny[item.op, item.group, item.is_gradient].append(item)
        for (op, _, backward), found in tiny.items():
            if len(found) >= self.least_count:
                phase = "backward" if backward else "forward"
                yield self.finding(
                    f"{len(found)} times {op} of at most {self.most_bytes:,} bytes in the "
                    f"{phase} pass",
                    found[0].node,
                    related=tuple((f"another {op}", item.node) for item in found[1:4]),
                    key=f"{op} {phase}",
                )
