"""What was tried, by revision, command and mutator; and what of it counts as clean.

A finding of a command takes back everything that the command was tried with on that revision and
before it: only what ran later ran on code in which the finding is mended.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks.fuzzing.case import READ
from benchmarks.fuzzing.material import LARGE
from benchmarks.fuzzing.trial import Outcome

_SCHEMA = "irtool.fuzz/2"
_BAR = " | "
_COUNTERS = ("cells", "formats", "statuses", "findings", "guarded")


@dataclass(slots=True)
class Tally:
    """What one revision was tried with.

    Attributes:
        revision: of the code.
        started: when it was first tried, in UTC; revisions are ordered by it.
        cells: cases by ``command | mutator | small`` or ``large``.
        formats: cases by ``command | format``.
        statuses: cases by ``command | exit status``.
        findings: by ``command | signature``.
        guarded: operators that the guard took for "could not be judged", by what went wrong.
        again: cases that were run twice.
        seconds: processor time of the cases.
    """

    revision: str
    started: str = ""
    cells: Counter[str] = field(default_factory=Counter[str])
    formats: Counter[str] = field(default_factory=Counter[str])
    statuses: Counter[str] = field(default_factory=Counter[str])
    findings: Counter[str] = field(default_factory=Counter[str])
    guarded: Counter[str] = field(default_factory=Counter[str])
    again: int = 0
    seconds: float = 0.0

    def add(self, told: Mapping[str, Any], outcome: Outcome) -> None:
        """Count one case."""
        command = told["command"]
        size = "large" if told["size"] >= LARGE else "small"
        self.cells[_BAR.join((command, told["mutator"], size))] += 1
        self.formats[command + _BAR + told["format"]] += 1
        self.statuses[f"{command}{_BAR}{outcome.status}"] += 1
        self.guarded.update(outcome.guarded)
        self.seconds += outcome.seconds
        if outcome.kind != "clean":
            self.findings[command + _BAR + outcome.signature] += 1


@dataclass(slots=True)
class State:
    """Where the runs that share a folder stand.

    Attributes:
        seeds: the next case of each seed.
        tallies: by revision, in the order in which they were tried.
    """

    seeds: dict[str, int] = field(default_factory=dict[str, int])
    tallies: dict[str, Tally] = field(default_factory=dict[str, Tally])

    @classmethod
    def read(cls, path: Path) -> State:
        """The state that an earlier run left, or a fresh one.

        Raises:
            ValueError: another version of the driver wrote it.
        """
        if not path.is_file():
            return cls()
        told = json.loads(path.read_text(encoding="utf-8"))
        if told.get("schema") != _SCHEMA:
            raise ValueError(f"{path} was written by another version of the driver")
        tallies: list[Tally] = []
        for each in told["revisions"]:
            tally = Tally(each["revision"], each["started"])
            for name in _COUNTERS:
                getattr(tally, name).update(each[name])
            tally.again, tally.seconds = each["again"], each["seconds"]
            tallies.append(tally)
        return cls(told["seeds"], {each.revision: each for each in tallies})

    def write(self, path: Path) -> None:
        """Keep it, at once or not at all."""
        revisions = [
            {name: getattr(each, name) for name in Tally.__slots__}
            for each in self.tallies.values()
        ]
        told = {"schema": _SCHEMA, "seeds": self.seeds, "revisions": revisions}
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        beside.replace(path)

    def of(self, revision: str) -> Tally:
        """The tally of a revision, the first time an empty one."""
        if revision not in self.tallies:
            now = datetime.now(timezone.utc).isoformat(timespec="seconds")
            self.tallies[revision] = Tally(revision, now)
        return self.tallies[revision]


def merged(states: Iterable[State]) -> list[Tally]:
    """The tallies of several folders, by revision, in the order in which they were first tried."""
    found: dict[str, Tally] = {}
    for state in states:
        for tally in state.tallies.values():
            into = found.setdefault(tally.revision, Tally(tally.revision, tally.started))
            into.started = min(into.started, tally.started)
            for name in _COUNTERS:
                getattr(into, name).update(getattr(tally, name))
            into.again += tally.again
            into.seconds += tally.seconds
    return sorted(found.values(), key=lambda each: each.started)


def clean_cells(tallies: Sequence[Tally]) -> Counter[tuple[str, str, str]]:
    """Cases by command, mutator and size that ran after the last finding of their command.

    Args:
        tallies: in the order in which the revisions were tried.
    """
    last: dict[str, int] = {}
    for number, tally in enumerate(tallies):
        for finding in tally.findings:
            last[finding.partition(_BAR)[0]] = number
    cells: Counter[tuple[str, str, str]] = Counter()
    for number, tally in enumerate(tallies):
        for cell, count in tally.cells.items():
            command, mutator, size = cell.split(_BAR)
            if number > last.get(command, -1):
                cells[command, mutator, size] += count
    return cells


def report(tallies: Sequence[Tally], mutators: Sequence[str]) -> Iterator[str]:
    """Lines for people: what is clean, by command and by mutator, and what was found.

    Args:
        tallies: in the order in which the revisions were tried.
        mutators: the mutations of dumps, which every command has to meet.
    """
    cells = clean_cells(tallies)
    tried = sum((tally.cells for tally in tallies), Counter[str]())
    of_reads, of_analyses = Counter[str](), Counter[str]()
    for (command, _, size), count in cells.items():
        (of_reads if command == READ else of_analyses)[size] += count
    yield (
        f"clean since the last finding of the command: {of_reads.total():,} reads "
        f"({of_reads['large']:,} of more than 1 MB), {of_analyses.total():,} analyses "
        f"({of_analyses['large']:,}); of {tried.total():,} cases in all, "
        f"{sum(tally.again for tally in tallies):,} of them run twice, "
        f"{sum(tally.seconds for tally in tallies):,.0f} s of processor time"
    )
    yield ""
    yield f"{'command':18} {'clean':>8} {'large':>7}   mutators of dumps met, large; fewest a cell"
    for command in sorted({cell.split(_BAR)[0] for cell in tried}):
        sizes = Counter[str]()
        for (name, _, size), count in cells.items():
            if name == command:
                sizes[size] += count
        counts = {
            size: [cells[command, mutator, size] for mutator in mutators]
            for size in ("small", "large")
        }
        both = [one + other for one, other in zip(counts["small"], counts["large"], strict=True)]
        met, met_large = (sum(map(bool, each)) for each in (both, counts["large"]))
        yield (
            f"{command:18} {sizes.total():8,} {sizes['large']:7,}   "
            f"{met} and {met_large} of {len(mutators)}; {min(both)}"
        )
    yield ""
    yield f"{'mutator':28} {'reads':>8} {'large':>7} {'analyses':>9} {'large':>7}"
    by_mutator: dict[str, Counter[tuple[bool, str]]] = {}
    for (command, mutator, size), count in cells.items():
        kind = mutator if mutator in mutators else f"{mutator.partition(':')[0]}: all"
        by_mutator.setdefault(kind, Counter())[command == READ, size] += count
    for mutator, sizes in sorted(by_mutator.items()):
        reads = sizes[True, "small"] + sizes[True, "large"]
        analyses = sizes[False, "small"] + sizes[False, "large"]
        yield (
            f"{mutator:28} {reads:8,} {sizes[True, 'large']:7,} "
            f"{analyses:9,} {sizes[False, 'large']:7,}"
        )
    yield from _by_revision(tallies)


def _by_revision(tallies: Sequence[Tally]) -> Iterator[str]:
    for tally in tallies:
        yield ""
        cases = f"{tally.cells.total():,} cases, {tally.findings.total():,} findings"
        yield f"{tally.revision}, first tried {tally.started}: {cases}"
        for name, count in tally.findings.most_common():
            yield f"{count:8,}  {name}"
        if tally.guarded:
            yield "    operators that could not be judged, by what went wrong:"
        for name, count in tally.guarded.most_common():
            yield f"{count:8,}  {name}"


def matrix(tallies: Sequence[Tally]) -> Iterator[tuple[str, str, str, str]]:
    """Rows of command, mutator, and clean cases of small and of large files."""
    cells = clean_cells(tallies)
    yield "command", "mutator", "small", "large"
    for command, mutator in sorted({(command, mutator) for command, mutator, _ in cells}):
        small, large = (cells[command, mutator, size] for size in ("small", "large"))
        yield command, mutator, str(small), str(large)
