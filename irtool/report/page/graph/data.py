"""A dump as the columns that the graph on a page is drawn from.

Strings are stored once; nodes and groups are columns of numbers, which deflate well.  The page's
script decides what is drawn, where, and what is hidden, so that it can change as one looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from irtool.ir.dump import Dump
from irtool.ir.graph import Graph, GraphParameter, Node, likeliest
from irtool.ir.phases import Phase, phases
from irtool.ir.statement import nested_references
from irtool.ir.ties import Ties, ties
from irtool.ir.units import tuple_text
from irtool.ir.values import GraphReference, Scalar
from irtool.report.page.graph.facts import Fact, node_facts, parameter_facts
from irtool.report.page.graph.tree import (
    Path,
    Tree,
    build_tree,
    gradient_paths,
    parameter_paths,
    scope_path,
)
from irtool.report.page.keys import node_key, parameter_key
from irtool.report.picture.classes import CLASSES, operator_class
from irtool.report.picture.overlay import Overlay
from irtool.report.redistributions import chain_text, layouts_text
from irtool.report.text import escape
from irtool.sharding.network.report import CheckResult, OperatorReport
from irtool.sharding.network.totals import moves

HIDDEN = frozenset(
    ("Load", "Depend", "UpdateState", "MakeTuple", "TupleGetItem", "MakeList", "ListGetItem")
)
"""Operators that order or pack values; the page hides them unless asked."""

OPERATOR, WEIGHT, INPUT, PASSING, RESULT, CALL, MONAD = range(7)
"""Kinds of members."""

DATA, CALLS = 0, 1
"""Kinds of edges: a value goes along; a result of a called graph comes back."""


def graph_data(
    dump: Dump | Sequence[tuple[str, Dump]],
    report: CheckResult | None = None,
    overlays: Iterable[Overlay] = (),
    links: Iterable[tuple[Node, Node, str]] = (),
    first: Node | None = None,
) -> dict[str, Any]:
    """What the script needs to draw a dump, or several side by side.

    Args:
        dump: the dump; or name and dump for each of several, such as the stages of a pipeline.
        report: what ``check`` says of it: slices, collectives, redistributions.
        overlays: what else is known of nodes; each can be coloured by, the first is from the start.
        links: further edges between nodes of any of the dumps, with a word each (Send to Receive).
        first: what the graph opens at; by default the worst that the first overlay marks, else the
            first operator that the report is about.
    """
    named = [("", dump)] if isinstance(dump, Dump) else list(dump)
    columns = _Columns(report)
    for source, part in named:
        columns.add_dump(source, part)
    for tail, head, word in links:
        columns.link(tail, head, word)
    laid = list(overlays)
    if first is None and report is not None and not any(overlay.marks for overlay in laid):
        # The network, not the training step around it.
        judged = [operator.node for operator in report.operators]
        first = min(judged, key=lambda node: node.line, default=None)
    data = columns.data(laid)
    number = columns.number.get(first) if first is not None else None
    return data if number is None else {"first": number, **data}


class _Strings:
    """Every string once, by number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {"": 0}

    def __call__(self, text: str) -> int:
        number = self.numbers.get(text)
        return self.numbers.setdefault(text, len(self.numbers)) if number is None else number

    def table(self) -> list[str]:
        return [escape(text) for text in self.numbers]


