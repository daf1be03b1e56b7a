"""Does it fit, and what would make it less?"""

from __future__ import annotations

from collections.abc import Iterator

from irtool.cluster.memory_plan import MemoryPlan, memory_plan
from irtool.cluster.what_if import Option
from irtool.diagnosis.diagnosis import Diagnosis, Task, diagnosis
from irtool.diagnosis.subject import Reads, Subject
from irtool.ir.finding import Edit, Gain
from irtool.ir.units import bytes_text

TASK: Task = "memory"
READS: Reads = "validate"
_WORTH = 0.15
"""Part of the peak that an opportunity has to save."""
_SMALL = 1 << 30
"""Bytes of a peak below which nobody looks for savings."""


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """An error where a device cannot hold what it must; opportunities of large runs."""
    worst = subject.memories[0]
    ranks, held = worst.ranks, worst.memory
    limit = subject.memory_limit or subject.machine.memory_bytes
    needed = held.device_bytes.low
    fits = held.fits(limit) is not False
    if fits and needed < _SMALL:
        return
    stages = subject.parallel.stages
    plan = memory_plan(held, subject.machine, None if fits else limit, stages)
    command = subject.command("memory", "RUN")
    if not fits:
        best = _enough(plan, needed - limit)
        edit, gain = _edit(best)
        how = f": {best[0].how}" if best else ""
        yield diagnosis(
            TASK,
            "error",
            f"needs {bytes_text(needed)} of a device of {bytes_text(limit)}{how}",
            (*command, "--limit", bytes_text(limit).replace(" ", "")),
            rank=ranks[0],
            ranks=ranks,
            file=worst.dump.path,
            edit=edit,
            gain=gain,
        )
        return
    for saving in plan.savings:
        if saving.saved < _WORTH * needed or saving.seconds > 0:
            continue
        edit, _ = _edit([saving.option])
        yield diagnosis(
            TASK,
            "info",
            f"{saving.option.how} would save {bytes_text(saving.saved)} of {bytes_text(needed)}",
            command,
            rank=ranks[0],
            ranks=ranks,
            file=worst.dump.path,
            edit=edit,
            gain=Gain(bytes=saving.saved),
            share=saving.saved / limit,
        )
        return


def _enough(plan: MemoryPlan, wanted: int) -> list[Option]:
    """The cheapest options that together save enough, else the one that saves most."""
    if plan.combinations:
        return list(plan.combinations[0].options)
    enough = [one for one in plan.savings if one.saved >= wanted]
    if enough:
        return [enough[0].option]
    return [max(plan.savings, key=lambda one: one.saved).option] if plan.savings else []


def _edit(options: list[Option]) -> tuple[Edit | None, Gain | None]:
    if not options:
        return None, None
    first = options[0]
    value = f"{first.target}: {first.how}" if first.target else first.how
    return Edit(setting=first.switch, value=value), None
