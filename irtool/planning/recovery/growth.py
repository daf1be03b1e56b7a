"""Layers added during training: what of the old network is still there, and what is new."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from irtool.compare.graph_diff import GraphDiff, diff_graphs
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.operators import PLUMBING
from irtool.planning.cost.holdings import Box, Holding, Holdings, StageDumps


@dataclass(frozen=True, slots=True)
class GrownParameter:
    """One parameter of the grown network.

    ``fate`` is ``new`` (to be initialised), ``kept`` (same slices), ``resharded`` or ``renamed``;
    ``old`` is its old name where it had another; ``slices`` by rank of what must be initialised.
    """

    name: str
    fate: str
    old: str | None
    shape: tuple[int, ...]
    bytes: int
    slices: Mapping[int, Box]


@dataclass(frozen=True, eq=False)
class Growth:
    """What adding layers changes in the network that was there.

    ``diffs`` compare the graphs stage by stage. ``unchanged`` operators keep their strategy,
    ``resharded`` have another one, ``added`` are new, ``removed`` are gone; ``dropped`` parameters
    exist no more.  ``border`` are operators of the old network that feed new ones or read them: the
    layouts that a plan of the new part must keep.
    """

    diffs: tuple[GraphDiff, ...]
    parameters: tuple[GrownParameter, ...]
    dropped: tuple[str, ...]
    unchanged: int
    resharded: tuple[Node, ...]
    added: tuple[Node, ...]
    removed: tuple[Node, ...]
    border: tuple[Node, ...]

    @property
    def is_local(self) -> bool:
        """Whether the old part kept its strategies: only the new part had to be planned."""
        return not self.resharded and not self.removed


def grown(old_begins: StageDumps, new_begins: StageDumps, old: Holdings, new: Holdings) -> Growth:
    """Compare the network before and after layers were added.

    Args:
        old_begins: the dumps ``step_parallel_begin`` of the old network, by stage.
        new_begins: those of the grown one; stages that only one of them has are left out.
        old: who holds what of the old one.
        new: likewise.
    """
    stages = [stage for stage in old_begins if stage in new_begins]
    diffs = tuple(diff_graphs(old_begins[stage], new_begins[stage]) for stage in stages)
    renamed = {new: old for diff in diffs for new, old in _renamed(diff).items()}
    before, after = old.by_name(), new.by_name()
    parameters = tuple(
        _parameter(item, renamed.get(item.name, item.name), before) for item in after.values()
    )
    used = {parameter.old or parameter.name for parameter in parameters if parameter.fate != "new"}
    resharded = _operators(
        pair.right
        for diff in diffs
        for pair in diff.changed
        if any(change.kind == "re-sharded" for change in pair.what)
    )
    added = _operators(node for diff in diffs for node in diff.only_right)
    matched = _operators(pair.right for diff in diffs for pair in diff.pairs)
    return Growth(
        diffs,
        parameters,
        tuple(name for name in before if name not in used),
        len(matched) - len(resharded),
        resharded,
        added,
        _operators(node for diff in diffs for node in diff.only_left),
        _border(added),
    )


def _operators(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Each node once, without those that only order and regroup values."""
    return tuple(dict.fromkeys(node for node in nodes if node.op not in PLUMBING))


def _renamed(diff: GraphDiff) -> dict[str, str]:
    """Old names of parameters that matched operators read under another name."""
    old_names: dict[str, str] = {}
    for pair in diff.changed:
        for change in pair.what:
            if change.kind == "parameter renamed":
                old_names.setdefault(change.after, change.before)
    return old_names


def _parameter(item: Holding, old_name: str, before: Mapping[str, Holding]) -> GrownParameter:
    size = sum(item.bytes_of(item.boxes[ranks[0]]) for ranks in item.replica_sets)
    old = before.get(item.name) or before.get(old_name)
    if old is None or old.shape != item.shape:
        return GrownParameter(item.name, "new", None, item.shape, size, item.boxes)
    renamed = old.name if old.name != item.name else None
    if dict(old.boxes) != dict(item.boxes):
        return GrownParameter(item.name, "resharded", renamed, item.shape, size, {})
    fate = "renamed" if renamed else "kept"
    return GrownParameter(item.name, fate, renamed, item.shape, size, {})


def _border(added: tuple[Node, ...]) -> tuple[Node, ...]:
    """Old operators whose results new ones take, or that take theirs."""
    inside = set(added)
    neighbours: dict[Node, None] = {}
    for node in added:
        neighbours.update(dict.fromkeys(_neighbours(node, lambda one: one.inputs)))
        neighbours.update(dict.fromkeys(_neighbours(node, lambda one: one.users)))
    return tuple(node for node in neighbours if node not in inside and not node.is_return)


def _neighbours(node: Node, following: Callable[[Node], Iterable[object]]) -> Iterator[Node]:
    """The nearest operators in one direction; what only regroups values is passed."""
    waiting, seen = [node], {node}
    while waiting:
        for other in following(waiting.pop()):
            if not isinstance(other, Node) or other in seen or other.op == "UpdateState":
                continue
            seen.add(other)
            if other.op in PLUMBING:
                waiting.append(other)
            else:
                yield other
