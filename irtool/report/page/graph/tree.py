"""The tree of scopes that the graph on a page collapses and expands.

Below the dump come graph (where there are several), phase, and scope; the optimizer's nodes are
put by the names of the parameters that they update, since MindSpore gives all of them one scope.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.phases import Phase
from irtool.ir.ties import Tie
from irtool.report.picture.places_found import leaders

MOST_MEMBERS = 80
"""Nodes that stand in one group; more are cut into parts, since nobody reads more."""
_PART = 40
_MOST_GROUPS = 120
_NUMBERED = re.compile(r"(.*?)(\d+)(\D*)$")
_LEAST_ALIKE = 4
_LEADS = frozenset(("Load", "RefToEmbed", "ZerosLike"))
"""Operators that only look at a parameter; what takes their results is about that parameter."""

_ORDERS = frozenset(("UpdateState", "Depend", "MakeTuple", "Load"))
"""Operators that join what does not belong together."""

Path = tuple[str, ...]


@dataclass(slots=True)
class Group:
    """One group: its name, the groups in it, and the members that stand in it directly."""

    name: str
    path: str
    groups: dict[str, Group] = field(default_factory=dict[str, "Group"])
    members: list[int] = field(default_factory=list[int])
    first: int = -1
    note: str = ""


@dataclass(frozen=True, slots=True)
class Tree:
    """Groups as columns, parents before children; ``of`` is the group of each member.

    Group 0 is the whole and has no name.
    """

    names: tuple[str, ...]
    paths: tuple[str, ...]
    notes: tuple[str, ...]
    parents: tuple[int, ...]
    of: tuple[int, ...]


def scope_path(node: Node, phase: Phase) -> Path:
    """Where a node stands below its graph: phase, then the parts of its scope.

    Args:
        node: of a dump; words that the compiler adds (``Default``, ``Gradients``, ``recompute_``)
            are left out.
        phase: of the node; in the optimizer the names of the parameters that it updates follow.
    """
    parts = [part for part in (node.scope or "").split("/") if part]
    if parts and parts[0] == "Gradients":
        del parts[0]
    if parts and parts[-1].startswith("Grad_"):
        del parts[-1]
    if parts and parts[0].startswith("recompute_"):
        parts[0] = parts[0].removeprefix("recompute_")
    if parts and parts[0] == "Default":
        del parts[0]
    if phase == "optimizer":
        parts += _updated(node)
    return (phase, *parts)


def gradient_paths(phases: Mapping[Node, Phase], ties: Iterable[Tie]) -> dict[Node, Path]:
    """Where nodes of the backward pass stand: beside their forward operators.

    The scopes in the dump often name another layer, since the compiler makes the gradient of an
    operator once and uses it for all layers.

    Args:
        phases: of all nodes, in the order of the dump.
        ties: forward to backward nodes.

    Returns:
        a path for each node that is tied, or that stands by one that is; others have none.
    """
    partners = {
        tie.right: tie.left
        for tie in ties
        if tie.kind == "gradient" and isinstance(tie.left, Node) and phases.get(tie.left)
    }
    backward = {node: index for index, node in enumerate(phases) if phases[node] == "backward"}
    pairs = [
        (source, node)
        for node in backward
        if node.op not in _ORDERS
        for source in node.inputs
        if isinstance(source, Node) and source in backward and source.op not in _ORDERS
    ]
    return {
        node: ("backward", *scope_path(partners[leader], phases[partners[leader]])[1:])
        for node, leader in leaders(backward, pairs, partners).items()
    }


def _updated(node: Node) -> list[str]:
    """Parts, but the last, of the name of the parameter that a node of the optimizer is about."""
    pending: list[tuple[Node, int]] = [(node, 0)]
    while pending:
        item, depth = pending.pop()
        for source in item.inputs:
            if isinstance(source, GraphParameter) and "." in source.name:
                return source.name.split(".")[:-1]
            if isinstance(source, Node) and depth < 2 and source.op in _LEADS:
                pending.append((source, depth + 1))
    return []


def build_tree(paths: Sequence[Path], shown: Sequence[bool]) -> Tree:
    """The tree of members with these paths.

    Chains of groups that hold nothing but one group become one group, siblings that only a number
    tells apart get a group of their own, and groups of many members are cut into parts.

    Args:
        paths: where each member stands.
        shown: whether a member is seen without asking; only these count as many.
    """
    root = Group("", "")
    for index, path in enumerate(paths):
        group = root
        for part in path:
            inner_path = f"{group.path}/{part}" if group.path else part
            group = group.groups.setdefault(part, Group(part, inner_path, first=index))
        group.members.append(index)
    pending = [root]
    while pending:
        group = pending.pop()
        for name, inner in list(group.groups.items()):
            group.groups[name] = _merged(inner)
        _fold_numbered(group)
        _cut(group, shown)
        pending += group.groups.values()
    return _columns(root, len(paths))


def _merged(group: Group) -> Group:
    while not group.members and len(group.groups) == 1 and not group.note:
        (inner,) = group.groups.values()
        inner.name = f"{group.name}/{inner.name}"
        inner.first = min(group.first, inner.first)
        group = inner
    return group


def _fold_numbered(group: Group) -> None:
    """``block0 … block51`` among others become one group; where all are alike, a note says so."""
    alike: dict[tuple[str, str], list[str]] = {}
    for name in group.groups:
        match = _NUMBERED.match(name.partition("/")[0])
        if match:
            alike.setdefault((match[1], match[3]), []).append(name)
    for (before, after), names in alike.items():
        if len(names) < _LEAST_ALIKE:
            continue
        kind = f"{before}N{after}".strip("-_/.")
        note = f"{len(names)} × {kind}" if len(kind) > 1 else f"{len(names)} parts"
        if len(names) == len(group.groups):
            group.note = note
            continue
        chosen = {name: group.groups.pop(name) for name in names}
        first = next(iter(chosen.values()))
        title = f"{names[0]} … {names[-1]}"
        folded = Group(title, f"{group.path}/{title}".lstrip("/"), chosen, [], first.first, note)
        group.groups[title] = folded


def _cut(group: Group, shown: Sequence[bool]) -> None:
    seen = [member for member in group.members if shown[member]]
    if len(seen) > MOST_MEMBERS:
        parts = [seen[start : start + _PART] for start in range(0, len(seen), _PART)]
        group.members = [member for member in group.members if not shown[member]]
        for number, part in enumerate(parts, 1):
            name = f"part {number} of {len(parts)}"
            made = Group(name, f"{group.path}/{name}".lstrip("/"), {}, part, part[0])
            group.groups[name] = made
    if len(group.groups) > _MOST_GROUPS:
        inner = list(group.groups.items())
        group.groups = {}
        for start in range(0, len(inner), _PART):
            some = dict(inner[start : start + _PART])
            first, last = inner[start][0], list(some)[-1]
            name = f"{first} … {last}"
            path = f"{group.path}/{name}".lstrip("/")
            group.groups[name] = Group(name, path, some, [], inner[start][1].first)


def _columns(root: Group, count: int) -> Tree:
    groups: list[Group] = []
    parents: list[int] = []
    of = [0] * count
    pending: list[tuple[Group, int]] = [(root, -1)]
    while pending:
        group, parent = pending.pop()
        number = len(groups)
        groups.append(group)
        parents.append(parent)
        for member in group.members:
            of[member] = number
        inner = sorted(group.groups.values(), key=lambda item: -item.first)
        pending += [(item, number) for item in inner]
    return Tree(
        tuple(group.name for group in groups),
        tuple(group.path for group in groups),
        tuple(group.note for group in groups),
        tuple(parents),
        tuple(of),
    )


def parameter_paths(
    parameters: Iterable[int],
    users: Mapping[int, Sequence[int]],
    paths: Sequence[Path],
    hidden: Sequence[bool],
    phases: Sequence[str],
) -> dict[int, Path]:
    """For each parameter the innermost path of all that take it, through what is hidden.

    Only the phase (or graph) counts in which it is first taken; a weight that the forward pass
    takes stands there.

    Args:
        parameters: their numbers among the drawn things.
        users: what takes a parameter or a hidden node, by number.
        paths: of each thing.
        hidden: whether a thing is not drawn.
        phases: of each thing.

    Returns:
        nothing for a parameter that nobody takes.
    """
    by_parameter: dict[int, Path] = {}
    for parameter in parameters:
        takers = _takers(parameter, users, hidden)
        if not takers:
            continue
        takers = sorted(takers, key=lambda taker: (phases[taker] != "forward", taker))
        common = paths[takers[0]]
        for taker in takers[1:]:
            path = paths[taker]
            if path[:1] == common[:1] and phases[taker] == phases[takers[0]]:
                length = next(
                    (depth for depth, pair in enumerate(zip(common, path, strict=False))
                     if pair[0] != pair[1]),
                    min(len(common), len(path)),
                )  # fmt: skip
                common = common[:length]
        by_parameter[parameter] = common
    return by_parameter


def _takers(parameter: int, users: Mapping[int, Sequence[int]], hidden: Sequence[bool]) -> set[int]:
    pending, seen, takers = list(users.get(parameter, ())), {parameter}, set[int]()
    while pending:
        item = pending.pop()
        if item in seen:
            continue
        seen.add(item)
        if hidden[item]:
            pending += users.get(item, ())
        else:
            takers.add(item)
    return takers
