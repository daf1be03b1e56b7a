"""A dump with other sizes: types, constants that are sizes, and attributes that count heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Graph, Item, Node
from irtool.ir.items import Parameter, ParameterList
from irtool.ir.types import Abstract, AnyShape, SequenceShape, Shape, Signature
from irtool.ir.values import Attributes, Scalar, TensorLiteral, Value, Word, python_value
from irtool.ir.values import Sequence as SequenceLiteral
from irtool.planning.scaling.dimensions import Dimensions, Extent, Extents, Tree, flat
from irtool.planning.scaling.sizes import Product
from irtool.planning.search.operator_candidates import CannotPlan
from irtool.sharding.network.calls import call_of, literal_numbers
from irtool.sharding.network.sharded_nodes import primitive

_HEADS = frozenset({"head_num", "num_heads", "n_head"})
"""Attributes that count the heads of an attention."""


def scaled_dump(dump: Dump, known: Dimensions, targets: Mapping[int, int]) -> Dump:
    """The dump as it would be with other sizes; nodes are the same, in the same order.

    Args:
        dump: a begin dump.
        known: its factors.
        targets: new sizes of some factors.

    Raises:
        CannotPlan: what becomes of an operator is not known.
    """
    _refuse_unknown(known, targets)
    return _Writer(known, targets).written(dump)


def _refuse_unknown(known: Dimensions, targets: Mapping[int, int]) -> None:
    sizes = known.sizes
    changed = {factor for factor, value in targets.items() if value != sizes.size[factor]}

    def moves(product: Product) -> bool:
        return not changed.isdisjoint(sizes.leaves(product))

    for node in known.unknown:
        trees = [
            known.of(node),
            *(known.operand(node, position) for position in range(len(node.operands))),
        ]
        if any(
            moves(product) for tree in trees for one in flat(tree) for product in one.dimensions
        ):
            raise CannotPlan(
                f"what {node.id} {node.op} (line {node.line}) makes of operands of other sizes is "
                "not known: leave these sizes as they are"
            )
    for conflict in sizes.conflicts:
        if moves(conflict.left) or moves(conflict.right):
            place = conflict.place
            where = f"{place.id} {place.op} (line {place.line})" if isinstance(place, Node) else ""
            raise CannotPlan(
                f"{where or 'an operator'} makes {sizes.value(conflict.left)} and "
                f"{sizes.value(conflict.right)} one, whose factors are not the same: which part of "
                "them grows can't be told"
            )
    for cut in known.cuts:
        full, part = (sizes.scaled(product, targets) for product in (cut.full, cut.part))
        same = (full, part) == (sizes.value(cut.full), sizes.value(cut.part))
        end = cut.begin is not None and cut.begin + sizes.value(cut.part) == sizes.value(cut.full)
        if same or (full >= part and (cut.begin == 0 or end or _is_part(known, cut.full))):
            continue
        raise CannotPlan(
            f"{cut.node.id} {cut.node.op} (line {cut.node.line}) takes "
            f"{sizes.value(cut.part)} of {sizes.value(cut.full)}, and would have to take {part} "
            f"of {full}: compile the small network with a table that is as long"
        )


def _is_part(known: Dimensions, product: Product) -> bool:
    factors = known.sizes.factors(product)
    return len(factors) == 1 and known.sizes.terms(factors[0]) is not None


@dataclass(eq=False, slots=True)
class _Writer:
    known: Dimensions
    targets: Mapping[int, int]

    def new(self, product: Product) -> int:
        """The size that a dimension gets."""
        return self.known.sizes.scaled(product, self.targets)

    def old(self, product: Product) -> int:
        """The size that it has."""
        return self.known.sizes.value(product)

    def written(self, dump: Dump) -> Dump:
        """The dump with new sizes."""
        entry = dump.entry
        declared = {
            id(item.declaration): item for item in (entry.parameters if entry is not None else ())
        }

        def item_of(item: Item | Graph) -> Item | Graph:
            if isinstance(item, Parameter) and id(item) in declared:
                type = self._typed(item.type, self.known.of(declared[id(item)]))
                return replace(item, type=type, symbolic=self._symbolic(item, type))
            return self._graph(item) if isinstance(item, Graph) else item

        return replace(dump, items=tuple(item_of(item) for item in dump.items))

    def _symbolic(self, item: Parameter, type: Abstract | None) -> str | None:
        """The shape as it is written once more behind an input, where it is written in numbers."""
        before = item.type.dimensions if item.type is not None else None
        after = type.dimensions if type is not None else None
        if item.symbolic is None or before is None or after is None:
            return item.symbolic
        return item.symbolic.replace(str(list(before)), str(list(after)))

    def _graph(self, graph: Graph) -> Graph:
        items = tuple(self._node(item) if isinstance(item, Node) else item for item in graph.items)
        parameters = graph.parameters

        def types(listed: ParameterList) -> ParameterList:
            typed = tuple(
                self._typed(
                    type,
                    self.known.of(parameters[position]) if position < len(parameters) else None,
                )
                for position, type in enumerate(listed.types)
            )
            return replace(listed, types=typed)

        prelude = tuple(
            types(line) if isinstance(line, ParameterList) else line for line in graph.prelude
        )
        return replace(graph, items=items, prelude=prelude, dump=None)

    def _node(self, node: Node) -> Node:
        own = self.known.of(node)
        trees = [self.known.operand(node, position) for position in range(len(node.operands))]
        signature = node.signature
        if signature is not None:
            inputs = tuple(
                self._typed(type, trees[position] if position < len(trees) else None)
                for position, type in enumerate(signature.inputs)
            )
            outputs = signature.outputs
            if outputs is not None:
                outputs = tuple(self._typed(output, own) for output in outputs)
            signature = Signature(inputs, outputs, signature.lead, signature.arrow, signature.null)
        operands = [
            self._literal(value, tree) for value, tree in zip(node.operands, trees, strict=True)
        ]
        attributes = node.primitive_attributes
        if primitive(node) and node in self.known.network.forward:
            operands = self._constants(node, operands, trees, list(flat(own)))
            attributes = self._attributes(node, attributes)
        return replace(
            node,
            operands=tuple(operands),
            signature=signature,
            primitive_attributes=attributes,
            graph=None,
        )

    # -- types -------------------------------------------------------------------------------------

    def _typed(self, abstract: Abstract | None, tree: Tree) -> Abstract | None:
        if abstract is None or abstract.shape is None or tree is None:
            return abstract
        return replace(abstract, shape=self._shape(abstract.shape, tree))

    def _shape(self, shape: AnyShape, tree: Tree) -> AnyShape:
        if isinstance(shape, Shape) and isinstance(tree, Extent):
            return replace(shape, dimensions=tuple(map(self.new, tree.dimensions)))
        if isinstance(shape, SequenceShape) and isinstance(tree, Extents):
            items = [
                self._shape(item, tree.items[position]) if position < len(tree.items) else item
                for position, item in enumerate(shape.items)
            ]
            return replace(shape, items=tuple(items))
        return shape

    # -- constants ---------------------------------------------------------------------------------

    def _literal(self, value: Value, tree: Tree) -> Value:
        """A constant tensor: its shape, and no values where that is another one."""
        if not isinstance(value, TensorLiteral) or not isinstance(tree, Extent):
            return value
        shape = tuple(map(self.new, tree.dimensions))
        return value if shape == value.shape else replace(value, shape=shape, data="...")

    def _constants(
        self, node: Node, operands: list[Value], trees: Sequence[Tree], outs: Sequence[Extent]
    ) -> list[Value]:
        """The operands, constants that say a size replaced by those of the new sizes."""
        ins = [extent for tree in trees for extent in flat(tree)]
        moved = any(
            self.new(product) != self.old(product)
            for extent in (*ins, *outs)
            for product in extent.dimensions
        )
        if not moved or not outs:
            return operands
        repeats = self.known.repeats.get(node)
        if repeats is not None:
            return self._repeats(node, operands, repeats)
        rewrite = _REWRITES.get(primitive(node))
        return operands if rewrite is None else rewrite(self, node, operands, ins, outs)

    def _repeats(
        self, node: Node, operands: list[Value], repeats: Sequence[Product]
    ) -> list[Value]:
        if len(operands) < 2:  # an attribute of RepeatElements
            if any(self.new(product) != self.old(product) for product in repeats):
                raise self._untold(node)
            return operands
        value = operands[1]
        if isinstance(value, SequenceLiteral):
            items = [
                _number(item, self.new(product))
                for item, product in zip(value.items, repeats, strict=True)
            ]
            operands[1] = replace(value, items=tuple(items))
        else:
            operands[1] = _number(value, self.new(repeats[0]))
        return operands

    def made(
        self, node: Node, operands: list[Value], ins: Sequence[Extent], outs: Sequence[Extent]
    ) -> list[Value]:
        """A shape that is asked for; -1 stays what is left."""
        shape = outs[0].dimensions
        for position, value in enumerate(operands):
            numbers = literal_numbers(python_value(value))
            if not isinstance(value, SequenceLiteral) or numbers is None:
                continue
            if len(numbers) != len(shape):
                continue
            if all(number in (-1, self.old(product)) for number, product in zip(numbers, shape,
                                                                        strict=True)):  # fmt: skip
                items = [
                    item if number == -1 else _number(item, self.new(product))
                    for item, number, product in zip(value.items, numbers, shape, strict=True)
                ]
                operands[position] = replace(value, items=tuple(items))
                return operands
        raise self._untold(node)

    def parts(
        self, node: Node, operands: list[Value], ins: Sequence[Extent], outs: Sequence[Extent]
    ) -> list[Value]:
        """Lengths of parts along an axis."""
        shape = ins[0].dimensions
        for position, value in enumerate(operands):
            numbers = literal_numbers(python_value(value))
            if not isinstance(value, SequenceLiteral) or numbers is None:
                continue
            for axis in range(len(shape)):
                own = [out.dimensions[axis] for out in outs]
                if [self.old(product) for product in own] == list(numbers):
                    items = [
                        _number(item, self.new(product))
                        for item, product in zip(value.items, own, strict=True)
                    ]
                    operands[position] = replace(value, items=tuple(items))
                    return operands
        raise self._untold(node)

    def classes(
        self, node: Node, operands: list[Value], ins: Sequence[Extent], outs: Sequence[Extent]
    ) -> list[Value]:
        """How many classes indices stand for."""
        depth = python_value(operands[1])
        for product in reversed(outs[0].dimensions):
            if self.old(product) == depth:
                operands[1] = _number(operands[1], self.new(product))
                return operands
        raise self._untold(node)

    def ends(
        self, node: Node, operands: list[Value], ins: Sequence[Extent], outs: Sequence[Extent]
    ) -> list[Value]:
        """Where a strided slice begins and ends, in every dimension."""
        before = ins[0].dimensions
        begins, ends = (literal_numbers(python_value(value)) for value in operands[1:3])
        if begins is None or ends is None or len(begins) > len(before):
            raise self._untold(node)
        cuts = {cut.full: cut.part for cut in self.known.cuts if cut.node is node}
        new_begins, new_ends = list(begins), list(ends)
        for axis, product in enumerate(before[: len(begins)]):
            size, begin, end = self.old(product), begins[axis], ends[axis]
            part = cuts.get(product)
            if part is None:
                if begin == 0 and end >= size:
                    new_ends[axis] = self.new(product)
                elif self.new(product) != size and (begin < 0 or end < 0 or end - begin != 1):
                    raise self._untold(node)
                continue
            if self.new(product) == size and self.new(part) == self.old(part):
                continue
            if begin == 0:
                new_ends[axis] = self.new(part) if end > 0 else end
            elif end == size:
                new_begins[axis] = self.new(product) - self.new(part) if begin > 0 else begin
                new_ends[axis] = self.new(product)
            else:
                raise self._untold(node)
        for position, numbers in ((1, new_begins), (2, new_ends)):
            value = operands[position]
            assert isinstance(value, SequenceLiteral)
            items = zip(value.items, numbers, strict=True)
            operands[position] = replace(value, items=tuple(_number(*pair) for pair in items))
        return operands

    def span(
        self, node: Node, operands: list[Value], ins: Sequence[Extent], outs: Sequence[Extent]
    ) -> list[Value]:
        """Numbers from 0: the last one moves."""
        numbers = [python_value(value) for value in operands[:3]]
        length = outs[0].dimensions[0]
        if numbers[0] != 0 or numbers[1] != self.old(length) or numbers[2] != 1:
            raise self._untold(node)
        operands[1] = _number(operands[1], self.new(length))
        return operands

    def heads(
        self, node: Node, operands: list[Value], ins: Sequence[Extent], outs: Sequence[Extent]
    ) -> list[Value]:
        """The number of heads, where it is an operand."""
        call = call_of(self.known.network, node)
        heads = self._heads_of(node)
        for position, value in enumerate(operands):
            if isinstance(value, (Scalar, Word)) and position == _HEAD_OPERAND:
                if heads is not None and python_value(value) == self.old(heads):
                    operands[position] = _number(value, self.new(heads))
                elif "head_num" not in call.call.attributes:
                    raise self._untold(node)
        return operands

    def _heads_of(self, node: Node) -> Product | None:
        for operator, attended in self.known.attended:
            if operator is node:
                return attended.heads
        return None

    def _attributes(self, node: Node, block: Attributes | None) -> Attributes | None:
        heads = self._heads_of(node)
        if block is None or heads is None or not any(key in block for key in _HEADS):
            return block
        entries = tuple(
            (key, _number(value, self.new(heads)) if key in _HEADS else value)
            for key, value in block.entries
        )
        return Attributes(entries, block.label, block.separator, block.spaced)

    def _untold(self, node: Node) -> CannotPlan:
        return CannotPlan(
            f"the sizes that {node.id} {node.op} (line {node.line}) is given as constants can't be "
            "told from its shapes: leave them as they are"
        )


def _number(value: Value, number: int) -> Value:
    """A literal with another number."""
    return replace(value, text=str(number)) if isinstance(value, (Scalar, Word)) else value


_HEAD_OPERAND = 10
"""Of FlashAttentionScore, where its attributes are operands."""
_Rewrite = Callable[[_Writer, Node, list[Value], Sequence[Extent], Sequence[Extent]], list[Value]]
_REWRITES: Mapping[str, _Rewrite] = {
    **dict.fromkeys(("Reshape", "View", "BroadcastTo", "Fill", "FillV2", "Zeros", "Ones"),
                    _Writer.made),
    **dict.fromkeys(("SplitWithSize", "SplitTensor", "SplitV"), _Writer.parts),
    **dict.fromkeys(("OneHot", "OneHotExt"), _Writer.classes),
    "StridedSlice": _Writer.ends,
    "Range": _Writer.span,
    "FlashAttentionScore": _Writer.heads,
}  # fmt: skip
