"""The factors of every dimension of every tensor of a dump, made equal along the axes of operators.

What lies along one axis of an operator stands in its entry of the table; a Reshape multiplies, what
cuts or joins adds.  Where an operator does not tell what becomes of its operands' sizes, that is
noted: nothing that it reads may then get another size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import GraphParameter, Node, Source
from irtool.ir.statement import ClosureTarget
from irtool.ir.types import Abstract, AnyShape, SequenceShape, Shape
from irtool.ir.values import TensorLiteral
from irtool.operators.axes import dimensions_of
from irtool.operators.judgement import Context
from irtool.operators.table import operator_of
from irtool.planning.scaling.sizes import ONE, Product, Sizes
from irtool.sharding.network.analysis import item_of
from irtool.sharding.network.calls import NodeCall, call_of
from irtool.sharding.network.graphs import Network
from irtool.sharding.network.sharded_nodes import TIES, primitive

_HANDS_ON = frozenset({"Load", "Depend", "Cast", "StopGradient", "Return", "ZerosLike"})
_DATASET = frozenset({"_VirtualDataset", "_VirtualOutput", "_VirtualDiv"})
_ALIGNED = frozenset({"elementwise", "sum", "product", "cast", "norm", "softmax", "optimizer"})
"""Numeric families whose operands lie over one another from the right, if no entry says more."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The dimensions of a tensor."""

    dimensions: tuple[Product, ...]


@dataclass(frozen=True, slots=True)
class Extents:
    """Those of a tuple of values."""

    items: tuple[Tree, ...]


Tree: TypeAlias = "Extent | Extents | None"
"""Of a value; None: it is no tensor, or nothing is known of its shape."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A slice that takes a part of an axis, and is no part of a whole that is known."""

    node: Node
    full: Product
    part: Product
    begin: int | None


@dataclass(frozen=True, slots=True)
class Attended:
    """The axes of an attention, as they were found; values may have heads of another size."""

    batch: Product
    heads: Product
    key_heads: Product
    head: Product
    value_head: Product
    query: Product
    key: Product


