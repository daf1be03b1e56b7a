"""Which test touches which line: measured once, kept in a file, and renewed by what has changed.

Tests are measured one after the other in a forked child, which is replaced when a test ends it.
Caches are emptied between tests, so that what one leaves there does not hide what another needs.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sqlite3
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage
from coverage.numbits import numbits_to_nums, nums_to_numbits
from mutants_tests import in_child, passes

SCHEMA = """
create table if not exists test (name text primary key, file text, hash text, seconds real, ok int);
create table if not exists touched (test text, file text, lines blob);
create index if not exists touched_test on touched (test);
create table if not exists source (file text primary key, text blob);
"""
_NOTHING: dict[str, Any] = {"seconds": 120.0, "ok": False, "lines": {}}
"""What is kept of a test that ended the process, or never ended."""
LONGEST = 120.0
"""Seconds after which a test is not measured any longer (and never chosen)."""


def recorder(root: Path, packages: Iterable[str]) -> Coverage:
    """Coverage of some packages, kept in memory."""
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
        self.database = sqlite3.connect(path)
        self.database.executescript(SCHEMA)
        self.coverage = started_before(root, [package])
        self._lines: dict[str, dict[int, list[str]]] = {}
        self._mapped: dict[str, dict[int, list[int]]] = {}

    # -- measuring ---------------------------------------------------------------------------

    def renew(
        self,
        items: Sequence[pytest.Item],
        say: Callable[[str], None],
        limit: float,
        *,
        are_all: bool = True,
    ) -> None:
        """Measure tests that are new or whose file or measured lines changed.

        Args:
            items: the tests there are.
            say: where progress is told.
            limit: seconds for tests that are only measured again because the package changed.
            are_all: others are gone, and what was measured of them too.
        """
        names = {item.nodeid for item in items}
        known = dict(self.database.execute("select name, hash from test"))
        if are_all:
            for name in known.keys() - names:
                self._forget(name)
        hashes = {file: _hash(self.root / file) for file in {_file(name) for name in names}}
        new = [item for item in items if known.get(item.nodeid) != hashes[_file(item.nodeid)]]
        changed = [name for name in self._touching_changed_lines() if name in names]
        again = set(changed) - {item.nodeid for item in new}
        say(f"tests: {len(items)}; to measure: {len(new)} new, {len(again)} whose lines changed")
        self._measure(new, hashes, say, float("inf"))
        order = {name: place for place, name in enumerate(changed)}
        old = sorted((i for i in items if i.nodeid in again), key=lambda i: order[i.nodeid])
        if self._measure(old, hashes, say, limit) and (are_all or not known):
            self._keep_sources()
        self._lines.clear()
        self._mapped.clear()

    def _measure(
        self,
        items: Sequence[pytest.Item],
        hashes: dict[str, str],
        say: Callable[[str], None],
        limit: float,
    ) -> bool:
        start = told = time.monotonic()
        # What is nearest to the mutants first, so that a measurement cut short is of use.
        last = ("tests/cli/", "tests/lint/", "tests/report/")
        rest = sorted(items, key=lambda item: item.nodeid.startswith(last))
        while rest:
            done = 0
            for word in in_child(partial(self._record, rest), lambda _: LONGEST):
                item, done = rest[done], done + 1
                found = _NOTHING if word in ("timeout", "crash") else word
                self._keep(item, hashes[_file(item.nodeid)], found)
                if time.monotonic() - start > limit:
                    say(f"not measured again: {len(rest) - done} tests")
                    self.database.commit()
                    return False
                if time.monotonic() - told > 30:
                    told = time.monotonic()
                    self.database.commit()
                    say(f"measured {len(items) - len(rest) + done} of {len(items)}")
            rest = rest[done:]
        self.database.commit()
        return True

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
        """Run tests one after the other, fixtures and caches anew for each."""
        for item in items:
            self.forget()
            start = _computed()
            self.coverage.start()
            ok = passes(item, None)
            self.coverage.stop()
            seconds = _computed() - start
            lines = recorded(self.coverage, self.root)
            self.coverage.get_data().erase()
            tell({"seconds": seconds, "ok": ok, "lines": lines})
        tell("done")

    def _forget(self, name: str) -> None:
        self.database.execute("delete from test where name = ?", (name,))
        self.database.execute("delete from touched where test = ?", (name,))

    def _keep_sources(self) -> None:
        self.database.execute("delete from source")
        for path in sorted((self.root / self.package).rglob("*.py")):
            file = path.relative_to(self.root).as_posix()
            self.database.execute("insert into source values (?, ?)", (file, path.read_bytes()))
        self.database.commit()

    def _touching_changed_lines(self) -> list[str]:
        """Tests that touch a line that is no more as it was, the fastest first."""
        found = set[str]()
        for file, text in self.database.execute("select file, text from source").fetchall():
            path = self.root / file
            now = path.read_bytes() if path.exists() else b""
            if now == text:
                continue
            old = text.splitlines()
            kept = set[int]()
            for block in SequenceMatcher(None, old, now.splitlines(), False).get_matching_blocks():
                kept.update(range(block.a + 1, block.a + block.size + 1))
            for line, tests in self._tests_by_line(file).items():
                if line not in kept:
                    found.update(tests)
        seconds = self.seconds()
        return sorted((name for name in found if name in seconds), key=lambda name: seconds[name])

    # -- asking ------------------------------------------------------------------------------

    def seconds(self) -> dict[str, float]:
        """Seconds of CPU that every test that passes takes."""
        return dict(self.database.execute("select name, seconds from test where ok = 1"))

    def touching(self, file: str, line: int) -> list[str]:
        """Tests that touch a line of the file as it is now."""
        if file not in self._mapped:
            self._mapped[file] = self._lines_before(file)
        by_line = self._tests_by_line(file)
        lines = self._mapped[file].get(line, [])
        return list(dict.fromkeys(test for old in lines for test in by_line.get(old, ())))

    def _tests_by_line(self, file: str) -> dict[int, list[str]]:
        if file not in self._lines:
            by_line = defaultdict[int, list[str]](list)
            rows = self.database.execute("select test, lines from touched where file = ?", (file,))
            for test, lines in rows:
                for line in numbits_to_nums(lines):
                    by_line[line].append(test)
            self._lines[file] = dict(by_line)
        return self._lines[file]

    def _lines_before(self, file: str) -> dict[int, list[int]]:
        """For each line of a file now, the lines that it was when the tests were measured.

        A new line is where the nearest lines before and after it were.  Lines of one statement
        stand for one another: the tracer counts only its first.
        """
        now = (self.root / file).read_bytes()
        row = self.database.execute("select text from source where file = ?", (file,)).fetchone()
        pairs: list[tuple[int, int]]
        if row is None or row[0] == now:
            pairs = [(line, line) for line in range(1, now.count(b"\n") + 2)]
        else:
            matcher = SequenceMatcher(None, row[0].splitlines(), now.splitlines(), False)
            pairs = [
                (block.b + place + 1, block.a + place + 1)
                for block in matcher.get_matching_blocks()
                for place in range(block.size)
            ]
        at = dict(pairs)
        ordered = [new for new, _ in pairs]
        result: dict[int, list[int]] = {}
        for first, last in _statements(now):
            some: list[int] = []
            for line in range(first, last + 1):
                if line in at:
                    some.append(at[line])
                else:
                    place = bisect_left(ordered, line)
                    some += [
                        pairs[near][1] for near in (place - 1, place) if 0 <= near < len(pairs)
                    ]
            for line in range(first, last + 1):
                result[line] = some
        return result


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


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
