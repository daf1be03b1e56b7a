"""GAT011: a build that costs more than its budget lets through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from irtool.ir.finding import Finding
from irtool.linting.budget import Exceeded, Unjudged
from irtool.linting.gate import GateFacts, GateRule


class OverBudget(GateRule):
    """A measure above its limit in ``[gate.budget]`` or ``--budget``."""

    code = "GAT011"
    name = "over-budget"
    severity = "warning"
    summary = "A build costs more than its budget"
    explanation = """
        Limits for communication (bytes, seconds, the share that redistributions take), peak memory,
        statements and the predicted step stand in `[gate.budget]` of `irtool.toml`, or behind
        `--budget`. They are absolute (`30 GiB`) or against the golden dump (`+5%`), for all ranks,
        for one rank or for one stage.

        A limit that could not be judged (no dump of its rank or stage, no golden dump, a size that
        the dumps do not tell) is a finding as well, and the command ends with status 2: a budget
        that nobody looked at is not kept.
        """
    hint = "irtool memory and irtool cost show where it goes; raise the budget if it is meant"
    bad = 'peak_memory = "40 GiB": 41.2 GiB'
    good = 'peak_memory = "40 GiB": 38.9 GiB'
    references = ("docs/gate.md",)

    def check(self, facts: GateFacts) -> Iterator[Finding]:
        return iter(())  # budgets need no golden dump: the command asks for them by itself

    def told(self, over: Exceeded, path: str) -> Finding:
        """A limit that a build is above."""
        ranks = over.ranks
        return replace(
            self.finding(over.message, line=1, key=f"{over.limit.measure} {over.limit.text}"),
            file=path,
            rank=ranks[0] if ranks else None,
            ranks=ranks,
        )

    def missed(self, item: Unjudged, path: str) -> Finding:
        """A limit that could not be judged."""
        finding = self.finding(
            item.message, line=1, hint=item.hint, key=f"{item.limit.name} not judged"
        )
        return replace(finding, file=path)

    cases = ("tests/linting/evidence/gate/layer_more_dense.validate",)
