"""A communication's place, disagreements and transfers: what several commands of ``comm`` show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

from msgspec import field

from irtool.cluster.machine import Machine
from irtool.cluster.matching import (
    Disagreement,
    DisagreementKind,
    Place,
    Transfer,
    shape_text,
)
from irtool.cluster.sources import user_location
from irtool.ir.graph import Node
from irtool.ir.units import bandwidth_text, count_text, ranks_text
from irtool.report.answer import AnswerObject, doc
from irtool.report.model import Table, number_column, rows_shown, text_column

# -- texts ---------------------------------------------------------------------------------------


def type_text(dtype: str | None, shape: Sequence[int] | None) -> str:
    """A tensor's type as a dump writes it: ``Float32[4,64]``.

    Args:
        dtype: None is written as ``?``.
        shape: None where it is not known.
    """
    return f"{dtype or '?'}{shape_text(None if shape is None else tuple(shape))}"


def source_text(node: Node) -> str | None:
    """The user's line of Python: ``net.py:12: x = self.matmul(x, w)``.

    Args:
        node: of a dump.

    Returns:
        the innermost line outside MindSpore; None where the dump names none.
    """
    location = user_location(node)
    if location is None:
        return None
    code = (location.source or "").strip().strip("/").strip()
    return (
        f"{location.path}:{location.line}: {code}" if code else f"{location.path}:{location.line}"
    )


def place_text(place: Place) -> str:
    """``rank 0 %12 AllReduce, line 75``.

    Args:
        place: a communication of a rank; the line is that of its dump.
    """
    return f"rank {place.rank} {place.collective.node.id} {place.op}, line {place.line}"


def machine_text(machine: Machine) -> str:
    """The machine and that its figures are those of data sheets.

    Args:
        machine: its bandwidths are named by level; in a mesh they are those of one link.
    """
    levels = ", ".join(
        f"{level.name}{f' inside {level.devices}' if level.devices else ''} "
        f"{bandwidth_text(level.bandwidth)}{' a link' if level.topology == 'mesh' else ''}"
        for level in machine.levels
    )
    return f"{machine.name} ({levels}); times are modelled, not measured"


def ranks_fact(ranks: Sequence[int], devices: int, is_exact: bool) -> str:
    """``0-3 of 8``; ``0-3 of at least 7`` where only ranks in groups tell how many there are.

    Args:
        ranks: whose dumps there are.
        devices: of the run.
        is_exact: whether somebody says how many devices there are.
    """
    least = "" if is_exact else "at least "
    return f"{ranks_text(ranks)} of {least}{count_text(devices)}"


def missing_text(missing: Sequence[int], total: int) -> str:
    """``no dump of 6 of the 8 ranks: 1-3,5-7``.

    Args:
        missing: ranks without a dump.
        total: devices of the run.
    """
    return f"no dump of {len(missing):,} of the {total:,} ranks: {ranks_text(missing)}"


# -- for scripts ---------------------------------------------------------------------------------


class CommunicationPlace(AnswerObject, frozen=True, kw_only=True):
    """One communication of one rank."""

    rank: int
    node: str
    op: Annotated[str, doc("the collective, `Send` or `Receive`")]
    group: Annotated[str | None, doc("name of the group; null: between two ranks")]
    ranks: Annotated[Sequence[int] | None, doc("of the group, global; null: not known")]
    peer: Annotated[int | None, doc("of a Send or Receive: the other rank")]
    tag: Annotated[int | None, doc("of a Send or Receive: its `sr_tag`")]
    dtype: str | None
    shape: Annotated[Sequence[int] | None, doc("null: not known")]
    line: Annotated[int, doc("of the dump")]
    path: Annotated[str, doc("the dump")]
    source: Annotated[str | None, doc("the user's line of Python; null: the dump prints none")]


class GroupDisagreement(AnswerObject, frozen=True, kw_only=True):
    """The first place where two members of a group do not agree."""

    kind: Annotated[DisagreementKind, doc("what differs; `count`: collectives in the group")]
    group: str
    index: Annotated[int, doc("of the collective inside the group, from 0")]
    message: str
    left: CommunicationPlace
    right: Annotated[CommunicationPlace | None, doc("null: the other rank has nothing there")]
    right_rank: Annotated[int, doc("the other rank")]


class TransferEnds(AnswerObject, frozen=True, kw_only=True):
    """A Send with its Receive."""

    sender: Annotated[int | None, doc("rank that sends; null: not known")] = field(name="from")
    receiver: Annotated[int | None, doc("rank that receives; null: not known")] = field(name="to")
    tag: int | None
    send: Annotated[CommunicationPlace | None, doc("null: missing")]
    receive: Annotated[CommunicationPlace | None, doc("null: missing")]
    matched: Annotated[bool, doc("both ends are there")]
    known: Annotated[bool, doc("false: the other end is on a rank without a dump")]
    mismatch: Annotated[str | None, doc("how the ends differ in type or shape")]


def communication_place(place: Place) -> CommunicationPlace:
    """A communication of a rank, with its place in the dump and in Python.

    Args:
        place: a step of a rank's script, with the group that it takes part in.
    """
    item = place.collective
    return CommunicationPlace(
        rank=place.rank,
        node=item.node.id,
        op=item.op,
        group=place.party.group,
        ranks=place.party.ranks,
        peer=place.party.peer,
        tag=item.tag,
        dtype=item.dtype,
        shape=item.shape,
        line=place.line,
        path=place.path,
        source=source_text(item.node),
    )


def group_disagreement(item: Disagreement) -> GroupDisagreement:
    """Where two members of a group part, for scripts.

    Args:
        item: the first communication of the group that two members do otherwise.
    """
    return GroupDisagreement(
        kind=item.kind,
        group=item.group,
        index=item.index,
        message=item.message,
        left=communication_place(item.left),
        right=_end(item.right),
        right_rank=item.right_rank,
    )


def transfer_ends(item: Transfer) -> TransferEnds:
    """A Send with its Receive, for scripts.

    Args:
        item: either end may be missing.
    """
    return TransferEnds(
        sender=item.sender,
        receiver=item.receiver,
        tag=item.tag,
        send=_end(item.send),
        receive=_end(item.receive),
        matched=item.matched,
        known=item.known,
        mismatch=item.mismatch or None,
    )


def _end(place: Place | None) -> CommunicationPlace | None:
    return None if place is None else communication_place(place)


# -- tables --------------------------------------------------------------------------------------


def disagreements_table(
    items: Iterable[Disagreement],
    limit: int | None,
    title: str = "Groups whose members do not agree",
) -> Table:
    """One line a group whose members do not agree.

    Args:
        items: the first disagreement of each.
        limit: rows that text shows: None the usual number, 0 all.
        title: of the table.
    """
    columns = [
        text_column("differs"), text_column("group", 1), text_column("first disagreement", 1),
        text_column("one rank", 2), text_column("other rank", 2),
    ]  # fmt: skip
    rows = [
        [
            item.kind,
            item.group,
            item.message,
            place_text(item.left),
            place_text(item.right)
            if item.right is not None
            else f"nothing on rank {item.right_rank}",
        ]
        for item in items
    ]
    return Table(title, columns, rows, noun="group", most=rows_shown(limit))


def unmatched_table(items: Iterable[Transfer], limit: int | None) -> Table:
    """One line a Send or Receive that has no other end, or one that does not fit.

    Args:
        items: of two ranks each.
        limit: rows that text shows: None the usual number, 0 all.
    """
    columns = [
        number_column("from"), number_column("to"), number_column("tag"), text_column("problem"),
        text_column("Send", 1), text_column("Receive", 1),
    ]  # fmt: skip
    rows = [
        [
            item.sender,
            item.receiver,
            item.tag,
            item.mismatch or ("no Receive" if item.receive is None else "no Send"),
            place_text(item.send) if item.send is not None else "missing",
            place_text(item.receive) if item.receive is not None else "missing",
        ]
        for item in items
    ]
    title = "Sends and Receives that do not match"
    return Table(title, columns, rows, noun="transfer", most=rows_shown(limit))
