"""GAT001: more collectives than in the golden dump."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.units import bytes_text
from irtool.linting.gate import CollectiveChange, GateFacts, GateRule, collective_changes
from irtool.linting.rule import Threshold


class MoreCollectives(GateRule):
    """Collectives of a kind that the golden dump has fewer of."""

    code = "GAT001"
    name = "more-collectives"
    severity = "warning"
    summary = "There are more collectives than in the golden dump"
    explanation = """
        Collectives are counted by operator, by why they are there (redistribution, forward
        reduction, mirror, …) and by phase. Three more AllGathers in the forward pass usually mean
        that a strategy changed next to an operator that kept its own.
        """
    hint = "irtool diff OLD NEW shows what leads to them; update the golden dump if it is meant"
    bad = "12 AllGather (redistribution, forward) became 15"
    follows_from = ("GAT008", "GAT003", "GAT010", "GAT004", "GAT009", "GAT006")
    good = "12 AllGather (redistribution, forward) stayed 12"
    cases = (
        "tests/linting/evidence/gate/strategy_dense.validate",
        "tests/linting/evidence/gate/strategy_gated.validate",
        "tests/linting/evidence/gate/strategy_mixer.validate",
    )
    most_more = Threshold(0, "collectives", "up to so many more of a kind are ignored")

    def check(self, facts: GateFacts) -> Iterator[Finding]:
        for change in collective_changes(facts):
            more = len(change.new) - len(change.old)
            if more > self.most_more:
                added = [item for item in change.new if item.node in facts.added] or change.new
                first = added[0]
                yield self.finding(
                    f"{more} more {change.label}: {len(change.old)} became {len(change.new)}, "
                    f"{_more(change)}",
                    first.node,
                    related=tuple(("another one", item.node) for item in added[1:6]),
                    key=change.label,
                )


def _more(change: CollectiveChange) -> str:
    old, new = (sum(item.bytes or 0 for item in side) for side in (change.old, change.new))
    if new == old:
        return "of as many bytes in all"
    return f"{bytes_text(abs(new - old))} {'more' if new > old else 'less'}"
