"""GAT003: a strategy that is not that of the golden dump."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.compare.edits import Pattern
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.linting.gate import GateFacts, GateRule
from irtool.linting.gate.alike import alike_told_once
from irtool.linting.gate.layers import in_changed_layer, layer_change, where
from irtool.linting.rule import Threshold
from irtool.sharding.why.walk import is_helper_part


class ChangedStrategy(GateRule):
    """Operators whose strategy differs, equal changes of repeated layers told once."""

    code = "GAT003"
    name = "changed-strategy"
    severity = "warning"
    summary = "A strategy is not that of the golden dump"
    explanation = """
        A search may choose other strategies when a shape, a version or an option changes. Then
        parameters are sliced differently: old checkpoints load only after they were transformed,
        and what was tuned around the old layouts is no longer.
        """
    hint = "pin the strategy with shard(), or update the golden dump if the change is meant"
    bad = "MatMul: in_strategy ((8, 1), (1, 1)) → ((2, 1), (1, 4))"
    good = "MatMul: in_strategy ((8, 1), (1, 1))"
    cases = (
        "tests/linting/evidence/gate/strategy_gated.validate",
        "tests/linting/evidence/gate/strategy_dense.validate",
        "tests/linting/evidence/gate/strategy_mixer.validate",
        "tests/linting/evidence/gate/strategy_tables.validate",
    )
    most_changed = Threshold(0, "operators", "up to so many changed operators are ignored")

    def check(self, facts: GateFacts) -> Iterator[Finding]:
        change = layer_change(facts)
        resharded = [
            pattern
            for pattern in facts.diff.patterns
            if pattern.first.kind == "re-sharded"
            and pattern.first.phase != "recompute"
            and not in_changed_layer(pattern.first, change)
        ]
        # What is differentiated follows what it is the gradient of.
        resharded = [
            pattern for pattern in resharded if pattern.first.phase == "forward"
        ] or resharded
        # What makes up for rows that are elsewhere is cut as the lookup is that it stands around.
        resharded = [
            pattern for pattern in resharded if not is_helper_part(pattern.first.node)
        ] or resharded
        if sum(len(pattern.edits) for pattern in resharded) <= self.most_changed:
            return
        # A layout that became a tuple is two changes of one operator.
        of_node: dict[Node, list[Pattern]] = {}
        for pattern in resharded:
            of_node.setdefault(pattern.first.node, []).append(pattern)
        same: dict[str, list[Pattern]] = {}
        for patterns in of_node.values():
            first = patterns[0]
            details = "; ".join(pattern.detail for pattern in patterns)
            text = f"{first.first.node.op}: {details}{where(first)}"
            same.setdefault(text, []).append(first)
        yield from alike_told_once(self, same)
