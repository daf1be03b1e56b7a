"""Ties: which nodes belong together, within a dump and from one pass to another.

Differentiation leaves ids on forward and backward nodes, but not in every dump; otherwise names,
scopes, parameters, source lines and neighbours tell.  Each tie says which rule made it and
whether it is certain: where several candidates stay equal, they are tied in order if their
numbers agree (uncertain), else not at all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, TypeVar

from irtool.ir.collectives import OPERATORS
from irtool.ir.dump import Dump
from irtool.ir.graph import AmbiguousReference, GraphParameter
from irtool.ir.node import ClosureTarget, GraphTarget, Node
from irtool.ir.types import Abstract
from irtool.ir.values import NodeReference, python_value
from irtool.ir.whole import CallSite, WholeNode, WholeSource

Phase: TypeAlias = Literal["forward", "backward", "recompute", "optimizer", "other"]
Kind: TypeAlias = Literal["gradient", "recompute", "parameter", "pass"]
Rule: TypeAlias = Literal[
    "unique_id",
    "forward_node_name",
    "forward_comm_node_unique_id",
    "mirror_user_id",
    "instance_name",
    "scope",
    "parameter",
    "debug_name",
    "location",
    "sr_tag",
    "neighbours",
    "order",
]
End: TypeAlias = Node | GraphParameter

PLUMBING = frozenset(
    ("Load", "Depend", "UpdateState", "MakeTuple", "TupleGetItem", "MakeList", "ListGetItem",
     "Return", "call", "J", "Partial", "Switch", "SwitchLayer", "StopGradient", "RefToEmbed",
     "EnvironGet", "EnvironSet", "EnvironCreate", "EnvironAdd", "MakeDict", "make_dict")
)  # fmt: skip
"""Operators that pass values on and compute nothing."""

VIRTUAL = frozenset(
    ("_VirtualDataset", "_VirtualOutput", "_VirtualDiv", "_VirtualPipelineEnd", "_VirtualAdd",
     "_VirtualAssignAdd", "_VirtualAccuGrad", "_VirtualStageEnd", "VirtualPipelineReceive",
     "_GetTensorSlice", "AShardIdentity", "_MirrorOperator", "_MirrorMiniStepOperator",
     "_MirrorMicroStepOperator", "_VirtualConverterBegin", "_VirtualConverterEnd")
)  # fmt: skip
"""Marks for the parallel passes, gone in ``validate``."""

OPTIMIZERS = re.compile(
    r"(Apply[A-Z]|Sparse(Apply|.*Adagrad|.*Ftrl)|Fused(Sparse|Adam|Cast|Weight|Mul)|Lamb|Lars|LARS"
    r"|Adam|AdamW|SGD|Muon)(?!Grad)"
)
"""Names of operators that update parameters."""

_INSERTED = re.compile(
    r"(grad)?_?(redistribution_|forward_op_?\d|parallel_optimizer|mirror|PARALLEL_|\d{6,}|virtual)"
)


@dataclass(frozen=True, slots=True)
class Tie:
    """``left`` and ``right`` belong together.

    Kinds: ``gradient`` (forward node or parameter, then a backward node), ``recompute`` (original,
    copy), ``parameter`` (parameter, the node that updates it), ``pass`` (the same operator in an
    earlier and a later dump).
    """

    left: End
    right: Node
    kind: Kind
    how: Rule
    certain: bool = True


@dataclass(frozen=True, eq=False)
class Ties:
    """Ties of one dump, or between two; ``tieable`` counts, by kind, what could have been tied."""

    items: tuple[Tie, ...]
    tieable: Mapping[Kind, int]

    @cached_property
    def _by_end(self) -> dict[End, list[Tie]]:
        found: dict[End, list[Tie]] = {}
        for tie in self.items:
            found.setdefault(tie.left, []).append(tie)
            found.setdefault(tie.right, []).append(tie)
        return found

    def of(self, end: End) -> tuple[Tie, ...]:
        """The ties of a node or parameter."""
        return tuple(self._by_end.get(end, ()))

    def partners(self, end: End) -> tuple[End, ...]:
        """What a node or parameter is tied to."""
        return tuple(
            tie.right if tie.left is end or tie.left == end else tie.left for tie in self.of(end)
        )

    @property
    def counts(self) -> dict[Rule, int]:
        """Number of ties by rule."""
        return dict(Counter(tie.how for tie in self.items))

    def tied(self, kind: Kind) -> int:
        """Number of tieable ends of a kind that are tied."""
        if kind == "pass":
            return len({id(tie.left) for tie in self.items if tie.kind == kind})
        return len(
            {
                id(tie.right)
                for tie in self.items
                if tie.kind == kind
                and tie.right.op not in PLUMBING
                and (kind != "gradient" or _forward_place(tie.right)[1] not in VIRTUAL)
            }
        )

    def share(self, kind: Kind | None = None) -> float:
        """Tied ends among those that could be tied; 1.0 where there are none."""
        kinds: Iterable[Kind] = self.tieable if kind is None else (kind,)
        possible = sum(self.tieable.get(item, 0) for item in kinds)
        return sum(self.tied(item) for item in kinds) / possible if possible else 1.0

    def __iter__(self) -> Iterator[Tie]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


# ---- phases ----------------------------------------------------------------------------------


def phase(node: Node) -> Phase:
    """What a node belongs to, by its own marks; see :func:`phases` for all of a dump."""
    return _marked(node) or ("other" if node.op in PLUMBING else "forward")


def _marked(node: Node) -> Phase | None:
    if node.is_recomputed:
        return "recompute"
    if node.is_backward:
        return "backward"
    if node.unique_id is not None:
        return "forward"
    if "optimizer-" in (node.scope or "") or OPTIMIZERS.match(node.op):
        return "optimizer" if node.op not in ("UpdateState", "Return") else "other"
    return None


def phases(dump: Dump) -> dict[Node, Phase]:
    """The phase of every node: what no mark tells follows from producers and users.

    What comes after backward nodes and feeds no backward node belongs to the optimizer, if it
    reaches an update, else to the backward pass; passing nodes between phases are ``other``.
    """
    found: dict[Node, Phase] = {}
    for graph in dump.graphs:
        _phases_of(graph.nodes, found)
    return found


def _phases_of(nodes: tuple[Node, ...], found: dict[Node, Phase]) -> None:
    marks: dict[Node, Phase | None] = {
        node: _gradient_call(node) or _marked(node) for node in nodes
    }
    late: set[Node] = set()
    for node in nodes:
        if any(
            marks.get(item) in ("backward", "optimizer") or item in late for item in _data(node)
        ):
            late.add(node)
    wanted: dict[Node, set[Phase]] = {}
    for node in reversed(nodes):
        mark: Phase | None = marks[node]
        if mark is None:
            mark = _from_users(node, node in late, wanted.get(node, set()))
        found[node] = mark
        for item in _data(node):
            # A passing node hands on what its own users want.
            passes = node.op in PLUMBING and mark == "other"
            handed: set[Phase] = wanted.get(node, set()) if passes else {mark}
            wanted.setdefault(item, set()).update(handed)


def _from_users(node: Node, late: bool, users: set[Phase]) -> Phase:
    passes = node.op in PLUMBING
    if node.op in ("UpdateState", "Return"):
        return "other"
    if late:
        if node.op.startswith("Assign"):
            return "optimizer"
        if "backward" in users:
            return "backward"
        if "optimizer" in users:
            return "optimizer"
        return "other" if passes else "backward"
    if users and users <= {"optimizer"}:
        return "optimizer"
    if passes:
        return "forward" if users & {"forward", "backward", "recompute"} else "other"
    return "forward"


def _data(node: Node) -> list[Node]:
    """Nodes of the same graph whose values a node takes; what only orders it is left out."""
    if node.op == "UpdateState" or node.graph is None:
        return []
    operands = node.operands[:1] if node.op == "Depend" else node.operands
    found = [node.graph.node(item.number) for item in operands if isinstance(item, NodeReference)]
    return [item for item in found if item is not None]


def _gradient_call(node: Node) -> Phase | None:
    """Before differentiation: calls of ``J(@G)`` run forward, of their second result backward."""
    target = node.target
    if not isinstance(target, ClosureTarget) or not isinstance(target.callee, NodeReference):
        return None
    callee = node.graph.node(target.callee.number) if node.graph else None
    if callee is None:
        return None
    if callee.op == "J":
        return "forward"
    return "backward" if callee.op == "TupleGetItem" else None


# ---- within one dump -------------------------------------------------------------------------


def ties(dump: Dump) -> Ties:
    """Forward to backward nodes, originals to recompute copies, parameters to their updates."""
    stages = phases(dump)
    finder = _GradientTies(dump, stages)
    found: list[Tie] = []
    backward = [node for node, stage in stages.items() if stage == "backward"]
    copies = [node for node, stage in stages.items() if stage == "recompute"]
    for node in reversed(backward):
        tie = finder.by_id(node) or finder.by_place(node)
        if tie is not None:
            found.append(tie)
    tied = {tie.right for tie in found}
    found += finder.in_order([node for node in reversed(backward) if node not in tied])
    found += [tie for tie in map(finder.original, reversed(copies)) if tie is not None]
    updates = [tie for tie in map(_update, stages.items()) if tie is not None]
    tieable: dict[Kind, int] = {
        "gradient": sum(
            node.op not in PLUMBING and _forward_place(node)[1] not in VIRTUAL for node in backward
        ),
        "recompute": sum(node.op not in PLUMBING for node in copies),
        "parameter": len(updates),
    }
    return Ties((*found, *updates), tieable)


def _update(item: tuple[Node, Phase]) -> Tie | None:
    node, stage = item
    if stage != "optimizer" or node.op in PLUMBING or not node.operands:
        return None
    first = node.inputs[0]
    for _ in range(8):
        if isinstance(first, Node) and first.op == "Depend" and first.operands:
            first = first.inputs[0]
    if not isinstance(first, GraphParameter) or first.type is None or first.type.ref_key is None:
        return None
    return Tie(first, node, "parameter", "parameter")


class _GradientTies:
    """Forward nodes by everything that a backward node may know of its own."""

    def __init__(self, dump: Dump, stages: dict[Node, Phase]) -> None:
        self.by_uid: dict[str, list[Node]] = {}
        self.by_comm: dict[str, list[Node]] = {}
        self.by_instance: dict[tuple[str, str | None], list[Node]] = {}
        self.by_scope: dict[tuple[str | None, str], list[Node]] = {}
        self.parameters: dict[str, GraphParameter] = {}
        entry = dump.entry
        for parameter in entry.parameters if entry else ():
            self.parameters.setdefault(parameter.name, parameter)
        for node in dump.nodes():
            if stages[node] not in ("forward", "optimizer", "other"):
                continue
            if node.unique_id is not None:
                self.by_uid.setdefault(node.unique_id, []).append(node)
            comm = node.attribute("forward_comm_node_unique_id")
            if isinstance(comm, str):
                self.by_comm.setdefault(comm, []).append(node)
            if stages[node] == "forward" and node.op not in PLUMBING:
                self.by_scope.setdefault((node.scope, node.op), []).append(node)
                if node.instance_name:
                    self.by_instance.setdefault((node.instance_name, node.scope), []).append(node)

    def by_id(self, node: Node) -> Tie | None:
        """What ids say: one forward node, or the parameter whose gradient this is."""
        named = node.attribute("forward_node_name")
        op, _, number = named.rpartition("_") if isinstance(named, str) else ("", "", "")
        sources: tuple[tuple[Rule, list[Node]], ...] = (
            ("unique_id", self.by_uid.get(node.forward_unique_id or "", [])),
            ("forward_node_name", self.by_uid.get(number, [])),
            ("forward_comm_node_unique_id", self._same_comm(node, op)),
        )
        for rule, candidates in sources:
            chosen = _narrowed(candidates, op, node)
            if chosen is not None:
                return Tie(chosen, node, "gradient", rule)
        user = node.attribute("mirror_user_id")
        if isinstance(user, str) and user in self.parameters:
            return Tie(self.parameters[user], node, "gradient", "mirror_user_id")
        return None

    def _same_comm(self, node: Node, op: str) -> list[Node]:
        found = node.attribute("forward_comm_node_unique_id")
        candidates = self.by_comm.get(found, []) if isinstance(found, str) else []
        wanted = op or _forward_place(node)[1]
        return [item for item in candidates if item.op == wanted]

    def by_place(self, node: Node) -> Tie | None:
        """What names, scope and parameters say, if that is one forward node."""
        scope, op = _forward_place(node)
        name = node.instance_name or ""
        if name.startswith("grad"):
            for base in (name[4:], name[4:].lstrip("_")):
                chosen = _only(self.by_instance.get((base, scope), []))
                if chosen is not None:
                    return Tie(chosen, node, "gradient", "instance_name")
        candidates = self.by_scope.get((scope, op), []) if op else []
        chosen = _only(candidates)
        if chosen is not None:
            return Tie(chosen, node, "gradient", "scope")
        weights = _weights(node)
        if weights:
            chosen = _only([item for item in candidates if _weights(item) == weights])
            if chosen is not None:
                return Tie(chosen, node, "gradient", "parameter")
        return None

    def in_order(self, nodes: list[Node]) -> list[Tie]:
        """Equal gradients to equal forward nodes, last to first, where their numbers agree."""
        groups: dict[tuple[str | None, str, str, str | None], list[Node]] = {}
        for node in nodes:
            scope, op = _forward_place(node)
            if op and node.op not in PLUMBING:
                groups.setdefault((scope, op, node.op, node.instance_name), []).append(node)
        found: list[Tie] = []
        for (scope, op, *_), members in groups.items():
            candidates = self.by_scope.get((scope, op), [])
            if len(candidates) == len(members):
                pairs = zip(reversed(candidates), members, strict=True)
                found += [Tie(left, right, "gradient", "order", False) for left, right in pairs]
        return found

    def original(self, copy: Node) -> Tie | None:
        """The forward node that a recompute copy repeats."""
        candidates = self.by_uid.get(copy.unique_id or "", [])
        chosen = _narrowed(candidates, copy.op, copy)
        if chosen is not None:
            return Tie(chosen, copy, "recompute", "unique_id")
        same = [
            item
            for item in self.by_scope.get((copy.scope, copy.op), [])
            if item.instance_name == copy.instance_name and item.micro == copy.micro
        ]
        chosen = _only(same)
        return Tie(chosen, copy, "recompute", "scope") if chosen is not None else None


def _narrowed(candidates: list[Node], op: str, node: Node) -> Node | None:
    """The one candidate, by operator and micro-batch if there are several."""
    tests: tuple[Callable[[Node], bool], ...] = (
        lambda item: item.op == op,
        lambda item: item.micro == node.micro,
        lambda item: item.graph is node.graph,
    )
    for test in tests:
        if len(candidates) < 2:
            break
        candidates = [item for item in candidates if test(item)]
    return _only(candidates)


def _forward_place(node: Node) -> tuple[str | None, str]:
    """Scope and operator of the forward node: ``Gradients/Default/net/Grad_MatMul``."""
    parts = (node.scope or "").split("/")
    if parts[0] == "Gradients":
        parts = parts[1:]
    if parts and parts[-1].startswith("Grad_"):
        return "/".join(parts[:-1]) or None, parts[-1][len("Grad_") :]
    return "/".join(parts) or None, ""


def _weights(node: Node) -> frozenset[str]:
    """Parameters that a node reads directly, through loads, casts and gathers."""
    found: set[str] = set()
    for source in node.inputs:
        for _ in range(8):
            if isinstance(source, AmbiguousReference) or not isinstance(source, Node):
                break
            if source.op not in _PASSING or not source.operands:
                break
            source = source.inputs[0]
        if isinstance(source, GraphParameter) and source.type and source.type.ref_key:
            found.add(source.type.ref_key)
    return frozenset(found)


_PASSING = frozenset(("Load", "Depend", "Cast", "StopGradient", *OPERATORS))

_Item = TypeVar("_Item")


def _only(items: list[_Item]) -> _Item | None:
    return items[0] if len(items) == 1 else None


# ---- between two dumps -----------------------------------------------------------------------


def ties_between(begin: Dump, validate: Dump) -> Ties:
    """Operators of an earlier dump to those of a later one of the same compilation.

    Calls are inlined in both.  Tieable are the operators of ``begin``; in ``validate`` the nodes
    that differentiation, recomputation and the parallel passes added are no candidates.  An
    operator that a pass removed or replaced stays untied.
    """
    matcher = _Matcher(_Side(begin), _Side(validate))
    matcher.run()
    found: dict[tuple[End, Node], Tie] = {}
    for tie in matcher.ties():
        found.setdefault((tie.left, tie.right), tie)
    return Ties(tuple(found.values()), {"pass": matcher.tieable})


_AUTOMATIC = re.compile(r"(ValueNode|CNode|Parameter|valuenode|cnode)_?\d*")
_PREFIX = re.compile(r"(equiv_\d+_)+|(?:\d+_)?▲|[▸◂]")

_MICRO_BATCH = re.compile(r"/(\d{1,6})-_MicroBatch")

_Key: TypeAlias = "Hashable | None"


class _Side:
    """The operators of one dump that may be tied, with what is known of each.

    Nodes are numbers here: their places in the inlined view.  ``base`` leads from a node through
    everything that only passes a value on (loads, inserted collectives, tuples) to the operator
    or parameter that makes it; ``open`` are the nodes that may still be tied.
    """

    def __init__(self, dump: Dump) -> None:
        whole = dump.whole()
        self.nodes = whole.nodes
        stages = phases(dump)
        requested = {
            graph.name
            for call in whole.kept_calls
            if call.reason == "gradient"
            for graph in call.graphs
        }
        self._repeats = _Repeats(requested)
        self.open: dict[int, None] = {}
        self._base: list[WholeNode | str | None] = []
        self.operands: list[tuple[WholeNode | str | None, ...]] = []
        self.micro: list[int | None] = []
        self.readers: dict[int, list[tuple[int, int]]] = {}
        for item in self.nodes:
            places = tuple(self._resolve(source) for source in item.inputs)
            self.operands.append(places)
            self.micro.append(self._micro_of(item, places))
            passes = _passes(item.node)
            # Redistributions take the place of a Reshape: neighbours are sought beyond it.
            reached = places[0] if item.op == "Reshape" and places else item
            self._base.append(self._passed(item, places) if passes else reached)
            if passes:
                continue
            if self._is_candidate(item, stages[item.node]):
                self.open[item.index] = None
            for position, place in enumerate(places):
                if isinstance(place, WholeNode):
                    self.readers.setdefault(place.index, []).append((item.index, position))

    def _is_candidate(self, item: WholeNode, stage: Phase) -> bool:
        """Whether a node is the user's and no later pass is sure to drop it."""
        if stage in ("recompute", "other") or item.node.is_backward:
            return False
        if item.op == "ZerosLike" and item.users:
            return not all(user.op == "EnvironGet" for user in item.users)
        return not self._repeats.contain(item.site)

    def _resolve(self, source: WholeSource) -> WholeNode | str | None:
        """Operator or name of the parameter that an input stems from; None for the rest."""
        if isinstance(source, WholeNode):
            return self._base[source.index]
        if isinstance(source, GraphParameter):
            reference = source.type.ref_key if source.type else None
            return reference or source.name or None
        return None

    def _passed(
        self, item: WholeNode, places: tuple[WholeNode | str | None, ...]
    ) -> WholeNode | str | None:
        if not places:
            return None
        if item.op == "TupleGetItem" and len(item.inputs) > 1:
            maker = item.inputs[0]
            index = python_value(item.node.operands[1])
            if (
                isinstance(maker, WholeNode)
                and maker.op in ("MakeTuple", "_VirtualDataset")
                and isinstance(index, int)
                and -len(maker.inputs) <= index < len(maker.inputs)
            ):
                return self.operands[maker.index][index]
        return item if item.op in ("MakeTuple", "MakeList", "call", "J") else places[0]

    def _micro_of(self, item: WholeNode, places: tuple[WholeNode | str | None, ...]) -> int | None:
        own = item.node.micro
        if own is not None:
            return own
        batch = _MICRO_BATCH.search(item.node.scope or "")
        if batch is not None:
            return int(batch[1])
        found = {self.micro[place.index] for place in places if isinstance(place, WholeNode)}
        found.discard(None)
        return found.pop() if len(found) == 1 else None

    def parameters(self, index: int) -> tuple[tuple[int, str], ...]:
        """Names of the parameters that an operator reads, with the operand's place.

        AdaSum's nodes say in an attribute (place -1) whose delta they work on.
        """
        places = enumerate(self.operands[index])
        found = [(position, place) for position, place in places if isinstance(place, str)]
        target = self.nodes[index].node.attribute("target_param")
        return (*found, (-1, target)) if isinstance(target, str) else tuple(found)


