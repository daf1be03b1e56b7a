"""GAT007: a graph with many more statements than the golden one."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.cluster.weight_layers import is_numbered, layer_of
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.units import count_text, plural
from irtool.linting.facts import DumpFacts
from irtool.linting.gate import GateFacts, GateRule
from irtool.linting.gate.layers import shown
from irtool.linting.rule import Threshold


class LargerGraph(GateRule):
    """Statements that grew by more than a share: compilation takes longer in proportion."""

    code = "GAT007"
    name = "larger-graph"
    severity = "info"
    summary = "The graph has many more statements than the golden one"
    explanation = """
        The time of MindSpore's front end grows in proportion to the statements of the graph. Layers
        that are unrolled again, or more micro-batches, are the usual reason. Told at the layer that
        grew most.
        """
    hint = "irtool parse --group-by scope shows which cells grew"
    bad = "4,200 statements became 8,400, of which layers.4 has 1,050 more"
    follows_from = ("GAT008", "GAT010", "GAT004", "GAT003", "GAT006")
    good = "4,200 statements became 4,260"
    cases = (
        "tests/linting/evidence/gate/layer_more_dense.validate",
        "tests/linting/evidence/gate/layer_more_mixer.validate",
    )
    most_percent = Threshold(20, "percent", "growth up to this is ignored")

    def check(self, facts: GateFacts) -> Iterator[Finding]:
        old, new = _by_layer(facts.old), _by_layer(facts.new)
        before, after = (sum(map(len, side.values())) for side in (old, new))
        if (after - before) * 100 <= self.most_percent * before:
            return
        layer = max(new, key=lambda name: len(new[name]) - len(old.get(name, ())))
        more = len(new[layer]) - len(old.get(layer, ()))
        where = f", of which {layer} has {count_text(more)} more" if is_numbered(layer) else ""
        yield self.finding(
            f"{count_text(before)} became {plural(after, 'statement')}{where}",
            shown(new[layer]),
            key="statements",
        )


def _by_layer(side: DumpFacts) -> dict[str, list[Node]]:
    """All statements by the layer that they belong to."""
    layers: dict[str, list[Node]] = {}
    for node in side.dump.nodes():
        layers.setdefault(layer_of(node), []).append(node)
    return layers
