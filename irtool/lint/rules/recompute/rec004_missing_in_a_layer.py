"""REC004: all layers of a kind are recomputed but a few."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.cluster.recomputed_layers import uneven_layers
from irtool.ir.finding import Finding
from irtool.lint.facts import DumpFacts
from irtool.lint.rule import DumpRule, Threshold


class MissingInALayer(DumpRule):
    """Of layers with equal forward operators, some are recomputed and a few are not."""

    code = "REC004"
    name = "recompute-missing-in-a-layer"
    severity = "info"
    summary = "One of several equal layers is not recomputed"
    explanation = """
        Layers that compute the same and differ in their number alone are usually recomputed all or
        none. Where some are and others are not, the peak is what those others keep. It can be meant
        so (selective recomputation keeps the last layers, whose activations live shortly); then
        give this rule a smaller `most_missing`, or ignore the scope.
        """
    hint = "call recompute() on this layer too, if it was not left out on purpose"
    bad = "layers.0, layers.1, layers.3: copies in validate; layers.2: none"
    good = "layers.0 to layers.3: copies in validate"
    dumps = ("validate",)
    least_layers = Threshold(2, "layers", "told where at least so many equal layers are recomputed")
    most_missing = Threshold(50, "percent", "told where at most this share is not recomputed")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        for item in uneven_layers(facts.dump, facts.phases):
            done = len(item.recomputed)
            if done < self.least_layers or item.share_kept * 100 > self.most_missing:
                continue
            for layer, nodes in item.kept.items():
                yield self.finding(
                    f"{layer} is not recomputed, as {done} equal layers are", nodes[0], key=layer
                )