class _Repeats:
    """Calls of graphs whose gradient is requested as well: ``J(@G)`` runs them again."""

    def __init__(self, requested: set[str]) -> None:
        self._requested = requested
        self._known: dict[CallSite, bool] = {}

    def contain(self, site: CallSite | None) -> bool:
        """Whether a node with this call path runs in such a call."""
        path: list[CallSite] = []
        while site is not None and site not in self._known:
            path.append(site)
            site = site.outer
        found = site is not None and self._known[site]
        for place in reversed(path):
            target = place.node.target
            found = found or (isinstance(target, GraphTarget) and target.graph in self._requested)
            self._known[place] = found
        return found


def _passes(node: Node) -> bool:
    """Whether a node hands on its first input: passing operators and what passes inserted."""
    if node.op in PLUMBING or node.op in VIRTUAL:
        return True
    if node.instance_name and _INSERTED.match(node.instance_name):
        return True
    return (
        node.op in OPERATORS
        and OPERATORS[node.op].base not in ("Send", "Receive")
        and node.attribute("forward_comm_node_unique_id") is not None
    )


class _Matcher:
    """Ties nodes of two sides in rounds, from the strictest evidence to the weakest."""

    def __init__(self, left: _Side, right: _Side) -> None:
        self.left = left
        self.right = right
        self.tieable = len({left.nodes[index].node for index in left.open})
        self.pairs: dict[int, tuple[int, Rule, bool]] = {}
        self._pending: list[int] = []

    def ties(self) -> Iterator[Tie]:
        """What was found, in the order of the left side."""
        for index in sorted(self.pairs):
            other, rule, certain = self.pairs[index]
            left, right = self.left.nodes[index].node, self.right.nodes[other].node
            yield Tie(left, right, "pass", rule, certain)

    def run(self) -> None:
        """All rounds; what each finds is spread to the neighbours before the next."""
        for rule, key in _STRICT:
            self._round(rule, key, in_order=False)
            self._spread()
        for key in _EQUAL:
            self._round("order", key, in_order=True)
            self._spread()

    def _round(self, rule: Rule, key: Callable[[_Side, int], _Key], in_order: bool) -> None:
        """Tie nodes whose key nobody else has; ``in_order`` also equal numbers of equal keys."""
        left, right = _grouped(self.left, key), _grouped(self.right, key)
        for value, members in left.items():
            others = right.get(value, [])
            if len(members) != len(others) or (len(members) > 1 and not in_order):
                continue
            for index, other in zip(members, others, strict=True):
                certain = not in_order and rule != "scope"
                if rule == "scope":
                    certain = self._same_instance(index, other)
                elif key is _by_variable:
                    certain = self._same_place(index, other)
                self._tie(index, other, rule, certain)

    def _same_instance(self, index: int, other: int) -> bool:
        left, right = self.left.nodes[index].node, self.right.nodes[other].node
        return left.instance_name is not None and left.instance_name == right.instance_name

    def _same_place(self, index: int, other: int) -> bool:
        place = _innermost(self.left.nodes[index].node)
        return place is not None and place == _innermost(self.right.nodes[other].node)

    def _tie(self, index: int, other: int, rule: Rule, certain: bool) -> None:
        if not self._compatible(index, other):
            return
        self.pairs[index] = (other, rule, certain)
        del self.left.open[index]
        del self.right.open[other]
        self._pending.append(index)

    def _compatible(self, index: int, other: int) -> bool:
        """Whether nothing speaks against a tie: operator, types, parameters, names, inputs."""
        left, right = self.left.nodes[index].node, self.right.nodes[other].node
        if left.op != right.op or not _alike(left.output_type, right.output_type):
            return False
        ours, theirs = self.left.parameters(index), self.right.parameters(other)
        if ours and theirs and not set(ours) & set(theirs):
            return False
        ours_at, theirs_at = _innermost(left), _innermost(right)
        if ours_at is not None and theirs_at is not None and ours_at != theirs_at:
            return False  # equal nodes were merged, and another line's one stayed
        names = _own_name(left), _own_name(right)
        if names[0] and names[1] and names[0] != names[1]:
            return False
        for mine, yours in zip(self.left.operands[index], self.right.operands[other], strict=False):
            if isinstance(mine, WholeNode) and isinstance(yours, WholeNode):
                tied = self.pairs.get(mine.index)
                if tied is not None and tied[2] and tied[0] != yours.index:
                    return not self._is_certain_elsewhere(yours.index)
        return True

    def _is_certain_elsewhere(self, other: int) -> bool:
        return other not in self.right.open and not _passes(self.right.nodes[other].node)

    # -- neighbours

    def _spread(self) -> None:
        while self._pending:
            index = self._pending.pop()
            other, _, certain = self.pairs[index]
            self._spread_to_inputs(index, other, certain)
            self._spread_to_readers(index, other, certain)

    def _spread_to_inputs(self, index: int, other: int, certain: bool) -> None:
        for mine, yours in zip(self.left.operands[index], self.right.operands[other], strict=False):
            if not isinstance(mine, WholeNode) or not isinstance(yours, WholeNode):
                continue
            if _home(self.left, mine.index) == _home(self.right, yours.index):
                self._tie_open(mine.index, yours.index, certain)

    def _spread_to_readers(self, index: int, other: int, certain: bool) -> None:
        for kinship in (_kin, _home):
            mine = self._readers(self.left, index, kinship)
            yours = self._readers(self.right, other, kinship)
            for key, members in mine.items():
                others = yours.get(key, [])
                if len(members) == 1 and len(others) == 1:
                    self._tie_open(members[0], others[0], certain)

    def _tie_open(self, index: int, other: int, certain: bool) -> None:
        if index in self.left.open and other in self.right.open:
            self._tie(index, other, "neighbours", certain)

    @staticmethod
    def _readers(
        side: _Side, index: int, kinship: Callable[[_Side, int], Hashable]
    ) -> dict[Hashable, list[int]]:
        found: dict[Hashable, list[int]] = {}
        for reader, position in side.readers.get(index, ()):
            found.setdefault((position, kinship(side, reader)), []).append(reader)
        return found


