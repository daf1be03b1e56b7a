"""GAT004: operators that are no longer recomputed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import ceil

from irtool.cluster.memory.layers import NETWORK
from irtool.cluster.weight_layers import cells_of, layer_of
from irtool.ir.dump import Dump
from irtool.ir.finding import Edit, Finding
from irtool.ir.operators import COMMUNICATION, PLUMBING
from irtool.linting.gate import GateFacts, GateRule
from irtool.linting.gate.layers import forward_layers, is_within, outermost, shown
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
        copies because it has fewer operators is not told; nor are copies whose scope names no
        layer, where they went along with those of layers.
        """
    hint = "look whether recompute() still reaches this cell"
    bad = "layers.2 is no longer recomputed: 48 operators"
    good = "layers.0 to layers.3 are recomputed, as before"
    cases = (
        "tests/linting/evidence/gate/lost_recompute_dense.validate",
        "tests/linting/evidence/gate/lost_recompute_mixer.validate",
        "tests/linting/evidence/gate/lost_recompute_experts.validate",
    )

    def check(self, facts: GateFacts) -> Iterator[Finding]:
        old, new = _copies(facts.old.dump), _copies(facts.new.dump)
        layers = forward_layers(facts.new)
        before = forward_layers(facts.old)
        lost = [
            cell
            for cell, count in old.items()
            if new[cell] < count
            and (cell in layers or (cell == NETWORK and not _went_along(old, new)))
            # Fewer operators have fewer copies.
            and not (new[cell] and len(layers.get(cell, ())) < len(before.get(cell, ())))
        ]
        gone = outermost(cell for cell in lost if not new[cell])
        # At the borders of a cell that is gone, its equals have an operator more or less.
        kinds = {kind_of(cell) for cell in gone}
        less = [
            cell
            for cell in lost
            if new[cell]
            and kind_of(cell) not in kinds
            and not any(is_within(member, cell) for member in lost)
        ]
        groups: dict[tuple[str, bool], list[str]] = {}
        for cell in (*gone, *less):
            groups.setdefault((kind_of(cell), not new[cell]), []).append(cell)
        for (kind, is_gone), named in groups.items():
            cells = sorted(named, key=layer_number)
            count, left = sum(old[member] for member in cells), sum(new[member] for member in cells)
            names = ", ".join(cells[:4]) + (f" and {len(cells) - 4} more" if len(cells) > 4 else "")
            one = len(cells) == 1
            what = (
                f"{'is' if one else 'are'} no longer recomputed: {count} operators"
                if is_gone
                else f"{'has' if one else 'have'} {left} recomputed operators instead of {count}"
            )
            yield self.finding(
                f"{names} {what}",
                shown(layers.get(cells[0], ())),
                edit=Edit(
                    setting="recompute",
                    value="; ".join(f"{member}.recompute()" for member in cells),
                ),
                related=[
                    (member, node)
                    for member in cells[1:]
                    if (node := shown(layers.get(member, ())))
                ],
                key=kind,
            )


def _went_along(old: Counter[str], new: Counter[str]) -> bool:
    """Whether copies that no layer names belonged to those that layers lost: no larger a share."""
    layers = [cell for cell in outermost(old) if cell != NETWORK]
    lost = sum(old[cell] - new[cell] for cell in layers if new[cell] < old[cell])
    had = sum(old[cell] for cell in layers)
    return lost > 0 and old[NETWORK] - new[NETWORK] <= ceil(old[NETWORK] * lost / had)


def _copies(dump: Dump) -> Counter[str]:
    """Recomputed operators by numbered cell: by layer, and by those that stand in it."""
    return Counter(
        cell
        for node in dump.nodes()
        if node.is_recomputed and node.op not in PLUMBING and node.op not in COMMUNICATION
        for cell in cells_of(node) or (layer_of(node),)
    )
