"""Which tensors of a rank are partial sums: a collective further on adds them up over a group.

A product whose contracted dimension is split gives every rank a part of the sum.  The graph says
so: what reaches an AllReduce or a ReduceScatter through nothing but views, casts, factors and
additions has not been added up yet; what comes out of an AllReduce has.

Gradients are partial further back.  Where ranks compute the same loss, MindSpore divides its
gradient by their number (``_VirtualDiv``), and each of the sums behind takes that out again.
Everything between is linear in the gradient: the sum over the ranks that hold the same part is it.

Gradients of micro-batches are added up in a parameter before a collective adds up that; and a stage
of a pipeline sends on what it has, terms of a sum as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from irtool.compare.layouts.ranks import is_accumulated, operand, parameter_of
from irtool.compare.tensors.semantics import family
from irtool.ir.collectives import collective
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node

Group = frozenset[int]
Sums = dict[tuple[Node, int], Group]
"""By node and number of the result, the ranks over which it is to be added up: of these, those
that hold the same part."""

VIRTUAL_DIVISION = "_VirtualDiv"
"""In the scope of the division that makes up for ranks that compute the same."""
_ADD_UP = ("AllReduce", "ReduceScatter")
_WHOLE = ("AllReduce", "AllGather")
_LINEAR = ("view", "cast", "sum")
_FACTORS = ("Mul", "RealDiv", "Muls", "Div", "Neg")


def partial_sums(dump: Dump, rank: int) -> Sums:
    """Partial sums of one rank's graph.

    Args:
        dump: the graph that its tensors were joined with.
        rank: whose it is.
    """
    sums: Sums = {}
    for graph in dump.graphs:
        gradients = gradient_nodes(graph.nodes)
        walk = _Walk(rank, gradients, _accumulated(graph.nodes), _added_up(graph.nodes))
        for node in graph.nodes:
            info = collective(node) if node.op in _ADD_UP else None
            if info is None or info.reduction not in (None, "sum") or not info.ranks:
                continue
            if rank in info.ranks and len(info.ranks) > 1:
                _mark(node, frozenset(info.ranks), walk, sums)
        for node in graph.nodes:
            if node.op == "Send" and node in gradients:
                _mark_sent(node, walk, sums)
    return sums


@dataclass(frozen=True, slots=True)
class _Walk:
    """What the graph says on the way back from a collective.

    Attributes:
        rank: whose graph it is.
        gradients: nodes of the backward pass.
        added: what is added up in each parameter that takes gradients of micro-batches.
        whole: nodes whose results were added up already, and over which ranks.
    """

    rank: int
    gradients: Set[Node]
    added: Mapping[str, Sequence[tuple[Node, int]]]
    whole: Mapping[Node, Group]


def _added_up(nodes: Sequence[Node]) -> dict[Node, Group]:
    """What an AllReduce gives, and what is made of that alone, by the ranks that then have it."""
    whole: dict[Node, Group] = {}
    for node in nodes:
        info = collective(node) if node.op == "AllReduce" else None
        if info is not None and info.ranks:
            whole[node] = frozenset(info.ranks)
            continue
        sources = {operand(node, place) for place in range(len(node.inputs))} - {None}
        makers = {source[0] for source in sources if source is not None}
        reads_parameter = any(parameter_of(node, n) is not None for n in range(len(node.inputs)))
        if len(makers) == 1 and not reads_parameter and (maker := makers.pop()) in whole:
            whole[node] = whole[maker]
    return whole


def _accumulated(nodes: Sequence[Node]) -> dict[str, list[tuple[Node, int]]]:
    """What is added up in each parameter that takes gradients of micro-batches."""
    added: dict[str, list[tuple[Node, int]]] = {}
    for node in nodes:
        target = parameter_of(node, 0) if node.op == "AssignAdd" else None
        source = operand(node, 1) if target is not None and is_accumulated(target) else None
        if target is not None and source is not None:
            added.setdefault(str(target.name), []).append(source)
    return added


def _mark_sent(node: Node, walk: _Walk, sums: Sums) -> None:
    """Mark a gradient that goes to the stage before: it is what those are that it is made of.

    A term of it that nothing else reads is a partial sum as well.
    """
    key = operand(node, 0)
    if key is None or key in sums:
        return
    sources = [operand(key[0], place) for place in range(len(key[0].inputs))]
    groups = [sums[item] for item in sources if item in sums and item[0] in walk.gradients]
    if groups:
        _walk_back([key], frozenset[int]().union(*groups), walk, sums)


def gradient_nodes(nodes: Sequence[Node]) -> set[Node]:
    """Nodes of the backward pass: those of its scope, and all that is made of them.

    Args:
        nodes: of one graph, in their order.
    """
    gradients: set[Node] = set()
    for node in nodes:
        if (node.full_name or "").startswith("Gradients") or any(
            isinstance(source, Node) and source in gradients for source in _data(node)
        ):
            gradients.add(node)
    return gradients


def _data(node: Node) -> Sequence[object]:
    """What a node computes with, without what it only waits for, as schedules make it."""
    if node.op in ("Receive", "UpdateState"):
        return ()
    return node.inputs[:1] if node.op in ("Depend", "Load") else node.inputs


def _mark(node: Node, group: Group, walk: _Walk, sums: Sums) -> None:
    """Mark what is added up by a collective, back to where the parts are made."""
    start = operand(node, 0)
    _walk_back([start] if start is not None else _added_to(node, walk.added), group, walk, sums)


def _walk_back(waiting: list[tuple[Node, int]], group: Group, walk: _Walk, sums: Sums) -> None:
    """Mark results, and what they are made of."""
    while waiting:
        key = waiting.pop()
        maker = key[0]
        others = group - (walk.whole.get(maker, frozenset()) - {walk.rank})
        if maker.op in _WHOLE or others <= sums.get(key, frozenset({walk.rank})):
            continue
        sums[key] = sums.get(key, frozenset()) | others
        if VIRTUAL_DIVISION in (maker.full_name or ""):
            continue
        sources = [operand(maker, place) for place in range(len(maker.inputs))]
        waiting += _added_to(maker, walk.added)
        if maker in walk.gradients:
            waiting += [item for item in sources if item is not None and item[0] in walk.gradients]
        elif family(maker.op) in _LINEAR or maker.op in _FACTORS:
            several = family(maker.op) == "sum"
            waiting += [item for item in sources[: None if several else 1] if item is not None]


def _added_to(
    node: Node, added: Mapping[str, Sequence[tuple[Node, int]]]
) -> list[tuple[Node, int]]:
    """What was added up in the parameters that a node reads."""
    terms: list[tuple[Node, int]] = []
    for place in range(len(node.inputs) if added else 0):
        parameter = parameter_of(node, place)
        if parameter is not None:
            terms += added.get(str(parameter.name), ())
    return terms