def _grouped(side: _Side, key: Callable[[_Side, int], _Key]) -> dict[Hashable, list[int]]:
    found: dict[Hashable, list[int]] = {}
    for index in side.open:
        value = key(side, index)
        if value is not None:
            found.setdefault(value, []).append(index)
    return found


# ---- keys: what two nodes must share ---------------------------------------------------------


def _kin(side: _Side, index: int) -> tuple[str, str | None, str | None]:
    """Operator, instance name and scope."""
    node = side.nodes[index].node
    return node.op, node.instance_name, node.scope


def _home(side: _Side, index: int) -> tuple[str, str | None]:
    """Operator and scope: equal primitives of a scope end up with one instance name."""
    node = side.nodes[index].node
    return node.op, node.scope


def _by_variable(side: _Side, index: int) -> _Key:
    name = _own_name(side.nodes[index].node)
    return (name, side.micro[index], *_home(side, index)) if name else None


def _by_debug_name(side: _Side, index: int) -> _Key:
    """Numbered names (``CNode_572``): the number survives as long as nothing clones the node."""
    name = _stem(side.nodes[index].node)
    return (name, *_kin(side, index)) if re.search(r"CNode_\d", name) else None


def _by_tag(side: _Side, index: int) -> _Key:
    node = side.nodes[index].node
    tag, group = node.attribute("sr_tag"), node.attribute("group")
    return (node.op, tag, group) if isinstance(tag, int) and isinstance(group, str) else None


