"""GAT004: operators that are no longer recomputed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from irtool.compare.identity import scope_pattern
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.operators import PLUMBING
from irtool.lint.gate import GateFacts, GateRule


class LostRecompute(GateRule):
    """Scopes with fewer recomputed operators than in the golden dump."""

    code = "GAT004"
    name = "lost-recompute"
    severity = "warning"
    summary = "Operators of the golden dump are no longer recomputed"
    explanation = """
        Second copies of forward operators (`duplicated: Bool(1)`) are counted by scope, layers of
        one kind together. Where they are gone, what they made again is kept for the whole backward
        pass.
        """
    hint = "look whether recompute() still reaches this cell"
    bad = "…/layers-CellList/#-Layer: 48 recomputed operators became 0"
    good = "…/layers-CellList/#-Layer: 48 recomputed operators stayed 48"

    def check(self, facts: GateFacts) -> Iterator[Finding]:
        old, new = _copies(facts.old.dump), _copies(facts.new.dump)
        for scope, count in old.items():
            if new[scope] < count:
                yield self.finding(
                    f"{scope}: {count} recomputed operators became {new[scope]}",
                    _first(facts.new.dump, scope),
                    key=scope,
                )


def _copies(dump: Dump) -> Counter[str]:
    return Counter(
        scope_pattern(node.scope)
        for node in dump.nodes()
        if node.is_recomputed and node.op not in PLUMBING
    )


def _first(dump: Dump, scope: str) -> Node | None:
    """An operator of that scope, which a person can look at."""
    return next(
        (
            node
            for node in dump.nodes()
            if node.op not in PLUMBING and scope_pattern(node.scope) == scope
        ),
        None,
    )
