"""Which test touches which line: measured once, kept in a file, and renewed by what has changed.

Tests are measured one after the other in a forked child, which is replaced when a test ends it.
Caches are emptied between tests, so that what one leaves there does not hide what another needs.
A quick measurement does so between files of tests alone, and lets the tests of a file share their
fixtures: it knows less of what a test touches by way of what another left, and takes less time.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sqlite3
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage
from coverage.numbits import numbits_to_nums, nums_to_numbits
from mutants_tests import ENDS, in_child, passes

SCHEMA = """
create table if not exists test (name text primary key, file text, hash text, seconds real, ok int);
create table if not exists touched (test text, file text, lines blob);
create index if not exists touched_test on touched (test);
create table if not exists source (file text primary key, text blob);
"""
_NOTHING: dict[str, Any] = {"seconds": 120.0, "ok": False, "lines": {}}
"""What is kept of a test that ended the process, or never ended."""
OLD = "old"
"""Stands for the hash of a test that was measured with lines that are no more, or not at all."""
FORBEARANCE = 5
"""So many processes in a row may end at their first test: then it isn't the tests that end them."""
WHOLE_ANSWERS = ("tests/test_net.py", "tests/test_net_variants.py")
"""Their cases are no repetitions of one another."""
FIRST_ANSWERS = 6
"""So many of one command are measured before other tests have second cases."""
SLOW_FILE = 3.0
"""Seconds of CPU of tests of a file, after which a quick measurement looks at others first."""
LONGEST = 120.0
"""Seconds of CPU after which a test is not measured any longer (and never chosen)."""


def recorder(root: Path, packages: Iterable[str]) -> Coverage:
    """Coverage of some packages, kept in memory.

    From Python 3.12 on the interpreter tells of a line once, which costs a tenth of tracing it.
    """
    if sys.version_info >= (3, 12):
        os.environ.setdefault("COVERAGE_CORE", "sysmon")
    include = [str(root / package / "*") for package in packages]
    coverage = Coverage(data_file=None, config_file=False, include=include)
    coverage.set_option("run:disable_warnings", ["no-data-collected", "module-not-imported"])
    return coverage


def started_before(root: Path, packages: Iterable[str]) -> Coverage:
    """A recorder that starts at once, in children too: getting ready takes longer than a test."""
    coverage = recorder(root, packages)
    coverage.start()
    coverage.stop()
    coverage.get_data().erase()
    return coverage


def recorded(coverage: Coverage, root: Path) -> dict[str, list[int]]:
    """Lines that ran, by file relative to the root."""
    data = coverage.get_data()
    return {
        Path(file).relative_to(root).as_posix(): sorted(data.lines(file) or ())
        for file in data.measured_files()
    }


@dataclass(frozen=True, slots=True)
class _Made:
    """What making the fixtures of a test took: seconds of CPU, and lines by file."""

    seconds: float
    lines: dict[str, list[int]]


@dataclass(slots=True)
class _Shared:
    """What the tests of a file have in common: who runs alone has to make it."""

    file: str = ""
    seconds: float = 0.0
    lines: dict[str, set[int]] = field(default_factory=dict[str, set[int]])

    def add(self, seconds: float, lines: dict[str, list[int]]) -> None:
        self.seconds = max(self.seconds, seconds)
        for file, some in lines.items():
            self.lines.setdefault(file, set()).update(some)

    def with_own(self, lines: dict[str, list[int]]) -> dict[str, list[int]]:
        files = self.lines.keys() | lines.keys()
        return {
            file: sorted(self.lines.get(file, set()).union(lines.get(file, ()))) for file in files
        }


