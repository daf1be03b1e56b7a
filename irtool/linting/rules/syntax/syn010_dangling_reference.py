"""SYN010: a reference to nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from irtool.ir.finding import Finding
from irtool.ir.graph import Node, Unresolved
from irtool.ir.units import plural
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import EVERY_DUMP, DumpKind, DumpRule
from irtool.syntax.printer import print_value


class DanglingReference(DumpRule):
    """A node uses something that the dump does not define."""

    code = "SYN010"
    name = "dangling-reference"
    severity = "error"
    summary = "A node refers to something that the dump does not define"
    explanation = """
        An operand names a node, parameter or graph that is nowhere in the dump: statements were
        lost. Excerpts (statements without a graph around them) are not looked at, nor dumps that
        end early or in which a statement could not be read, since these have a code of their own
        and explain what is missed.
        """
    hint = "dump again: what uses this node cannot be judged"
    bad = """
        %4(CNode_9) = PrimFunc_ReLU(%3)
        %6(CNode_11) = PrimFunc_GeLU(%5)
        """
    good = """
        %4(CNode_9) = PrimFunc_ReLU(%3)
        %5(CNode_11) = PrimFunc_GeLU(%4)
        """
    cases = ("tests/linting/evidence/gate/golden_mixer.validate, damaged",)
    follows_from = ("SYN007", "SYN008", "SYN009")
    dumps: ClassVar[tuple[DumpKind, ...]] = EVERY_DUMP

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        if _is_explained(facts):
            return
        missing: dict[str, list[Node]] = {}
        for graph in facts.dump.graphs:
            if graph.head is None:
                continue
            for node in graph.nodes:
                for reference in node.references():
                    if isinstance(graph.source(reference), Unresolved):
                        missing.setdefault(print_value(reference), []).append(node)
        if missing:
            (name, (first, *others)), *more = missing.items()
            what = f"{name} and {plural(len(more), 'other')} are" if more else f"{name} is"
            readers = [(f"reads {name}", node) for node in others]
            readers += [(f"reads {other}", node) for other, nodes in more for node in nodes]
            yield self.finding(
                f"{what} defined nowhere in this dump", first, related=readers[:20], key=first.op
            )


def _is_explained(facts: DumpFacts) -> bool:
    """Whether the reader says already that a part is missing."""
    return any(problem.code in ("SYN001", "SYN003") for problem in facts.dump.problems)
