"""Makes the material of a picture from a whole graph: leaves with their places, links and bonds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable

from irtool.ir.dump import Dump, dumps_of
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.phases import phases
from irtool.ir.ties import ties
from irtool.ir.whole import Whole, WholeNode
from irtool.report.picture.edge_labels import EdgeLabels
from irtool.report.picture.flow import HIDDEN, Flow, Origin
from irtool.report.picture.leaves import Bond, Lane, Leaf, LeafKind, Link, LinkKind, Material
from irtool.report.picture.orders import waits_for
from irtool.report.picture.places import DEEPEST, parameter_place, scope_place
from irtool.report.picture.places_found import name_updates, place_gradients, place_parameter
from irtool.sharding.network.report import CheckResult


def material(
    whole: Whole,
    *,
    everything: bool = False,
    must_show: Collection[Node] = (),
    report: CheckResult | None = None,
    title: str = "",
) -> Material:
    """Everything that may be drawn.

    Args:
        whole: one dump with its calls inlined, or several joined
            (:func:`irtool.ir.whole.inlining.join`).
        everything: draw monads, loads and what orders, too, with the edges that only order.
        must_show: statements that are drawn even if their operator is usually hidden.
        report: what ``check`` says of this dump; gives slices and redistributions on edges.
        title: of the picture.
    """
    shown = set(must_show)
    hidden: Callable[[Node], bool] = lambda node: (  # noqa: E731  # one line, used once
        not everything and node.op in HIDDEN and node not in shown
    )
    return _Maker(whole, hidden, report, title, everything).make()


class _Maker:
    def __init__(
        self,
        whole: Whole,
        hidden: Callable[[Node], bool],
        report: CheckResult | None,
        title: str,
        everything: bool,
    ) -> None:
        self.everything = everything
        self.whole = whole
        self.hidden = hidden
        self.title = title
        self.labels = EdgeLabels(report)
        self.flow = Flow(hidden)
        self.leaves: dict[WholeNode, Leaf] = {}
        self.parameters: dict[tuple[object, ...], Leaf] = {}
        self.links: list[Link] = []
        self.stages = _stages(whole)
        self.lanes: dict[Node, Lane] = {
            node: lane for dump in whole.dumps for node, lane in phases(dump).items()
        }
        self.count = 0

    def make(self) -> Material:
        entries = {dump.entry for dump in self.whole.dumps}
        framed = {call.node.node for call in self.whole.kept_calls if call.reason != "gradient"}
        twins = self._twins()
        for item in self.whole.nodes:
            self.flow.add(item)
            hidden = self.hidden(item.node) or (
                item.node.is_return and item.node.graph not in entries
            )
            if not hidden and item not in twins:
                self._add(item, framed)
        for item, leaf in self.leaves.items():
            self._link_inputs(item, leaf)
        for item, twin in twins.items():
            if twin in self.leaves:
                self.leaves[item] = self.leaves[twin]
        self._link_transfers()
        self._link_calls()
        self._link_lonely()
        bonds = self._bonds()
        self._place(bonds)
        leaves = self._worth_drawing()
        kept = set(leaves)
        return Material(
            self.title,
            tuple(sorted(leaves, key=lambda leaf: leaf.index)),
            tuple(link for link in self.links if link.tail in kept and link.head in kept),
            tuple(bond for bond in bonds if bond.left in kept and bond.right in kept),
            len(self.whole.nodes) - len(twins) - sum(leaf.node is not None for leaf in leaves),
        )

    # -- leaves --------------------------------------------------------------------------------

    def _add(self, item: WholeNode, framed: Collection[Node]) -> None:
        node = item.node
        kind: LeafKind = "operator"
        if node.is_return:
            kind = "result"
        elif node.op in ("call", "Switch", "SwitchLayer", "Partial"):
            kind = "call"
        self.count += 1
        leaf = Leaf(
            self.count, kind, "result" if node.is_return else node.op, node,
            source=item.source, stage=self.stages.get(item.source, node.stage),
            lane=self.lanes.get(node, "other"), micro=node.micro, graphs=_branches(item, framed),
            place=scope_place(node), bytes=node.output_bytes,
        )  # fmt: skip
        self.leaves[item] = leaf

    def _parameter(self, parameter: GraphParameter, user: WholeNode) -> Leaf:
        graph = user.node.graph
        dump = graph.dump if graph is not None else None
        key = (id(dump), user.source, parameter.graph, parameter.number, parameter.label)
        leaf = self.parameters.get(key)
        if leaf is None:
            declared = parameter.declaration
            weight = declared is not None and declared.is_weight
            self.count += 1
            leaf = Leaf(
                self.count, "parameter" if weight else "input", parameter.name or "parameter",
                parameter=parameter, source=user.source, stage=self.stages.get(user.source),
                bytes=parameter.type.size if parameter.type else None,
            )  # fmt: skip
            self.parameters[key] = leaf
        return leaf

    def _twins(self) -> dict[WholeNode, WholeNode]:
        """Before differentiation the network stands twice: called, and as what a gradient is of.

        The second is the first once more, so it is drawn as that.
        """
        gradients = {call.node.node for call in self.whole.kept_calls if call.reason == "gradient"}
        twins: dict[WholeNode, WholeNode] = {}
        for item in self.whole.nodes if gradients else ():
            if gradients.isdisjoint(item.path):
                continue
            called = [
                twin
                for twin in self.whole.instances(item.node)
                if twin.source == item.source and gradients.isdisjoint(twin.path)
            ]
            if len(called) == 1:
                twins[item] = called[0]
        return twins

    def _worth_drawing(self) -> list[Leaf]:
        """Leaves but defaults of gradient lookups, parameters nobody uses, and dead switches."""
        users: set[Leaf] = {link.tail for link in self.links}
        defaults = {
            leaf
            for item, leaf in self.leaves.items()
            if leaf not in users
            and item.users
            and all(user.op.startswith("Environ") and self.hidden(user.node) for user in item.users)
        }
        used = {link.tail for link in self.links if link.head not in defaults}
        joined = {end for link in self.links for end in (link.tail, link.head)}
        # A branch whose condition the compiler knows leaves a Switch behind that nothing takes.
        defaults |= {
            leaf
            for item, leaf in self.leaves.items()
            if leaf.kind == "call" and item.op != "call" and leaf not in joined
        }
        return [
            *(leaf for leaf in dict.fromkeys(self.leaves.values()) if leaf not in defaults),
            *(leaf for leaf in self.parameters.values() if leaf in used),
        ]

    # -- links ---------------------------------------------------------------------------------

    def _tail(self, origin: Origin, user: WholeNode) -> Leaf | None:
        if isinstance(origin, GraphParameter):
            return self._parameter(origin, user)
        return self.leaves.get(origin)

    def _link_inputs(self, item: WholeNode, leaf: Leaf) -> None:
        sources = list(item.inputs)
        for position, source in enumerate(sources):
            if item.op == "Receive" and not self.everything:
                break  # what it takes says when to receive, and no more
            ordering = item.op in ("Depend", "UpdateState") and position > 0
            for origin in self.flow.values(source):
                if isinstance(origin, GraphParameter) and _is_monad(origin):
                    continue
                self._link(origin, item, leaf, position, "order" if ordering else "data")
        if item.function is not None:
            for origin in self.flow.values(item.function):
                self._link(origin, item, leaf, -1, "call")

    def _link(
        self, origin: Origin, user: WholeNode, leaf: Leaf, position: int, kind: LinkKind
    ) -> None:
        tail = self._tail(origin, user)
        if tail is None or tail is leaf:
            return
        size, label, note = self.labels.of(tail, user.node, position)
        self.links.append(Link(tail, leaf, kind, position, size, label, note))

    def _link_transfers(self) -> None:
        for sender, receiver in self.whole.transfers:
            tail, head = self.leaves.get(sender), self.leaves.get(receiver)
            if tail is not None and head is not None:
                size, label, _ = self.labels.of(tail, sender.node, 0)
                self.links.append(Link(tail, head, "transfer", 0, size, label))

    def _link_calls(self) -> None:
        """From what a graph returns to the calls of it that were kept."""
        returns: dict[tuple[object, tuple[Node, ...]], WholeNode] = {}
        for item in self.whole.nodes if self.whole.kept_calls else ():
            if item.node.is_return:
                returns[item.node.graph, item.path] = item
        for call in self.whole.kept_calls:
            head = self.leaves.get(call.node)
            path = (*call.node.path, call.node.node)
            ends = [returns.get((graph, path)) or returns.get((graph, ())) for graph in call.graphs]
            for end in ends:
                if head is None or end is None:
                    continue
                for origin in (
                    value for source in end.inputs for value in self.flow.values(source)
                ):
                    self._link(origin, end, head, -1, "call")

    def _link_lonely(self) -> None:
        """What no value leads to or from is drawn after what it waits for."""
        joined = {end for link in self.links for end in (link.tail, link.head)}
        for item, leaf in self.leaves.items():
            if leaf not in joined:
                for tail in waits_for(item, self.leaves):
                    self.links.append(Link(tail, leaf, "order"))

    # -- bonds and places ------------------------------------------------------------------------

    def _bonds(self) -> list[Bond]:
        instances: dict[Node, list[Leaf]] = defaultdict(list)
        for item, leaf in self.leaves.items():
            instances[item.node].append(leaf)
        declared: dict[tuple[int, object], list[Leaf]] = defaultdict(list)
        for key, leaf in self.parameters.items():
            assert leaf.parameter is not None
            declared[(int(str(key[0])), leaf.parameter)].append(leaf)
        bonds: list[Bond] = []
        for dump in _distinct(dumps_of(self.whole)):
            for tie in ties(dump):
                if tie.kind == "pass":
                    continue
                lefts = (
                    instances.get(tie.left, [])
                    if isinstance(tie.left, Node)
                    else declared.get((id(dump), tie.left), [])
                )
                rights = instances.get(tie.right, [])
                if len(lefts) == len(rights):
                    pairs = zip(lefts, rights, strict=True)
                    bonds += [Bond(left, right, tie.kind) for left, right in pairs]
        return bonds

    def _place(self, bonds: Iterable[Bond]) -> None:
        """Places that ties and users tell: of gradients, updates, micro-batches, and parameters."""
        names: dict[Leaf, str] = {}
        partners: dict[Leaf, Leaf] = {}
        for bond in bonds:
            if bond.kind == "gradient" and bond.left.node is not None:
                partners.setdefault(bond.right, bond.left)
            if bond.kind == "parameter" and bond.left.parameter is not None:
                names.setdefault(bond.right, bond.left.name)
        name_updates(list(self.leaves.values()), self.links, names)
        for leaf in self.leaves.values():
            if leaf.lane == "optimizer" and leaf.node is not None:
                leaf.place = (*leaf.place, *parameter_place(names.get(leaf, "")))
        for leaf in self.leaves.values():
            if leaf.kind == "result":
                lanes: set[Lane] = {link.tail.lane for link in self.links if link.head is leaf}
                leaf.lane = lanes.pop() if len(lanes) == 1 else leaf.lane
        place_gradients(list(self.leaves.values()), partners, self.links)
        users: dict[Leaf, list[Leaf]] = defaultdict(list)
        for link in self.links:
            if link.tail.parameter is not None:
                users[link.tail].append(link.head)
        for leaf in self.parameters.values():
            place_parameter(leaf, users[leaf])


def _branches(item: WholeNode, framed: Collection[Node]) -> tuple[str, ...]:
    """Branches and loop bodies that a statement stands in: what stays apart behind a kept call."""
    path = item.path
    if not path:
        return ()
    inner = (*(call.graph for call in path[1:]), item.node.graph)
    return tuple(
        f"@{graph.name}"
        for call, graph in zip(path, inner, strict=True)
        if call in framed and graph is not None
    )[:DEEPEST]


def _stages(whole: Whole) -> dict[int | str | None, int]:
    """Stage by name of the dump, where several dumps are joined: they come stage by stage."""
    names = list(dict.fromkeys(item.source for item in whole.nodes if item.source is not None))
    if len(names) < 2:
        return {}
    ordered = sorted(names, key=lambda name: (isinstance(name, str), name))
    return {name: stage for stage, name in enumerate(ordered)}


def _is_monad(parameter: GraphParameter) -> bool:
    return parameter.type is not None and parameter.type.short().endswith("Monad")


def _distinct(dumps: Iterable[Dump]) -> list[Dump]:
    return list({id(dump): dump for dump in dumps}.values())
