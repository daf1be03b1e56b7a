"""GAT006: element types and casts that are not those of the golden dump."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from irtool.compare.edits import Pattern
from irtool.ir.finding import Finding
from irtool.linting.gate import GateFacts, GateRule
from irtool.linting.gate_layers import LayerChange, in_changed_layer, layer_change, shown, where

_CASTS = ("cast inserted", "cast removed")


class ChangedPrecision(GateRule):
    """Casts that came or went, and results of another element type."""

    code = "GAT006"
    name = "changed-precision"
    severity = "warning"
    summary = "Element types or casts are not those of the golden dump"
    explanation = """
        A cast that moves, or an operator that now works in half precision, changes the numbers of
        a run without changing its structure. All changes of types are one finding, at the first one
        in the order of the flow: results whose type follows from an operand's are only counted.
        """
    hint = "irtool diff OLD NEW shows where it begins"
    bad = "Softmax: result Float32 → Float16"
    good = "Softmax: result Float32"
    cases = (
        "tests/linting/evidence/gate/half_gated.validate",
        "tests/linting/evidence/gate/half_dense.validate",
        "tests/linting/evidence/gate/half_mixer.validate",
    )

    def check(self, facts: GateFacts) -> Iterator[Finding]:
        change = layer_change(facts)
        types, casts = _edits(facts, change, ("dtype changed",)), _edits(facts, change, _CASTS)
        # A result that follows its operand's type, and a gradient that follows its operator's.
        own = [each for each in types if not each.first.follows] or types
        if not own and not casts:
            return
        first = min((*own, *casts), key=lambda each: each.first.order)
        counts = Counter[str]()
        for pattern in types:
            counts[pattern.detail.removeprefix("result: ")] += len(pattern.edits)
        told = [f"{count} results {what}" for what, count in counts.most_common(3)]
        number = sum(len(each.edits) for each in casts)
        if number:
            kinds = sorted({each.first.kind for each in casts})
            told.append(f"{number} {' and '.join(kinds).replace('cast ', 'casts ', 1)}")
        yield self.finding(
            f"{first.first.node.op}: {first.first.kind}: {first.detail}{where(first)}; in all "
            + ", ".join(told),
            shown(first.first.right or first.first.left),
            related=[
                (f"{each.first.node.op}: {each.first.kind}: {each.detail}", each.first.right[0])
                for each in own[:10]
                if each is not first and each.first.right
            ],
            key=f"{first.first.kind} {first.scope} {first.detail}",
        )


def _edits(facts: GateFacts, change: LayerChange, kinds: tuple[str, ...]) -> list[Pattern]:
    """Patterns of some kinds, those of the forward pass if it has any."""
    found = [
        each
        for each in facts.diff.patterns
        if each.first.kind in kinds and not in_changed_layer(each.first, change)
    ]
    return [each for each in found if each.first.phase == "forward"] or found