@dataclass(eq=False, slots=True)
class Dimensions:
    """A dump with the factors of its sizes.

    Attributes:
        network: of the dump.
        handlers: by operator what says more than a signature can.
        sizes: all factors.
        unknown: forward operators that do not tell what follows from the sizes of their operands.
        cuts: slices whose ends may have to move.
        repeats: how often an operator repeats each axis of its result.
        attended: axes of operators that are an attention as a whole.
    """

    network: Network
    handlers: Mapping[str, Handler]
    sizes: Sizes = field(default_factory=Sizes)
    unknown: list[Node] = field(default_factory=list[Node])
    cuts: list[Cut] = field(default_factory=list[Cut])
    repeats: dict[Node, tuple[Product, ...]] = field(
        default_factory=dict[Node, "tuple[Product, ...]"]
    )
    attended: list[tuple[Node, Attended]] = field(default_factory=list[tuple[Node, Attended]])
    _trees: dict[int, Tree] = field(default_factory=dict[int, "Tree"])
    _constants: dict[tuple[Node, int], Tree] = field(default_factory=dict[tuple[Node, int], "Tree"])
    _slices: dict[tuple[int, int], list[Cut]] = field(
        default_factory=dict[tuple[int, int], list[Cut]]
    )

    # -- values ----------------------------------------------------------------------------------

    def of(self, port: Node | GraphParameter) -> Tree:
        """The dimensions of a value."""
        if id(port) not in self._trees:
            type = port.output_type if isinstance(port, Node) else port.type
            self._trees[id(port)] = self._made(type)
        return self._trees[id(port)]

    def operand(self, node: Node, position: int) -> Tree:
        """The dimensions of an operand: of what it stands for, or of the constant that it is."""
        source: Source = self.network.inputs[node][position]
        if isinstance(source, (Node, GraphParameter)):
            return self.of(source)
        key = node, position
        if key not in self._constants:
            types = node.input_types
            tree = self._made(types[position]) if position < len(types) else None
            if tree is None and isinstance(source, TensorLiteral):
                tree = Extent(tuple(map(self.sizes.new, source.shape)))
            self._constants[key] = tree
        return self._constants[key]

    def _made(self, abstract: Abstract | None) -> Tree:
        return None if abstract is None or abstract.shape is None else self._shaped(abstract.shape)

    def _shaped(self, shape: AnyShape) -> Tree:
        if isinstance(shape, Shape):
            return Extent(tuple(map(self.sizes.new, shape.dimensions)))
        if isinstance(shape, SequenceShape):
            return Extents(tuple(map(self._shaped, shape.items)))
        return None

    def same(self, left: Tree, right: Tree, place: object) -> None:
        """Note that two values have the same dimensions."""
        if isinstance(left, Extent) and isinstance(right, Extent):
            if len(left.dimensions) == len(right.dimensions):
                for ours, theirs in zip(left.dimensions, right.dimensions, strict=True):
                    self.sizes.equate(ours, theirs, place)
        elif isinstance(left, Extents) and isinstance(right, Extents):
            for ours, theirs in zip(left.items, right.items, strict=False):
                self.same(ours, theirs, place)

    # -- nodes -----------------------------------------------------------------------------------

    def follow(self, node: Node) -> None:
        """Note what a node says of the dimensions of its operands and results."""
        name, inputs = primitive(node), self.network.inputs[node]
        graph = self.network.called(node)
        own = self.of(node)
        if graph is not None:
            for parameter, position in zip(graph.parameters, range(len(inputs)), strict=False):
                self.same(self.operand(node, position), self.of(parameter), node)
            result = self.network.returned(graph)
            if isinstance(result, (Node, GraphParameter)):
                self.same(own, self.of(result), node)
        elif isinstance(node.target, ClosureTarget):
            self._closure(node)
        elif node.is_return or name in _HANDS_ON or operator_of(name).is_("hands_on"):
            if inputs:
                self.same(own, self.operand(node, 0), node)
        elif name in TIES or name in _DATASET:
            trees = tuple(self.operand(node, position) for position in range(len(inputs)))
            both = trees[0] if len(trees) == 1 and isinstance(trees[0], Extents) else Extents(trees)
            self.same(own, both, node)
        elif name in ("TupleGetItem", "list_getitem"):
            tree = self.operand(node, 0)
            if isinstance(tree, Extents) and 0 <= item_of(node) < len(tree.items):
                self.same(own, tree.items[item_of(node)], node)
        elif name == "EnvironGet":
            self.same(own, self.operand(node, 2), node)
        elif own is not None and name not in ("UpdateState", "J", "RefToEmbed"):
            self._operator(node, name)

    def _closure(self, node: Node) -> None:
        """Gradients of a network's inputs are as large as these."""
        callee = self.network.callee.get(node)
        if isinstance(callee, Node) and primitive(callee) == "TupleGetItem":
            forward = self.network.first(callee)
            own = self.of(node)
            if isinstance(forward, Node) and isinstance(own, Extents):
                arguments = [
                    self.operand(forward, position) for position in range(len(forward.operands))
                ]
                for tree, argument in zip(own.items[1:], arguments, strict=False):
                    self.same(tree, argument, node)

    def _operator(self, node: Node, name: str) -> None:
        call = call_of(self.network, node)
        ins = [list(flat(self.operand(node, position))) for position in range(len(node.operands))]
        tensors = self._tensors(call, ins)
        outs = list(flat(self.of(node)))
        if tensors is None or not outs:
            self._lost(node)
            return
        handler = self.handlers.get(name)
        if handler is not None:
            understood = handler(self, node, call, tensors, outs)
        else:
            understood = self._by_signature(node, call, tensors, outs)
        if not understood:
            self._lost(node)

    def _tensors(self, call: NodeCall, ins: Sequence[Sequence[Extent]]) -> list[Extent] | None:
        """The tensors of a call, tuples taken apart."""
        extents: list[Extent] = []
        for tensors, count in zip(ins, call.slots.count, strict=False):
            if count and len(tensors) == count:
                extents += tensors
            elif count:
                return None
        return extents if len(extents) == len(call.call.tensors) else None

    def _by_signature(
        self, node: Node, call: NodeCall, tensors: Sequence[Extent], outs: Sequence[Extent]
    ) -> bool:
        """What the table says of the axes of a call; without that, of its numeric family."""
        signature = dimensions_of(call.call, ANY_CONTEXT)
        if signature is None:
            computes = operator_of(primitive(node)).computes
            return computes in _ALIGNED and aligned(self, node, tensors, outs)
        along: dict[object, Product] = {}
        understood = True
        sides = ((signature.inputs, tensors, False), (signature.outputs, outs, True))
        for keys, extents, is_result in sides:
            for row, extent in zip(keys, extents, strict=False):
                for key, product in zip(row, extent.dimensions, strict=False):
                    if product == ONE:
                        continue
                    if key is None:
                        understood = understood and not is_result
                    elif key not in along:
                        along[key] = product
                    elif self.sizes.value(along[key]) != self.sizes.value(product):
                        understood = False
                    else:
                        self.sizes.equate(along[key], product, node)
        return understood

    def _lost(self, node: Node) -> None:
        if node in self.network.forward:
            self.unknown.append(node)

    # -- slices ----------------------------------------------------------------------------------

    def cut(self, source: Source, dimension: int, cut: Cut) -> None:
        """Note that a slice takes a part of a dimension."""
        self._slices.setdefault((id(source), dimension), []).append(cut)

    def settle_cuts(self) -> None:
        """Tell slices that together are a whole, or all of it but one, from others."""
        for cuts in self._slices.values():
            parts = {cut.begin: cut for cut in cuts}
            end, row = 0, list[Cut]()
            while end in parts and self.sizes.value(parts[end].part):
                row.append(parts[end])
                end += self.sizes.value(parts[end].part)
            full = cuts[0].full
            if end == self.sizes.value(full) and len(row) == len(parts):
                self.sizes.is_sum(full, [cut.part for cut in row], cuts[0].node)
            elif all(self.sizes.value(cut.part) + 1 == self.sizes.value(full) for cut in cuts):
                for cut in cuts:
                    self.sizes.is_sum(full, (cut.part, ONE), cut.node)
            self.cuts += cuts


