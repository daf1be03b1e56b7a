"""GAT006: element types and casts that are not those of the golden dump."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from irtool.compare.edits import Pattern
from irtool.ir.finding import Finding
from irtool.linting.gate import GateFacts, GateRule
from irtool.linting.gate.layers import LayerChange, in_changed_layer, layer_change, shown, where

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
        own = [pattern for pattern in types if not pattern.first.follows] or types
        if not own and not casts:
            return
        first = min((*own, *casts), key=lambda pattern: pattern.first.order)
        counts = Counter[str]()
        for pattern in types:
            counts[pattern.detail.removeprefix("result: ")] += len(pattern.edits)
        texts = [f"{count} results {what}" for what, count in counts.most_common(3)]
        number = sum(len(pattern.edits) for pattern in casts)
        if number:
            kinds = sorted({pattern.first.kind for pattern in casts})
            texts.append(f"{number} {' and '.join(kinds).replace('cast ', 'casts ', 1)}")
        yield self.finding(
            f"{first.first.node.op}: {first.first.kind}: {first.detail}{where(first)}; in all "
            + ", ".join(texts),
            shown(first.first.right or first.first.left),
            related=[
                (f"{other.first.node.op}: {other.first.kind}: {other.detail}", other.first.right[0])
                for other in own[:10]
                if other is not first and other.first.right
            ],
            key=f"{first.first.kind} {first.scope} {first.detail}",
        )


def _edits(facts: GateFacts, change: LayerChange, kinds: tuple[str, ...]) -> list[Pattern]:
    """Patterns of some kinds, those of the forward pass if it has any."""
    patterns = [
        pattern
        for pattern in facts.diff.patterns
        if pattern.first.kind in kinds and not in_changed_layer(pattern.first, change)
    ]
    return [pattern for pattern in patterns if pattern.first.phase == "forward"] or patterns