def _by_parameter(side: _Side, index: int) -> _Key:
    names = tuple(name for _, name in side.parameters(index))
    return (names, side.micro[index], *_kin(side, index)) if names else None


def _by_parameter_alone(side: _Side, index: int) -> _Key:
    names = tuple(name for _, name in side.parameters(index))
    return (names, side.micro[index], side.nodes[index].op) if names else None


def _by_location(side: _Side, index: int) -> _Key:
    places = _places(side, index)
    return (places, side.micro[index], *_kin(side, index)) if places else None


def _by_scope(side: _Side, index: int) -> _Key:
    kin = _kin(side, index)
    return (side.micro[index], *kin) if kin[2] is not None else None


def _by_home(side: _Side, index: int) -> _Key:
    home = _home(side, index)
    return (side.micro[index], *home) if home[1] is not None else None


def _by_instance(side: _Side, index: int) -> _Key:
    kin = _kin(side, index)
    return (side.micro[index], *kin[:2]) if kin[1] is not None else None


def _by_everything(side: _Side, index: int) -> _Key:
    name = _own_name(side.nodes[index].node)
    names = tuple(name for _, name in side.parameters(index))
    return (name, names, _places(side, index), side.micro[index], *_kin(side, index))


def _by_all_but_micro(side: _Side, index: int) -> _Key:
    names = tuple(name for _, name in side.parameters(index))
    return (names, *_kin(side, index))


