"""Layers added during training: what of the old network is still there, and what is new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irtool.compare.graph_diff import GraphDiff, diff_graphs
from irtool.ir.node import Node
from irtool.planning.holdings import Box, Holding, Holdings, StageDumps


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
    """What adding layers means.

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
    used = {each.old or each.name for each in parameters if each.fate != "new"}
    resharded = tuple(
        dict.fromkeys(
            pair.right
            for diff in diffs
            for pair in diff.changed
            if any(change.kind == "re-sharded" for change in pair.what)
        )
    )
    added = tuple(node for diff in diffs for node in diff.only_right)
    return Growth(
        diffs,
        parameters,
        tuple(name for name in before if name not in used),
        sum(len(diff.pairs) for diff in diffs) - len(resharded),
        resharded,
        added,
        tuple(node for diff in diffs for node in diff.only_left),
        _border(added),
    )


def _renamed(diff: GraphDiff) -> dict[str, str]:
    """Old names of parameters that matched operators read under another name."""
    found: dict[str, str] = {}
    for pair in diff.changed:
        for change in pair.what:
            if change.kind == "parameter renamed":
                found.setdefault(change.after, change.before)
    return found


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
    """Old operators next to new ones."""
    inside = set(added)
    found: dict[Node, None] = {}
    for node in added:
        for neighbour in (*node.inputs, *node.users):
            if isinstance(neighbour, Node) and neighbour not in inside and not neighbour.is_return:
                found[neighbour] = None
    return tuple(found)
