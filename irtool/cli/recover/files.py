"""What ``irtool recover`` hands over: strategy file, job, and what becomes of checkpoints."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from irtool.cli.jobs import JobWords, written_job
from irtool.cli.plan.asked import json_file
from irtool.cli.recover.options import RecoverForm, RecoverOptions
from irtool.cli.report import Failure, note
from irtool.ir.dataclass import dataclass

if TYPE_CHECKING:
    from irtool.artefacts.strategies.model import StrategyFile
    from irtool.cli.inputs.stages import Inputs
    from irtool.planning.checkpoints.conversion import Conversion
    from irtool.planning.recovery.files import RecoveryFile
    from irtool.planning.recovery.recover import Recovery


def plan_text(recovery: Recovery, read: Inputs, asked: RecoverOptions) -> str:
    """The plan as a strategy file, or as a job that carries it.

    Args:
        recovery: the plan, and where it leads.
        read: the run that it is for.
        asked: with the format, and what a job is called.

    Raises:
        Failure: no such file can hold it.
    """
    if asked.format is RecoverForm.strategy:
        return _strategy(recovery, read, asked)
    words = JobWords(asked.name, asked.image, asked.command, asked.servers)
    dumps = recovery.plan.network if recovery.plan is not None else read.begins
    if not dumps:
        raise Failure("without a begin dump there is no plan", "--format msjob")
    job = written_job(
        words,
        next(iter(dumps.values())),
        recovery.target,
        recovery.context.target,
        lambda: _strategy(recovery, read, asked),
    )
    return job.text


def _strategy(recovery: Recovery, read: Inputs, asked: RecoverOptions) -> str:
    from irtool.planning.files.strategy_files import NotExpressible
    from irtool.planning.recovery.files import recovery_file

    keys = asked.keys.value if asked.keys is not None else None
    try:
        made = recovery_file(recovery, read.begins, keys, json_file(asked.names))
    except NotExpressible as error:
        hint = "--keys parameters" if keys == "operators" else "irtool plan --format shard"
        raise Failure(str(error), "--format strategy", hint=hint) from None
    note(f"keyed by {made.keys}")
    for text in made.notes:
        note(text)
    return made.text


@dataclass(frozen=True, slots=True, eq=False)
class HandedOver:
    """What the answer says of files; ``notes``: why something is missing."""

    file: RecoveryFile | None = None
    conversion: Conversion | None = None
    notes: tuple[str, ...] = ()


def handed_over(recovery: Recovery, read: Inputs, path: str) -> HandedOver:
    """The strategy file of a plan that changes something, and what becomes of checkpoints.

    Args:
        recovery: the plan, and where it leads.
        read: the run that it is for.
        path: of that run, where strategy files may lie.

    Returns:
        Empty where nothing changes; a note says what cannot be handed over.
    """
    from irtool.artefacts.cuts import Refused
    from irtool.planning.checkpoints.recovered import checkpoint_conversion
    from irtool.planning.files.parameter_layouts import UnknownLayout
    from irtool.planning.files.strategy_files import NotExpressible
    from irtool.planning.recovery.files import recovery_file

    if not recovery.alternatives:
        return HandedOver()
    try:
        made = recovery_file(recovery, read.begins)
    except NotExpressible as error:
        return HandedOver(notes=(f"no strategy file can hold this plan: {error}",))
    try:
        conversion = checkpoint_conversion(recovery, read.begins, made.file, _saved(path, recovery))
    except (Refused, UnknownLayout) as error:
        return HandedOver(made, notes=(f"what becomes of checkpoints is not known: {error}",))
    return HandedOver(made, conversion)


def _saved(path: str, recovery: Recovery) -> StrategyFile | None:
    """The strategy file that the run left, if it is of these devices."""
    from irtool.artefacts.errors import ArtefactError
    from irtool.cli.inputs.strategies import saved_in_run

    if not os.path.isdir(path):
        return None
    try:
        saved = saved_in_run(path)
    except (ArtefactError, Failure) as error:
        note(f"the strategy files of the run are not read: {error}")
        return None
    of_run = recovery.context.devices, recovery.context.stages
    if saved is None or (saved.devices, saved.stages) == of_run:
        return saved
    note(f"{saved.path} is for {saved.devices} devices, not for the run's {of_run[0]}: not read")
    return None
