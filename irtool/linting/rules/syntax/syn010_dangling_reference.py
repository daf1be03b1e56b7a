"""SYN010: a reference to nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from irtool.ir.finding import Finding
from irtool.ir.graph import Node, Unresolved
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import EVERY_DUMP, DumpKind, NodeRule
from irtool.syntax.printer import print_value


class DanglingReference(NodeRule):
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
    dumps: ClassVar[tuple[DumpKind, ...]] = EVERY_DUMP

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        graph = node.graph
        if graph is None or graph.head is None:
            return
        for reference in node.references():
            if isinstance(graph.source(reference), Unresolved):
                if facts.kept("syn010.explained", lambda: _is_explained(facts)):
                    return
                what = print_value(reference)
                yield self.finding(f"{what} is defined nowhere in this dump", node, key=node.op)


def _is_explained(facts: DumpFacts) -> bool:
    """Whether the reader says already that a part is missing."""
    return any(problem.code in ("SYN001", "SYN003") for problem in facts.dump.problems)
