"""Without tensors nobody can be convicted: what in two graphs could make their numbers differ.

Ranked by how much error each can bring by what is known of rounding.  Where the other side has no
graph, nothing can be held against it; what half precision, sums in parts, fused kernels and sums in
no fixed order can bring is known all the same:

- a sum of ``k`` terms that is rounded to a type of unit ``u`` on its way: ``0.4 * sqrt(k) * u``;
- an all-reduce of ``n`` ranks in it: ``0.5 * sqrt(n) * u``;
- a cast, or a product of matrices in half precision: ``u`` and ``2 * u``;
- a fused attention kernel: some roundings more, ``8 * u``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from irtool.compare.sums import is_addition
from irtool.compare.tensors.dtypes import roundoff
from irtool.compare.tensors.join import signature_shapes
from irtool.compare.tensors.semantics import family, reduction_length
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.operators import PLUMBING, VIRTUAL
from irtool.ir.types import Abstract

if TYPE_CHECKING:
    from irtool.compare.edits import Edit
    from irtool.compare.graph_diff import GraphDiff

IDLE = PLUMBING | VIRTUAL
"""Operators that compute nothing: with or without them the numbers are the same."""
_LAYOUT = ("format", "dst_type")


_HALF = 2.0**-20
"""Unit roundoff from which a type counts as half precision."""
_SINGLE = 2.0**-24
_COLLECTIVES = ("allreduce", "allgather", "reducescatter")
"""What the name of a product with its communication in one kernel holds."""
_PASSING = ("TupleGetItem", "Reshape", "Transpose", "Load")
"""What stands between a part of a tensor and the product that reads it."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """What may explain a difference.

    Attributes:
        kind: the edit's kind, or what a lone graph computes (``half-precision reduction``).
        nodes: where it stands, the first place first.
        why: in words.
        error: the relative error that it can bring.
        times: how often it is there: once a layer, as a rule.
    """

    kind: str
    nodes: tuple[Node, ...]
    why: str
    error: float
    times: int

    @property
    def node(self) -> Node:
        """The node at the first place where it stands."""
        return self.nodes[0]


# -- of two graphs -------------------------------------------------------------------------------


def suspects(diff: GraphDiff) -> list[Suspect]:
    """Edits that can change numbers, the heaviest first; equal edits of layers once.

    Args:
        diff: of the two graphs.
    """
    ranked: list[tuple[float, float, Suspect]] = []
    for pattern in diff.patterns:
        edit = pattern.first
        reason = _of_edit(edit)
        if reason is not None:
            nodes = tuple(
                node
                for edit_of_layer in pattern.edits
                for node in (*edit_of_layer.left, *edit_of_layer.right)
            )
            order = edit.order
            suspect = Suspect(edit.kind, nodes, reason[0], reason[1], len(pattern.edits))
            ranked.append((-reason[1], order, suspect))
    return [item for _, _, item in sorted(ranked, key=lambda row: row[:2])]


def _of_edit(edit: Edit) -> tuple[str, float] | None:
    """Why an edit is suspicious and the error it can bring; None if it is not."""
    node = edit.node
    unit = _coarsest((*edit.left, *edit.right))
    kind = edit.kind
    if all(changed.op in IDLE for changed in (*edit.left, *edit.right)):
        return None
    if kind == "shape changed" and (edit.follows or _is_given_other_shapes(edit)):
        return None  # slices, or another batch
    if kind == "attribute changed":
        if family(node.op) == "collective" and not edit.detail.startswith("op:"):
            return None  # how it is sent, not what
        if any(word in edit.detail.partition(":")[0] for word in _LAYOUT):
            return None
        return f"{node.op} computes with another {edit.detail}", 1.0
    if kind == "constant changed":
        return f"{node.op} computes with another constant: {edit.detail}", 1.0
    if kind in ("added", "removed", "replaced", "input changed", "shape changed"):
        if all(_hands_on(changed) for changed in (*edit.left, *edit.right)):
            return None
        return f"{kind}: {edit.detail}", 0.5
    if kind in ("collective inserted", "collective removed"):
        if unit < 2.0**-20:
            return None
        return f"{node.op} adds up in half precision", 0.5 * math.sqrt(_ranks(node)) * unit
    if kind in ("reduction split", "reduction joined", "reduction reordered"):
        terms = 64.0
        return f"{kind}: the sum has another order", 0.4 * math.sqrt(terms) * max(unit, 2.0**-24)
    if kind in ("cast inserted", "cast removed", "dtype changed") and not edit.follows:
        return f"{kind}: {edit.detail}", max(unit, 2.0**-24)
    if kind in ("fused", "split"):
        fused = any(_is_fused(changed) for changed in (*edit.left, *edit.right))
        return f"{kind}: {edit.detail}", (8.0 if fused else 4.0) * max(unit, 2.0**-24)
    return None


def _hands_on(node: Node) -> bool:
    """Whether the numbers that come out are those that went in."""
    return node.op in IDLE or family(node.op) in ("view", "cast", "collective")


def _is_given_other_shapes(edit: Edit) -> bool:
    """Whether an operand has another shape, so that the result's is no choice of the operator."""
    left, right = (
        [str(kind.shape) for kind in node.input_types if kind is not None and kind.shape]
        for node in (edit.left[0], edit.right[0])
    )
    return left != right


def _coarsest(nodes: Sequence[Node]) -> float:
    """The unit roundoff of the coarsest type that these nodes put out or take in."""
    kinds = [kind for node in nodes for kind in (node.output_type, *node.input_types) if kind]
    units = [0.0, *(roundoff(kind.short().partition("[")[0]) for kind in kinds)]
    return max(units)


