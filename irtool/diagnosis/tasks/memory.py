"""Does it fit, and what would make it less?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from irtool.cluster.memory import Memory
from irtool.cluster.what_if import Option
from irtool.cluster.what_if.plan import MemoryPlan, memory_plan
from irtool.diagnosis.diagnosis import Diagnosis, Task, diagnosis
from irtool.diagnosis.subject import Held, Reads, Subject, source_of
from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Edit, Gain
from irtool.ir.graph import Node
from irtool.ir.units import bytes_text, plural

TASK: Task = "memory"
READS: Reads = "validate"
_WORTH = 0.15
"""Part of the peak that an opportunity has to save."""
_SMALL = 1 << 30
"""Bytes of a peak below which nobody looks for savings."""
_SETTING = re.compile(r"(?:set_auto_parallel_context\()?(\w+)=(.+?)\)?")
"""A key of the parallel context with its value, as options write it."""
_MOST_LINES = 4


@dataclass(frozen=True, slots=True)
class _Remedy:
    """Options that together save so many bytes, and whether that is enough."""

    options: Sequence[Option]
    saved: int
    enough: bool


def examine(subject: Subject) -> Iterator[Diagnosis]:
    """An error where a device cannot hold what it must; opportunities of large runs.

    Args:
        subject: the run; the rank that holds most is judged, against ``memory_limit``, else against
            the machine's memory.

    Yields:
        one diagnosis at most.

    Raises:
        CannotJudge: no validate dump is whole, or nobody says for how many devices it was compiled.
    """
    worst = subject.memories[0]
    ranks, held = worst.ranks, worst.memory
    limit = subject.memory_limit or subject.machine.memory_bytes
    needed = held.device_bytes.low
    fits = held.fits(limit) is not False
    if fits and needed < _SMALL:
        return
    parallel = subject.parallel
    plan = memory_plan(
        held,
        subject.machine,
        None if fits else limit,
        parallel.stages,
        threshold=parallel.threshold << 10,
    )
    if not fits:
        yield _too_much(subject, worst, limit, _remedy(plan, needed, limit))
        return
    for saving in plan.savings:
        if saving.saved < _WORTH * needed or saving.seconds > 0:
            continue
        yield diagnosis(
            TASK,
            "info",
            f"{saving.option.how} would save {bytes_text(saving.saved)} of {bytes_text(needed)}",
            subject.command("memory", "RUN"),
            rank=ranks[0],
            ranks=ranks,
            file=worst.dump.path,
            edit=_edit([saving.option]),
            gain=Gain(bytes=saving.saved),
            share=saving.saved / limit,
        )
        return


def _too_much(subject: Subject, worst: Held, limit: int, remedy: _Remedy | None) -> Diagnosis:
    held, ranks = worst.memory, worst.ranks
    largest, node = _largest(held)
    cause = f"needs {bytes_text(held.device_bytes.low)} of a device of {bytes_text(limit)}{largest}"
    if remedy is None:
        cause += "; no switch makes it less"
    elif remedy.enough:
        cause += f"; {_lines_text(remedy.options)} makes it fit"
    else:
        cause += (
            f"; no switches make it fit: {_lines_text(remedy.options)} saves most, "
            f"{bytes_text(remedy.saved)}"
        )
    is_cure = remedy is not None and remedy.enough
    return diagnosis(
        TASK,
        "error",
        cause,
        subject.command("memory", "RUN", "--limit", bytes_text(limit).replace(" ", "")),
        rank=ranks[0],
        ranks=ranks,
        node=None if node is None else node.id,
        file=worst.dump.path,
        line=0 if node is None else node.line,
        source=source_of(node),
        edit=_edit(remedy.options) if remedy is not None and is_cure else None,
        gain=Gain(bytes=remedy.saved) if remedy is not None and is_cure else None,
    )


def _largest(held: Memory) -> tuple[str, Node | None]:
    """What takes most: groups' buffers, weights and what belongs to them, or one tensor."""
    buffers = held.communicators.bytes.low
    if buffers >= held.device_bytes.low / 2:
        groups = plural(len(held.communicators.groups), "group")
        return f", {bytes_text(buffers)} of it for buffers of {groups} (HCCL_BUFFSIZE)", None
    static = held.static_by_cause
    tensor = max(held.alive, key=lambda item: item.bytes or 0, default=None)
    kept = sum(static.values())
    if tensor is None or kept >= held.peak_bytes / 2:
        parts = sorted(static, key=lambda cause: -static[cause])[:2]
        shown = ", ".join(f"{cause} {bytes_text(static[cause])}" for cause in parts)
        return f", {bytes_text(kept)} of it for good ({shown})", None
    node = tensor.node
    more = sum(item.bytes == tensor.bytes for item in held.alive) - 1
    alike = f" (and {more} as large)" if more else ""
    return (
        f": the largest tensor at the peak is {bytes_text(tensor.bytes or 0)} of "
        f"{node.op} {node.id}{alike}",
        node,
    )


def _remedy(plan: MemoryPlan, needed: int, limit: int) -> _Remedy | None:
    """The cheapest options that together save enough, else the one that saves most."""
    if plan.combinations:
        first = plan.combinations[0]
        return _Remedy(first.options, plan.memory.peak_bytes - first.peak, True)
    enough = [one for one in plan.savings if one.saved >= needed - limit]
    best = enough[0] if enough else max(plan.savings, key=lambda one: one.saved, default=None)
    return None if best is None else _Remedy([best.option], best.saved, bool(enough))


def _lines_text(options: Sequence[Option]) -> str:
    lines = [option.how for option in options]
    rest = f" and {plural(len(lines) - _MOST_LINES, 'more line')}" if lines[_MOST_LINES:] else ""
    return "; ".join(lines[:_MOST_LINES]) + rest


def _edit(options: Sequence[Option]) -> Edit:
    """All that is to be written; one key of the parallel context as a key and its value."""
    match = _SETTING.fullmatch(options[0].how) if len(options) == 1 else None
    if match is not None:
        try:
            value = ast.literal_eval(match[2])
        except (SyntaxError, ValueError):
            value = match[2]
        is_plain = isinstance(value, (str, int, float, bool))
        return Edit(setting=match[1], value=value if is_plain else match[2])
    switches = dict.fromkeys(option.switch for option in options)
    return Edit(setting=", ".join(switches), value="; ".join(option.how for option in options))