def _places(side: _Side, index: int) -> tuple[tuple[str, str], ...]:
    return tuple((line.path, line.span) for line in side.nodes[index].node.comments.locations)


_STRICT: tuple[tuple[Rule, Callable[[_Side, int], _Key]], ...] = (
    ("sr_tag", _by_tag),
    ("debug_name", _by_debug_name),
    ("parameter", _by_parameter),
    ("location", _by_location),
    ("debug_name", _by_variable),
    ("scope", _by_scope),
    ("parameter", _by_parameter_alone),
    ("instance_name", _by_instance),
    ("scope", _by_home),
)
_EQUAL = (_by_everything, _by_location, _by_scope, _by_all_but_micro)


def _innermost(node: Node) -> tuple[str, str] | None:
    lines = node.comments.locations
    return (lines[-1].path, lines[-1].span) if lines else None


def _stem(node: Node) -> str:
    """The debug name without the prefixes that copying a graph adds."""
    return _PREFIX.sub("", node.name or "")


def _own_name(node: Node) -> str:
    """The Python variable that the user assigned the node to, else the empty text."""
    name = _stem(node).partition("$")[0]
    return "" if _AUTOMATIC.fullmatch(name) else name


def _alike(left: Abstract | None, right: Abstract | None) -> bool:
    """Whether two types may be one value before and after slicing: same elements, same rank."""
    if left is None or right is None:
        return True
    if left.dtype is not None and right.dtype is not None and left.dtype != right.dtype:
        return False
    ours, theirs = left.dimensions, right.dimensions
    if ours is None or theirs is None or -2 in (*ours, *theirs):
        return True
    return len(ours) == len(theirs)
