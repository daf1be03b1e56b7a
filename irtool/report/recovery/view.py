"""A recovery with what its command knows around it, and its answer in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.ir.units import bandwidth_text, bytes_text, plural, seconds_text
from irtool.planning.checkpoints.conversion import Conversion
from irtool.planning.recovery.files import RecoveryFile
from irtool.planning.recovery.recover import Recovery
from irtool.planning.recovery.times import Assumptions
from irtool.report.model import rows_shown


@dataclass(frozen=True, slots=True)
class RecoveryView:
    """A recovery with what the command knows around it.

    ``classes`` are ranks with equal graphs; ``cache`` says whether a compile cache is valid;
    ``fingerprints`` are those of the stages' begin dumps, up to what differs from rank to rank;
    ``file`` is the strategy file to go on with, ``conversion`` what becomes of checkpoints under it
    (None: nothing changes, or the notes say why there is none).
    """

    recovery: Recovery
    path: str
    assumptions: Assumptions
    classes: Sequence[tuple[int, ...]] = ()
    cache: str = ""
    limit: int | None = None
    notes: Sequence[str] = field(default_factory=tuple[str, ...])
    fingerprints: Mapping[int, str] = field(default_factory=dict[int, str])
    file: RecoveryFile | None = None
    conversion: Conversion | None = None

    def most(self, usual: int = 12) -> int | None:
        """How many rows of a table text shows; None: all."""
        return rows_shown(self.limit, usual)


def answer_text(view: RecoveryView) -> str:
    """What to go on with and what is lost, in one line.

    Args:
        view: the recovery.
    """
    recovery = view.recovery
    if recovery.growth is not None:
        new = sum(parameter.fate == "new" for parameter in recovery.growth.parameters)
        kept = sum(parameter.fate == "kept" for parameter in recovery.growth.parameters)
        where = (
            "only the new part is planned" if recovery.growth.is_local else "the old part changes"
        )
        return f"{plural(new, 'parameter')} to initialise, {kept:,} kept; {where}"
    if not recovery.has_change:
        return _before_failure(recovery)
    target = f"go on with {plural(recovery.target, 'device')}"
    if recovery.stages != recovery.context.stages:
        target += f" in {plural(recovery.stages, 'stage')}"
    if recovery.lost:
        return (
            f"{target} from a checkpoint: {plural(len(recovery.lost), 'slice')} have no holder left"
        )
    if not recovery.old.items:
        return f"{target}: nothing is known of who holds what"
    if recovery.old.unknown or recovery.old.missing:
        return f"{target}: nothing is lost of what is known; not all is"
    if recovery.moves is None:
        return f"{target}: every slice has a holder left"
    moved = recovery.moves.peer_bytes
    return f"{target}: everything survives, {bytes_text(moved)} move between devices"


def _before_failure(recovery: Recovery) -> str:
    if not recovery.weak:
        return "nothing is known of who holds what"
    least = len(recovery.weak[0].units)
    if least == 1:
        return "the loss of a single rank cannot be repaired from peers"
    any_of = "any single rank" if least == 2 else f"any {least - 1} ranks"
    return f"the loss of {any_of} can be repaired from peers"


def assumptions_text(a: Assumptions, machine: Machine) -> str:
    """What the times of a recovery rest on.

    Args:
        a: seconds of starting, joining groups and compiling, bandwidth of storage, the step.
        machine: bandwidths of its links.
    """
    links = ", ".join(
        f"{bandwidth_text(level.bandwidth)} over {level.name}" for level in machine.levels
    )
    return (
        f"{seconds_text(a.start_seconds)} to start, {seconds_text(a.group_seconds)} a group and "
        f"{seconds_text(a.rank_seconds)} a member, {seconds_text(a.statement_seconds)} to "
        "compile a statement, "
        f"{links}, {bandwidth_text(a.storage_bandwidth)} from storage, "
        f"{seconds_text(a.step_seconds)} a step, {a.checkpoint_steps} steps between checkpoints"
    )
