"""Which sizes play which role in a network: found from what operators do with them.

Attention tells batch, heads, head size and sequence; the products before and behind it tell the
hidden size, other products into it and out of it the feed-forward one; what is looked up by the
network's inputs is the vocabulary.  Equal numbers alone tell nothing.  Layers have factors of their
own, so a role is a set of products that all have one size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.operators.axes import dimensions_of
from irtool.operators.table import operator_of
from irtool.planning.scaling.dimensions import ANY_CONTEXT, Dimensions, Extent, flat
from irtool.planning.scaling.layers import Repeated, repeated_layers
from irtool.planning.scaling.sizes import ONE, Product
from irtool.planning.search.operator_candidates import CannotPlan
from irtool.sharding.network.calls import call_of
from irtool.sharding.network.sharded_nodes import primitive

NAMES = (
    "layers", "batch", "sequence", "vocabulary", "hidden", "heads", "kv_heads", "head_size",
    "feed_forward",
)  # fmt: skip
"""Roles that are looked for, in the order in which they are told."""

MEANINGS: Mapping[str, str] = {
    "layers": "layers that repeat",
    "batch": "rows of the network's inputs",
    "sequence": "positions that attend to one another",
    "vocabulary": "rows of the table that the inputs look up",
    "hidden": "what attention's products begin and end with",
    "heads": "of an attention",
    "kv_heads": "heads of keys and values",
    "head_size": "of one head",
    "feed_forward": "between two products of a layer that begin and end with the hidden size",
}


@dataclass(frozen=True, slots=True)
class Role:
    """A size of a network, by what it is for.

    Attributes:
        name: one of ``NAMES``.
        size: in the dump.
        products: every dimension of this role, each once; none of layers.
        given: whether somebody named its size.
    """

    name: str
    size: int
    products: tuple[Product, ...]
    given: bool = False


@dataclass(frozen=True, slots=True)
class Roles:
    """What is known of a network's sizes.

    Attributes:
        known: roles by name.
        open: roles that several sizes may play, with these sizes.
        layers: what repeats; None: nothing does that could be told.
    """

    known: Mapping[str, Role]
    open: Mapping[str, tuple[int, ...]]
    layers: Repeated | None

    def role(self, name: str) -> Role:
        """The size that plays a role.

        Raises:
            CannotPlan: this network has none, or several sizes may play it.
        """
        if name in self.known:
            return self.known[name]
        if name in self.open:
            sizes = [str(size) for size in self.open[name]]
            several = f"{', '.join(sizes[:-1])} or {sizes[-1]}"
            raise CannotPlan(
                f"which size is {name} ({MEANINGS[name]}) can't be told: {several}; name it, "
                f"--role {name}={sizes[0]}"
            )
        raise CannotPlan(
            f"this network has no {name} ({MEANINGS[name]}) that its shapes would tell; it has "
            f"{', '.join(self.known) or 'none of the sizes that can be scaled'}"
        )


def roles_of(known: Dimensions, given: Mapping[str, int]) -> Roles:
    """The roles that sizes of a network play.

    Args:
        known: the factors of its sizes.
        given: sizes of the dump that somebody named, by role.

    Raises:
        CannotPlan: nothing of a size that was named can play the role.
    """
    finder = _Finder(known)
    roles: dict[str, Role] = {}
    open_: dict[str, tuple[int, ...]] = {}
    for name in NAMES[1:]:
        products = finder.of(name)
        by_size: dict[int, list[Product]] = {}
        for product in products:
            by_size.setdefault(known.sizes.value(product), []).append(product)
        by_size.pop(1, None)
        if name in given:
            if given[name] not in by_size:
                sizes = f"what may be has {', '.join(map(str, sorted(by_size)))}"
                raise CannotPlan(
                    f"--role {name}={given[name]}: no size of this network that is {given[name]} "
                    f"is {MEANINGS[name]}; {sizes if by_size else 'none is'}"
                )
            by_size = {given[name]: by_size[given[name]]}
        if len(by_size) == 1:
            ((size, own),) = by_size.items()
            roles[name] = Role(name, size, tuple(own), name in given)
        elif by_size:
            open_[name] = tuple(sorted(by_size))
    layers = repeated_layers(known.network, given.get("layers"))
    if isinstance(layers, Repeated):
        roles = {"layers": Role("layers", layers.count, (), "layers" in given), **roles}
        return Roles(roles, open_, layers)
    if layers:
        open_["layers"] = layers
    return Roles(roles, open_, None)


@dataclass(frozen=True, slots=True)
class _MatrixProduct:
    """A product: what it sums over, what its second operand adds, and what its rows lie along."""

    contracted: Product
    added: Product
    rows: tuple[Product, ...]


@dataclass(eq=False)
class _Finder:
    """Looks for the sizes that play a role."""

    known: Dimensions

    def of(self, name: str) -> list[Product]:
        """Products that may play a role, each once."""
        products = {
            "batch": self._batch, "sequence": self._sequence, "vocabulary": self._vocabulary,
            "hidden": self._hidden, "heads": self._heads, "kv_heads": self._kv_heads,
            "head_size": self._head_size, "feed_forward": self._feed_forward,
        }[name]()  # fmt: skip
        return self._once(products)

    def _once(self, products: Iterable[Product]) -> list[Product]:
        factors = self.known.sizes.factors
        return list(dict.fromkeys(own for product in products if (own := factors(product)) != ONE))

    # -- what operators tell -----------------------------------------------------------------------

    @cached_property
    def _inputs(self) -> list[Extent]:
        entry = self.known.network.entry
        return [
            extent
            for item in (entry.parameters if entry is not None else ())
            if item.declaration is not None and not item.declaration.is_weight
            for extent in flat(self.known.of(item))
            if extent.dimensions
        ]

    @cached_property
    def _products(self) -> list[_MatrixProduct]:
        return [made for node in self._forward() if (made := self._matrix_product(node))]

    def _forward(self) -> Iterator[Node]:
        for graph in self.known.network.forward_graphs:
            yield from graph.nodes

    def _matrix_product(self, node: Node) -> _MatrixProduct | None:
        name = primitive(node)
        if not name or operator_of(name).computes != "matmul":
            return None
        call = call_of(self.known.network, node)
        extents = [
            extent
            for position in range(len(node.operands))
            for extent in flat(self.known.operand(node, position))
        ][:2]
        if len(extents) < 2 or len(call.call.tensors) < 2:
            return None
        left, right = extents
        signature = dimensions_of(call.call, ANY_CONTEXT)
        if signature is None:
            if len(right.dimensions) != 2 or not left.dimensions:
                return None
            return _MatrixProduct(right.dimensions[1], right.dimensions[0], left.dimensions[:-1])
        out = signature.outputs[0]
        ours, theirs = signature.inputs[:2]
        summed = [d for key, d in zip(ours, left.dimensions, strict=True) if key not in out]
        added = [
            d for key, d in zip(theirs, right.dimensions, strict=True)
            if key in out and key not in ours
        ]  # fmt: skip
        both = [
            d for key, d in zip(ours, left.dimensions, strict=True)
            if key in theirs and key in out
        ]  # fmt: skip
        if len(summed) != 1 or len(added) > 1:
            return None
        return _MatrixProduct(summed[0], added[0] if added else ONE, tuple(both))

    @cached_property
    def _softmaxed(self) -> set[Product]:
        """Last dimensions of what a softmax is taken of."""
        factors = self.known.sizes.factors
        return {
            factors(extent.dimensions[-1])
            for node in self._forward()
            if primitive(node) and operator_of(primitive(node)).computes == "softmax"
            for extent in flat(self.known.of(node))
            if extent.dimensions
        }

    @cached_property
    def _attended(self) -> list[tuple[Product, Product, Product, Product]]:
        """Of every attention batch and heads in one, its head sizes, and its positions."""
        factors = self.known.sizes.factors
        attended = [
            ((*axes.batch, *axes.heads), head, axes.query, axes.key)
            for _, axes in self.known.attended
            for head in (axes.head, axes.value_head)
        ]
        for made in self._products:
            rows = tuple(factor for row in made.rows for factor in row)
            if factors(made.added) in self._softmaxed and rows:
                attended.append((rows, made.contracted, ONE, made.added))
            elif factors(made.contracted) in self._softmaxed and rows:
                attended.append((rows, made.added, ONE, made.contracted))
        return attended

    # -- roles -------------------------------------------------------------------------------------

    @cached_property
    def _batches(self) -> list[Product]:
        firsts = self._once(extent.dimensions[0] for extent in self._inputs)
        if len(firsts) < 2:
            return firsts
        factors = self.known.sizes.factors
        inside = {factor for rows, *_ in self._attended for factor in factors(rows)}
        return [first for first in firsts if inside.issuperset(first)] or firsts

    def _batch(self) -> list[Product]:
        return self._batches

    def _sequence(self) -> list[Product]:
        return [product for _, _, query, key in self._attended for product in (query, key)]

    def _heads(self) -> list[Product]:
        factors = self.known.sizes.factors
        batch = {factor for product in self._batches for factor in product}
        positions = {factor for product in self._sequence() for factor in factors(product)}
        return [
            tuple(factor for factor in factors(rows) if factor not in batch | positions)
            for rows, *_ in self._attended
        ]

    def _head_size(self) -> list[Product]:
        return [head for _, head, *_ in self._attended]

    def _kv_heads(self) -> list[Product]:
        """Heads of which there are weights of their own, where several share one."""
        factors = self.known.sizes.factors
        sizes = set(self._once(self._head_size()))
        weights = {part for made in self._products for part in self._parts(made.added)}
        products: list[Product] = []
        for heads in self._once(self._heads()):
            own = [
                heads[:count]
                for count in range(1, len(heads))
                if any(factors((*heads[:count], *size)) in weights for size in sizes)
            ]
            products += own or [heads] if len(heads) == 1 or own else []
        return products

    def _parts(self, product: Product) -> Iterator[Product]:
        """A product, and those that it is the sum of."""
        own = self.known.sizes.factors(product)
        yield own
        terms = self.known.sizes.terms(own[0]) if len(own) == 1 else None
        for term in terms or ():
            yield from self._parts(term)

    @cached_property
    def _widths(self) -> set[Product]:
        """All heads in one dimension: of queries, of keys and of values."""
        sizes = self._once(self._head_size())
        heads = (*self._once(self._heads()), *self._once(self._kv_heads()))
        return {self.known.sizes.factors((*some, *size)) for some in heads for size in sizes}

    @cached_property
    def _hiddens(self) -> list[Product]:
        factors = self.known.sizes.factors
        products: list[Product] = []
        for made in self._products:
            if not self._widths.isdisjoint(self._parts(made.added)):
                products.append(made.contracted)
            elif factors(made.contracted) in self._widths and made.added != ONE:
                products.append(made.added)
        behind = self._once(products)
        return [product for product in behind if self._is_stream(product)] or behind

    def _is_stream(self, product: Product) -> bool:
        """Whether products begin with a size, and others end with it."""
        factors = self.known.sizes.factors
        begins = any(factors(made.contracted) == product for made in self._products)
        return begins and any(factors(made.added) == product for made in self._products)

    def _hidden(self) -> list[Product]:
        return self._hiddens

    def _feed_forward(self) -> list[Product]:
        factors, hidden = self.known.sizes.factors, set(self._hiddens)
        up = {
            part
            for made in self._products
            if factors(made.contracted) in hidden
            for part in self._parts(made.added)
        }
        other = hidden | self._widths | self._softmaxed
        return [
            own
            for made in self._products
            if factors(made.added) in hidden
            and (own := factors(made.contracted)) in up
            and own not in other
        ]

    def _vocabulary(self) -> list[Product]:
        """Rows of tables that inputs look up, and classes of the same size."""
        hidden, sizes = set(self._hiddens), self.known.sizes
        rows: list[Product] = []
        for node in self._forward():
            name = primitive(node)
            if not name or not operator_of(name).is_("looks_up") or len(node.operands) < 2:
                continue
            extents = list(flat(self.known.operand(node, 0)))
            if not self._is_input(node) or len(extents) != 1 or len(extents[0].dimensions) != 2:
                continue
            row, width = extents[0].dimensions
            if not hidden or sizes.factors(width) in hidden:
                rows.append(row)
        numbers = {sizes.value(row) for row in rows}
        classes = [
            made.added
            for made in self._products
            if sizes.factors(made.contracted) in hidden and sizes.value(made.added) in numbers
            and sizes.factors(made.added) not in self._widths | set(self._feed_forward()) | hidden
        ]  # fmt: skip
        both = {sizes.value(product) for product in classes}
        main = [row for row in rows if sizes.value(row) in both] or rows
        return [*main, *classes]

    def _is_input(self, node: Node) -> bool:
        """Whether what looks up comes from the network's inputs."""
        ids = list(flat(self.known.operand(node, 1)))
        factors = self.known.sizes.factors
        firsts = {factor for batch in self._batches for factor in batch}
        return any(
            firsts.intersection(factors(product)) for extent in ids for product in extent.dimensions
        )
