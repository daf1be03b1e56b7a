"""GAT007: a graph with many more statements than the golden one."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.linting.gate import GateFacts, GateRule
from irtool.linting.rule import Threshold


class LargerGraph(GateRule):
    """Statements that grew by more than a share: compilation takes longer in proportion."""

    code = "GAT007"
    name = "larger-graph"
    severity = "info"
    summary = "The graph has many more statements than the golden one"
    explanation = """
        The time of MindSpore's front end grows in proportion to the statements of the graph. Layers
        that are unrolled again, or more micro-batches, are the usual reason.
        """
    hint = "irtool parse --group-by scope shows which cells grew"
    bad = "4,200 statements became 8,400"
    follows_from = ("GAT008", "GAT010", "GAT004", "GAT003", "GAT006")
    good = "4,200 statements became 4,260"
    most_percent = Threshold(20, "percent", "growth up to this is let through")

    def check(self, facts: GateFacts) -> Iterator[Finding]:
        old, new = (
            sum(len(graph.nodes) for graph in side.dump.graphs) for side in (facts.old, facts.new)
        )
        if (new - old) * 100 > self.most_percent * old:
            yield self.finding(f"{old:,} statements became {new:,}", key="statements")
