"""Around an inserted node: what it follows, what it feeds, and what it repeats."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from irtool.ir.collectives import has_borrowed_name
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.operators import COMMUNICATION, PLUMBING, VIRTUAL
from irtool.ir.ties import End, Phase, phases, ties, ties_between
from irtool.ir.whole import Whole, WholeNode
from irtool.operators.table import operator_of

REDISTRIBUTION = re.compile(r"(grad_?)?redistribution_")
"""Instance names of what stands between two operators' layouts."""

_INSERTED = re.compile(r"(grad_?)?(redistribution_|forward_op_\d|parallel_optimizer|mirror)")
_PART = re.compile(r"(grad_?)?(forward_op)?\d{6,}")
_MARKS = (VIRTUAL - {"AShardIdentity"}) | {"_MicroStepAllGather", "_MiniStepAllGather"}
_PASSING = frozenset((
    "Load", "Depend", "TupleGetItem", "MakeTuple", "MakeList", "ListGetItem", "StopGradient",
    "make_tuple", "make_list",
))  # fmt: skip
_NEVER = PLUMBING.union(COMMUNICATION)
_LAST_STEPS = 10_000


def _passes(op: str) -> bool:
    return op in _PASSING or operator_of(op).is_("hands_on")


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """What is known around the nodes of one dump.

    ``forward``: of gradient nodes, the forward node or parameter; ``original``: of recompute
    copies, the node they repeat; ``begin``: the node of the begin dump behind a node, and
    ``before`` all of that dump; ``repeated``: nodes that run an unknown number of times.
    """

    dump: Dump
    whole: Whole
    phases: Mapping[Node, Phase]
    forward: Mapping[Node, End]
    original: Mapping[Node, Node]
    begin: Mapping[Node, Node] = field(default_factory=dict[Node, Node])
    before: Whole | None = None
    repeated: frozenset[Node] = frozenset()

    def instance(self, node: Node) -> WholeNode | None:
        """One place where a node runs."""
        instances = self.whole.instances(node)
        return instances[0] if instances else None

    def times(self, node: Node) -> int | None:
        """How often a node runs in a step; None inside control flow."""
        if node in self.repeated:
            return None
        return len(self.whole.instances(node)) or 1


def surroundings(dump: Dump, begin: Dump | None = None) -> Surroundings:
    """All that is known around the nodes of a dump.

    Args:
        dump: taken after the parallel pass.
        begin: the begin dump of the same compilation; without it nothing leads back there.
    """
    inlined = dump.whole()
    forward: dict[Node, End] = {}
    original: dict[Node, Node] = {}
    for tie in ties(dump):
        if tie.kind == "gradient":
            forward.setdefault(tie.right, tie.left)
        elif tie.kind == "recompute" and isinstance(tie.left, Node):
            original.setdefault(tie.right, tie.left)
    repeated = {
        node
        for call in inlined.kept_calls
        if call.reason in ("control flow", "recursion")
        for graph in call.graphs
        for node in graph.nodes
    }
    back = begin_nodes(begin, dump) if begin is not None else {}
    return Surroundings(
        dump,
        inlined,
        phases(dump),
        forward,
        original,
        back,
        begin.whole() if begin is not None else None,
        frozenset(repeated),
    )


def begin_nodes(begin: Dump, later: Dump) -> dict[Node, Node]:
    """The node of the begin dump behind each node of a later one, where it is known.

    Right after the parallel pass graphs and debug names are still those of before; later ones are
    tied by everything else that stays.
    """
    origins: dict[Node, Node] = {}
    named = _by_name(later)
    before = _by_name(begin)
    if set(later.graphs) and {g.name for g in later.graphs} & {g.name for g in begin.graphs}:
        for key, nodes in before.items():
            others = named.get(key, [])
            if len(others) == len(nodes):
                origins.update(zip(others, nodes, strict=True))
    for tie in ties_between(begin, later):
        if isinstance(tie.left, Node):
            origins.setdefault(tie.right, tie.left)
    _add_replaced(origins, begin, later)
    return origins


def _add_replaced(origins: dict[Node, Node], begin: Dump, later: Dump) -> None:
    """Operators that were replaced by a sharded form keep scope and name only."""
    tied = set(origins.values())
    before: dict[tuple[str | None, str], list[Node]] = {}
    for node in begin.nodes(where=lambda node: node not in tied and node.op not in _NEVER):
        before.setdefault((node.scope, node.op), []).append(node)
    after: dict[tuple[str | None, str], list[Node]] = {}
    for node in later.nodes(where=lambda node: (node.scope, node.op) in before):
        if node not in origins and not (
            node.is_backward or node.is_recomputed or is_inserted(node)
        ):
            after.setdefault((node.scope, node.op), []).append(node)
    for key, nodes in after.items():
        if len(before[key]) == len(nodes):
            origins.update(zip(nodes, before[key], strict=True))
    _add_cut_off(origins, begin, later)