ANY_CONTEXT = Context((0,), 1, target="Ascend", full_batch=True)
"""One device: signatures ask for none."""


def flat(tree: Tree) -> Iterator[Extent]:
    """The tensors of a value, tuples taken apart.

    Args:
        tree: of the value; what is no tensor is left out.
    """
    if isinstance(tree, Extent):
        yield tree
    elif isinstance(tree, Extents):
        for item in tree.items:
            yield from flat(item)


def aligned(
    known: Dimensions, node: Node, tensors: Sequence[Extent], outs: Sequence[Extent]
) -> bool:
    """Operands and results that lie behind one another from the right; sizes of 1 are broadcast.

    Args:
        known: the factors of all sizes; those of one column are made equal.
        node: the operator.
        tensors: of its operands.
        outs: of its results.

    Returns:
        whether they do; False as soon as two sizes of one column differ, what was made equal stays
        so.
    """
    widest = max((*tensors, *outs), key=lambda extent: len(extent.dimensions)).dimensions
    columns: list[Product] = [ONE] * len(widest)
    for extent in (*tensors, *outs):
        first = len(widest) - len(extent.dimensions)
        for column, product in enumerate(extent.dimensions, first):
            if product == ONE:
                continue
            if columns[column] == ONE:
                columns[column] = product
            elif known.sizes.value(columns[column]) != known.sizes.value(product):
                return False
            else:
                known.sizes.equate(columns[column], product, node)
    return True


Handler: TypeAlias = Callable[
    [Dimensions, Node, NodeCall, Sequence[Extent], Sequence[Extent]], bool
]
"""Notes what a call says of sizes; gives whether that is all of it."""
