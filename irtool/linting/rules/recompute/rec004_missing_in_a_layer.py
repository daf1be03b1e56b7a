"""REC004: all layers of a kind are recomputed but a few."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.cluster.recomputed_layers import uneven_layers
from irtool.ir.finding import Edit, Finding
from irtool.linting.facts import DumpFacts
from irtool.linting.layers import kind_of
from irtool.linting.places import user_frames
from irtool.linting.rule import DumpRule, Threshold


class MissingInALayer(DumpRule):
    """Of layers with equal forward operators, some are recomputed and a few are not."""

    code = "REC004"
    name = "recompute-missing-in-a-layer"
    severity = "warning"
    summary = "One of several equal layers is not recomputed"
    explanation = """
        Layers that compute the same and differ in their number alone are usually recomputed all or
        none. Where some are and others are not, the peak is what those others keep. All layers
        that are left out are one finding.

        Selective recomputation leaves out several layers at one end, whose activations live
        shortly or are few: that is told as an info. `irtool doctor` says what recomputing them
        would save.
        """
    hint = "call recompute() on this layer too, if it was not left out on purpose"
    bad = "layers.0, layers.1, layers.3: copies in validate; layers.2: none"
    good = "layers.0 to layers.3: copies in validate"
    cases = (
        "tests/linting/evidence/recompute_lost_last_encoder.validate",
        "tests/linting/evidence/recompute_lost_dense.validate",
        "samples/recompute_lost",
    )
    dumps = ("validate",)
    least_layers = Threshold(2, "layers", "told where at least so many equal layers are recomputed")
    most_missing = Threshold(50, "percent", "told where at most this share is not recomputed")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        for item in uneven_layers(facts.dump, facts.phases):
            done = len(item.recomputed)
            if done < self.least_layers or item.share_kept * 100 > self.most_missing:
                continue
            layers = list(item.kept)
            names = ", ".join(layers[:4])
            names += f" and {len(layers) - 4} more" if len(layers) > 4 else ""
            first = item.kept[layers[0]]
            yield self.finding(
                f"{names} {'is' if len(layers) == 1 else 'are'} not recomputed, as {done} equal "
                f"layers are ({item.recomputed[0]})",
                next((node for node in first if user_frames(node)), first[0]),
                severity="info" if item.is_selective else None,
                edit=Edit(
                    setting="recompute", value="; ".join(f"{layer}.recompute()" for layer in layers)
                ),
                related=[(layer, item.kept[layer][0]) for layer in layers[1:20]],
                key=kind_of(layers[0]),
            )