def _add_cut_off(origins: dict[Node, Node], begin: Dump, later: Dump) -> None:
    """Operators whose scope an excerpt has lost: those that are the only ones of their kind."""
    tied = set(origins.values())
    before = _by_kind(begin, lambda node: node not in tied and node.op not in _NEVER)
    after = _by_kind(
        later,
        lambda node: not (
            node in origins or node.scope or node.is_backward or node.is_recomputed
            or is_inserted(node)
        ),
    )  # fmt: skip
    for kind, nodes in after.items():
        if len(nodes) == 1 and len(before.get(kind, [])) == 1:
            origins[nodes[0]] = before[kind][0]


def _by_kind(
    dump: Dump, wanted: Callable[[Node], bool]
) -> dict[tuple[str, str | None], list[Node]]:
    by_kind: dict[tuple[str, str | None], list[Node]] = {}
    for node in dump.nodes(where=wanted):
        by_kind.setdefault((node.op, node.instance_name), []).append(node)
    return by_kind


def _by_name(dump: Dump) -> dict[tuple[str, str | None, str], list[Node]]:
    by_name: dict[tuple[str, str | None, str], list[Node]] = {}
    for graph in dump.graphs:
        for node in graph.nodes:
            by_name.setdefault((graph.name, node.name, node.op), []).append(node)
    return by_name


# -- what passes inserted ------------------------------------------------------------------------


def is_inserted(node: Node) -> bool:
    """Whether a pass of the parallel compiler put this node there."""
    if node.op in _MARKS:
        return True
    if node.op in ("Send", "Receive") or node.strategy is not None:
        return False
    if node.instance_name and _INSERTED.match(node.instance_name):
        return True
    if is_part(node):
        return False
    return node.attribute("forward_comm_node_unique_id") is not None


def is_redistribution(node: Node) -> bool:
    """Whether a node is part of a chain between two layouts.

    Args:
        node: of a dump taken after the parallel pass.
    """
    name = node.instance_name
    # Equal primitives end up with one name: a step may bear none or that of an operator, and an
    # operator that of a chain. Only its id says of the step that it was inserted.
    if operator_of(node.op).is_("step") and not (name and _INSERTED.match(name)):
        is_known = node.attribute("forward_comm_node_unique_id") is not None
        if name is None or (node.strategy is None and not is_part(node)):
            return is_known and not node.is_backward
        return False
    if has_borrowed_name(node):
        return False
    return bool(name and REDISTRIBUTION.match(name)) and node.strategy is None


def hands_on(node: Node) -> bool:
    """Whether a node only hands its first operand on, for one who looks for operators.

    Args:
        node: of a dump taken after the parallel pass.
    """
    if _passes(node.op) or is_inserted(node):
        return True
    # A cast that type inference made has no strategy of its own.
    converts = operator_of(node.op).is_("converts")
    return converts and node.strategy is None and node.written_strategy("user_strategy") is None


# -- producers -----------------------------------------------------------------------------------


def producer(item: WholeNode) -> WholeNode | GraphParameter | None:
    """The operator or parameter whose value comes in by the first operand.

    Args:
        item: where a node runs.

    Returns:
        None for constants, and for a node without operands.
    """
    place: object = item.inputs[0] if item.inputs else None
    for _ in range(_LAST_STEPS):
        if isinstance(place, GraphParameter):
            return place
        if not isinstance(place, WholeNode):
            return None
        if not hands_on(place.node) or not place.inputs:
            return place
        place = place.inputs[0]
    return None


def before(item: WholeNode) -> Iterator[WholeNode]:
    """The inserted nodes before ``item``, the nearest first, and the operator that they follow.

    Args:
        item: where a node runs; its first operands are followed.
    """
    place: object = item.inputs[0] if item.inputs else None
    for _ in range(_LAST_STEPS):
        if not isinstance(place, WholeNode):
            return
        yield place
        if not hands_on(place.node) or not place.inputs:
            return
        place = place.inputs[0]


# -- consumers -----------------------------------------------------------------------------------


def consumers(item: WholeNode, stages: Mapping[Node, Phase]) -> list[WholeNode]:
    """The operators that take the value, those of the same pass of the step before others.

    A Return stands for the result of a graph.

    Args:
        item: where a node runs.
        stages: the pass of a step that each node belongs to.
    """
    by_index: dict[int, WholeNode] = {}
    todo, seen = [item], {item.index}
    while todo and len(seen) < _LAST_STEPS:
        place = todo.pop(0)
        for user in place.users:
            if user.index in seen or user.op == "UpdateState" or not _takes(user, place):
                continue
            seen.add(user.index)
            if hands_on(user.node):
                todo.append(user)
            else:
                by_index[user.index] = user
    ordered = [by_index[index] for index in sorted(by_index)]
    late = ("backward", "optimizer", "recompute")
    own = stages.get(item.node, "forward")
    if own not in late:
        near = [user for user in ordered if stages.get(user.node) not in late]
    else:
        near = [user for user in ordered if stages.get(user.node) in late]
    near = near or ordered
    # What is inserted before an operator bears that operator's scope.
    same = [user for user in near if user.node.scope == item.node.scope and not user.node.is_return]
    return [*same, *(user for user in near if user not in same)]


