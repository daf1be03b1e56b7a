"""Pieces that all pages, tables and JSON objects of ``irtool comm`` share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from irtool.cluster.machine import Machine
from irtool.cluster.matching import Disagreement, Place, Transfer, shape_text
from irtool.cluster.sources import user_location
from irtool.ir.node import Node
from irtool.ir.units import count_text, ranks_text
from irtool.report.json import json_list, json_text
from irtool.report.model import Table, number_column, text_column

MOST_ROWS = 20


def shown(total: int, limit: int | None, usual: int = MOST_ROWS) -> int:
    """How many rows of a list are shown: ``--limit``, where 0 means all, else the usual number."""
    most = usual if limit is None else (limit or total)
    return min(total, most)


def type_text(dtype: str | None, shape: Sequence[int] | None) -> str:
    """``Float32[4,64]``."""
    return f"{dtype or '?'}{shape_text(None if shape is None else tuple(shape))}"


def source_text(node: Node) -> str | None:
    """The user's line of Python: ``net.py:12: x = self.matmul(x, w)``."""
    location = user_location(node)
    if location is None:
        return None
    code = (location.source or "").strip().strip("/").strip()
    return (
        f"{location.path}:{location.line}: {code}" if code else f"{location.path}:{location.line}"
    )


def place_text(place: Place) -> str:
    """``rank 0 %12 AllReduce, line 75``."""
    return f"rank {place.rank} {place.collective.node.id} {place.op}, line {place.line}"


def machine_text(machine: Machine) -> str:
    """The machine and that its figures are those of data sheets."""
    levels = ", ".join(
        f"{level.name}{f' inside {level.devices}' if level.devices else ''} "
        f"{level.bandwidth / 1e9:g} GB/s{' a link' if level.topology == 'mesh' else ''}"
        for level in machine.levels
    )
    return f"{machine.name} ({levels}); times are modelled, not measured"


# -- JSON ----------------------------------------------------------------------------------------


def pieces(head: Mapping[str, object], lists: Mapping[str, Sequence[object]]) -> Iterator[str]:
    """One object: short keys in one line, then each list with an item a line."""
    yield json_text(dict(head))[:-1]
    for name, items in lists.items():
        yield f',\n "{name}": '
        yield from json_list(([json_text(item)] for item in items), " ")
    yield "}\n"


def place_object(place: Place) -> dict[str, object]:
    """A communication of a rank, with its place in the dump and in Python."""
    item = place.collective
    return {
        "rank": place.rank,
        "node": item.node.id,
        "op": item.op,
        "group": place.party.group,
        "ranks": _list(place.party.ranks),
        "peer": place.party.peer,
        "tag": item.tag,
        "dtype": item.dtype,
        "shape": _list(item.shape),
        "line": place.line,
        "path": place.path,
        "source": source_text(item.node),
    }


def disagreement_object(item: Disagreement) -> dict[str, object]:
    """Where two members of a group part."""
    return {
        "kind": item.kind,
        "group": item.group,
        "index": item.index,
        "message": item.message,
        "left": place_object(item.left),
        "right": place_object(item.right) if item.right is not None else None,
        "right_rank": item.right_rank,
    }


def transfer_object(item: Transfer) -> dict[str, object]:
    """A Send with its Receive."""
    return {
        "from": item.sender,
        "to": item.receiver,
        "tag": item.tag,
        "send": place_object(item.send) if item.send is not None else None,
        "receive": place_object(item.receive) if item.receive is not None else None,
        "matched": item.matched,
        "known": item.known,
        "mismatch": item.mismatch or None,
    }


def _list(values: Sequence[int] | None) -> list[int] | None:
    return None if values is None else list(values)


# -- tables --------------------------------------------------------------------------------------


def disagreements_table(found: Sequence[Disagreement], limit: int | None) -> Table:
    """One line a group whose members do not agree."""
    count = shown(len(found), limit)
    rows = [
        (
            item.kind,
            item.group,
            item.message,
            place_text(item.left),
            place_text(item.right)
            if item.right is not None
            else f"nothing on rank {item.right_rank}",
        )
        for item in found[:count]
    ]
    columns = (*map(text_column, ("what", "group", "the first disagreement", "here", "there")),)
    return Table("Members that do not agree", columns, rows, len(found) - count, "group")


def unmatched_table(found: Sequence[Transfer], limit: int | None) -> Table:
    """One line a Send or Receive that has no other end, or one that does not fit."""
    count = shown(len(found), limit)
    rows = [_transfer_row(item) for item in found[:count]]
    columns = (
        number_column("from"),
        number_column("to"),
        number_column("tag"),
        text_column("what is wrong"),
        text_column("Send"),
        text_column("Receive"),
    )
    return Table("Transfers that do not fit", columns, rows, len(found) - count, "transfer")


def _transfer_row(item: Transfer) -> tuple[str | int | None, ...]:
    wrong = item.mismatch or ("no Receive" if item.receive is None else "no Send")
    return (
        item.sender,
        item.receiver,
        item.tag,
        wrong,
        place_text(item.send) if item.send is not None else "missing",
        place_text(item.receive) if item.receive is not None else "missing",
    )


def missing_text(missing: Sequence[int], total: int) -> str:
    """``of 8 ranks there are no dumps of 6: 1-3,5-7``."""
    return f"of {total:,} ranks there are no dumps of {len(missing):,}: {ranks_text(missing)}"


def devices_text(devices: int, is_exact: bool) -> str:
    """How many devices there are: ``8``, or ``at least 7`` where only ranks in groups tell."""
    return count_text(devices) if is_exact else f"at least {count_text(devices)}"
