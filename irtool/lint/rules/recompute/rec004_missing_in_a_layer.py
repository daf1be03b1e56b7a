"""REC004: all layers of a kind are recomputed but a few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.operators import PLUMBING
from irtool.lint.facts import DumpFacts
from irtool.lint.rule import DumpRule, Threshold
from irtool.lint.rules.recompute.scopes import by_layer


class MissingInALayer(DumpRule):
    """Of layers with equal forward operators, some are recomputed and a few are not."""

    code = "REC004"
    name = "recompute-missing-in-a-layer"
    severity = "info"
    summary = "One of several equal layers is not recomputed"
    explanation = """
        Layers that compute the same and differ in their number alone are usually recomputed all or
        none. Where most are and a few are not, the peak is what those few keep. It can be meant
        so (selective recomputation keeps the last layers, whose activations live shortly); then
        give this rule a smaller `most_missing`, or ignore the scope.
        """
    hint = "call recompute() on this layer too, if it was not left out on purpose"
    bad = "layers.0, layers.1, layers.3: copies in validate; layers.2: none"
    good = "layers.0 to layers.3: copies in validate"
    dumps = ("validate",)
    least_layers = Threshold(3, "layers", "told where at least so many equal layers are recomputed")
    most_missing = Threshold(25, "percent", "told where at most this share is not recomputed")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        forward = [
            node
            for node in facts.dump.nodes()
            if facts.phases.get(node) == "forward" and node.op not in PLUMBING
        ]
        again = [
            node for node in facts.dump.nodes() if node.is_recomputed and node.op not in PLUMBING
        ]
        copies = {(kind, number) for kind, layers in by_layer(again).items() for number in layers}
        if not copies:
            return
        for kind, layers in by_layer(forward).items():
            equal = Counter(_operators(nodes) for nodes in layers.values())
            usual = equal.most_common(1)[0][0]
            alike = [number for number, nodes in layers.items() if _operators(nodes) == usual]
            missing = [number for number in alike if (kind, number) not in copies]
            done = len(alike) - len(missing)
            if done < self.least_layers or len(missing) * 100 > self.most_missing * len(alike):
                continue
            for number in missing:
                yield self.finding(
                    f"layer {number} of {kind} is not recomputed, as {done} equal layers are",
                    layers[number][0],
                    key=f"{kind} {number}",
                )


def _operators(nodes: list[Node]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(Counter(node.op for node in nodes).items()))
