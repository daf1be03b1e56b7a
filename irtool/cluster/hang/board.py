"""One play of all ranks' communications: who meets whom, who gets done, who waits for whom."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from irtool.cluster.matching import Place, place, shape_text, signature
from irtool.cluster.ranks import Cluster, RankProgram
from irtool.ir.dataclass import dataclass
from irtool.ir.operators import POINT_TO_POINT

StreamRule: TypeAlias = Literal["in order", "stream a group"]
"""Whether collectives of different groups wait for each other on a rank."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A communication that never gets done, and the rank it waits for.

    ``next`` is what that rank would have to come to; None where it has nothing that fits.
    """

    place: Place
    waits_for: int
    next: Place | None
    reason: str


def is_closed(chain: Sequence[Wait]) -> bool:
    """Whether who waits for whom comes back to its beginning.

    Args:
        chain: from the first that waits on.
    """
    return bool(chain) and chain[-1].next is not None


# -- the board: who meets whom -------------------------------------------------------------------


@dataclass(slots=True)
class _Move:
    """One communication of one rank: the meeting it comes to, and what has to be done before."""

    meeting: int
    sends: bool = False
    receives: bool = False
    lane: Hashable = None


@dataclass(slots=True)
class Meeting:
    """A collective with all its members, or a Send with its Receive; ``index`` of its group.

    ``members`` are pairs of rank and step; ``absent`` ranks should come and have nothing that fits;
    ``unfit`` members do not the same, so that they never get done with each other.
    """

    members: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    absent: tuple[int, ...] = ()
    unfit: bool = False
    index: int = 0


class Board:
    """All communications of all ranks, and where they meet; the same for every play."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.moves: dict[int, list[_Move]] = {}
        self.meetings: list[Meeting] = []
        self._numbers: dict[Hashable, int] = {}
        for rank, one in cluster.ranks.items():
            self.moves[rank] = self._moves_of(rank, one)
        self._find_absent()

    def _moves_of(self, rank: int, one: RankProgram) -> list[_Move]:
        counts: dict[Hashable, int] = {}
        moves: list[_Move] = []
        for step, party in zip(one.program.steps, one.parties, strict=True):
            item = step.collective
            if item.op in POINT_TO_POINT:
                sends = item.op == "Send"
                route = (rank, party.peer) if sends else (party.peer, rank)
                key: Hashable = ("pair", *route, item.tag)
                lane: Hashable = (item.op, party.peer)
            else:
                sends = False
                key = ("group", party.group, party.ranks)
                lane = ("group", party.group)
            # Both ends of a route count for themselves.
            turn = counts[key] = counts.get(key, -1) + 1
            number = self._meeting(key, turn)
            self.meetings[number].members.append((rank, len(moves)))
            moves.append(_Move(number, sends, item.op == "Receive", lane))
        return moves

    def _meeting(self, key: Hashable, turn: int) -> int:
        number = self._numbers.get((key, turn))
        if number is None:
            number = self._numbers[key, turn] = len(self.meetings)
            self.meetings.append(Meeting(index=turn))
        return number

    def _find_absent(self) -> None:
        present = self.cluster.ranks
        for meeting in self.meetings:
            here = {rank for rank, _ in meeting.members}
            rank, step = meeting.members[0]
            party = present[rank].parties[step]
            move = self.moves[rank][step]
            if move.sends or move.receives:
                # An unknown peer, or one without a dump, is taken to do its part.
                wanted = () if party.peer is None else (party.peer,)
            else:
                wanted = party.ranks or ()
            meeting.absent = tuple(one for one in wanted if one in present and one not in here)
            if not (move.sends or move.receives):
                meeting.unfit = self._differs(meeting.members)

    def _differs(self, members: Sequence[tuple[int, int]]) -> bool:
        """Whether members of a group do something different."""
        steps = {
            id(step): step.collective
            for rank, number in members
            for step in (self.cluster.ranks[rank].program.steps[number],)
        }
        return len({signature(item) for item in steps.values()}) > 1


# -- one play ------------------------------------------------------------------------------------