def _takes(user: WholeNode, place: WholeNode) -> bool:
    """Whether a user takes the value itself, and does not only wait for it."""
    if user.op != "Depend":
        return True
    return bool(user.inputs) and user.inputs[0] is place


# -- the sharded form of one operator --------------------------------------------------------------

_BEFORE_OPERATOR = ("AllGather", "NeighborExchange", "NeighborExchangeV2", "AlltoAll", "AlltoAllV")
_LARGEST_FORM = 200


def _is_helper(op: str) -> bool:
    """Whether MindSpore makes sharded forms of other operators of it."""
    return operator_of(op).is_("helper")


def is_helper_part(node: Node) -> bool:
    """Whether MindSpore put a node around a sharded operator, to make up for its being sliced.

    Args:
        node: of a dump taken after the parallel pass.
    """
    return is_part(node) and _is_helper(node.op)


def is_part(node: Node) -> bool:
    """Whether a node belongs to what an operator was replaced by when it was sharded.

    Args:
        node: of a dump taken after the parallel pass.
    """
    return bool(node.instance_name and _PART.match(node.instance_name)) and node.op not in _MARKS


def form_of(item: WholeNode) -> list[WholeNode]:
    """The whole sharded form that a node is part of: all connected parts.

    Args:
        item: where one of the parts runs.

    Returns:
        In the order of execution, that one included.
    """
    connected = {item.index: item}
    todo = [item]
    while todo and len(connected) < _LARGEST_FORM:
        place = todo.pop()
        for near in (*place.producers, *place.users):
            if near.index in connected or near.op in ("Load", "Depend"):
                continue
            if not _passes(near.op) and not is_near_part(near.node, item.node):
                continue
            if near.node.is_backward != item.node.is_backward:
                continue
            connected[near.index] = near
            todo.append(near)
    return [connected[index] for index in sorted(connected) if not _passes(connected[index].op)]


def is_near_part(node: Node, part: Node) -> bool:
    """Whether a node belongs to the same sharded form as a part; some bear no name of their own.

    Args:
        node: next to the part.
        part: a node that is a part by its name.
    """
    if is_part(node):
        return True
    bare = node.instance_name is None and node.location is None and node.strategy is None
    return bare and node.scope == part.scope and node.op not in PLUMBING and not is_inserted(node)


def owner(around: Surroundings, item: WholeNode) -> WholeNode | None:
    """The operator whose own sharded form holds this node; None where it left no trace.

    It stands in the form itself, or beside it: behind gathers and exchanges, and in front of
    reductions and scatters.

    Args:
        around: the later dump.
        item: where a part runs.
    """
    form = form_of(item)
    operator = COMMUNICATION.get(item.op)
    ahead = operator is not None and operator.base in _BEFORE_OPERATOR
    if operator is None:
        later = [place for place in form if place.index > item.index]
        ahead = not any(place.op in COMMUNICATION for place in later)
    for test in (_is_tied(around), _has_strategy, _is_no_helper, _is_whole(form)):
        candidates = [place for place in form if place.op not in _NEVER and test(place)]
        if candidates:
            return _nearest(candidates, item, ahead)
    if len(form) > 1 and any(
        _is_helper(place.op) and place.op not in ("Split", "Concat") for place in form
    ):
        return None  # nothing of it is left but helpers
    source = _outside(producer(form[0]))
    users = [user for user in consumers(form[-1], around.phases) if not user.node.is_return]
    behind = _outside(users[0] if users else None)
    return (behind or source) if ahead else (source or behind)


def _is_tied(around: Surroundings) -> Callable[[WholeNode], bool]:
    return lambda place: place.node in around.begin and not _is_helper(place.op)


def _has_strategy(place: WholeNode) -> bool:
    return place.node.strategy is not None and not _is_helper(place.op)


def _is_no_helper(place: WholeNode) -> bool:
    return not _is_helper(place.op)


def _is_whole(form: list[WholeNode]) -> Callable[[WholeNode], bool]:
    """A helper that is all there is: the operator itself, in another form."""
    return lambda place: place.node.strategy is not None and len(form) == 1


def _nearest(candidates: list[WholeNode], item: WholeNode, ahead: bool) -> WholeNode:
    """Of several operators whose forms touch, the one on the side where it must be."""
    after = [place for place in candidates if place.index >= item.index]
    if ahead:
        return after[0] if after else candidates[-1]
    before = [place for place in candidates if place.index <= item.index]
    return before[-1] if before else candidates[0]


def _outside(place: WholeNode | GraphParameter | None) -> WholeNode | None:
    if not isinstance(place, WholeNode) or place.op in COMMUNICATION:
        return None
    return place


def operator_at(around: Surroundings, place: WholeNode) -> WholeNode:
    """The operator that a node is, or whose sharded form it is part of.

    Args:
        around: the later dump.
        place: where a node runs.
    """
    return (owner(around, place) or place) if is_part(place.node) else place
