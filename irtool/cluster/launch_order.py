"""The order in which MindSpore launches the operators of a graph.

A dump is printed in a topological order from Return, which is not the order of execution: both
respect data, but a backend is free in everything else, and what it chooses decides how long
tensors live and which of two collectives comes first.  :func:`launch_order` builds the order as
MindSpore's default ("bfs") does it, and the depth-first one (runtime option ``exec_order=dfs``).

How the default order comes about, in words (behaviour of MindSpore 2.x, checked against the
execution orders that real runs wrote):

1. Walking back from Return, inputs from right to left, a node is visited when all its users are.
   A node that depends on no computed value is put on a stack; whenever an operator is visited
   while the stack holds something, the top of the stack is made to wait for that operator.  So
   what could start at once starts as late as its users allow.
2. Walking forward, a node whose inputs are done is put in a queue: in front if it launches nothing
   or is the only user of what made it ready, else at the end, communication before the rest.  A
   collective hands on to its users only when nothing else is ready, and a fused collective of the
   group seen first only when the next one of that group comes; what they release goes first.

Where a call was inlined, nothing of it runs before an argument that only orders it (a ``Depend``)
is there, whether or not the callee reads it: cells that are reused are scheduled so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Literal, TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION
from irtool.ir.values import Attributes
from irtool.ir.whole import CallSite, Whole, WholeNode, WholeSource
from irtool.operators.table import operator_of

OrderMethod: TypeAlias = Literal["bfs", "dfs"]

_ORDERS_ONLY = frozenset(
    ("Load", "Depend", "UpdateState", "MakeTuple", "TupleGetItem", "MakeList", "ListGetItem",
     "Return", "Partial", "StopGradient", "call", "J", "Switch", "SwitchLayer")
)  # fmt: skip
"""Operators that only order and regroup values."""


def launches_nothing(op: str) -> bool:
    """Whether no backend launches an operator: it only orders values, or writes a summary.

    Args:
        op: name of the primitive.
    """
    return op in _ORDERS_ONLY or operator_of(op).is_("summary")


_FUSED = ("AllReduce", "AllGather", "ReduceScatter")
_SYNCHRONISED_NORM = "sync_bn_group"


def launch_order(source: Dump | Whole, method: OrderMethod = "bfs") -> tuple[Node, ...]:
    """The nodes that are launched, in launch order.

    Args:
        source: a dump, whose calls are inlined first, or a view with calls inlined.
        method: MindSpore's default order, or the depth-first one (``exec_order=dfs``).

    Returns:
        The nodes; one that runs several times (a function called twice) is there as often.
    """
    return tuple(item.node for item in launches(source, method))


def launches(source: Dump | Whole, method: OrderMethod = "bfs") -> tuple[WholeNode, ...]:
    """As :func:`launch_order`, but the places where nodes run instead of the nodes.

    Graphs behind a call that could not be inlined (control flow) are ordered by themselves and
    stand behind what their first caller waits for, since a call launches nothing itself.

    Args:
        source: the dump, or all places where its nodes run.
        method: ``bfs`` is MindSpore's default, ``dfs`` the runtime option ``exec_order=dfs``.
    """
    inlined = source.whole() if isinstance(source, Dump) else source
    build = _breadth_first if method == "bfs" else _depth_first
    parts = _parts(inlined)
    ordered = {name: build(nodes) for name, nodes in parts.items()}
    sequence = next(iter(ordered.values())) if len(parts) == 1 else _in_place(inlined, ordered)
    return tuple(item for item in sequence if not launches_nothing(item.op))


_Part: TypeAlias = tuple[object, str]
"""The dump (in a joined view) and the graph behind a kept call; an empty name is the entry."""


def _parts(inlined: Whole) -> dict[_Part, list[WholeNode]]:
    """Nodes that are ordered together: what is inlined into the entry or into one kept graph."""
    kept = {graph.name for call in inlined.kept_calls for graph in call.graphs}
    if not kept and len(inlined.dumps) == 1:
        return {(None, ""): list(inlined.nodes)}
    parts: dict[_Part, list[WholeNode]] = {}
    roots: dict[CallSite | None, str] = {}
    for item in inlined.nodes:
        root = roots.get(item.site) if item.site is not None else None
        if root is None:
            outermost = item.path[0] if item.site is not None else item.node
            root = roots[item.site] = outermost.graph.name if outermost.graph else ""
        parts.setdefault((item.source, root if root in kept else ""), []).append(item)
    return parts


def _in_place(inlined: Whole, ordered: dict[_Part, list[WholeNode]]) -> list[WholeNode]:
    """All parts in one order: behind each call the graphs that it calls and nothing called yet."""
    bodies = {
        call.node: [(call.node.source, graph.name) for graph in call.graphs]
        for call in inlined.kept_calls
    }
    called = {part for parts in bodies.values() for part in parts}
    order: list[WholeNode] = []
    placed: set[_Part] = set()
    for part in (*(part for part in ordered if part not in called), *ordered):
        if part in placed:
            continue
        placed.add(part)
        stack = [iter(ordered[part])]
        while stack:
            item = next(stack[-1], None)
            if item is None:
                stack.pop()
                continue
            order.append(item)
            fresh = [one for one in bodies.get(item, ()) if one in ordered and one not in placed]
            placed.update(fresh)
            stack.extend(iter(ordered[one]) for one in reversed(fresh))
    return order


# -- breadth first -----------------------------------------------------------------------------


@dataclass(slots=True)
class _Links:
    """The graph as the builder sees it, nodes by number; a repeated input counts repeatedly.

    ``trivial`` nodes depend on no computed value and launch nothing: they neither hold anything
    up nor are waited for, and appear in no list but ``users``.
    """

    nodes: list[WholeNode]
    inputs: list[list[int]]
    trivial: list[bool]
    launches: list[bool]
    users: list[list[int]] = field(default_factory=list[list[int]])
    waiting_for: list[int] = field(default_factory=list[int])
    uses: list[int] = field(default_factory=list[int])
    roots: list[int] = field(default_factory=list[int])


def _breadth_first(nodes: list[WholeNode]) -> list[WholeNode]:
    links = _links(nodes)
    _walk_back(links)
    order = _forward(links, _late_starts(links))
    launched = [nodes[place] for place in order]
    reached = set(order)
    # Nodes that wait for each other (damaged dumps) are never ready; trivial ones need no place.
    launched += [
        item for place, item in enumerate(nodes) if links.launches[place] and place not in reached
    ]
    return launched


def _links(nodes: list[WholeNode]) -> _Links:
    inputs = _numbered_inputs(nodes)
    launches_one = [not launches_nothing(item.op) for item in nodes]
    trivial = [False] * len(nodes)
    in_order = all(one < place for place, sources in enumerate(inputs) for one in sources)
    for place in range(len(nodes)) if in_order else _depth_first_places(inputs):
        trivial[place] = not launches_one[place] and all(trivial[one] for one in inputs[place])
    return _Links(nodes, inputs, trivial, launches_one)


def _numbered_inputs(nodes: list[WholeNode]) -> list[list[int]]:
    number = {item: place for place, item in enumerate(nodes)}
    waits = call_waits(nodes)
    return [
        [number[one] for one in (*_producers(item), *waits.get(item, ())) if one in number]
        for item in nodes
    ]


def call_waits(nodes: Iterable[WholeNode]) -> dict[WholeNode, tuple[WholeNode, ...]]:
    """What the first nodes of inlined calls wait for beside their inputs.

    The first nodes are those that take nothing made inside of the same call; they wait for its
    arguments that are Depends, or for those of the call around it where it has none.

    Args:
        nodes: all places where nodes run; those of no call wait for nothing more.
    """
    known: dict[CallSite, tuple[WholeNode, ...]] = {}
    waiting: dict[WholeNode, tuple[WholeNode, ...]] = {}
    for item in nodes:
        if item.site is None:
            continue
        waits = _ordering_arguments(item.site, known)
        if waits and not any(_is_inside(one.site, item.site) for one in item.producers):
            waiting[item] = waits
    return waiting


def _ordering_arguments(
    site: CallSite, known: dict[CallSite, tuple[WholeNode, ...]]
) -> tuple[WholeNode, ...]:
    path: list[CallSite] = []
    place: CallSite | None = site
    waits: tuple[WholeNode, ...] = ()
    while place is not None:
        if place in known:
            waits = known[place]
            break
        path.append(place)
        waits = tuple(
            one for one in place.arguments if isinstance(one, WholeNode) and one.op == "Depend"
        )
        if waits:
            break
        place = place.outer
    known.update(dict.fromkeys(path, waits))
    return waits


def _is_inside(site: CallSite | None, outer: CallSite) -> bool:
    while site is not None:
        if site is outer:
            return True
        site = site.outer
    return False


def _producers(item: WholeNode) -> Iterator[WholeNode]:
    """Nodes that a node takes, in order of operands, repeated ones repeatedly."""
    if item.function is not None:
        yield from _nodes_in(item.function)
    for source in item.inputs:
        yield from _nodes_in(source)


def _nodes_in(source: WholeSource) -> Iterator[WholeNode]:
    if isinstance(source, WholeNode):
        yield source
    elif isinstance(source, tuple):
        for one in source:
            yield from _nodes_in(one)


def _walk_back(links: _Links) -> None:
    """Fill in users, in the order in which a walk from Return meets them."""
    count = len(links.nodes)
    links.users = [[] for _ in range(count)]
    links.waiting_for = [0] * count
    links.uses = [0] * count
    used = [False] * count
    for sources in links.inputs:
        for one in sources:
            used[one] = True
    links.roots = [place for place in range(count - 1, -1, -1) if not used[place]]
    seen = [False] * count
    queue = deque(links.roots)
    for root in links.roots:
        seen[root] = True
    while queue:
        place = queue.popleft()
        for one in links.inputs[place]:
            links.users[one].append(place)
            if links.trivial[one]:
                continue
            links.waiting_for[place] += 1
            links.uses[one] += 1
            if not seen[one]:
                seen[one] = True
                queue.append(one)


def _late_starts(links: _Links) -> list[int]:
    """The stack of nodes to start from, after all but those have got something to wait for."""
    independent: list[int] = []
    operators: deque[int] = deque()
    others: deque[int] = deque(links.roots)
    uses = list(links.uses)
    while operators or others:
        place = others.popleft() if others else operators.popleft()
        starts = True
        for one in reversed(links.inputs[place]):
            if links.trivial[one]:
                continue
            starts = False
            uses[one] -= 1
            if uses[one]:
                continue
            if not links.launches[one]:
                others.append(one)
                continue
            operators.append(one)
            if independent:
                late = independent.pop()
                links.users[one].append(late)
                links.waiting_for[late] += 1
        if starts:
            independent.append(place)
    return independent


def _forward(links: _Links, independent: list[int]) -> list[int]:
    communicates = [item.op in COMMUNICATION for item in links.nodes]
    fused = [_fused_group(item.node) for item in links.nodes]
    order: list[int] = []
    ordinary: deque[int] = deque()
    first: deque[int] = deque()
    parked: deque[int] = deque()
    pending: int | None = None
    chosen_group: str | None = None

    def release(place: int, queue: deque[int], communication_first: bool = True) -> None:
        users = links.users[place]
        last: list[int] = []
        for user in users:
            if not links.waiting_for[user]:
                continue
            links.waiting_for[user] -= 1
            if links.waiting_for[user]:
                continue
            if not links.launches[user] or len(users) == 1:
                queue.appendleft(user)
            elif communicates[user] == communication_first:
                queue.append(user)
            else:
                last.append(user)
        queue.extend(last)

    while independent or parked or pending is not None:
        if parked:
            release(parked.popleft(), first, communication_first=False)
        elif pending is not None:
            release(pending, first, communication_first=False)
            pending = None
        else:
            ordinary.append(independent.pop())
        while ordinary or first:
            queue = first or ordinary
            place = queue.popleft()
            order.append(place)
            group = fused[place]
            if group is not None and chosen_group in (None, group):
                chosen_group = group
                if pending is not None:
                    release(pending, first, communication_first=False)
                pending = place
            elif communicates[place]:
                parked.append(place)
            else:
                release(place, queue)
    return order


def _fused_group(node: Node) -> str | None:
    """The group of a collective that may be fused with others, None for any other node."""
    if node.op not in _FUSED:
        return None
    attributes = node.primitive_attributes or Attributes(())
    group = attributes.get("group")
    if not attributes.get("fusion") or not isinstance(group, str):
        return None
    return None if _SYNCHRONISED_NORM in group else group


# -- depth first -------------------------------------------------------------------------------


def _depth_first(nodes: list[WholeNode]) -> list[WholeNode]:
    return [nodes[place] for place in _depth_first_places(_numbered_inputs(nodes))]


def _depth_first_places(inputs: list[list[int]]) -> list[int]:
    """Inputs before users, following the first input to its end: from Return, left to right."""
    used = {one for sources in inputs for one in sources}
    roots = [place for place in range(len(inputs) - 1, -1, -1) if place not in used]
    order: list[int] = []
    seen = [False] * len(inputs)
    for root in (*roots, *range(len(inputs))):  # the latter for nodes that wait for each other
        if seen[root]:
            continue
        seen[root] = True
        stack = [(root, iter(inputs[root]))]
        while stack:
            place, rest = stack[-1]
            following = next((one for one in rest if not seen[one]), None)
            if following is None:
                order.append(place)
                stack.pop()
            else:
                seen[following] = True
                stack.append((following, iter(inputs[following])))
    return order