class Play:
    """One play under one rule for streams; ``buffered``: a Send does not wait for its Receive."""

    def __init__(self, board: Board, rule: StreamRule, buffered: bool) -> None:
        self.board = board
        self.in_order = rule == "in order"
        self.buffered = buffered
        self.done: dict[int, list[bool]] = {
            rank: [False] * len(moves) for rank, moves in board.moves.items()
        }
        self.arrived: list[int] = [0] * len(board.meetings)
        self.here: dict[int, list[bool]] = {
            rank: [False] * len(moves) for rank, moves in board.moves.items()
        }
        self.before: dict[tuple[int, bool], list[tuple[int, ...]]] = {}
        self.waiting: dict[tuple[int, int], int] = {}
        self.releases: dict[tuple[int, int], list[int]] = {}
        self.sent: set[int] = set()

    def run(self) -> None:
        """Play until nobody can move."""
        ready: deque[tuple[int, int]] = deque()
        for rank in self.board.moves:
            for step, needs in enumerate(self._needs(rank)):
                self.waiting[rank, step] = len(needs)
                for need in needs:
                    self.releases.setdefault((rank, need), []).append(step)
                if not needs:
                    ready.append((rank, step))
        while ready:
            self._arrive(*ready.popleft(), ready)

    def _needs(self, rank: int) -> list[tuple[int, ...]]:
        """What has to be done on the rank before each step: data, and the one before on its lane.

        Without buffers, transfers take their turn on the stream of their group.
        """
        steps = self.board.cluster.ranks[rank].program.steps
        parties = self.board.cluster.ranks[rank].parties
        last: dict[Hashable, int] = {}
        by_step: list[tuple[int, ...]] = []
        for place_, (step, move) in enumerate(zip(steps, self.board.moves[rank], strict=True)):
            lane = move.lane
            is_pair = move.sends or move.receives
            if not self.buffered:
                lane = ("stream", parties[place_].group)
            elif self.in_order and not is_pair:
                lane = "collectives"
            needs = set(step.after)
            if lane in last:
                needs.add(last[lane])
            last[lane] = place_
            by_step.append(tuple(needs))
        return by_step

    def _arrive(self, rank: int, step: int, ready: deque[tuple[int, int]]) -> None:
        move = self.board.moves[rank][step]
        meeting = self.board.meetings[move.meeting]
        self.here[rank][step] = True
        self.arrived[move.meeting] += 1
        if meeting.unfit or (meeting.absent and not (move.sends and self.buffered)):
            return
        if self.buffered and move.sends:
            self._finish(rank, step, ready)
            self.sent.add(move.meeting)
            for other, place_ in meeting.members:
                if (other, place_) != (rank, step) and self.here[other][place_]:
                    self._finish(other, place_, ready)
        elif self.buffered and move.receives:
            alone = len(meeting.members) == 1 and not meeting.absent
            if alone or move.meeting in self.sent:
                self._finish(rank, step, ready)
        elif self.arrived[move.meeting] == len(meeting.members):
            for other, place_ in meeting.members:
                self._finish(other, place_, ready)

    def _finish(self, rank: int, step: int, ready: deque[tuple[int, int]]) -> None:
        if self.done[rank][step]:
            return
        self.done[rank][step] = True
        for user in self.releases.get((rank, step), ()):
            self.waiting[rank, user] -= 1
            if not self.waiting[rank, user]:
                ready.append((rank, user))

    # -- who waits for whom ----------------------------------------------------------------------

    def stuck(self) -> dict[int, int]:
        """How many communications are not done, by rank; ranks that are through are left out."""
        counts = {rank: flags.count(False) for rank, flags in self.done.items()}
        return {rank: count for rank, count in counts.items() if count}

    def waiting_steps(self) -> list[tuple[int, int]]:
        """What ranks came to and never get done: pairs of rank and step."""
        return [
            (rank, step)
            for rank, flags in self.here.items()
            for step, came in enumerate(flags)
            if came and not self.done[rank][step]
        ]

    def roots(self, rank: int, step: int) -> set[int]:
        """The meetings at which the way of who waits for whom ends: one, or all of a circle."""
        meetings: list[int] = []
        seen: dict[tuple[int, int], int] = {}
        head: tuple[int, int] | None = (rank, step)
        while head is not None and head not in seen:
            seen[head] = len(meetings)
            meetings.append(self.board.moves[head[0]][head[1]].meeting)
            _, head = self._wait(*head)
        return set(meetings[seen[head] :]) if head is not None else set(meetings[-1:])

    def chain(self) -> tuple[Wait, ...]:
        """Who waits for whom: a circle, or a way to what is missing; empty where all got done."""
        starts = self.waiting_steps()
        if not starts:
            return ()
        best: tuple[Wait, ...] = ()
        for start in starts[:_MOST_STARTS]:
            waits = self._chain_from(start)
            if not best or (is_closed(waits), -len(waits)) > (is_closed(best), -len(best)):
                best = waits
        return best

    def _chain_from(self, start: tuple[int, int]) -> tuple[Wait, ...]:
        waits: list[Wait] = []
        seen: dict[tuple[int, int], int] = {}
        head: tuple[int, int] | None = start
        while head is not None and head not in seen:
            seen[head] = len(waits)
            wait, head = self._wait(*head)
            waits.append(wait)
        # What leads to the circle is no part of it.
        return tuple(waits[seen[head] :]) if head is not None else tuple(waits)

    def _wait(self, rank: int, step: int) -> tuple[Wait, tuple[int, int] | None]:
        """For whom a communication waits, and what holds that rank up."""
        move = self.board.moves[rank][step]
        meeting = self.board.meetings[move.meeting]
        here = place(self.board.cluster.ranks[rank], step)
        if meeting.absent:
            other = meeting.absent[0]
            return Wait(here, other, None, self._absence(here, other)), None
        late = [
            (other, place_) for other, place_ in meeting.members if not self.here[other][place_]
        ]
        if not late:
            other, place_ = self._differing(meeting, rank, step)
            there = place(self.board.cluster.ranks[other], place_)
            return Wait(here, other, None, f"rank {other} does {step_text(there)} there"), None
        other, place_ = late[0]
        held = self._held(other, place_)
        one = self.board.cluster.ranks[other]
        reason = f"rank {other} comes to it after {_text(place(one, held))}"
        return Wait(here, other, place(one, held), reason), (other, held)

    def _differing(self, meeting: Meeting, rank: int, step: int) -> tuple[int, int]:
        """A member of a meeting that does something else than this one."""
        ranks = self.board.cluster.ranks
        own = signature(ranks[rank].program.steps[step].collective)
        return next(
            (other, number)
            for other, number in meeting.members
            if signature(ranks[other].program.steps[number].collective) != own
        )

    def _held(self, rank: int, step: int) -> int:
        """What a step that nobody came to waits for on its own rank, back to one that came."""
        needs = self._all_needs(rank)
        while not self.here[rank][step]:
            step = next(need for need in needs[step] if not self.done[rank][need])
        return step

    def _all_needs(self, rank: int) -> list[tuple[int, ...]]:
        key = (rank, True)
        if key not in self.before:
            self.before[key] = [tuple(sorted(needs)) for needs in self._needs(rank)]
        return self.before[key]

    def _absence(self, here: Place, other: int) -> str:
        item = here.collective
        if item.op in POINT_TO_POINT:
            wanted = "Receive" if item.op == "Send" else "Send"
            tag = "" if item.tag is None else f" with tag {item.tag}"
            direction = "from" if item.op == "Send" else "to"
            return f"rank {other} has no {wanted} {direction} rank {here.rank}{tag}"
        parties = self.board.cluster.ranks[other].parties
        others = sorted(
            {party.ranks for party in parties if party.group == here.party.group and party.ranks}
        )
        if others and here.party.ranks not in others:
            return f"rank {other} has another group under that name: ranks {others[0]}"
        if not others:
            return f"rank {other} communicates nothing in that group"
        return f"rank {other} has fewer collectives in that group"


_MOST_STARTS = 64
"""From how many waiting communications a circle is looked for."""


def step_text(item: Place) -> str:
    """A communication with its type and shape, as ``AllReduce(sum) Float32[4,64]``.

    Args:
        item: whose ranks are not named.
    """
    one = item.collective
    reduction = f"({one.reduction})" if one.reduction else ""
    return f"{one.op}{reduction} {one.dtype or '?'}{shape_text(one.shape)}"


def _text(item: Place) -> str:
    where = f" in {item.party.group}" if item.party.group else ""
    return f"{item.collective.node.id} {item.op}{where}"