class _Columns:
    """The columns as they grow; a member is a statement or a parameter."""

    def __init__(self, report: CheckResult | None) -> None:
        self.text = _Strings()
        self.report = report
        self.parameters = (
            {item.parameter.name: item for item in report.parameters} if report else {}
        )
        self.number: dict[Node | tuple[str, int, int], int] = {}
        self.paths: list[Path] = []
        self.ops: list[str] = []
        self.phases: list[str] = []
        self.kinds: list[int] = []
        self.edges: list[list[int]] = []
        self.ties: list[list[int]] = []
        self.links: list[list[int]] = []
        self.notes: list[list[int]] = []
        self.values: dict[str, list[int]] = {
            name: []
            for name in ("id", "key", "op", "name", "class", "phase", "stage", "line", "type",
                         "under", "slice", "brings", "bytes", "pick")
        }  # fmt: skip
        self.facts: list[list[int]] = []
        self._of_parameter: dict[GraphParameter, int] = {}
        self._gradients: dict[Node, Path] = {}

    # -- members -------------------------------------------------------------------------------

    def add_dump(self, source: str, dump: Dump) -> None:
        stages, tied = phases(dump), ties(dump)
        self._gradients |= gradient_paths(stages, tied)
        several = len(dump.graphs) > 1
        lead: Path = (source,) if source else ()
        first = len(self.kinds)
        for graph in dump.graphs:
            own: Path = (*lead, f"@{graph.name}") if several and graph.name else lead
            for parameter in graph.parameters:
                self._add_parameter(parameter, graph, own, source)
            flat = len({stages[node] for node in graph.nodes} - {"other"}) < 2 and several
            for node in graph.nodes:
                self._add_node(node, stages[node], own, source, flat)
        for graph in dump.graphs:
            for node in graph.nodes:
                self._connect(node)
        self._place_parameters(first)
        self._tie(tied)

    def _add_node(self, node: Node, phase: Phase, own: Path, source: str, flat: bool) -> None:
        path = self._gradients.get(node) or scope_path(node, phase)
        if node.is_return:
            kind, path = RESULT, ()
        elif node.op in HIDDEN:
            kind = PASSING
        else:
            kind = CALL if node.callees else OPERATOR
        judged = self.report.operator(node) if self.report is not None else None
        self.number[node] = len(self.kinds)
        self._add(
            kind,
            (*own, *(path[1:] if flat else path)),
            node_facts(node, phase, judged),
            id=node.id,
            key=node_key(node, source),
            op=node.op,
            name=node.name or "",
            type=node.output_type.short() if node.output_type is not None else "",
            under=tuple_text(node.written_strategy())
            or tuple_text(judged.strategy if judged else None),
            slice=_slices(judged),
            brings=", ".join(
                dict.fromkeys(item.op for item in judged.collectives) if judged else ()
            ),
            phase=phase,
            numbers=(
                _CLASS_NUMBER[operator_class(node.op).key],
                -1 if node.stage is None else node.stage,
                node.line,
                node.output_bytes or 0,
                _picked(node),
            ),
        )

    def _add_parameter(
        self, parameter: GraphParameter, graph: Graph, own: Path, source: str
    ) -> None:
        declared = parameter.declaration
        label = parameter.name or parameter.label or ""
        type = parameter.type.short() if parameter.type is not None else ""
        if type in ("UMonad", "IOMonad") or label in ("u", "io"):
            kind = MONAD
        else:
            kind = WEIGHT if declared is not None and declared.is_weight else INPUT
        self._of_parameter[parameter] = len(self.kinds)
        number = "" if parameter.number is None else parameter.number
        reported = self.parameters.get(parameter.name)
        self._add(
            kind,
            own,
            parameter_facts(parameter, graph.name, reported),
            id=f"%para{number}",
            key=parameter_key(parameter, graph, source),
            op="Parameter",
            name=label,
            type=type,
            under="",
            slice=tuple_text(reported.slice) if reported is not None else "",
            brings="",
            phase="other",
            numbers=(-1, -1, declared.line if declared else graph.line,
                     (parameter.type.size if parameter.type else None) or 0, -1),
        )  # fmt: skip

    def _add(
        self,
        kind: int,
        path: Path,
        facts: Iterable[Fact],
        numbers: tuple[int, int, int, int, int],
        **texts: str,
    ) -> None:
        self.kinds.append(kind)
        self.paths.append(path)
        self.ops.append(texts["op"])
        self.phases.append(texts["phase"])
        self.edges.append([])
        self.facts.append([self.text(part) for fact in facts for part in fact])
        for name, value in texts.items():
            self.values[name].append(self.text(value))
        for name, number in zip(("class", "stage", "line", "bytes", "pick"), numbers, strict=True):
            self.values[name].append(number)

    # -- edges ---------------------------------------------------------------------------------

    def _connect(self, node: Node) -> None:
        """Edges of what a node takes: producer, operand, kind."""
        assert node.graph is not None
        own = self.edges[self.number[node]]
        called = node.graph.called(node)
        for position, operand in enumerate(node.operands):
            for reference in nested_references(operand):
                source = likeliest(node.graph.source(reference))
                if isinstance(source, Graph):
                    self._from_graph(source, own, position)
                    continue
                producer = self._number_of(source)
                if producer is None:
                    continue
                takers = self._entries(called, node, position)
                for taker in takers:
                    self.edges[taker] += (producer, 0, DATA)
                if not takers:
                    own += (producer, position, DATA)
        for graph in called:
            self._from_graph(graph, own, -1)
        if not called:
            self._through_callee(node, own)

    def _entries(self, called: Sequence[Graph], node: Node, position: int) -> list[int]:
        """Parameters of called graphs that an operand becomes, where their numbers agree."""
        parameters: list[int] = []
        for graph in called:
            if len(graph.parameters) != len(node.operands):
                return []
            number = self._of_parameter.get(graph.parameters[position])
            if number is not None:
                parameters.append(number)
        return parameters

    def _through_callee(self, node: Node, own: list[int]) -> None:
        """A call of a computed function takes what computes the function."""
        assert node.graph is not None
        callee = getattr(node.target, "callee", None)
        if callee is None or isinstance(callee, str | GraphReference):
            return
        producer = self._number_of(node.graph.source(callee))
        if producer is not None:
            own += (producer, -1, CALLS)

    def _from_graph(self, graph: Graph, own: list[int], position: int) -> None:
        result = graph.result
        if result is not None and result in self.number:
            own += (self.number[result], position, CALLS)

    def _number_of(self, source: object) -> int | None:
        if isinstance(source, Node):
            return self.number.get(source)
        return self._of_parameter.get(source) if isinstance(source, GraphParameter) else None

    def _place_parameters(self, first: int) -> None:
        """A parameter stands where its operators are, rather than far from all of them."""
        users: dict[int, list[int]] = {}
        for taker in range(first, len(self.kinds)):
            edges = self.edges[taker]
            for offset in range(0, len(edges), 3):
                if self.kinds[taker] != PASSING or self._passes(taker, edges[offset + 1]):
                    users.setdefault(edges[offset], []).append(taker)
        own = [n for n in range(first, len(self.kinds)) if self.kinds[n] in (WEIGHT, INPUT)]
        hidden = [kind == PASSING for kind in self.kinds]
        for result in (n for n in range(first, len(self.kinds)) if self.kinds[n] == RESULT):
            self.paths[result] += self._path_of_result(result)
        for parameter, path in parameter_paths(own, users, self.paths, hidden, self.phases).items():
            if len(path) > len(self.paths[parameter]):
                self.paths[parameter] = path

    def _passes(self, member: int, position: int) -> bool:
        """Whether a hidden statement hands on this operand."""
        op = self.ops[member]
        return op != "UpdateState" and (position == 0 or op not in ("Load", "Depend"))

    def _path_of_result(self, result: int) -> Path:
        """The phase of what a Return gives back, seen through what passes it on."""
        pending, length = [result], len(self.paths[result])
        for _ in range(64):
            member = pending.pop()
            if self.kinds[member] not in (RESULT, PASSING):
                return self.paths[member][length : length + 1]
            edges = self.edges[member]
            pending += [edges[0]] if edges else []
            if not pending:
                break
        return ()

    def _tie(self, pairs: Ties) -> None:
        for tie in pairs:
            left, right = self._number_of(tie.left), self._number_of(tie.right)
            if left is not None and right is not None:
                self.ties.append([left, right, self.text(tie.kind), int(tie.certain)])

    def link(self, tail: Node, head: Node, word: str) -> None:
        """An edge that no dump holds."""
        if tail in self.number and head in self.number:
            self.links.append([self.number[tail], self.number[head], self.text(word)])

    # -- all of it -----------------------------------------------------------------------------

    def data(self, overlays: Sequence[Overlay]) -> dict[str, Any]:
        """The graph as plain data, as the page's script reads it."""
        tree = build_tree(self.paths, [kind not in (PASSING, MONAD) for kind in self.kinds])
        self._redistributions()
        laid = [self._overlay(overlay) for overlay in overlays]
        return {
            "classes": [[item.key, item.title, item.colour] for item in CLASSES],
            "nodes": {**self.values, "kind": self.kinds, "group": tree.of, "facts": self.facts},
            "edges": self.edges,
            "groups": self._groups(tree),
            "ties": self.ties,
            "links": self.links,
            "notes": self.notes,
            "overlays": laid,
            "strings": self.text.table(),  # last: every other part has added its strings
        }

    def _groups(self, tree: Tree) -> dict[str, list[int]]:
        return {
            "name": [self.text(name) for name in tree.names],
            "path": [self.text(path) for path in tree.paths],
            "note": [self.text(note) for note in tree.notes],
            "parent": list(tree.parents),
        }

    def _redistributions(self) -> None:
        """What ``check`` says will be inserted on an edge: producer, consumer, text."""
        for edge in self.report.redistributions if self.report is not None else ():
            pair = self.number.get(edge.producer), self.number.get(edge.consumer)
            if not moves(edge) or pair[0] is None or pair[1] is None:
                continue
            text = "not known" if edge.operators is None else chain_text(edge.operators)
            split = layouts_text(edge)
            self.notes.append([pair[0], pair[1], self.text(f"{split}: {text}" if split else text)])

    def _overlay(self, overlay: Overlay) -> dict[str, Any]:
        marks = [
            [self.number[node], mark.value, self.text(mark.severity or ""), self.text(mark.text)]
            for node, mark in overlay.marks.items()
            if node in self.number
        ]
        return {
            "topic": overlay.topic,
            "title": escape(overlay.title),
            "unit": overlay.unit,
            "total": overlay.total,
            "marks": marks,
            "unplaced": [escape(text) for text in overlay.unplaced],
        }


_CLASS_NUMBER = {item.key: number for number, item in enumerate(CLASSES)}


def _slices(judged: OperatorReport | None) -> str:
    """The local shapes of what an operator gives, as ``check`` derives them."""
    if judged is None or judged.verdict != "legal":
        return ""
    return ", ".join(map(tuple_text, judged.output_slices))


def _picked(node: Node) -> int:
    """Which item a TupleGetItem takes; -1 for every other operator."""
    if node.op not in ("TupleGetItem", "ListGetItem") or len(node.operands) < 2:
        return -1
    index = node.operands[1]
    value = index.value if isinstance(index, Scalar) else None
    return value if isinstance(value, int) and value >= 0 else -1
