"""The examination of a run: every task behind a guard, alike causes told once, all ranked."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import field, replace

from irtool.diagnosis.damage import damaged, look_at_ends
from irtool.diagnosis.diagnosis import CannotJudge, Diagnosis, NotJudged, Task, ranked
from irtool.diagnosis.figures import Figures, figures_of_begin, peak
from irtool.diagnosis.registry import RegisteredTask, all_tasks
from irtool.diagnosis.subject import BEGIN, END, VALIDATE, Subject, total_bytes
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown
from irtool.ir.finding import SEVERITIES, Finding
from irtool.ir.units import ranks_text

_WORTH_PROCESSES = 24 << 20
"""Bytes of dumps from which on processes side by side are quicker than one."""
_COVERS: dict[Task, tuple[Task, ...]] = {
    "hang": ("group",),
    "strategy": ("compile-failure",),
    "compile-failure": ("failed-node",),
}
"""Where the first is an error, findings of the others only follow from it or tell it again."""

_OPTIMIZER = "enable_parallel_optimizer"
_HELD_WHOLE = ("MEM001", "MEM002")
"""Rules whose cause that switch mends."""

Progress = Callable[[str, int, int], None]
"""Told what is done: its name, how many parts are done, of how many."""


@dataclass(frozen=True)
class Examination(Shown):
    """What the doctor says of a run.

    Attributes:
        path: the folder.
        findings: ranked.
        not_judged: tasks that nothing could be said about, and why.
        figures: what a person wants to know of a run first.
    """

    path: str
    findings: tuple[Diagnosis, ...]
    not_judged: tuple[NotJudged, ...]
    figures: Figures

    @property
    def is_healthy(self) -> bool | None:
        """Whether nothing is worse than an opportunity; None where a part was not judged."""
        if any(item.severity != "info" for item in self.findings):
            return False
        judged = all(item.task in _NEED_NO_VERDICT for item in self.not_judged)
        return True if judged else None


_NEED_NO_VERDICT = ("loss", "precision", "compile-failure", "failed-node")
"""Tasks that most healthy runs leave nothing for: no other side, no log of a failure."""


@dataclass
class _Outcome:
    diagnoses: list[Diagnosis] = field(default_factory=list[Diagnosis])
    not_judged: list[NotJudged] = field(default_factory=list[NotJudged])
    figures: Figures | None = None
    peak: tuple[int, int] | None = None
    damage: dict[str, Finding] = field(default_factory=dict[str, Finding])


def examine(
    subject: Subject,
    tasks: Sequence[Task] = (),
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Examination:
    """Ask a run everything that its folder allows.

    Args:
        subject: the run.
        tasks: which; all of them if empty.
        jobs: processes at most; None: as many as there are processors.
        progress: told after each part.

    Raises:
        ContextError: what was asked for of the context makes no sense.
    """
    chosen = [task for task in all_tasks() if not tasks or task.name in tasks]
    parts = _parts(chosen)
    reads = {task.reads for task in chosen}
    dumps = [*(BEGIN,) * ("begin" in reads), *(VALIDATE,) * ("validate" in reads)]
    subject.read_first(dumps)
    with suppress(CannotJudge):  # whichever task needs it says so
        _ = subject.context
    look_at_ends(subject, [*dumps, *(END,) * ("begin" in reads)])
    outcomes: list[_Outcome] = []
    for number, result in enumerate(_results(subject, parts, jobs), 1):
        outcomes.append(result)
        if progress is not None:
            progress(", ".join(task.name for task in parts[number - 1]), number, len(parts))
    diagnoses = [item for part in outcomes for item in part.diagnoses]
    damage = {path: problem for part in outcomes for path, problem in part.damage.items()}
    diagnoses += damaged(subject, damage)
    made = next((part.figures for part in outcomes if part.figures is not None), Figures())
    peaks = [part.peak for part in outcomes if part.peak is not None]
    if peaks:
        made = replace(made, peak=peaks[0][0], communicators=peaks[0][1])
    return Examination(
        subject.path,
        ranked(_folded(_told_once(_uncovered(diagnoses)))),
        tuple(
            sorted((item for part in outcomes for item in part.not_judged), key=lambda i: i.task)
        ),
        made,
    )


def _parts(chosen: Iterable[RegisteredTask]) -> list[list[RegisteredTask]]:
    """Tasks by what they read, so that nothing is read twice."""
    parts: dict[str, list[RegisteredTask]] = {}
    for task in chosen:
        parts.setdefault(task.reads, []).append(task)
    return [parts[name] for name in sorted(parts, key=lambda name: name != "begin")]


def _results(
    subject: Subject, parts: Sequence[Sequence[RegisteredTask]], jobs: int | None
) -> Iterable[_Outcome]:
    """What each part tells, in their order."""
    count = min(jobs or os.cpu_count() or 1, len(parts))
    with_fork = "fork" in multiprocessing.get_all_start_methods()
    if count > 1 and with_fork and total_bytes(subject.run) >= _WORTH_PROCESSES:
        if {"begin", "validate"} <= {task.reads for part in parts for task in part}:
            with suppress(CannotJudge, ValueError, LookupError):
                _ = subject.cost  # which both need: processes that are forked now have it
        names: list[tuple[Task, ...]] = [tuple(task.name for task in part) for part in parts]
        context = multiprocessing.get_context("fork")
        gc.freeze()  # a collection in a child would copy every page of what it inherits
        with context.Pool(count, _remember, (subject,)) as pool:
            yield from pool.imap(_in_child, names)
        gc.unfreeze()
        return
    for part in parts:
        yield _part(subject, part)


_subjects: list[Subject] = []


def _remember(subject: Subject) -> None:
    if hasattr(signal, "SIGTERM"):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the pool ends idle processes by it
    _subjects.append(subject)


def _in_child(names: Sequence[Task]) -> _Outcome:
    return _part(_subjects[-1], [task for task in all_tasks() if task.name in names])


def _part(subject: Subject, part: Sequence[RegisteredTask]) -> _Outcome:
    outcome = _Outcome()
    for task in part:
        try:
            outcome.diagnoses += task.examine(subject)
        except CannotJudge as reason:
            outcome.not_judged.append(NotJudged(task.name, str(reason)))
        except (MemoryError, RecursionError):
            outcome.not_judged.append(NotJudged(task.name, "it is too large"))
        except Exception as error:
            if os.environ.get("IRTOOL_DEBUG"):
                raise
            why = f"internal error: {type(error).__name__}: {error}; please report it"
            outcome.not_judged.append(NotJudged(task.name, why))
    if any(task.reads == "begin" for task in part):
        outcome.figures = figures_of_begin(subject)
    if any(task.reads == "validate" for task in part):
        outcome.peak = peak(subject)
    outcome.damage = subject.damage
    return outcome


def _uncovered(diagnoses: list[Diagnosis]) -> list[Diagnosis]:
    """Without what only follows from a graver finding."""
    wrong = {item.task for item in diagnoses if item.severity == "error"}
    covered = {task for first, others in _COVERS.items() if first in wrong for task in others}
    if "strategy" in wrong:
        covered.add("failed-node")  # what was refused left no later dump
    refused = {item.op for item in diagnoses if item.task == "strategy"}
    return [
        item
        for item in diagnoses
        if item.task not in covered or (_names_another(item, refused) and None not in refused)
    ]


def _names_another(item: Diagnosis, refused: set[str | None]) -> bool:
    """Whether a log tells of the refusal of another operator than was found in the dump."""
    return item.task == "compile-failure" and item.op is not None and item.op not in refused


def _told_once(diagnoses: list[Diagnosis]) -> list[Diagnosis]:
    """Weights that are held whole told by the task that proposes the switch, not by rules again.

    It is as grave as the rules say: there is one severity of one cause.
    """
    rules = [item for item in diagnoses if item.task == "lint" and item.message[:6] in _HELD_WHOLE]
    switches = [
        item for item in diagnoses if item.edit is not None and item.edit.setting == _OPTIMIZER
    ]
    if not rules or not switches:
        return diagnoses
    gravest = min((item.severity for item in (*rules, *switches)), key=SEVERITIES.index)
    return [
        replace(item, severity=gravest) if item in switches else item
        for item in diagnoses
        if item not in rules
    ]


def _folded(diagnoses: Iterable[Diagnosis]) -> list[Diagnosis]:
    """What several ranks have alike, told once."""
    alike: dict[tuple[object, ...], list[Diagnosis]] = {}
    for item in diagnoses:
        key = (item.task, item.severity, item.message, item.edit)
        alike.setdefault(key, []).append(item)
    return [_together(items) for items in alike.values()]


def _together(items: Sequence[Diagnosis]) -> Diagnosis:
    ranks = {rank for item in items for rank in (*item.ranks, item.rank) if rank is not None}
    first = min(items, key=lambda item: (item.rank is None, item.rank or 0))
    return replace(first, ranks=tuple(sorted(ranks)))


def ranks_of(item: Diagnosis) -> str:
    """``1`` or ``0-3``; empty where it is the whole run's.

    Args:
        item: a finding; its ``ranks`` are written.
    """
    return ranks_text(item.ranks) if item.ranks else ""
