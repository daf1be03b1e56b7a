"""Communication groups: which ranks belong to them, and which devices a dump shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Literal, TypeAlias, cast
from weakref import WeakKeyDictionary

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import DumpModel, Node
from irtool.ir.group_names import MOST_RANKS, WORLD_GROUPS, search
from irtool.ir.operators import COMMUNICATION, POINT_TO_POINT
from irtool.ir.values import Attributes

RanksFrom: TypeAlias = Literal[
    "rank_list", "group_rank_ids", "group_ranks", "same group", "world", "name"
]


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices that a dump's groups show.

    ``ranks`` are those seen, ``world`` the smallest number of devices that holds them, and
    ``is_exact`` whether the group of all devices itself was listed.
    """

    ranks: tuple[int, ...]
    world: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class GroupTable:
    """What a dump says of its groups: ranks by name, and the devices seen."""

    listed: Mapping[str, tuple[int, ...]]
    devices: Devices


_TABLES: WeakKeyDictionary[DumpModel, GroupTable] = WeakKeyDictionary()


def groups_of(dump: DumpModel) -> GroupTable:
    """The groups whose ranks some node of a dump lists, and the devices seen in them.

    Args:
        dump: any; before the parallel pass there are hardly any groups.
    """
    if dump not in _TABLES:
        _TABLES[dump] = _group_table(dump)
    return _TABLES[dump]


def _group_table(dump: DumpModel) -> GroupTable:
    listed: dict[str, tuple[int, ...]] = {}
    seen: set[int] = set()
    world: int | None = None
    for node in dump.nodes(where=lambda node: node.op in COMMUNICATION):
        attributes = node.primitive_attributes or Attributes(())
        group = text_attribute(attributes, "group")
        ranks, _ = _listed_ranks(node, attributes)
        if ranks is not None:
            seen.update(ranks)
            if group:
                listed.setdefault(group, ranks)
                if group.startswith(WORLD_GROUPS):
                    world = max(world or 0, len(ranks))
        for key in ("dst_global_rank", "src_global_rank"):
            rank = integer_attribute(attributes, key)
            if rank is not None and is_rank(rank):
                seen.add(rank)
        if node.op in POINT_TO_POINT and (group or "").startswith(WORLD_GROUPS):
            rank = integer_attribute(attributes, "dest_rank" if node.op == "Send" else "src_rank")
            seen.update([rank] if rank is not None and is_rank(rank) else ())
    smallest = max(seen, default=0) + 1
    exact = world is not None and world >= smallest
    devices = Devices(tuple(sorted(seen)), max(world or 1, smallest), exact)
    return GroupTable(listed, devices)


def devices(dump: DumpModel) -> Devices:
    """The ranks seen in a dump's groups, and the smallest world that holds them.

    Args:
        dump: whose collectives tell them.
    """
    return groups_of(dump).devices


def group_ranks(
    node: Node, attributes: Attributes, group: str | None, device_num: int | None
) -> tuple[tuple[int, ...] | None, RanksFrom | None]:
    """Global ranks of a node's group, and how they were found.

    Args:
        node: that communicates.
        attributes: of its primitive.
        group: the group's name among them; None: it has none.
        device_num: devices of the run; None: as the dump's own groups tell it.

    Returns:
        Ranks in ascending order, with what tells them: lists on the node go before another node of
        the same group, and that before the name. Both None where nothing tells them.
    """
    ranks, found_in = _listed_ranks(node, attributes)
    if ranks is not None:
        return ranks, found_in
    table = groups_of(node.graph.dump) if node.graph and node.graph.dump else None
    is_world = (group or "").startswith(WORLD_GROUPS) or (
        text_attribute(attributes, "group_ranks") == "WORLD_GROUP"
    )
    if is_world:
        if device_num is None and table is not None and table.devices.is_exact:
            device_num = table.devices.world
        return (tuple(range(device_num)), "world") if device_num else (None, None)
    if not group:
        return None, None
    if table is not None and group in table.listed:
        return table.listed[group], "same group"
    plain = plain_name(group)
    if plain is not None:
        return plain, "name"
    least = device_num or (table.devices.world if table is not None else 1)
    decoded = search(group, least)
    return (decoded, "name") if decoded is not None else (None, None)


def _listed_ranks(
    node: Node, attributes: Attributes
) -> tuple[tuple[int, ...] | None, RanksFrom | None]:
    """Ranks that the node itself lists."""
    group = text_attribute(attributes, "group") or ""
    for key in ("rank_list", "group_rank_ids"):
        if key == "group_rank_ids" and node.op in POINT_TO_POINT and group in WORLD_GROUPS:
            continue  # the two ends, not the group
        value = attributes.get(key)
        if isinstance(value, tuple | list):
            ranks = cast("tuple[object, ...] | list[object]", value)
            valid = [rank for rank in ranks if isinstance(rank, int) and is_rank(rank)]
            if valid and len(valid) == len(ranks):
                return tuple(sorted(valid)), "rank_list" if key == "rank_list" else "group_rank_ids"
    text = attributes.get("group_ranks")
    if isinstance(text, int) and not isinstance(text, bool) and is_rank(text):
        return (text,), "group_ranks"
    if isinstance(text, str) and re.fullmatch(r"\d{1,6}(-\d{1,6})*", text):
        return tuple(sorted(map(int, text.split("-")))), "group_ranks"
    return None, None


def is_rank(number: int) -> bool:
    """Whether a number may be a rank's.

    Args:
        number: from a file that may be damaged.
    """
    return 0 <= number < MOST_RANKS


def plain_name(group: str) -> tuple[int, ...] | None:
    """The ranks of a group that is called by them (``0-8-16``) rather than by their hash.

    Args:
        group: its name.

    Returns:
        At least two ranks, ascending; None where the name is no such list.
    """
    if not re.fullmatch(r"\d{1,6}(-\d{1,6})+", group):
        return None
    ranks = tuple(map(int, group.split("-")))
    return ranks if all(a < b for a, b in pairwise(ranks)) else None


def peer_rank(
    op: str, attributes: Attributes, group: str | None, ranks: tuple[int, ...] | None
) -> int | None:
    """The global rank at the other end of a Send or Receive.

    Args:
        op: ``Send``, or else a Receive.
        attributes: of its primitive: ``dst_global_rank`` and ``src_global_rank`` are global,
            ``dest_rank`` and ``src_rank`` count inside the group.
        group: the group's name; in that of all devices both countings are one.
        ranks: of the group.

    Returns:
        None where neither is there, or the group's ranks are needed and not known.
    """
    known = integer_attribute(attributes, "dst_global_rank" if op == "Send" else "src_global_rank")
    if known is not None:
        return known if is_rank(known) else None
    index = integer_attribute(attributes, "dest_rank" if op == "Send" else "src_rank")
    if index is None or (group or "").startswith(WORLD_GROUPS):
        return index if index is not None and is_rank(index) else None
    return ranks[index] if ranks is not None and 0 <= index < len(ranks) else None


def text_attribute(attributes: Attributes, key: str) -> str | None:
    """An attribute that is a text; None for anything else.

    Args:
        attributes: of a primitive.
        key: the attribute's name.
    """
    value = attributes.get(key)
    return value if isinstance(value, str) else None


def integer_attribute(attributes: Attributes, key: str) -> int | None:
    """An attribute that is a whole number; None for anything else, True and False too.

    Args:
        attributes: of a primitive.
        key: the attribute's name.
    """
    value = attributes.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
