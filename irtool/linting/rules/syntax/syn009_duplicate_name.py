"""SYN009: one name for two things."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Graph, Node
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import EVERY_DUMP, DumpRule
from irtool.linting.rules.syntax.reading import is_of_failure


class DuplicateName(DumpRule):
    """Two nodes of a graph with one number, or two graphs or parameters with one name."""

    code = "SYN009"
    name = "duplicate-name"
    severity = "error"
    summary = "Two nodes, graphs or parameters bear the same name"
    explanation = """
        Numbers of nodes are unique within a graph, names of graphs and of parameters within a dump.
        Where they are not, every reference to one of them is a guess. Debug names, the names in
        parentheses behind the number, may repeat and are not looked at; neither are parameters
        without a name, which kernel graphs have, nor `analyze_fail.ir`, which may print a graph
        several times. A file that holds several dumps has a code of its own.
        """
    hint = "dump again, and do not paste dumps together"
    bad = """
        %4(CNode_9) = PrimFunc_ReLU(%3)
        %4(CNode_10) = PrimFunc_GeLU(%3)
        """
    good = """
        %4(CNode_9) = PrimFunc_ReLU(%3)
        %5(CNode_10) = PrimFunc_GeLU(%3)
        """
    cases = ("tests/linting/evidence/gate/golden_mixer.validate, damaged",)
    dumps = EVERY_DUMP

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        dump = facts.dump
        if any(problem.code == "SYN007" for problem in dump.problems) or is_of_failure(facts):
            return
        graphs: set[str] = set()
        for graph in dump.graphs:
            if graph.head is not None and graph.name in graphs:
                message = f"there are two graphs called @{graph.name}"
                yield self.finding(message, line=graph.head.line, key=graph.name)
            graphs.add(graph.name)
            yield from self._nodes(graph)
        names: set[str] = set()
        for parameter in dump.parameters:
            if parameter.name and parameter.name in names:
                message = f"there are two parameters called {parameter.name}"
                yield self.finding(message, line=parameter.line, key=parameter.name)
            names.add(parameter.name)

    def _nodes(self, graph: Graph) -> Iterator[Finding]:
        first: dict[int, Node] = {}
        for node in graph.nodes:
            if node.number is None:
                continue
            if node.number in first:
                related = (("the first one", first[node.number]),)
                yield self.finding(
                    "another node of this graph bears the same number", node, related=related
                )
            first.setdefault(node.number, node)
