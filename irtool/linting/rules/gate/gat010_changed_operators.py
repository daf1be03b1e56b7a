"""GAT010: operators that came, went, or took the place of others."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.compare.edits import Pattern
from irtool.ir.finding import Finding
from irtool.ir.operators import COMMUNICATION, PLUMBING, VIRTUAL
from irtool.linting.gate import GateFacts, GateRule
from irtool.linting.gate_layers import in_changed_layer, is_completed, layer_change, shown, where
from irtool.operators.table import operator_of

_KINDS = ("added", "removed", "replaced", "fused", "split")


class ChangedOperators(GateRule):
    """Operators of the forward pass that only one of the dumps has."""

    code = "GAT010"
    name = "changed-operators"
    severity = "warning"
    summary = "Operators came or went within the layers of the golden dump"
    explanation = """
        A `Print` that was left in, a dropout that is gone, another activation: operators of the
        forward pass that were matched with nothing, those that feed each other together. Casts,
        collectives, redistributions and copies for recomputation have rules of their own, and what
        differentiation makes follows the forward pass. Where the dumps were written by different
        versions of MindSpore, an operator that took the place of another at the same line of Python
        is the version's, and is not told.
        """
    hint = "update the golden dump if the change is meant"
    bad = "Print was added in layers.1"
    good = "(the same operators)"
    cases = (
        "tests/linting/evidence/gate/print_dense.validate",
        "tests/linting/evidence/gate/print_mixer.validate",
    )

    def check(self, facts: GateFacts) -> Iterator[Finding]:
        change = layer_change(facts)
        same_version = facts.old.dump.dialect == facts.new.dump.dialect
        for pattern in facts.diff.patterns:
            first = pattern.first
            if first.kind not in _KINDS or first.phase != "forward":
                continue
            if in_changed_layer(first, change) or not _computes(pattern):
                continue
            if first.kind in ("added", "removed") and is_completed(first, change, facts):
                continue
            if not same_version and first.kind not in ("added", "removed"):
                continue
            what = {"added": "was added", "removed": "was removed"}.get(first.kind, first.kind)
            text = (
                f"{pattern.detail} {what}"
                if first.kind in ("added", "removed")
                else f"{what}: {pattern.detail}"
            )
            yield self.finding(
                f"{text}{where(pattern)}",
                shown(first.right or first.left),
                key=f"{first.kind} {pattern.scope} {pattern.detail}",
            )


def _computes(pattern: Pattern) -> bool:
    """Whether an operator among them does something that a user wrote."""
    nodes = (*pattern.first.left, *pattern.first.right)
    return any(
        node.op not in PLUMBING
        and node.op not in VIRTUAL
        and node.op not in COMMUNICATION
        and not operator_of(node.op).is_("converts")
        and not (node.instance_name or "").startswith(("redistribution", "forward_op"))
        for node in nodes
    )
