"""GAT004: operators that are no longer recomputed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from irtool.cluster.memory_layers import NETWORK
from irtool.cluster.weight_layers import layer_of
from irtool.ir.dump import Dump
from irtool.ir.finding import Edit, Finding
from irtool.ir.operators import COMMUNICATION, PLUMBING
from irtool.linting.gate import GateFacts, GateRule
from irtool.linting.gate_layers import forward_layers, shown
from irtool.linting.layers import kind_of, layer_number


class LostRecompute(GateRule):
    """Layers with fewer recomputed operators than in the golden dump."""

    code = "GAT004"
    name = "lost-recompute"
    severity = "warning"
    summary = "Operators of the golden dump are no longer recomputed"
    explanation = """
        Second copies of forward operators (`duplicated: Bool(1)`) are counted by layer. Where they
        are gone, what they made again is kept for the whole backward pass. A layer that has fewer
        copies because it has fewer operators is not told.
        """
    hint = "look whether recompute() still reaches this cell"
    bad = "layers.2 is no longer recomputed: 48 operators"
    good = "layers.0 to layers.3 are recomputed, as before"
    cases = (
        "tests/linting/evidence/gate/lost_recompute_dense.validate",
        "tests/linting/evidence/gate/lost_recompute_mixer.validate",
    )

    def check(self, facts: GateFacts) -> Iterator[Finding]:
        old, new = _copies(facts.old.dump), _copies(facts.new.dump)
        layers = forward_layers(facts.new)
        before = forward_layers(facts.old)
        groups: dict[tuple[str, bool], list[str]] = {}
        for layer, count in old.items():
            left = new[layer]
            if left >= count or (layer != NETWORK and layer not in layers):
                continue
            forward = len(before.get(layer, ())), len(layers.get(layer, ()))
            if left and forward[1] < forward[0]:
                continue  # fewer operators have fewer copies
            groups.setdefault((kind_of(layer), left == 0), []).append(layer)
        for (kind, is_gone), named in groups.items():
            lost = sorted(named, key=layer_number)
            count, left = sum(old[each] for each in lost), sum(new[each] for each in lost)
            names = ", ".join(lost[:4]) + (f" and {len(lost) - 4} more" if len(lost) > 4 else "")
            one = len(lost) == 1
            what = (
                f"{'is' if one else 'are'} no longer recomputed: {count} operators"
                if is_gone
                else f"{'has' if one else 'have'} {left} recomputed operators instead of {count}"
            )
            yield self.finding(
                f"{names} {what}",
                shown(layers.get(lost[0], ())),
                edit=Edit(
                    setting="recompute", value="; ".join(f"{each}.recompute()" for each in lost)
                ),
                related=[
                    (each, node) for each in lost[1:] if (node := shown(layers.get(each, ())))
                ],
                key=kind,
            )


def _copies(dump: Dump) -> Counter[str]:
    """Recomputed operators by layer."""
    return Counter(
        layer_of(node)
        for node in dump.nodes()
        if node.is_recomputed and node.op not in PLUMBING and node.op not in COMMUNICATION
    )
