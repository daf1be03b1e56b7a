"""Statements that one line of code makes many times: loops, layers, cells copied a micro-batch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set

from irtool.cluster.memory.layers import layer_of_scope
from irtool.cluster.sources import user_location
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.operators import COMMUNICATION, PLUMBING
from irtool.ir.phases import Phase

_DIGITS = re.compile(r"\d+")
SECONDS_A_STATEMENT = 0.044
"""Compilation for each statement of the last graph: measured on MindSpore 1.8 with an Ascend 910
(a pipeline of 2 to 32 micro-batches), linear; other versions and hosts differ by a small factor."""


FRONT_END_SECONDS = 0.007
"""The same of the front end alone, in seconds of one core: 2.7.0 took 3.9 s for 624 statements of a
pipeline's last graph and 12.9 s for 1,940 (2.10.0: 4.8 and 14.1 s).  What a
backend adds is not measured on these versions, so that this is the least."""


_HANDS_ON = PLUMBING | {*COMMUNICATION, "Cast"}
_MOST_BETWEEN = 64
"""Statements of one round that are looked through."""
_MOST_BEFORE_WEIGHT = 3
"""Statements between a weight and what takes it: it is loaded, gathered, cast."""


@dataclass(frozen=True, eq=False, slots=True)
class UnrolledLoop:
    """A loop of Python that the compiler unrolled.

    Attributes:
        node: the first of its statements.
        scope: of the cell that it runs in.
        times: how often it goes round.
        statements: forward statements that it makes.
    """

    node: Node
    scope: str
    times: int
    statements: int


@dataclass(frozen=True, slots=True)
class Copies:
    """Layers that stand in the graph once a micro-batch.

    Attributes:
        layers: of one stage.
        micro_batches: of a step.
        statements: that name a micro-batch.
        once: how many would be left if layers of one kind were compiled once.
    """

    layers: int
    micro_batches: int
    statements: int
    once: int


@dataclass(frozen=True, eq=False, slots=True)
class UnsharedLayers:
    """Layers of one kind that each have statements of their own.

    Attributes:
        kind: their name, with ``#`` for the number.
        layers: their names.
        first: a statement of the first one, which its user wrote if any is.
        statements: of all of them.
        once: of one of them.
    """

    kind: str
    layers: tuple[str, ...]
    first: Node
    statements: int
    once: int


def unshared_layers(dump: Dump) -> UnsharedLayers | None:
    """The kind of layers whose copies are most of a graph; None where no layers repeat.

    A layer that is shared is a graph of its own that is called, so that its statements bear the
    scope of one layer only; where each layer holds weights of its own, there is one for each of
    them, which says ``cell_reuse``.  Layers are of one kind if they have as many statements of the
    same operators, but for a few: the first or last may differ.

    Args:
        dump: of which graphs of reused cells do not count.
    """
    kinds: dict[str, dict[str, list[Node]]] = {}
    own = (graph for graph in dump.graphs if graph.attributes.get("cell_reuse") != "1")
    for node in (node for graph in own for node in graph.nodes):
        layer = layer_of_scope(node.scope)
        if any(char.isdigit() for char in layer) and node.op not in PLUMBING:
            kinds.setdefault(_kind(layer), {}).setdefault(layer, []).append(node)
    best: UnsharedLayers | None = None
    for kind, layers in kinds.items():
        sizes = sorted(map(len, layers.values()))
        usual = sizes[len(sizes) // 2]
        equal = {name: nodes for name, nodes in layers.items() if len(nodes) * 2 >= usual}
        statements = sum(map(len, equal.values()))
        if len(equal) < 2 or (best is not None and statements <= best.statements):
            continue
        nodes = next(iter(equal.values()))
        first = next((node for node in nodes if user_location(node) is not None), nodes[0])
        best = UnsharedLayers(kind, tuple(equal), first, statements, usual)
    return best


def _kind(layer: str) -> str:
    return _DIGITS.sub("#", layer)


def unrolled_loops(
    dump: Dump, phases: Mapping[Node, Phase], fewest: int = 8
) -> tuple[UnrolledLoop, ...]:
    """Loops of Python that the compiler unrolled, the one with most statements first.

    The same operator of one cell, made by the same lines of Python, stands in the graph once a
    round; copies for micro-batches and for recomputation don't count.

    Args:
        dump: with the lines of Python behind its nodes.
        phases: of its nodes; only the forward pass counts.
        fewest: rounds below which a loop is left out.
    """
    rounds: dict[tuple[object, ...], list[Node]] = {}
    for node in dump.nodes():
        if node.op in PLUMBING or node.is_recomputed or phases.get(node) != "forward":
            continue
        lines = tuple((line.path, line.span) for line in node.comments.locations)
        if lines and user_location(node) is not None:
            key = (node.scope, node.op, node.instance_name, lines, node.micro)
            rounds.setdefault(key, []).append(node)
    rounds = {key: nodes for key, nodes in rounds.items() if len(nodes) >= fewest}
    chains = _chains(rounds)
    loops: dict[tuple[str, int], list[list[Node]]] = {}
    for key, nodes in rounds.items():
        times = len(nodes) // chains.get(key, 1)
        if times >= fewest:
            loops.setdefault((layer_of_scope(str(key[0])), times), []).append(nodes)
    unrolled = [
        UnrolledLoop(
            min((nodes[0] for nodes in made), key=lambda node: len(node.comments.locations)),
            layer,
            times,
            sum(map(len, made)),
        )
        for (layer, times), made in loops.items()
    ]
    return tuple(sorted(unrolled, key=lambda loop: -loop.statements))


def _chains(rounds: Mapping[tuple[object, ...], list[Node]]) -> dict[tuple[object, ...], int]:
    """In how many chains operators stand that no cell holds: each is one loop.

    Signs and functions (``x * y``, ``ops.tanh(x)``) of all layers may have the scope of the first
    one.  The rounds of a loop hand on to one another; between two layers is what takes weights.
    """
    loose = [key for key in rounds if key[2] is None]
    members = {
        node
        for key in loose
        if len({_parameters(node) for node in rounds[key]}) == 1
        for node in rounds[key]
    }
    chains: dict[tuple[object, ...], int] = {}
    for key in loose:
        own = set(rounds[key])
        follow = sum(_follows(node, own, members) for node in own)
        chains[key] = len(own) - follow or 1
    return chains


def _parameters(node: Node) -> frozenset[str]:
    """Names of the parameters that a node takes, also through what only hands them on."""
    names: set[str] = set()
    for source in node.inputs:
        for _ in range(_MOST_BEFORE_WEIGHT):
            if not isinstance(source, Node) or source.op not in _HANDS_ON or not source.inputs:
                break
            source = source.inputs[0]
        if isinstance(source, GraphParameter) and source.declaration is not None:
            names |= {source.name} if source.declaration.has_default else set()
    return frozenset(names)


def _follows(node: Node, own: Set[Node], members: Set[Node]) -> bool:
    """Whether a node takes, through members alone, what another of its own gives."""
    seen: set[Node] = set()
    waiting = [node]
    while waiting and len(seen) < _MOST_BETWEEN:
        for source in waiting.pop().inputs:
            if isinstance(source, Node) and source in members and source not in seen:
                if source in own:
                    return True
                seen.add(source)
                waiting.append(source)
    return False


def micro_batch_copies(dump: Dump) -> Copies | None:
    """How much of a graph is copied for micro-batches; None where cells are reused, or nothing is.

    A cell with ``lazy_inline`` is a graph of its own that is called.

    Args:
        dump: with all statements of the step.
    """
    copied = [node for node in dump.nodes() if node.micro is not None]
    micro = {node.micro for node in copied}
    layers = {layer_of_scope(node.scope) for node in copied}
    layers = {layer for layer in layers if any(char.isdigit() for char in layer)}
    if len(micro) < 2 or not layers or any(node.op == "call" for node in copied):
        return None
    once = len(copied) // len(micro) // len(layers)
    return Copies(len(layers), len(micro), len(copied), once)
