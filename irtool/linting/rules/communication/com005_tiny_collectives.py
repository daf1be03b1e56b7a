"""COM005: many collectives of a few bytes each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from irtool.ir.collectives import Collective
from irtool.ir.finding import Finding
from irtool.ir.operators import POINT_TO_POINT
from irtool.ir.units import bytes_text
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import KIB, DumpRule, Threshold

_SCALARS = 64
"""Bytes that are tiny in any network."""


class TinyCollectives(DumpRule):
    """Collectives of one operator and group that move almost nothing and are not fused."""

    code = "COM005"
    name = "tiny-collectives"
    severity = "warning"
    summary = "Many collectives move a few bytes each"
    explanation = """
        Below some tens of kilobytes a collective takes as long as its start-up, whatever it moves.
        Many small ones in a row (norms of gradients, statistics, sums of small parameters) can be
        put into one tensor first, or be fused by giving them the same fusion number.

        Small is relative: a collective counts if it moves at most `most_bytes`, and a small part of
        what the largest one of the network moves.
        """
    hint = "concatenate the tensors and communicate once, or let them be fused"
    bad = "64 × PrimFunc_AllReduce(…) {fusion: I64(0)}     of 4 bytes each"
    good = "1 × PrimFunc_AllReduce(…)     of 256 bytes"
    cases = ("tests/linting/evidence/reductions_scalar_gated.validate",)
    most_bytes = Threshold(4 * KIB, "bytes", "collectives of at most so many bytes are tiny")
    most_share = Threshold(1, "percent", "and at most this share of the largest collective")
    least_count = Threshold(32, "collectives", "told where either pass has so many in one group")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        largest = max((item.bytes or 0 for item in facts.collectives), default=0)
        most = max(_SCALARS, min(self.most_bytes, largest * self.most_share / 100))
        tiny: dict[tuple[str, str | None], list[Collective]] = defaultdict(list)
        for item in facts.collectives:
            if item.is_virtual or item.fusion or item.op in POINT_TO_POINT:
                continue
            if item.bytes is not None and item.bytes <= most:
                tiny[item.op, item.group].append(item)
        for (op, _), alike in tiny.items():
            backward = sum(item.is_gradient for item in alike)
            if max(backward, len(alike) - backward) < self.least_count:
                continue
            size = max(item.bytes or 0 for item in alike)
            forward = [item for item in alike if not item.is_gradient] or alike
            yield self.finding(
                f"{len(alike)} times {op} of at most {bytes_text(size)} in a step, "
                f"{backward} of them in the backward pass",
                forward[0].node,
                related=tuple((f"another {op}", item.node) for item in forward[1:4]),
                key=op,
            )
