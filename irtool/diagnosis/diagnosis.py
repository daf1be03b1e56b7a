"""What the doctor finds: one cause, where it is, what mends it, and what that is worth."""

from __future__ import annotations

import shlex
from typing import Literal, TypeAlias, cast

from irtool.ir.dataclass import dataclass
from irtool.ir.finding import SEVERITIES, Edit, Finding, Gain, Severity, SourceLine

Task: TypeAlias = Literal[
    "hang", "memory", "slow-step", "slow-compile", "compile-failure", "strategy", "group",
    "stage-balance", "recompute", "redistribution", "loss", "precision", "failed-node", "lint",
]  # fmt: skip
"""What a run is asked for."""

IN_STRATEGY = "in_strategy"
"""The argument of ``shard()`` by which an edit sets the strategy of the finding's operator."""

TASKS: tuple[Task, ...] = (
    "failed-node", "compile-failure", "strategy", "hang", "group", "precision", "loss", "memory",
    "stage-balance", "recompute", "redistribution", "slow-step", "slow-compile", "lint",
)  # fmt: skip
"""In the order in which findings of one severity are told: what stops a run before what slows it
down, and causes before what may follow from them."""


@dataclass(frozen=True, slots=True)
class Diagnosis(Finding):
    """One thing that is wrong with a run, or that could be better; its code is the task's name.

    An error stops the run or makes its numbers wrong, a warning costs time or memory that nobody
    meant to spend, an info is an opportunity.  ``rank`` is the first of ``ranks``; None where it is
    the whole run's.

    Attributes:
        arguments: the command that shows more.
        since: the step or pass from which on it is there.
        weight: orders findings of one task and severity, the largest first.
        no_edit: why there is no edit, where one would be expected.
        share: of an opportunity, the part that it saves of a step, of a device's memory or of the
            graph: orders infos of all tasks, the largest first.
    """

    arguments: tuple[str, ...] = ()
    since: str = ""
    weight: float = 0.0
    share: float = 0.0
    no_edit: str = ""

    @property
    def task(self) -> Task:
        """The task that found it: its code."""
        return cast("Task", self.code)


def diagnosis(
    task: Task,
    severity: Severity,
    cause: str,
    command: tuple[str, ...],
    *,
    rank: int | None = None,
    ranks: tuple[int, ...] = (),
    node: str | None = None,
    op: str | None = None,
    file: str = "",
    line: int = 0,
    source: SourceLine | None = None,
    edit: Edit | None = None,
    gain: Gain | None = None,
    since: str = "",
    weight: float = 0.0,
    share: float = 0.0,
    no_edit: str = "",
) -> Diagnosis:
    """What a task found; see :class:`Diagnosis`.

    Args:
        task: whose finding it is.
        severity: error, warning or info.
        cause: what is wrong, in one sentence.
        command: the words of the command that shows more; they are quoted for a shell.
        rank: the first rank that it holds for; None where it is the whole run's.
        ranks: all of them.
        node: ``%4``.
        op: the operator, where an edit or another task has to know it.
        file: the dump, log or other file.
        line: in the file, from 1; 0 where it belongs to all of it.
        source: the user's line of Python.
        edit: the change of a line or setting that mends it.
        gain: what that saves: seconds a step, bytes of a device.
        since: the step (``step 12``) or pass from which on it is there.
        weight: orders findings of one task and severity, the largest first.
        share: of an info, the part (0 to 1) of the step, memory or graph that it saves.
        no_edit: why there is no edit; dropped where there is one.
    """
    return Diagnosis(
        task, severity, cause, file, line, node=node, op=op, source=source, edit=edit, gain=gain,
        command=shlex.join(command), rank=rank, ranks=ranks, arguments=command, since=since,
        weight=weight, share=share, no_edit="" if edit is not None else no_edit,
    )  # fmt: skip


def strategy_edit(source: SourceLine | None, old: str, new: str) -> Edit:
    """Another strategy: in the line of Python where it stands there, else as what to set.

    A dump knows the line that calls an operator; ``shard()`` mostly stands in another.

    Args:
        source: the user's line that calls the operator; None where the dump names none.
        old: the strategy that is refused or worse, as Python writes it: ``((4, 2), (2, 1))``.
        new: the one to write instead.
    """
    if source is not None and old in source.text:
        return Edit(file=source.path, line=source.line, old=old, new=new)
    return Edit(setting=IN_STRATEGY, value=new)


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A task that nothing could be said about, and why."""

    task: Task
    why: str


class CannotJudge(Exception):
    """Raised by a task where what it needs isn't there; the text says what."""


def ranked(diagnoses: list[Diagnosis]) -> tuple[Diagnosis, ...]:
    """The gravest first; what stops a run before what slows it down, chances by what they save.

    Args:
        diagnoses: of all tasks, in any order.

    Returns:
        all of them by severity, infos by the share that they save, then in the order of ``TASKS``,
        by weight, rank and line.
    """
    return tuple(
        sorted(
            diagnoses,
            key=lambda item: (
                SEVERITIES.index(item.severity), -item.share if item.severity == "info" else 0.0,
                TASKS.index(item.task), -item.weight, item.rank or 0, item.line,
            ),
        )
    )  # fmt: skip
