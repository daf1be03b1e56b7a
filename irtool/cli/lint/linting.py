"""One call of ``irtool lint``: from paths to raw findings, through the cache and processes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from irtool.cli.inputs.begin import RunFolders
from irtool.cli.inputs.dumps import inputs_for
from irtool.cli.lint.settings import Asked
from irtool.cli.lint.units import (
    RunUnit,
    Unit,
    asking,
    can_wait,
    folded,
    run_units,
    units_of,
    with_context,
)
from irtool.cli.lint.work import (
    Plan,
    Worked,
    gathered,
    lint_unit,
    placed_key,
    text_of,
    unit_key,
    unreadable_finding,
)
from irtool.cli.report import note
from irtool.cli.work import Outcome, WorkerDied, processes_for, run_all
from irtool.cluster.context.model import RunContext
from irtool.ir.finding import Finding, Silenced
from irtool.ir.units import plural
from irtool.linting.cache import Cache
from irtool.linting.engine import Linted
from irtool.linting.rule import RunRule

_TURNS = 8
"""How often each process is given work at least, so that all end at about the same time."""
_MOST_TOGETHER = 32
"""Neighbours that one process is given at a time."""


class Linting:
    """What was found, and out of what."""

    def __init__(self, asked: Asked, plan: Plan, cache: Cache) -> None:
        self.asked = asked
        self.plan = plan
        self.cache = cache
        self.units: list[Unit] = []
        self.problems: list[Finding] = []
        self.findings: list[Finding] = []
        self.read_files = 0
        self._silenced: list[Silenced] = []
        self._totals: dict[str, int] = {}
        self._runs: list[RunUnit] = []

    @property
    def unread(self) -> bool:
        """Whether something that was named could not be opened."""
        return any(problem.severity == "error" for problem in self.problems)

    def find(
        self, paths: Sequence[str], rank: int | None, graph: int | None, all_passes: bool
    ) -> None:
        """Find the files, and what is known beside them."""
        files, problems = inputs_for(paths, rank, graph)
        self.problems += problems
        units, left_out = units_of(files, all_passes)
        if left_out:
            what = plural(left_out, "dump")
            note(f"left out {what} of other passes; --all-passes looks at them too")
        arguments, configuration = self.plan.arguments, self.plan.configuration
        machine, folders = self.plan.machine, RunFolders()
        asked = [asking(one, arguments, configuration, folders) for one in units]
        families = Counter(one.family for one in asked)
        known: list[Unit] = []
        for one in _taken(asked):
            waits = families[one.family] == 1 and can_wait(one)
            known.append(one if waits else with_context(one, machine))
        self.units = folded(known, text_of)
        self._runs = run_units(known, self.units)

    def contexts(self) -> list[tuple[Sequence[str], RunContext]]:
        """Dumps and context of each compilation whose context could be found."""
        machine = self.plan.machine
        known = [one if one.known else with_context(one, machine) for one in self.units]
        return [(one.paths, one.known) for one in known if one.known is not None]

    def work(self, jobs: int | None, bar: bool) -> None:
        """Lint what the cache does not know."""
        tasks: list[Unit | RunUnit] = [*self.units]
        run_rules = [rule for rule in self.asked.rules if isinstance(rule, RunRule)]
        if run_rules:
            tasks += self._runs
        if not self._runs:
            alone = [Silenced(rule.code, "ranks", "") for rule in run_rules]
            self._silenced += alone * len(self.units)
        else:
            self._totals = dict.fromkeys((rule.code for rule in run_rules), len(self._runs))
        plan_key = self.plan.key()
        digests: dict[str, bytes] = {}
        keys = [unit_key(plan_key, task, digests) for task in tasks]
        results: dict[int, Worked | Outcome[Worked]] = {}
        for place, (task, key) in enumerate(zip(tasks, keys, strict=True)):
            linted = self._remembered(task, key)
            if linted is not None:
                results[place] = Worked(linted, len(task.paths))
        pending = [place for place in range(len(tasks)) if place not in results]
        sizes = [sum(map(_size, tasks[place].paths)) for place in pending]
        work = partial(lint_unit, plan=self.plan)
        todo = [tasks[place] for place in pending]
        processes = processes_for(sizes, jobs) if todo else 1
        together = max(1, min(_MOST_TOGETHER, len(todo) // (_TURNS * processes)))
        outcomes = run_all(work, todo, processes, bar, together)
        results.update(zip(pending, outcomes, strict=True))
        for place, task in enumerate(tasks):
            known = self._add(task, results[place], keys[place])
            if isinstance(task, Unit) and known is not None:
                self.units[place] = replace(task, known=known)

    def _remembered(self, task: Unit | RunUnit, key: bytes | None) -> Linted | None:
        """What the cache knows of a task."""
        if key is None:
            return None
        linted = self.cache.get(key, task.paths)
        return linted or self.cache.get(placed_key(key, task), task.paths)

    def _add(
        self, task: Unit | RunUnit, result: Worked | Outcome[Worked], key: bytes | None
    ) -> RunContext | None:
        """Keep what came of a task; returns the context that was found on the way."""
        if isinstance(result, Outcome):
            try:
                worked = result.get()
            except (WorkerDied, MemoryError) as error:
                self._died(task, error)
                return None
            if key is not None and worked.read == len(task.paths):
                names_files = worked.known is not None and worked.known.contradictions
                place = placed_key(key, task) if names_files else key
                self.cache.put(place, worked.linted, task.paths)
        else:
            worked = result
        if isinstance(task, Unit):
            self.read_files += worked.read
            self.findings += [_of_ranks(finding, task) for finding in worked.linted.findings]
        else:
            self.findings += worked.linted.findings
        self._silenced += worked.linted.silenced
        return worked.known

    def _died(self, task: Unit | RunUnit, error: Exception) -> None:
        message = str(error) or "not enough memory to lint it"
        units = task.units if isinstance(task, RunUnit) else (task,)
        self.findings += [
            unreadable_finding(file, message, "try --jobs 1, or fewer files at a time", unit)
            for unit in units
            for file in unit.files
        ]

    def silenced(self) -> tuple[Silenced, ...]:
        """Rules that could not look, each with how many compilations that holds for."""
        return gathered(self._silenced, len(self.units), self._totals)


def _taken(units: list[Unit]) -> Iterator[Unit]:
    """Units in their order, each given up with what it was found from: excerpts of its dumps."""
    units.reverse()
    while units:
        yield units.pop()


def _of_ranks(finding: Finding, unit: Unit) -> Finding:
    return replace(finding, ranks=unit.ranks) if len(unit.ranks) > 1 else finding


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
