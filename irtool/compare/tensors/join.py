"""Which node of a graph dump each dumped operator is.

A dumped operator is called by its full name with the separators replaced.  Full names are numbered
anew when the backend has finished a graph, and on CPU and GPU the dump's own graph is written
before that.  So its numbers are *stale*: some names are missing, and some name another operator.
The renumbering is replayed (one counter for each text before the last ``-op``, over all graphs in
order), and whichever of the two numberings the dump agrees with is taken.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from irtool.compare.tensors.formats.mindspore import sanitised
from irtool.compare.tensors.model import Op, Shape, TensorRun
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.limits import bounded_int
from irtool.ir.types import Abstract
from irtool.ir.types import Shape as AbstractShape
from irtool.ir.values import python_value

_FULL_NAME = re.compile(rb"^\s*#\s*[Ff]ullname with scope: \((.*)\)\s*$", re.MULTILINE)
_UNSAFE_PARAMETER = re.compile(r"[./\\ ]")


@dataclass(frozen=True, slots=True)
class Names:
    """Full names of one graph file, in printed order."""

    path: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """How operators of a dump and nodes of a graph came together.

    Attributes:
        path: the graph's file.
        replayed: its names were stale and were numbered anew.
        operators: operators of the dump.
        with_node: those that have a node.
        stale: operators that the names as printed would have led nowhere, or to another node.
        mismatched: operators whose node has another operator or other shapes; they are not joined.
        unknown: names of operators without a node, the first of them.
        checked: tensors whose shape the node confirms.
    """

    path: str
    replayed: bool
    operators: int
    with_node: int
    stale: int
    mismatched: int
    unknown: tuple[str, ...] = ()
    checked: int = 0

    @property
    def rate(self) -> float:
        """Share of the operators that have a node."""
        return self.with_node / self.operators if self.operators else 0.0


def full_names(path: str, data: bytes) -> Names:
    """The full names of a graph file, by its text alone: quick enough to try many files.

    Args:
        path: of the file.
        data: its bytes, expanded.
    """
    names = tuple(name.decode("utf-8", "replace") for name in _FULL_NAME.findall(data))
    return Names(path, names)


def replayed(names: Sequence[str], counters: Counter[str]) -> list[str]:
    """Names as the backend numbers them when it has finished a graph.

    Args:
        names: full names in printed order, which is that of the renumbering.
        counters: of the graphs before, in the same process; changed.
    """
    renumbered: list[str] = []
    for name in names:
        prefix, mark, _ = name.rpartition("-op")
        if not mark:
            renumbered.append(name)
            continue
        renumbered.append(f"{prefix}-op{counters[prefix]}")
        counters[prefix] += 1
    return renumbered


@dataclass(slots=True)
class _Choice:
    """The best file and numbering so far."""

    path: str = ""
    count: int = -1
    is_replayed: bool = False
    names: list[str] = field(default_factory=list[str])


def choose(run: TensorRun, files: Iterable[Names]) -> tuple[str, bool, list[str]] | None:
    """The graph file that knows most operators of a dump.

    Of equally good ones the first counts, and names as printed before replayed ones.

    Args:
        run: the dump.
        files: full names of each graph file.

    Returns:
        Its path, whether its names were renumbered as the backend does, and these names; None where
        no file knows an operator.
    """
    wanted = {op.name for op in run.ops if op.type != "Parameter"}
    best = _Choice()
    counters: Counter[str] = Counter()
    for file in files:
        anew = replayed(file.names, counters if "ms_output_" in file.path else Counter())
        for is_replayed, names in ((False, list(file.names)), (True, anew)):
            count = len(wanted & {sanitised(name) for name in names})
            if count > best.count:
                best = _Choice(file.path, count, is_replayed, names)
    return (best.path, best.is_replayed, best.names) if best.count > 0 else None


def join(run: TensorRun, dump: Dump, names: Sequence[str], is_replayed: bool) -> Joined:
    """Give each operator of a run its node; shapes and operators must agree.

    Args:
        run: the tensors; ``node`` of its operators is set.
        dump: the graph.
        names: its full names in printed order, numbered as the dump is.
        is_replayed: those are not the printed ones.
    """
    nodes = [node for graph in dump.graphs for node in graph.nodes if node.full_name]
    by_name: dict[str, list[Node]] = {}
    for node, name in zip(nodes, names, strict=False):
        by_name.setdefault(sanitised(name), []).append(node)
    parameters = _parameters(dump)
    printed = {sanitised(node.full_name or ""): node for node in nodes}
    with_node = stale = mismatched = checked = 0
    unknown: list[str] = []
    joined: Counter[str] = Counter()
    for op in run.ops:
        if op.type == "Parameter":
            if op.name in parameters:
                with_node += 1
            else:
                unknown.append(op.name)
            continue
        candidates = by_name.get(op.name, ())
        node = candidates[0] if candidates else None
        if node is None:
            unknown.append(op.name)
            continue
        agrees, count = _agrees(op, node, run)
        if not agrees:
            mismatched += 1
            unknown.append(op.name)
            continue
        op.node = node
        _note_unread(op, node, run)
        joined[op.name] += 1
        with_node += 1
        checked += count
        stale += printed.get(op.name) is not node
        location = node.location
        if location is not None:
            op.source = f"{location.path}:{location.line}"
        _name_inputs(op, node, run)
    return Joined(
        dump.path,
        is_replayed,
        len(run.ops),
        with_node,
        stale,
        mismatched,
        tuple(unknown[:20]),
        checked,
    )


def _note_unread(op: Op, node: Node, run: TensorRun) -> None:
    """Results that nobody reads may be memory that was never written: they say nothing."""
    if len(op.outputs) < 2:
        return
    read: set[int] = set()
    for user in node.users:
        if user.op == "UpdateState" or (user.op == "Depend" and user.inputs[0] is not node):
            continue  # order alone
        place = user.inputs[1] if user.op == "TupleGetItem" and len(user.inputs) > 1 else None
        number = None if isinstance(place, Node) else python_value(place)  # type: ignore[arg-type]  # no node is a value
        if not isinstance(number, int):
            return
        read.add(number)
    columns = run.columns
    for tensor in op.outputs:
        direction, _, text = columns.labels[tensor].partition(".")
        if direction == "output" and _place(text) not in read:
            columns.notes.setdefault(tensor, "dead output")


def _parameters(dump: Dump) -> Mapping[str, str]:
    return {_UNSAFE_PARAMETER.sub("_", item.name): item.name for item in dump.parameters}


def _agrees(op: Op, node: Node, run: TensorRun) -> tuple[bool, int]:
    """Whether a node has the operator and the shapes of the dump; how many shapes say so."""
    if node.op != op.type and node.op.lower() != op.type.lower():
        return False, 0
    shapes, results = signature_shapes(node)
    columns = run.columns
    checked = 0
    for place in op.tensors:
        direction, _, text = columns.labels[place].partition(".")
        expected = (results if direction == "output" else shapes).get(_place(text))
        if expected is None or -1 in expected:
            continue
        if expected == columns.shapes[place]:
            checked += 1
        elif _elements(expected) != _elements(columns.shapes[place]):
            return False, checked  # a device layout may differ, the number of elements not
    return True, checked


def _elements(shape: Shape) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def signature_shapes(node: Node) -> tuple[dict[int, Shape], dict[int, Shape]]:
    """Static shapes of a node's inputs and results by place; unknown ones are left out.

    Args:
        node: with its types.

    Returns:
        Of the inputs, then of the results.
    """
    inputs: dict[int, Shape] = {}
    for place, abstract in enumerate(node.input_types):
        shape = _shape(abstract)
        if shape is not None:
            inputs[place] = shape
    outputs: dict[int, Shape] = {}
    result = node.output_type
    if result is None:
        return inputs, outputs
    single = _shape(result)
    if single is not None:
        outputs[0] = single
    elif result.shape is not None:
        items: tuple[object, ...] = getattr(result.shape, "items", ())
        for place, item in enumerate(items):
            if isinstance(item, AbstractShape):
                outputs[place] = tuple(item.dimensions)
    return inputs, outputs


def _shape(abstract: Abstract | None) -> Shape | None:
    if abstract is None or not isinstance(abstract.shape, AbstractShape):
        return None
    dimensions = tuple(abstract.shape.dimensions)
    return dimensions if all(size >= 0 for size in dimensions) else None


def _name_inputs(op: Op, node: Node, run: TensorRun) -> None:
    """Which inputs are parameters of the network: the graph knows, the dump does not."""
    inputs = list(_through(node))
    parameters = set(op.parameters)
    for tensor in op.inputs:
        direction, _, text = run.columns.labels[tensor].partition(".")
        place = _place(text)
        if direction == "input" and 0 <= place < len(inputs) and inputs[place]:
            parameters.add(tensor)
    op.parameters = frozenset(parameters)


def _through(node: Node) -> Iterator[bool]:
    """For each input whether it is a parameter, seen through Load and Depend."""
    for source in node.inputs:
        steps = 0
        while isinstance(source, Node) and source.op in ("Load", "Depend") and steps < 20:
            source = source.inputs[0] if source.inputs else None
            steps += 1
        declaration = getattr(source, "declaration", None)
        kind = getattr(source, "type", None)
        is_reference = bool(getattr(kind, "ref_key", None))
        yield declaration is not None and is_reference


def graph_files(folder: str) -> list[str]:
    """Graphs that the dump itself wrote, in order: ``…/graphs/ms_output_*.ir`` beside the net.

    Args:
        folder: of the tensors of one iteration; the graphs lie above it.
    """
    place = os.path.abspath(folder)
    for _ in range(4):
        place = os.path.dirname(place)
        graphs = os.path.join(place, "graphs")
        if os.path.isdir(graphs):
            names = [
                name for name in os.listdir(graphs) if name.endswith((".ir", ".ir.gz", ".ir.xz"))
            ]
            return [os.path.join(graphs, name) for name in sorted(names, key=_number)]
    return []


def _place(text: str) -> int:
    """Which input or output a label means; -1 where it is no number."""
    return bounded_int(text) if text.isdecimal() else -1


def _number(name: str) -> tuple[int, str]:
    digits = re.findall(r"\d+", name)
    return (bounded_int(digits[-1]) if digits else 0, name)
