"""A network of other sizes, as a dump: the question that ``irtool plan --scale`` begins with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown
from irtool.ir.dump import Dump
from irtool.ir.graph import Graph, Item, Node
from irtool.ir.values import Attributes
from irtool.planning.scaling.layers import Repeated, repeated_layers
from irtool.planning.scaling.reading import dimensions_in
from irtool.planning.scaling.repeating import with_layers
from irtool.planning.scaling.roles import Role, Roles, roles_of
from irtool.planning.scaling.targets import targets_of
from irtool.planning.scaling.writing import scaled_dump
from irtool.planning.search.operator_candidates import CannotPlan
from irtool.planning.search.problem import plain_dump
from irtool.sharding.network.graphs import network_of


@dataclass(frozen=True, eq=False)
class Scaled(Shown):
    """A network of other sizes.

    Attributes:
        dump: without strategies, as the whole network would be compiled.
        roles: what the sizes of the small network are for.
        sizes: by role before and after.
        narrow: the same with the layers of the small network.
    """

    dump: Dump
    roles: Roles
    sizes: Mapping[str, tuple[int, int]]
    narrow: Dump

    @property
    def layers(self) -> int:
        """How many layers it has; 0 where none repeat."""
        return self.sizes["layers"][1] if "layers" in self.sizes else 0

    def of_depth(self, count: int) -> Dump:
        """The network with another number of layers, no fewer than the small one has."""
        return deepened(self.narrow, self.roles.layers, count)

    def role(self, name: str) -> Role | None:
        """The size of the dump that plays a role; None where none is known."""
        return self.roles.known.get(name)


def scaled(dump: Dump, asked: Mapping[str, int], given: Mapping[str, int] | None = None) -> Scaled:
    """The network of a dump with other sizes.

    Args:
        dump: a begin dump of the whole network, of one stage, with two layers at least where
            layers are asked for.
        asked: new sizes by role (``roles.NAMES``).
        given: sizes of the dump by role, where several may play it.

    Raises:
        CannotPlan: a role is not there, or can't be told, or what follows from it is not known.
    """
    plain = _unsharded(plain_dump(dump))
    known = dimensions_in(plain)
    roles = roles_of(known, given or {})
    targets = targets_of(known.sizes, roles, asked)
    narrow = scaled_dump(plain, known, targets.factors)
    depth = targets.sizes["layers"][1] if "layers" in targets.sizes else 0
    deep = deepened(narrow, roles.layers, depth) if roles.layers is not None else narrow
    return Scaled(deep, roles, targets.sizes, narrow)


_STRATEGIES = frozenset(
    ("in_strategy", "strategy", "out_strategy", "gen_strategy", "in_layout", "out_layout")
)


def _unsharded(dump: Dump) -> Dump:
    """Without what the code asks for: it is meant for sizes and devices of the small network."""

    def node_of(node: Node) -> Node:
        block = node.primitive_attributes
        if block is None or _STRATEGIES.isdisjoint(block):
            return replace(node, graph=None)
        entries = tuple(entry for entry in block.entries if entry[0] not in _STRATEGIES)
        kept = Attributes(entries, block.label, block.separator, block.spaced)
        return replace(node, primitive_attributes=kept if entries else None, graph=None)

    def item_of(item: Item | Graph) -> Item | Graph:
        if not isinstance(item, Graph):
            return item
        items = tuple(node_of(inner) if isinstance(inner, Node) else inner for inner in item.items)
        return replace(item, items=items, dump=None)

    return replace(dump, items=tuple(item_of(item) for item in dump.items))


def deepened(dump: Dump, layers: Repeated | None, count: int) -> Dump:
    """A dump with so many layers.

    Raises:
        CannotPlan: they can't be repeated.
    """
    if layers is None or count == layers.count:
        return dump
    own = repeated_layers(network_of(dump), layers.count)
    if not isinstance(own, Repeated):
        raise CannotPlan(f"which layers are {layers.prefix} can't be told")
    return with_layers(dump, own, count)
