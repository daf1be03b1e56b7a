"""More layers of a dump: the last one again, with weights, states and updates of its own.

The last two layers are held against one another, from what they hand on back to what they take:
where both take the same, so does every layer; where the last takes a result of the one before, so
does each that follows.  What is not alike is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace

from irtool.cluster.memory.layers import layer_of_scope
from irtool.ir.comments import Comments, Scope
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Graph, GraphParameter, Item, Node, Source
from irtool.ir.items import Parameter, Property
from irtool.ir.parameter_roles import parameter_roles
from irtool.ir.types import Abstract, SequenceShape, SequenceType, Signature
from irtool.ir.values import (
    ForeignParameter,
    NodeReference,
    ParameterReference,
    SymbolicKey,
    Value,
)
from irtool.planning.scaling.layers import Repeated
from irtool.planning.search.operator_candidates import CannotPlan
from irtool.sharding.network.graphs import Network, network_of
from irtool.sharding.network.sharded_nodes import TIES, primitive

_ORDER = frozenset({"UpdateState"})
_ALL_NODES, _NODES, _WEIGHTS = "Total number of nodes", "Total number of cnodes", "Total params"
"""Lines of a header; the first counts constants, too."""
_NUMBERS = re.compile(r"(\d+)")


def with_layers(dump: Dump, layers: Repeated, count: int) -> Dump:
    """The dump with so many layers.

    Args:
        dump: a begin dump.
        layers: those that it has.
        count: how many it is to have, not fewer.

    Raises:
        CannotPlan: the last two layers are not alike, or something else depends on single layers.
    """
    if count == layers.count:
        return dump
    if count < layers.count:
        raise CannotPlan(
            f"the dump has {layers.count} layers: compile a network of fewer, or ask for more"
        )
    return _Repeater(dump, layers, count).repeated()


@dataclass(eq=False)
class _Repeater:
    """Repeats the last layer of a dump.

    Attributes:
        pairs: nodes of the last layer but one by those of the last.
        weights: parameters likewise.
    """

    dump: Dump
    layers: Repeated
    count: int
    pairs: dict[Node, Node] = field(default_factory=dict[Node, Node])
    weights: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.network: Network = network_of(self.dump)
        self.last = self.layers.count - 1
        self.declared = {item.name: item for item in self.dump.parameters}
        self.layer = self._layers()
        self._loads()
        if any(node.graph is not self.layers.graph for node in self.layer):
            raise CannotPlan(
                "its layers are cells that are compiled once and called (lazy_inline), which can't "
                "be repeated: compile the small network without"
            )

    def _layers(self) -> dict[Node, int]:
        """Forward nodes of layers, with the number of each.

        Code that MindSpore compiles once for equal cells bears the scope of the first of them in
        all of them, or none; but no layer reads a later one, and what is computed of a layer for
        the same layer is a part of it.
        """
        latest: dict[Node, int] = {}
        own: dict[Node, int] = {}
        order = [node for graph in self.network.forward_graphs for node in graph.nodes]
        for node in order:
            if node.is_return or primitive(node) in _ORDER:
                continue
            numbers = [
                latest[item] for item in self.network.inputs[node]
                if isinstance(item, Node) and item in latest
            ]  # fmt: skip
            prefix, _, number = layer_of_scope(node.scope).rpartition(".")
            if prefix == self.layers.prefix and number.isdecimal():
                own[node] = max(int(number), *numbers, 0)
                latest[node] = own[node]
            elif numbers:
                latest[node] = max(numbers)
        first: dict[Node, int] = {}
        for node in reversed(order):
            users = (use.node for use in self.network.users_of(node))
            numbers = [first[user] for user in users if user in first]
            if node in own or numbers:
                first[node] = own[node] if node in own else min(numbers)
        between = {node: number for node, number in latest.items() if first.get(node) == number}
        return {node: {**own, **between}[node] for node in order if node in own or node in between}

    def _loads(self) -> None:
        """A weight that one layer alone loads is loaded in it, whatever its scope."""
        for node in self.network.forward:
            if primitive(node) == "Load" and node not in self.layer:
                users = {self.layer.get(use.node) for use in self.network.users_of(node)
                         if primitive(use.node) not in TIES | _ORDER}  # fmt: skip
                own = users.pop() if len(users) == 1 else None
                if own is not None:
                    self.layer[node] = own

    # -- what is alike -----------------------------------------------------------------------------

    def repeated(self) -> Dump:
        """The dump with more layers."""
        before, after = (self._ends(number) for number in (self.last - 1, self.last))
        self._pair_all(before, after)
        self._check_users()
        self._updates()
        return self._written()

    def _ends(self, number: int) -> list[Node]:
        """Nodes of a layer that nothing else in it reads."""
        return [
            node
            for node, own in self.layer.items()
            if own == number
            and not any(self.layer.get(use.node) == number for use in self.network.users_of(node))
            and any(primitive(use.node) not in TIES | _ORDER for use in self.network.users_of(node))
        ]

    def _pair_all(self, before: list[Node], after: list[Node]) -> None:
        if len(before) != len(after):
            raise self._unlike(after[-1] if after else None)
        for left, right in zip(before, after, strict=True):
            self._pair(left, right)

    def _pair(self, left: Node, right: Node) -> None:
        todo = [(left, right)]
        while todo:
            ours, theirs = todo.pop()
            known = self.pairs.get(theirs)
            if known is ours:
                continue
            alike = (
                known is None
                and ours.op == theirs.op
                and ours.instance_name == theirs.instance_name
                and len(ours.operands) == len(theirs.operands)
                and self._typed(ours) == self._typed(theirs)
            )
            if not alike:
                raise self._unlike(theirs)
            self.pairs[theirs] = ours
            sources = zip(self.network.inputs[ours], self.network.inputs[theirs], strict=True)
            todo += [pair for pair in (self._sources(*both, theirs) for both in sources) if pair]

    def _typed(self, node: Node) -> object:
        type = node.output_type
        return None if type is None else type.tensors

    def _sources(self, ours: Source, theirs: Source, user: Node) -> tuple[Node, Node] | None:
        """Nodes that have to be alike, too, because two nodes that are alike read them."""
        if ours is theirs:
            return None
        if isinstance(ours, GraphParameter) and isinstance(theirs, GraphParameter):
            self._parameters(ours, theirs, user)
            return None
        if isinstance(ours, Node) and isinstance(theirs, Node):
            if primitive(theirs) in _ORDER and primitive(ours) in _ORDER:
                return None
            own, other = self.layer.get(theirs), self.layer.get(ours)
            inside = self._layer_of(user)
            if own == inside and other == inside - 1:
                return ours, theirs
            if own == inside - 1 and other != inside - 1:
                return None  # what the layer before hands on
            raise self._unlike(user)
        if isinstance(ours, (Node, GraphParameter)) or isinstance(theirs, (Node, GraphParameter)):
            raise self._unlike(user)
        keys = isinstance(ours, SymbolicKey) and isinstance(theirs, SymbolicKey)
        if ours != theirs and not keys:
            raise self._unlike(user)
        return None

    def _layer_of(self, node: Node) -> int:
        return self.layer.get(node, self.last)

    def _parameters(self, ours: GraphParameter, theirs: GraphParameter, user: Node) -> None:
        left, right = ours.name, theirs.name
        if self.weights.setdefault(right, left) != left:
            raise self._unlike(user)
        renumbered(left, right, self.last, self.last)

    def _unlike(self, node: Node | None) -> CannotPlan:
        place = f"at {node.id} {node.op} (line {node.line})" if node is not None else "at its ends"
        return CannotPlan(
            f"the last two of {self.layers.count} layers {self.layers.prefix} are not alike "
            f"{place}, so what another one would be can't be told"
        )

    def _check_users(self) -> None:
        """Nothing but the next layer may read a layer that is not the last."""
        for node in self.pairs.values():
            for use in self.network.users_of(node):
                if primitive(use.node) in TIES | _ORDER:
                    continue
                if use.node not in self.layer and node not in self.shared_by_layers(node):
                    raise CannotPlan(
                        f"{use.node.id} {use.node.op} (line {use.node.line}) reads a result of the "
                        f"last layer {self.layers.prefix} but one: what it would read of others "
                        "can't be told"
                    )

    def shared_by_layers(self, node: Node) -> set[Node]:
        """The node itself, where it stands in one layer and all layers read it."""
        users = {self.layer.get(use.node) for use in self.network.users_of(node)}
        return {node} if self.last in users and self.last - 1 in users else set()

    # -- updates -----------------------------------------------------------------------------------

    def _updates(self) -> None:
        """Pair what the step does with single weights."""
        roles = parameter_roles(self.dump)
        families: dict[tuple[str, str], str] = {}
        for name, role in roles.items():
            if role.weight in self.weights.values() or role.weight in self.weights:
                families[role.weight, name.replace(role.weight, "@")] = name
        for right, left in list(self.weights.items()):
            for (weight, family), name in families.items():
                if weight == right and (left, family) in families:
                    self.weights.setdefault(name, families[left, family])
        owner = dict.fromkeys(self.weights, self.last)
        owner |= dict.fromkeys(self.weights.values(), self.last - 1)
        tagged: dict[Node, int] = {}
        for graph in self.dump.graphs:
            for node in graph.nodes:
                if node in self.network.forward or primitive(node) in TIES | _ORDER:
                    continue
                own = {
                    number
                    for source in self.network.inputs[node]
                    if (number := self._tag(source, tagged, owner)) is not None
                }
                if len(own) == 1:
                    tagged[node] = own.pop()
        self.layer |= tagged
        ends: dict[object, list[list[Node]]] = {}
        for node, number in tagged.items():
            if any(tagged.get(use.node) == number for use in self.network.users_of(node)):
                continue
            ends.setdefault(self._end_key(node, number), [[], []])[self.last - number].append(node)
        for after, before in ends.values():
            for left, right in zip(before, after, strict=False):
                self._pair(left, right)

    def _tag(
        self, source: Source, tagged: Mapping[Node, int], owner: Mapping[str, int]
    ) -> int | None:
        if isinstance(source, GraphParameter):
            return owner.get(source.name)
        return tagged.get(source) if isinstance(source, Node) else None

    def _end_key(self, node: Node, number: int) -> object:
        """By which updates of the same weight are told: what of it they read, and how."""
        names = [
            self.weights.get(source.name, source.name) if number == self.last else source.name
            for source in self.network.inputs[node]
            if isinstance(source, GraphParameter)
        ]
        return node.op, node.instance_name, tuple(names), self._typed(node) if not names else None

    # -- the dump ----------------------------------------------------------------------------------

    def _written(self) -> Dump:
        numbers = [item.number or 0 for graph in self.dump.graphs for item in graph.parameters] + [
            item.number or 0 for item in self.dump.parameters
        ]
        copies: dict[int, dict[str, Parameter]] = {}
        next_number = max(numbers, default=0)
        for layer in range(self.layers.count, self.count):
            for name in self.declared:
                if name in self.weights:
                    next_number += 1
                    copies.setdefault(layer, {})[name] = self._parameter(name, layer, next_number)
        writer = _Copier(self, copies)
        items: list[Item | Graph] = []
        last = max(
            (
                position
                for position, item in enumerate(self.dump.items)
                if isinstance(item, Parameter)
            ),
            default=-1,
        )
        for position, item in enumerate(self.dump.items):
            if not (isinstance(item, Property) and item.key.endswith(_ALL_NODES)):
                items.append(writer.graph(item) if isinstance(item, Graph) else item)
            if position == last:
                items += [made for own in copies.values() for made in own.values()]
        counts = {_NODES: len(writer.made), _WEIGHTS: sum(map(len, copies.values()))}
        counted = tuple(
            self._counted(item, counts) if isinstance(item, Property) else item for item in items
        )
        return replace(self.dump, items=counted)

    def _counted(self, item: Property, more: Mapping[str, int]) -> Property:
        """A line of the header that counts what there is."""
        for key, count in more.items():
            if item.key.endswith(key) and item.value.isdecimal():
                return replace(item, value=str(int(item.value) + count))
        return item

    def _parameter(self, name: str, layer: int, number: int) -> Parameter:
        item = self.declared[name]
        new = self.renamed(name, layer)
        type = item.type
        if type is not None and type.ref_key is not None:
            type = replace(type, ref_key=self.renamed_key(type.ref_key, layer))
        return replace(item, name=new, number=number, type=type)

    def renamed(self, name: str, layer: int) -> str:
        """The name of a layer's weight as another layer has it."""
        return renumbered(self.weights[name], name, self.last, layer)

    def renamed_key(self, key: str, layer: int) -> str:
        """What types call a weight."""
        return self.renamed(key, layer) if key in self.weights else key


