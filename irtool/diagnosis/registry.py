"""The tasks: every module of :mod:`irtool.diagnosis.tasks` is one.

A task's module has ``TASK``, its name, ``READS``, what it needs (tasks that read the same are done
in one process), and ``examine(subject)``, which gives what it finds.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module

from irtool.diagnosis import tasks
from irtool.diagnosis.diagnosis import Diagnosis, Task
from irtool.diagnosis.subject import Reads, Subject
from irtool.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RegisteredTask:
    """A task as its module declares it.

    Attributes:
        name: ``TASK`` of the module.
        reads: ``READS``, the files that it needs most of.
        examine: gives its diagnoses of a run; raises ``CannotJudge`` where what it needs isn't
            there.
    """

    name: Task
    reads: Reads
    examine: Callable[[Subject], Iterable[Diagnosis]]


@cache
def all_tasks() -> tuple[RegisteredTask, ...]:
    """Every task, in the order of its module's name."""
    registered: list[RegisteredTask] = []
    for info in pkgutil.iter_modules(tasks.__path__):
        module = import_module(f"{tasks.__name__}.{info.name}")
        registered.append(RegisteredTask(module.TASK, module.READS, module.examine))
    return tuple(registered)