class TestMap:
    """Tests by the lines they touch, and the seconds they take."""

    __test__ = False

    def __init__(
        self, path: Path, root: Path, package: str, forget: Callable[[], None] = lambda: None
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.root = root
        self.package = package
        self.forget = forget
        self.database = sqlite3.connect(path, timeout=600)  # another measurement may write
        self.database.executescript(SCHEMA)
        self.coverage = started_before(root, [package])
        self.quick = False
        self._unmeasured: dict[str, list[str]] = {}
        self._lines: dict[str, dict[int, list[str]]] = {}
        self._together: dict[str, dict[int, list[int]]] = {}

    # -- measuring ---------------------------------------------------------------------------

    def renew(
        self,
        items: Sequence[pytest.Item],
        say: Callable[[str], None],
        limit: float,
        *,
        are_all: bool = True,
        quick: bool = False,
    ) -> None:
        """Measure tests that are new or whose file or measured lines changed.

        Args:
            items: the tests there are.
            say: where progress is told.
            limit: seconds for tests that are only measured again because the package changed;
                0 to measure nothing.
            are_all: others are gone, and what was measured of them too.
            quick: tests of a file share what they make.
        """
        self.quick = quick
        names = {item.nodeid for item in items}
        if are_all:
            for name in self._hashes().keys() - names:
                self._forget(name)
        self._follow_sources()
        if not limit:
            return
        known = self._hashes()
        hashes = {file: _hash(self.root / file) for file in {_file(name) for name in names}}
        new = [
            item
            for item in items
            if known.get(item.nodeid) not in (OLD, hashes[_file(item.nodeid)])
        ]
        old = [item for item in items if known.get(item.nodeid) == OLD]
        say(f"tests: {len(items)}; to measure: {len(new)} new, {len(old)} whose lines changed")
        self._measure(new, hashes, say, float("inf"))
        seconds = self.seconds()
        old.sort(key=lambda item: seconds.get(item.nodeid, LONGEST))
        self._measure(old, hashes, say, limit)
        self._lines.clear()

    def _hashes(self) -> dict[str, str]:
        """What the file of every measured test was, or ``OLD``."""
        return dict(self.database.execute("select name, hash from test"))

    def _follow_sources(self) -> None:
        """Let what was measured speak of the files as they are now.

        Lines are those of the file now; a test that touched a line which is no more is ``OLD``.
        What is measured from now on, and where that is cut short, the next time, fits to it.
        """
        old = set[str]()
        for file, text in self.database.execute("select file, text from source").fetchall():
            path = self.root / file
            now = path.read_bytes() if path.exists() else b""
            if now != text:
                old |= self._moved(file, *_lines_now(text, now))
        self.database.executemany(
            "update test set hash = ? where name = ?", [(OLD, name) for name in sorted(old)]
        )
        self._keep_sources()

    def _moved(self, file: str, now: dict[int, list[int]], gone: set[int]) -> set[str]:
        """Give the lines of a file their new numbers; tests that touched one that is gone."""
        old = set[str]()
        command = "select rowid, test, lines from touched where file = ?"
        for row, test, lines in self.database.execute(command, (file,)).fetchall():
            before = numbits_to_nums(lines)
            after = nums_to_numbits({new for line in before for new in now.get(line, ())})
            self.database.execute("update touched set lines = ? where rowid = ?", (after, row))
            if not gone.isdisjoint(before):
                old.add(test)
        return old

    def _measure(
        self,
        items: Sequence[pytest.Item],
        hashes: dict[str, str],
        say: Callable[[str], None],
        limit: float,
    ) -> None:
        start = told = time.monotonic()
        spent = Counter[str]()
        slow = set[str]()
        cases = _cases(items)
        rest = _most_telling_first(items, cases, slow)
        ended_at_once = 0
        while rest and ended_at_once < FORBEARANCE:
            done, word, broke = 0, None, ""
            for word in in_child(partial(self._record, rest), lambda _: LONGEST):
                if "broke" in word:
                    broke = word["broke"]
                    continue
                item, done = rest[done], done + 1
                found = _NOTHING if word in ENDS else word
                # What ended the process may not have been the test: it is tried again some day.
                content = OLD if word in ("crash", "undecided") else hashes[_file(item.nodeid)]
                self._keep(item, content, found)
                file = _file(item.nodeid)
                spent[file] += found["seconds"]
                if self.quick and file not in slow and spent[file] > SLOW_FILE:
                    slow.add(file)
                    break
                if time.monotonic() - start > limit:
                    say(f"not measured again: {len(rest) - done} tests")
                    self.database.commit()
                    return
                if time.monotonic() - told > 5:
                    told = time.monotonic()
                    self.database.commit()
                    say(f"measured {len(items) - len(rest) + done} of {len(items)}")
            if word in ENDS:
                say(f"{word} at {rest[done - 1].nodeid} {broke}".rstrip())
            ended_at_once = ended_at_once + 1 if word in ENDS and done == 1 else 0
            rest = _most_telling_first(rest[done:], cases, slow)
        self.database.commit()
        if rest:
            say(f"{FORBEARANCE} processes ended at their first test: {len(rest)} are not measured")

    def _keep(self, item: pytest.Item, content: str, found: dict[str, Any]) -> None:
        self._forget(item.nodeid)
        self.database.execute(
            "insert into test values (?, ?, ?, ?, ?)",
            (item.nodeid, _file(item.nodeid), content, found["seconds"], int(found["ok"])),
        )
        self.database.executemany(
            "insert into touched values (?, ?, ?)",
            [
                (item.nodeid, file, nums_to_numbits(some))
                for file, some in found["lines"].items()
                if some
            ],
        )

    def _record(self, items: Sequence[pytest.Item], tell: Callable[[Any], None]) -> None:
        """Run tests one after the other; fixtures and caches anew for each, or for each file."""
        shared = _Shared()
        for item, following in zip(items, [*items[1:], None], strict=True):
            file = _file(item.nodeid)
            goes_on = self.quick and following is not None and _file(following.nodeid) == file
            if not self.quick or shared.file != file:
                self.forget()
                shared = _Shared(file)
            start = _computed()
            ok, made, lines = self._run(item, following if goes_on else None)
            seconds = _computed() - start
            shared.add(made.seconds, made.lines)
            tell(
                {
                    "seconds": seconds - made.seconds + shared.seconds,
                    "ok": ok,
                    "lines": shared.with_own(lines),
                }
            )
        tell("done")

    def _run(
        self, item: pytest.Item, following: pytest.Item | None
    ) -> tuple[bool, _Made, dict[str, list[int]]]:
        """Whether a test passes, what making its fixtures took, and the lines it touches itself."""
        start = _computed()
        made = _Made(0.0, {})

        def is_made() -> None:
            nonlocal made
            self.coverage.stop()
            made = _Made(_computed() - start, recorded(self.coverage, self.root))
            self.coverage.get_data().erase()
            self.coverage.start()

        self.coverage.start()
        ok = passes(item, following, is_made)
        self.coverage.stop()
        lines = recorded(self.coverage, self.root)
        self.coverage.get_data().erase()
        return ok, made, lines

    def _forget(self, name: str) -> None:
        self.database.execute("delete from test where name = ?", (name,))
        self.database.execute("delete from touched where test = ?", (name,))

    def _keep_sources(self) -> None:
        self.database.execute("delete from source")
        for path in sorted((self.root / self.package).rglob("*.py")):
            file = path.relative_to(self.root).as_posix()
            self.database.execute("insert into source values (?, ?)", (file, path.read_bytes()))
        self.database.commit()

    # -- asking ------------------------------------------------------------------------------

    def stand_for(self, names: set[str]) -> None:
        """Let measured cases of a test speak of its cases that are not measured yet.

        Of a test the first one does; of answers all of those that are measured of the same command.
        """
        measured = defaultdict[str, list[str]](list)
        for name in self.seconds():
            kind = _kind(name)
            if not measured[kind] or name.startswith(WHOLE_ANSWERS):
                measured[kind].append(name)
        self._unmeasured.clear()
        self._lines.clear()
        for name in names - self._hashes().keys():
            for case in measured.get(_kind(name), ()):
                self._unmeasured.setdefault(case, []).append(name)

    def seconds(self) -> dict[str, float]:
        """Seconds of CPU that every test that passes takes."""
        seconds = dict(self.database.execute("select name, seconds from test where ok = 1"))
        for case, names in self._unmeasured.items():
            for name in names:
                seconds[name] = max(seconds.get(name, 0.0), seconds[case])
        return seconds

    def touching(self, file: str, line: int) -> list[str]:
        """Tests that touch a line of the file, or another line of the same statement."""
        if file not in self._together:
            self._together[file] = _together((self.root / file).read_bytes())
        by_line = self._tests_by_line(file)
        lines = self._together[file].get(line, [line])
        return list(dict.fromkeys(test for one in lines for test in by_line.get(one, ())))

    def _tests_by_line(self, file: str) -> dict[int, list[str]]:
        if file not in self._lines:
            by_line = defaultdict[int, list[str]](list)
            rows = self.database.execute("select test, lines from touched where file = ?", (file,))
            for test, lines in rows:
                for line in numbits_to_nums(lines):
                    by_line[line] += (test, *self._unmeasured.get(test, ()))
            self._lines[file] = dict(by_line)
        return self._lines[file]


def _cases(items: Sequence[pytest.Item]) -> dict[str, int]:
    """Which case of its test each is; of answers several count as the first."""
    known = Counter[str]()
    cases = dict[str, int]()
    for item in items:
        name, kind = item.nodeid, _kind(item.nodeid)
        cases[name] = known[kind] // (FIRST_ANSWERS if name.startswith(WHOLE_ANSWERS) else 1)
        known[kind] += 1
    return cases


def _most_telling_first(
    items: Sequence[pytest.Item], cases: dict[str, int], slow: set[str]
) -> list[pytest.Item]:
    """The order in which a measurement that is cut short is of most use.

    What is nearest to the mutants comes first, and of every test its first case before any second;
    files of tests in no order, so that every package has its share, but slow ones last.
    """
    last = ("tests/cli/", "tests/linting/", "tests/report/")

    def order(item: pytest.Item) -> tuple[bool, int, bool, str]:
        name, file = item.nodeid, _file(item.nodeid)
        place = hashlib.sha256(file.encode()).hexdigest()
        return name.startswith(last), cases[name], file in slow, place

    return sorted(items, key=order)


def _lines_now(old: bytes, new: bytes) -> tuple[dict[int, list[int]], set[int]]:
    """For each line of a file the lines that it is now; and the lines that are gone.

    What was put in the place of a line, or beside it, is reached by the tests that touched it: more
    than that is known once they are measured again.
    """
    before, now = old.splitlines(), new.splitlines()
    lines = defaultdict[int, list[int]](list)
    gone = set[int]()
    for kind, start, end, to_start, to_end in SequenceMatcher(
        None, before, now, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            for place in range(end - start):
                lines[start + place + 1].append(to_start + place + 1)
            continue
        gone.update(range(start + 1, end + 1))
        beside = range(start, end + 2) if start == end else range(start + 1, end + 1)
        for line in beside:
            lines[line] += range(to_start + 1, to_end + 1)
    return dict(lines), gone


def _together(source: bytes) -> dict[int, list[int]]:
    """For each line those of its statement: of several the tracer counts only the first."""
    return {
        line: list(range(first, last + 1))
        for first, last in _statements(source)
        for line in range(first, last + 1)
    }


def _statements(source: bytes) -> list[tuple[int, int]]:
    """First and last line of every simple statement, and of the heads of the others."""
    found: list[tuple[int, int]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            last = node.end_lineno or node.lineno
            if body:
                first = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
                last = max(node.lineno, first.lineno - 1)
            found.append((node.lineno, last))
    return sorted(found)


def _computed() -> float:
    """Seconds of CPU so far, of children too: what a test takes however busy the machine is."""
    return sum(os.times()[:4])


def _file(name: str) -> str:
    return name.split("::")[0]


def _kind(name: str) -> str:
    """The test of which this is a case; of an answer the command too."""
    test, _, case = name.partition("[")
    return f"{test}[{case.rpartition('/')[2]}" if name.startswith(WHOLE_ANSWERS) else test


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
