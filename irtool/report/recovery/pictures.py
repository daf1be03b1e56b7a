"""Pictures of a recovery: which devices do what, and what each of them needs."""

from __future__ import annotations

from collections import Counter

from irtool.ir.units import bytes_text, plural
from irtool.planning.recovery.recover import Recovery
from irtool.planning.recovery.reshard import Move, Resharding
from irtool.report.model import Element, Picture
from irtool.report.page.charts import bars, cells

_MOST_ROWS = 64
_STATES = ("goes on", "lost", "idle", "joined")
_GOES_ON, _LOST, _IDLE, _JOINED = range(4)


def pictures(recovery: Recovery) -> list[Element]:
    """Which devices do what, and where the state of each new rank comes from.

    Args:
        recovery: with lost devices, or with slices to move; else nothing is drawn.
    """
    drawn: list[Element] = []
    if recovery.request.lost or recovery.moves is not None:
        drawn.append(_devices(recovery))
    if recovery.moves is not None and recovery.moves.moves:
        drawn.append(_needs(recovery.moves))
    return drawn


def _devices(recovery: Recovery) -> Picture:
    """The devices of each server: lost, going on as which rank, idle, new."""
    moves = recovery.moves.moves if recovery.moves is not None else ()
    plays = {move.device: move for move in moves if move.device is not None}
    boxes = [
        _device(rank, rank in recovery.request.lost, plays.get(rank), bool(moves))
        for rank in range(recovery.context.devices)
    ]
    size = recovery.request.server
    rows = [
        (f"server {start // size}", boxes[start : start + size])
        for start in range(0, len(boxes), size)
    ]
    joined = [move for move in moves if move.device is None]
    if joined:
        rows.append(("joined", [(str(m.rank), _JOINED, f"new: rank {m.rank}") for m in joined]))
    counts = Counter(series for _, row in rows for _, series, _ in row)
    described = ", ".join(
        f"{counts[index]} {state}" for index, state in enumerate(_STATES) if counts[index]
    )
    note = "numbers are ranks of the run before; point at a device for its new one"
    if len(rows) > _MOST_ROWS:
        note += f"; {plural(len(rows) - _MOST_ROWS, 'server')} more"
    return Picture("Devices", cells(rows[:_MOST_ROWS], _STATES), described, note)


def _device(rank: int, is_lost: bool, move: Move | None, moves: bool) -> tuple[str, int, str]:
    if is_lost:
        return str(rank), _LOST, f"rank {rank}: lost"
    if move is not None:
        return str(rank), _GOES_ON, f"rank {rank} goes on as rank {move.rank}"
    if moves:
        return str(rank), _IDLE, f"rank {rank}: not needed"
    return str(rank), _GOES_ON, f"rank {rank} goes on"


def _needs(moves: Resharding) -> Picture:
    """Where the state of each new rank comes from."""
    wanted = sorted(moves.moves, key=lambda move: (-(move.lost + move.peers), move.rank))
    shown = sorted(wanted[:_MOST_ROWS], key=lambda move: move.rank)
    rows = [
        (f"rank {move.rank}", [float(move.local), float(move.peers), float(move.lost)])
        for move in shown
    ]
    described = (
        f"{bytes_text(moves.peer_bytes)} come from other devices, "
        f"{bytes_text(sum(move.lost for move in moves.moves))} from a checkpoint"
    )
    left = len(wanted) - len(shown)
    note = described + (f"; {plural(left, 'rank')} that need less are not shown" if left else "")
    names = ["there already", "from other devices", "from a checkpoint"]
    return Picture("What each new rank needs", bars(rows, "bytes", names), described, note)
