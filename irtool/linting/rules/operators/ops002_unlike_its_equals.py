"""OPS002: a rate that is not that of the equal layers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from irtool.cluster.weight_layers import layer_of
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.units import plural
from irtool.linting.constants import rates
from irtool.linting.facts import DumpFacts
from irtool.linting.layers import Slot, slots
from irtool.linting.rule import DumpRule, Threshold
from irtool.operators.table import operator_of


class UnlikeItsEquals(DumpRule):
    """A keep probability, an epsilon or a factor of one layer that all others have otherwise."""

    code = "OPS002"
    name = "rate-differs-between-equal-layers"
    severity = "warning"
    summary = "A rate of one layer is not that of its equals"
    explanation = """
        Layers that compute the same have the same rates: what a dropout keeps, the epsilon of a
        normalisation, the factor of the scores. Where most layers of a kind agree and a few do not,
        or a dropout stands in most and is missing in a few, a default slipped in or an edit was
        forgotten; nothing fails, and the loss is only a little worse.

        Rates that grow from layer to layer (stochastic depth) have no value that most layers share,
        and are not told. Only numbers that the graph holds as constants are looked at.
        """
    hint = "give all layers the same rate, or ignore the scope if it is meant"
    bad = "layers.2: Dropout(…, F32(0.5)); layers.0, layers.1, layers.3: Dropout(…, F32(0.9))"
    good = "layers.0 to layers.3: Dropout(…, F32(0.9))"
    cases = (
        "tests/linting/evidence/dropout_gone_encoder.begin",
        "tests/linting/evidence/dropout_half_gated.begin",
        "tests/linting/evidence/epsilon_one_encoder.begin",
        "tests/linting/evidence/residual_one_dense.begin",
    )
    dumps = ("begin", "validate", "end", "auto_begin", "other")
    least_layers = Threshold(3, "layers", "minimum number of equal layers to compare")
    most_odd = Threshold(34, "percent", "told where at most this share of the layers differs")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        phases = facts.phases
        forward = [node for node in facts.dump.nodes() if phases.get(node, "forward") == "forward"]
        for slot in slots(forward):
            if len(slot.layers) < self.least_layers:
                continue
            yield from self._values(slot)
            if operator_of(slot.op).is_("random"):
                yield from self._missing(slot, forward)

    def _values(self, slot: Slot) -> Iterator[Finding]:
        """Constants of the operator by name, and layers where one is not that of most."""
        table: dict[str, dict[float, list[str]]] = defaultdict(lambda: defaultdict(list))
        for layer, node in slot.nodes.items():
            for name, value in rates(node):
                table[name][value].append(layer)
        for name, by_value in table.items():
            usual = max(by_value, key=lambda value: len(by_value[value]))
            equal = by_value[usual]
            odd = {value: layers for value, layers in by_value.items() if value != usual}
            if not odd or not self._is_few(sum(map(len, odd.values())), len(slot.nodes)):
                continue
            for value, layers in odd.items():
                yield self.finding(
                    f"{slot.op}: {name} is {value:g} in {_names(layers)}, {usual:g} in "
                    f"{plural(len(equal), 'equal layer')}",
                    slot.nodes[layers[0]],
                    fix=f"{usual:g}, as in {equal[0]}",
                    related=(("it has the usual value", slot.nodes[equal[0]]),),
                    key=f"{name} {value:g}",
                )

    def _missing(self, slot: Slot, forward: list[Node]) -> Iterator[Finding]:
        absent = [layer for layer in slot.layers if layer not in slot.nodes]
        if not absent or not self._is_few(len(absent), len(slot.layers)):
            return
        first = next(iter(slot.nodes.values()))
        yield self.finding(
            f"{slot.op} is missing in {_names(absent)}, and stands in "
            f"{plural(len(slot.nodes), 'equal layer')}",
            _stand_in(absent[0], first, forward),
            related=(("it stands here", first),),
            key="missing",
        )

    def _is_few(self, odd: int, layers: int) -> bool:
        return layers >= self.least_layers and odd * 100 <= self.most_odd * layers


def _stand_in(layer: str, equal: Node, forward: list[Node]) -> Node | None:
    """A node of a layer that tells best where something is missing: of the same line, or cell."""
    own = [node for node in forward if layer_of(node) == layer]
    readers = {user.op for user in equal.users}
    return next((node for node in own if node.op in readers), own[0] if own else None)


def _names(layers: list[str]) -> str:
    return ", ".join(layers[:4]) + (f" and {len(layers) - 4} more" if len(layers) > 4 else "")
