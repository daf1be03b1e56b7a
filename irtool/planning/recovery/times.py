"""How long it takes until training goes on: a model of stated assumptions, not a measurement."""

from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.dataclass import dataclass
from irtool.planning.recovery.reshard import Resharding


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the model takes for granted; every one can be given.

    Attributes:
        start_seconds: to notice the failure, to get devices, and to start the processes.
        group_seconds: to build one communication group; ``rank_seconds`` for each of its ranks.
        statement_seconds: the compiler's front end for one statement (measured on a slow machine:
            44 ms).
        link_bandwidth: bytes a second over a link between servers, in place of the machine's; 0:
            that of the machine.
        storage_bandwidth: bytes a second that all devices together read from storage.
        step_seconds: of one training step; 0 where nobody says.
        checkpoint_steps: steps between checkpoints; 0 where nobody says.
        data_bytes: state that is not parameters (data set position, buffers), read from storage.
    """

    start_seconds: float = 60.0
    group_seconds: float = 0.05
    rank_seconds: float = 0.01
    statement_seconds: float = 0.044
    link_bandwidth: float = 0.0
    storage_bandwidth: float = 10e9
    step_seconds: float = 0.0
    checkpoint_steps: int = 0
    data_bytes: int = 0


@dataclass(frozen=True, slots=True)
class RecoveryTime:
    """Seconds by cause, for one way to get the state back."""

    start: float
    groups: float
    compile: float
    state: float
    data: float
    lost_steps: float

    @property
    def total(self) -> float:
        """All of it, one after the other."""
        return sum(seconds for _, seconds in self.terms())

    @property
    def largest(self) -> str:
        """The cause that takes longest."""
        return max(self.terms(), key=lambda term: term[1])[0]

    def terms(self) -> tuple[tuple[str, float], ...]:
        """Each cause with its seconds, one after the other."""
        return (
            ("start", self.start),
            ("groups", self.groups),
            ("compile", self.compile),
            ("state", self.state),
            ("data", self.data),
            ("lost steps", self.lost_steps),
        )


@dataclass(frozen=True, slots=True)
class TimeComparison:
    """Restore from peers against restart from a checkpoint.

    ``peers`` is None where some slice has no holder left, or nobody knows; ``checkpoint_bytes`` is
    what a checkpoint holds, ``store_seconds`` how long it takes to write one.
    """

    peers: RecoveryTime | None
    checkpoint: RecoveryTime
    checkpoint_bytes: int
    store_seconds: float


def compare_times(
    assumptions: Assumptions,
    groups: Sequence[int],
    statements: int,
    moves: Resharding | None,
    state_bytes: int,
    is_partial: bool = False,
) -> TimeComparison:
    """Both ways to go on.

    Args:
        assumptions: rates.
        groups: sizes of the groups that one rank builds, of the rank that has most to do: each
            builds its own, one after the other.
        statements: of the graph to compile; 0 where a compile cache is valid.
        moves: what peers send; None where the new layout is not known.
        state_bytes: of all parameters and their state, each counted once.
        is_partial: some parameters' holders are not known, so nobody can say that peers have all.
    """
    a = assumptions
    build = len(groups) * a.group_seconds + sum(groups) * a.rank_seconds
    compile_seconds = statements * a.statement_seconds
    data = a.data_bytes / a.storage_bandwidth
    from_storage = state_bytes / a.storage_bandwidth
    restart = RecoveryTime(
        a.start_seconds,
        build,
        compile_seconds,
        from_storage,
        data,
        a.checkpoint_steps * a.step_seconds / 2,
    )
    peers: RecoveryTime | None = None
    if moves is not None and not moves.lost_bytes and not is_partial:
        peers = RecoveryTime(
            a.start_seconds,
            build,
            compile_seconds,
            moves.seconds,
            data,
            a.step_seconds,  # the step that was running is done again
        )
    return TimeComparison(peers, restart, state_bytes, from_storage)
