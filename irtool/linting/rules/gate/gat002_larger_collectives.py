"""GAT002: collectives that move more bytes than in the golden dump."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.units import told_apart
from irtool.linting.gate import GateFacts, GateRule, collective_changes
from irtool.linting.rule import Threshold


class LargerCollectives(GateRule):
    """Bytes of a kind of collective that grew, though their number did not."""

    code = "GAT002"
    name = "larger-collectives"
    severity = "warning"
    summary = "Collectives move more bytes than in the golden dump"
    explanation = """
        Bytes of all collectives of one operator, reason and phase, of the larger of input and
        output on one rank. A larger batch makes all of them grow alike; one kind that grows alone
        is a strategy or an element type that changed. Where there are more of them, GAT001 tells.
        """
    hint = "irtool diff OLD NEW shows which tensors grew; update the golden dump if it is meant"
    bad = "AllReduce (mirror, backward): 810 MiB became 1,620 MiB"
    follows_from = ("GAT006", "GAT003", "GAT008", "GAT010", "GAT009", "GAT004")
    good = "AllReduce (mirror, backward): 810 MiB stayed 810 MiB"
    cases = ("tests/linting/evidence/gate/golden_gated.validate",)
    most_percent = Threshold(5, "percent", "growth up to this is ignored")
    least_bytes = Threshold(64 * 1024, "bytes", "growth below this is ignored")

    def check(self, facts: GateFacts) -> Iterator[Finding]:
        for change in collective_changes(facts):
            if not change.old or len(change.new) > len(change.old):
                continue
            old, new = (sum(item.bytes or 0 for item in side) for side in (change.old, change.new))
            grew = new - old
            if grew >= self.least_bytes and grew * 100 > self.most_percent * old:
                largest = max(change.new, key=lambda item: item.bytes or 0)
                before, now = told_apart(old, new, "bytes")
                yield self.finding(
                    f"{change.label} moves {now} instead of {before}",
                    largest.node,
                    key=change.label,
                )
