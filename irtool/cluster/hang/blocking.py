"""Where a run that hangs stops: the first collective that its group never gets done.

Of all ranks that wait, each waits for another one, which waits in its turn: the way ends where
members of a group are there and do not the same, or where one of them never comes, or it comes
back to itself.  The first such place in launch order is where the run is blocked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from irtool.cluster.hang.board import Meeting, Play, step_text
from irtool.cluster.hang.script import Departure
from irtool.cluster.matching import FATAL, Disagreement, Place, Transfer, place
from irtool.ir.dataclass import dataclass
from irtool.ir.units import numbered_text

MemberState: TypeAlias = Literal["waits", "waits elsewhere", "done", "no dump"]
"""What a member of the blocked group does: it is there, waits in another one, or is through."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of the blocked group: ``place`` is what it waits in, None if in nothing."""

    rank: int
    state: MemberState
    place: Place | None


@dataclass(frozen=True, slots=True)
class Blocked:
    """The first collective that is never done.

    ``index`` counts the collectives of the group, of a transfer those of its route and tag, from
    0.  ``peers`` are both ends of a transfer.
    """

    group: str
    index: int
    members: tuple[Member, ...]
    why: str
    peers: tuple[int, int] | None = None


def blocked(
    play: Play,
    left: Sequence[Departure],
    mismatches: Iterable[Disagreement],
    unfit: Sequence[Transfer],
    unmatched: Sequence[Transfer],
) -> Blocked | None:
    """Where a play stopped; None where all got done.

    Args:
        play: one that was run.
        left: who left the common script.
        mismatches: where members of groups part.
        unfit: transfers whose ends differ.
        unmatched: transfers with one end.
    """
    odd = {rank for item in left if item.certain for rank in item.ranks}
    number = _first(play, odd)
    if number is not None:
        return _of_meeting(play, number, left)
    for item in (*unfit, *unmatched):
        return _of_transfer(play, item, left)
    fatal = next((item for item in mismatches if item.kind in FATAL), None)
    return None if fatal is None else _of_disagreement(play, fatal, left)


def _first(play: Play, odd: set[int]) -> int | None:
    """The meeting at which the run stops, of those that somebody waits in for no other's sake."""
    heads = play.waiting_steps()
    places: dict[int, tuple[bool, int]] = {}
    for rank, step in heads:
        # What a rank of the common script waits in tells where that stopped.
        number = play.board.moves[rank][step].meeting
        key = (rank in odd, step)
        places[number] = min(places.get(number, key), key)
    roots = {number for head in heads for number in play.roots(*head)}
    ends = [number for number in roots if number in places]
    return min(ends, key=lambda number: places[number], default=None)


def _of_meeting(play: Play, number: int, left: Sequence[Departure]) -> Blocked:
    board = play.board
    meeting = board.meetings[number]
    rank, step = next((rank, step) for rank, step in meeting.members if play.here[rank][step])
    here = place(board.cluster.ranks[rank], step)
    move = board.moves[rank][step]
    if move.sends or move.receives:
        peer = here.party.peer
        ends = (rank, peer) if move.sends else (peer, rank)
        ranks = tuple(end for end in ends if end is not None)
        peers = (ends[0], ends[1]) if None not in ends else None
        group = here.party.group or ""
    else:
        ranks = here.party.ranks or tuple(sorted({one for one, _ in meeting.members}))
        peers, group = None, here.party.group or ""
    members = tuple(_member(play, meeting, one) for one in ranks)
    why = _why(play, meeting, members, here, left)
    return Blocked(group, meeting.index, members, why, peers)  # type: ignore[arg-type]  # both ends


def _member(play: Play, meeting: Meeting, rank: int) -> Member:
    cluster = play.board.cluster
    if rank not in cluster.ranks:
        return Member(rank, "no dump", None)
    step = dict(meeting.members).get(rank)
    if step is not None and play.here[rank][step]:
        return Member(rank, "waits", place(cluster.ranks[rank], step))
    waits = min((step for one, step in play.waiting_steps() if one == rank), default=None)
    if waits is None:
        return Member(rank, "done", None)
    return Member(rank, "waits elsewhere", place(cluster.ranks[rank], waits))


def _why(
    play: Play, meeting: Meeting, members: Sequence[Member], here: Place, left: Sequence[Departure]
) -> str:
    waiting = [member for member in members if member.state == "waits" and member.place]
    if meeting.unfit:
        texts: dict[str, list[int]] = {}
        for member in waiting:
            if member.place is not None:
                texts.setdefault(step_text(member.place), []).append(member.rank)
        why = ", ".join(
            f"{numbered_text('rank', ranks)} {'does' if len(ranks) == 1 else 'do'} {text}"
            for text, ranks in texts.items()
        )
    else:
        who = numbered_text("rank", [one.rank for one in waiting])
        why = f"{who} {_wait_word(waiting)} in {step_text(here)}"
        for member in members:
            if member.state == "waits elsewhere" and member.place is not None:
                group = member.place.party.group
                where = f" of {group}" if group else ""
                why += f", rank {member.rank} in {step_text(member.place)}{where} instead"
            elif member.state == "done":
                why += f", rank {member.rank} has nothing more there"
    return why + _departures_text(left)


def _departures_text(left: Sequence[Departure]) -> str:
    if not left:
        return ""
    first = left[0]
    if first.certain:
        verb = "diverges" if len(first.ranks) == 1 else "diverge"
        return f"; {numbered_text('rank', first.ranks)} {verb} from the other ranks: {first.text}"
    sides = f"{numbered_text('rank', first.ranks)} and {numbered_text('rank', first.common)}"
    return f"; {sides} part, and no side has more ranks: {first.text}"


def _of_transfer(play: Play, item: Transfer, left: Sequence[Departure]) -> Blocked:
    present = play.board.cluster.ranks
    ends = ((item.sender, item.send), (item.receiver, item.receive))
    members = tuple(
        Member(
            rank,
            "waits" if end is not None else "done" if rank in present else "no dump",
            end,
        )
        for rank, end in ends
        if rank is not None
    )
    some = item.send or item.receive
    group = (some.party.group if some else None) or ""
    why = item.mismatch or (
        f"rank {item.sender} sends what rank {item.receiver} never receives"
        if item.receive is None
        else f"rank {item.receiver} waits for what rank {item.sender} never sends"
    )
    peers = None
    if item.sender is not None and item.receiver is not None:
        peers = item.sender, item.receiver
    return Blocked(group, 0, members, why + _departures_text(left), peers)


def _of_disagreement(play: Play, item: Disagreement, left: Sequence[Departure]) -> Blocked:
    members = [Member(item.left.rank, "waits", item.left)]
    if item.right_rank != item.left.rank:
        members.append(Member(item.right_rank, "waits" if item.right else "done", item.right))
    text = item.message + _departures_text(left)
    return Blocked(item.group, item.index, tuple(members), text)


def _wait_word(waiting: Sequence[Member]) -> str:
    return "waits" if len(waiting) == 1 else "wait"


def odd_ranks(left: Sequence[Departure]) -> tuple[int, ...]:
    """Ranks that left the common script for certain, sorted.

    Args:
        left: who left it, of all stages.
    """
    return tuple(sorted({rank for item in left if item.certain for rank in item.ranks}))