# -- of one graph --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Gathered:
    """One kind of suspect at all its places."""

    kind: str
    why: str
    error: float
    nodes: list[Node] = field(default_factory=list[Node])


def lone_suspects(dump: Dump) -> list[Suspect]:
    """What a graph computes less exactly than it could, the heaviest first; equal ones once.

    Args:
        dump: the only graph that there is.
    """
    gathered: dict[Hashable, _Gathered] = {}
    for graph in dump.graphs:
        for node in graph.nodes:
            for kind, why, error in _of_node(node):
                item = gathered.setdefault((kind, why), _Gathered(kind, why, error))
                item.error = max(item.error, error)
                item.nodes.append(node)
    ranked = sorted(gathered.values(), key=lambda item: -item.error)
    return [
        Suspect(item.kind, tuple(item.nodes), item.why, item.error, len(item.nodes))
        for item in ranked
    ]


def _of_node(node: Node) -> Iterator[tuple[str, str, float]]:
    """What is suspicious about one node: kind, in words, the error it can bring."""
    word, kind = node.op.lower(), family(node.op)
    unit = _unit(node.output_type)
    shorter = [source_type for source_type in node.input_types if _unit(source_type) > unit > 0]
    name = _dtype(node.output_type)
    if _is_fused(node):
        yield (
            "fused kernel",
            f"{node.op} fuses what the other side may compute in parts",
            (8 * max(unit, _SINGLE)),
        )
    elif kind == "collective" and unit >= _HALF and ("reduce" in word):
        error = 0.5 * math.sqrt(_ranks(node)) * unit
        yield "half-precision collective", f"{node.op} adds up in {name}", error
    elif kind in ("reduce", "bias gradient", "norm", "softmax", "scatter") and unit >= _HALF:
        error = 0.4 * math.sqrt(_length(node)) * unit
        yield "half-precision reduction", f"{node.op} puts out {name}", error
    elif kind in ("matmul", "convolution", "attention") and unit >= _HALF:
        yield "half-precision product", f"{node.op} computes in {name}", 2 * unit
    elif kind == "cast" and unit >= _HALF and not shorter:
        source = node.input_types[0] if node.input_types else None
        if _unit(source) < unit:
            yield "cast", f"{node.op} rounds {_dtype(source)} to {name}", unit
    # The largest or smallest of some numbers is the same in any order.
    if kind == "scatter" and not word.endswith(("max", "min")):
        error = 0.4 * math.sqrt(_length(node)) * max(unit, _SINGLE)
        yield "sum in no fixed order", f"{node.op} adds up as the threads come", error
    parts = _parts(node)
    if parts:
        error = 0.4 * math.sqrt(parts) * max(unit, _SINGLE)
        yield "split reduction", f"{node.op} adds up {parts} partial {_product(node)}s", error


def _parts(node: Node) -> int:
    """Of how many parts of one product a sum consists; 0 if it is no such sum."""
    if not is_addition(node.op):
        return 0
    made = [term for term in _terms(node) if isinstance(term, Node)]
    if len(made) < 2 or len(made) != len(_terms(node)):
        return 0
    if len({term.op for term in made}) != 1 or family(made[0].op) not in ("matmul", "convolution"):
        return 0
    return len(made) if all(any(_is_part(i) for i in term.inputs) for term in made) else 0


def _product(node: Node) -> str:
    return next((term.op for term in _terms(node) if isinstance(term, Node)), "")


def _terms(node: Node) -> list[object]:
    """What is added up: operands, or the items of a tuple; casts are looked through."""
    inputs: list[object] = list(node.inputs)
    first = inputs[0] if inputs else None
    if isinstance(first, Node) and first.op == "MakeTuple":
        inputs = list(first.inputs)
    return [_behind_cast(operand) for operand in inputs]


def _behind_cast(source: object) -> object:
    while isinstance(source, Node) and source.op == "Cast" and source.inputs:
        source = source.inputs[0]
    return source


def _is_part(source: object) -> bool:
    """Whether an operand is a part of something: a slice, or one of several of a split."""
    for _ in range(4):
        source = _behind_cast(source)
        if not isinstance(source, Node):
            return False
        if source.op not in _PASSING:
            return family(source.op) == "view" and _is_smaller(source)
        source = source.inputs[0] if source.inputs else None
    return False


def _is_smaller(node: Node) -> bool:
    """Whether a view, or the first of several, has fewer elements than what it is a view of."""
    inputs, outputs = signature_shapes(node)
    return 0 in inputs and 0 in outputs and math.prod(outputs[0]) < math.prod(inputs[0])


def _length(node: Node) -> float:
    """How many terms one element of the result adds up."""
    inputs, outputs = signature_shapes(node)
    shapes = [inputs[place] for place in sorted(inputs)]
    return reduction_length(family(node.op), "forward", shapes, outputs.get(0, ()), opaque=False)


def _unit(abstract: Abstract | None) -> float:
    return roundoff(_dtype(abstract))


def _dtype(abstract: Abstract | None) -> str:
    return abstract.short().lstrip("(").partition("[")[0] if abstract is not None else ""


def _is_fused(node: Node) -> bool:
    """Whether one kernel computes what others do in parts: attention, a product that is sent."""
    word, kind = node.op.lower(), family(node.op)
    return kind == "attention" or (kind == "matmul" and any(sent in word for sent in _COLLECTIVES))


def _ranks(node: Node) -> int:
    size = node.attribute("rank_size") or node.attribute("dev_num")
    return size if isinstance(size, int) and size > 0 else 8
