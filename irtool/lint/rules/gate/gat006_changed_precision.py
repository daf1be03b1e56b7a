"""GAT006: element types and casts that are not those of the golden dump."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.lint.gate import GateFacts, GateRule

_KINDS = ("cast inserted", "cast removed")


class ChangedPrecision(GateRule):
    """Casts that came or went, and results of another element type."""

    code = "GAT006"
    name = "changed-precision"
    severity = "info"
    summary = "Element types or casts are not those of the golden dump"
    explanation = """
        A cast that moves, or an operator that now works in half precision, changes the numbers of
        a run without changing its structure. Results whose type only follows from an operand's are
        not told for themselves.
        """
    hint = "irtool diff OLD NEW shows where it begins"
    bad = "Softmax: result Float32 → Float16"
    good = "Softmax: result Float32"

    def check(self, facts: GateFacts) -> Iterator[Finding]:
        for pattern in facts.diff.patterns:
            first = pattern.first
            if first.kind not in _KINDS and (first.kind != "dtype changed" or first.follows):
                continue
            times = f", {len(pattern.edits)} times" if len(pattern.edits) > 1 else ""
            yield self.finding(
                f"{first.node.op}: {first.kind}: {pattern.detail}{times}",
                (first.right or (None,))[0],
                key=f"{first.kind} {pattern.scope} {pattern.detail}",
            )
