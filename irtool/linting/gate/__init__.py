"""The gate: structural regressions of a dump against a golden one.

Some rules look for what somebody changed (a strategy, an element type, recomputation, a layer, a
rate), others for what comes of it (collectives, bytes, memory, statements).  What comes of a change
that was found is told below it.

Rules of the gate see both dumps, what was matched between them, and what each communicates and
keeps in memory.  They stand beside the lint rules (family ``GAT``) and are configured alike, but
only ``irtool gate`` runs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from irtool.cluster.memory import Memory, memory
from irtool.compare.graph_diff import GraphDiff, diff_graphs
from irtool.ir.collectives import Collective
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.linting.facts import CompilationFacts, DumpFacts, Surroundings
from irtool.linting.rule import Rule


class GateFacts:
    """Two dumps of the same pass: the golden one, and the one that is judged."""

    def __init__(self, old: Dump, new: Dump) -> None:
        self.old = _facts(old)
        self.new = _facts(new)

    @cached_property
    def diff(self) -> GraphDiff:
        """What was matched, and what differs."""
        return diff_graphs(self.old.dump, self.new.dump)

    @cached_property
    def added(self) -> frozenset[Node]:
        """Nodes that the golden dump does not have."""
        return frozenset(self.diff.only_right)

    @cached_property
    def old_memory(self) -> Memory:
        """Memory of the golden dump."""
        return memory(self.old.dump)

    @cached_property
    def new_memory(self) -> Memory:
        """Memory of the dump that is judged."""
        return memory(self.new.dump)


def _facts(dump: Dump) -> DumpFacts:
    facts = DumpFacts(lambda: dump, "other", dump.path)
    CompilationFacts([facts], Surroundings())
    return facts


class GateRule(Rule):
    """Looks at two dumps; a finding's node is one of the new dump."""

    is_default = False

    def check(self, facts: GateFacts) -> Iterable[Finding]:
        """What the new dump does worse than the golden one, in this rule's respect."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class CollectiveChange:
    """Collectives of one operator, reason and phase: those of either dump."""

    op: str
    origin: str
    phase: str
    old: tuple[Collective, ...]
    new: tuple[Collective, ...]

    @property
    def label(self) -> str:
        """What these collectives are called: ``AllGather (redistribution, forward)``."""
        return f"{self.op} ({self.origin}, {self.phase})"


def collective_changes(facts: GateFacts) -> Iterator[CollectiveChange]:
    """Collectives of both dumps by what they are and why they are there.

    Args:
        facts: of the golden dump and the new one.

    Returns:
        One for each operator, origin and phase in either dump; virtual collectives are left out.
    """
    sides: list[dict[tuple[str, str, str], list[Collective]]] = []
    for side in (facts.old, facts.new):
        by_key: dict[tuple[str, str, str], list[Collective]] = {}
        for item in side.collectives:
            if not item.is_virtual:
                phase = side.phases.get(item.node, "other")
                by_key.setdefault((item.op, item.origin, phase), []).append(item)
        sides.append(by_key)
    for key in dict.fromkeys((*sides[0], *sides[1])):
        old, new = (tuple(side.get(key, ())) for side in sides)
        yield CollectiveChange(*key, old, new)