def renumbered(left: str, right: str, last: int, layer: int) -> str:
    """A name of the last layer as another one would have it.

    Args:
        left: of the layer before the last.
        right: of the last.
        last: its number.
        layer: the number wanted.

    Raises:
        CannotPlan: the names differ in more than numbers that count layers.
    """
    ours, theirs = _NUMBERS.split(left), _NUMBERS.split(right)
    if len(ours) == len(theirs):
        made: list[str] = []
        for a, b in zip(ours, theirs, strict=True):
            if a == b:
                made.append(b)
            elif a.isdecimal() and b.isdecimal() and int(b) == int(a) + 1:
                made.append(str(int(b) + layer - last))
            else:
                break
        else:
            if left != right:
                return "".join(made)
    raise CannotPlan(
        f"{left} and {right} are alike but for their layer, and their names do not count layers"
    )


@dataclass(eq=False)
class _Copier:
    """Writes copies of the last layer's nodes."""

    own: _Repeater
    parameters: Mapping[int, Mapping[str, Parameter]]
    made: dict[tuple[Node, int], int] = field(default_factory=dict[tuple[Node, int], int])

    def __post_init__(self) -> None:
        self.references = {(item.number, name): name for name, item in self.own.declared.items()}
        self.flows = {left: right for right, left in self.own.pairs.items()}

    @property
    def layers(self) -> range:
        """Numbers of the layers that are added."""
        return range(self.own.layers.count, self.own.count)

    def graph(self, graph: Graph) -> Graph:
        """A graph with its copies."""
        inside = [node for node in graph.nodes if node in self.own.pairs]
        if not inside:
            return replace(graph, dump=None)
        next_number = max(node.number or 0 for node in graph.nodes)
        for layer in self.layers:
            for node in inside:
                next_number += 1
                self.made[node, layer] = next_number
        forward = inside[0] in self.own.network.forward
        ends = {node for node in inside if self._is_end(node)} if forward else set(inside)
        last = max(graph.nodes.index(node) for node in ends or inside)
        items: list[Item] = []
        place = 0
        for item in graph.items:
            if not isinstance(item, Node):
                items.append(item)
                continue
            if item in self.own.pairs or not forward:
                items.append(self._attached(item) if not forward else replace(item, graph=None))
            else:
                items.append(self._redirected(item))
            if place == last:
                items += [self._copy(node, layer) for layer in self.layers for node in inside]
            place += 1
        return replace(graph, items=tuple(items), dump=None)

    def _is_end(self, node: Node) -> bool:
        users = [use.node for use in self.own.network.users_of(node)]
        return any(
            user not in self.own.pairs and primitive(user) not in TIES | _ORDER for user in users
        )

    def _redirected(self, node: Node) -> Node:
        """A node behind the layers reads the last of them."""
        if primitive(node) in TIES | _ORDER or node in self.own.layer:
            return replace(node, graph=None)
        final = self.own.count - 1
        sources = self.own.network.inputs[node]
        operands = tuple(
            NodeReference(self.made[source, final])
            if isinstance(source, Node) and (source, final) in self.made
            and self.own.layer.get(source) == self.own.last else value
            for value, source in zip(node.operands, sources, strict=True)
        )  # fmt: skip
        return replace(node, operands=operands, graph=None)

    def _attached(self, node: Node) -> Node:
        """What orders or collects the updates of all weights takes those of copies, too."""
        name = primitive(node)
        if name not in TIES | _ORDER:
            return replace(node, graph=None)
        sources = self.own.network.inputs[node]
        more = [
            (NodeReference(self.made[source, layer]), position)
            for layer in self.layers
            for position, source in enumerate(sources)
            if isinstance(source, Node) and (source, layer) in self.made
        ]
        if not more:
            return replace(node, graph=None)
        operands = (*node.operands, *(value for value, _ in more))
        signature = node.signature
        if signature is not None:
            signature = _longer(signature, [position for _, position in more], name in TIES)
        return replace(node, operands=operands, signature=signature, graph=None)

    def _copy(self, node: Node, layer: int) -> Node:
        sources = self.own.network.inputs[node]
        operands = tuple(
            self._value(value, source, layer)
            for value, source in zip(node.operands, sources, strict=True)
        )
        signature = node.signature
        if signature is not None:
            signature = replace(
                signature, inputs=tuple(self._type(entry, layer) for entry in signature.inputs)
            )
            if signature.outputs is not None:
                outputs = tuple(self._type(entry, layer) for entry in signature.outputs)
                signature = replace(signature, outputs=outputs)
        return replace(
            node,
            number=self.made[node, layer],
            operands=operands,
            signature=signature,
            comments=self._comments(node, layer),
            graph=None,
        )

    def _type(self, abstract: Abstract | None, layer: int) -> Abstract | None:
        if abstract is None or abstract.ref_key is None:
            return abstract
        return replace(abstract, ref_key=self.own.renamed_key(abstract.ref_key, layer))

    def _value(self, value: Value, source: Source, layer: int) -> Value:
        if isinstance(source, GraphParameter) and source.name in self.parameters[layer]:
            item = self.parameters[layer][source.name]
            if isinstance(value, (ParameterReference, ForeignParameter)):
                return replace(value, number=item.number, label=item.name)
        if isinstance(source, Node):
            if (source, layer) in self.made:
                return NodeReference(self.made[source, layer])
            following = self.flows.get(source)
            if following is not None and not self._is_shared(source):
                before = self.made.get((following, layer - 1))
                number = following.number if before is None else before
                return NodeReference(number) if number is not None else value
        if isinstance(value, SymbolicKey):
            for name in self.parameters[layer]:
                if value.text.endswith(name):
                    return replace(value, text=value.text[: -len(name)]
                                   + self.own.renamed(name, layer))  # fmt: skip
        return value

    def _is_shared(self, source: Node) -> bool:
        """Whether every layer reads a node of the last layer but one, as it is."""
        return bool(self.own.shared_by_layers(source))

    def _comments(self, node: Node, layer: int) -> Comments:
        before = self.own.pairs[node].scope
        after = node.scope
        if before is None or after is None or before == after:
            return node.comments
        lines = tuple(
            replace(line, name=renumbered(before, after, self.own.last, layer)
                    + line.name[len(after) :])
            if isinstance(line, Scope) else line
            for line in node.comments.lines
        )  # fmt: skip
        return Comments(lines)


def _longer(signature: Signature, places: list[int], is_tuple: bool) -> Signature:
    """A type line with more operands like some that it has; of a tuple, more items."""
    more = tuple(
        signature.inputs[position] for position in places if position < len(signature.inputs)
    )
    made = replace(signature, inputs=(*signature.inputs, *more))
    outputs = signature.outputs
    if not is_tuple or not outputs or outputs[0] is None:
        return made
    output = outputs[0]
    if not isinstance(output.type, SequenceType) or not isinstance(output.shape, SequenceShape):
        return made
    runs = (*(output.type.runs or ()), *((entry.type, None) for entry in more if entry is not None))
    shapes = tuple(
        output.shape.items[position] for position in places if position < len(output.shape.items)
    )  # an item of a tuple is written in another way than the operand that it is
    grown = replace(
        output,
        type=replace(output.type, runs=runs),
        shape=replace(output.shape, items=(*output.shape.items, *shapes)),
    )
    return replace(made, outputs=(grown, *outputs[1:]))
