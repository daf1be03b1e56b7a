"""Whether the tests would notice a wrong answer: changes the code a little, and runs the tests.

    python benchmarks/mutants.py --changed main          # what a branch changes: minutes
    python benchmarks/mutants.py --sample 300 --seed 7   # how good the net is
    python benchmarks/mutants.py --whole --state run.jsonl  # hours; goes on where it stopped
    python benchmarks/mutants.py --whole --numbers       # has each limit a test on both sides?
    python benchmarks/mutants.py --files irtool/cluster/hang.py --tests tests/cluster/test_hang*.py

Each mutant changes the meaning of one piece of the program (`mutants_syntax.py`) or of its tables
(`mutants_tables.py`).  The tests that touch the line, as measured (`mutants_coverage.py`), run from
the fastest on, in a forked child (`mutants_tests.py`), until one fails: then the mutant is killed.
Values that only functions read are replaced without a new import (`mutants_constants.py`).
A mutant that no test fails on has survived, and with it whatever mistake looks like it.  Tests of
the corpus don't take part.  `mutants_equivalent.toml` lists mutants that change nothing, and why.
Limits of time are seconds of CPU, so that a busy machine kills nothing; what waits for ever is
undecided and counts neither way.  `--measure` goes on where it stopped; from Python 3.12 on it
takes little more than the tests alone, and less with `--quick`.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import gc
import importlib
import json
import os
import random
import re
import subprocess
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # children are forked

import pytest
from mutants_constants import Value, Values
from mutants_coverage import WHOLE_ANSWERS, TestMap, recorded, recorder
from mutants_syntax import Mutant, mutants_of
from mutants_tables import table_mutants
from mutants_tests import (
    Functions,
    Importer,
    Outcome,
    collect,
    draw_once,
    in_child,
    is_timed,
    limit_of,
    outcome,
    passes,
    run_items,
)

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "irtool"
PARTS = ("sharding", "operators", "compare", "cluster", "planning")
"""What is mutated: packages of ``irtool``."""

BEFORE = (
    *("numpy", "orjson", "lark", "rich.console", "click", "graphviz", "hypothesis", "pyarrow"),
    *("jsonschema", "irtool.syntax.load", "irtool.syntax.run", "irtool.syntax.query"),
)
"""Imported before the package is, with a mutant in it: nothing of this is mutated."""

WARM = (
    "tests/syntax/test_reading.py",
    "tests/syntax/test_query.py",
    "tests/operators/test_rules.py",
    "tests/operators/test_records.py",
)
"""Their first tests run once, so that not every child has to make parsers, or unpack records."""

TABLES = (("irtool.operators.table", "entries"),)
"""Functions that read tables, called once for the same reason."""

BELOW = (
    *("tests/syntax/", "tests/ir/", "tests/test_ci.py", "tests/test_dependencies.py"),
    *("tests/test_exceptions.py", "tests/test_layers.py", "tests/test_mutants.py"),
    "tests/test_package.py",
)
"""Tests of layers that import nothing of what is mutated, and of the project as a whole."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant, with how many tests touch it."""

    mutant: Mutant
    outcome: Outcome
    touching: int
    equivalent: str = ""

    @property
    def part(self) -> str:
        return self.mutant.file.split("/")[1] if "/" in self.mutant.file else ""


# -- which mutants -------------------------------------------------------------------------------


def all_mutants(root: Path, package: str, parts: Iterable[str]) -> list[Mutant]:
    """Every mutant of these packages, by file and place."""
    found: list[Mutant] = []
    folders = [root / package / part for part in parts] or [root / package]
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            found += mutants_in(root, path)
    return found


def mutants_in(root: Path, path: Path) -> list[Mutant]:
    file = path.relative_to(root).as_posix()
    if path.suffix == ".py":
        return mutants_of(path.read_bytes(), file)
    if path.suffix in (".rules", ".toml"):
        return table_mutants(path.read_bytes(), file)
    return []


def changed_lines(root: Path, base: str) -> dict[str, set[int]]:
    """Lines of the working tree that ``base`` did not have, by file."""
    command = ["git", "-C", str(root), "diff", "-U0", "--no-color", "--no-ext-diff", base, "--"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = defaultdict[str, set[int]](set)
    file = ""
    for line in text.splitlines():
        if line.startswith("+++ "):
            file = line[4:].removeprefix("b/")
        elif match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(match[1]), int(match[2] or 1)
            found[file].update(range(first, first + count))
    return dict(found)


def sampled(mutants: list[Mutant], number: int, seed: int) -> list[Mutant]:
    """A sample in which every package has the share it has of all mutants.

    It is in no order, so that as much of it as there was time for is a sample, too.
    """
    chance = random.Random(seed)
    by_part = defaultdict[str, list[Mutant]](list)
    for mutant in mutants:
        by_part[mutant.file.split("/")[1]].append(mutant)
    found: list[Mutant] = []
    for some in by_part.values():
        share = round(number * len(some) / len(mutants))
        found += chance.sample(some, min(len(some), max(1, share)))
    chance.shuffle(found)
    return found


class Equivalents:
    """Mutants known to change nothing, each with the reason."""

    def __init__(self, path: Path) -> None:
        entries = tomllib.loads(path.read_text("utf-8")).get("mutant", [])
        self.reasons = {
            (entry["file"], entry.get("function", ""), entry["before"], entry["after"]): str(
                entry["reason"]
            )
            for entry in entries
        }

    def reason(self, mutant: Mutant) -> str:
        key = (mutant.file, mutant.function, mutant.before, mutant.after)
        return self.reasons.get(key, "")


# -- which tests ---------------------------------------------------------------------------------


class Choice:
    """Which tests may notice a mutant, the fastest first."""

    def __init__(self, root: Path, package: str, tests: TestMap, usable: set[str]) -> None:
        self.root = root
        self.package = package
        self.tests = tests
        self.seconds = {name: t for name, t in tests.seconds().items() if name in usable}
        self._users: dict[str, list[tuple[str, int]]] | None = None
        self._trees: dict[str, ast.Module] = {}

    def of(self, mutant: Mutant, *, ran_before: bool) -> list[str]:
        """Tests for a mutant; ``ran_before``: its line may have run before any test began."""
        if not mutant.file.endswith(".py"):
            words = self._operators(mutant)
            named = [name for name in self.seconds if words & set(re.findall(r"[A-Za-z]\w*", name))]
            return self._ordered(named, self._mirroring(mutant.file))
        found = self.tests.touching(mutant.file, mutant.line)
        if mutant.at_import:
            found += self._of_users(mutant)
        beside = set(self._mirroring(mutant.file))
        near = beside if mutant.at_import or ran_before else ()
        return self._ordered(beside.intersection(found), found, near)

    def _ordered(self, *groups: Iterable[str]) -> list[str]:
        """The groups one after the other, in each what is quick first.

        Further cases of a test that has run are put off, each more than the one before: they rarely
        notice what those did not.
        """
        found: dict[str, None] = {}
        for names in groups:
            known = sorted({name for name in names if name in self.seconds}, key=self._first)
            cases = Counter[str]()
            price: dict[str, float] = {}
            for name in known:
                test = name.split("[")[0]
                cases[test] += not name.startswith(WHOLE_ANSWERS)
                price[name] = self.seconds[name] * max(1, cases[test])
            found.update(dict.fromkeys(sorted(known, key=lambda name: price[name])))
        return list(found)

    def _first(self, name: str) -> tuple[float, str]:
        return self.seconds[name], name

    def _operators(self, mutant: Mutant) -> set[str]:
        """The operators that a line of a table is about."""
        lines = (self.root / mutant.file).read_text("utf-8").splitlines()[: mutant.line]
        head = next((line for line in reversed(lines) if re.match("[A-Z]", line)), "")
        return set(re.findall(r"[A-Z]\w*", re.sub(r"\([^()]*\)", "", head).split(":")[0]))

    def _mirroring(self, file: str) -> list[str]:
        """Tests in the folder that mirrors the file's, or in the nearest one above it."""
        folder = Path("tests") / Path(file).parent.relative_to(self.package)
        while not (self.root / folder).is_dir():
            folder = folder.parent
        return [name for name in self.seconds if name.startswith(f"{folder.as_posix()}/")]

    def _of_users(self, mutant: Mutant) -> list[str]:
        """Tests that touch what uses a name that the mutated statement at the top defines."""
        found: list[str] = []
        seen: set[str] = set()
        names = self.defined(mutant)
        while names:
            name = names.pop()
            if name in seen:
                continue
            seen.add(name)
            for file, line in self.users.get(name, ()):
                touching = self.tests.touching(file, line)
                found += touching
                if not touching and file == mutant.file:
                    names |= _names_defined(self._tree(file), line)
        return found

    @property
    def users(self) -> dict[str, list[tuple[str, int]]]:
        """Where every name is used."""
        if self._users is None:
            self._users = defaultdict(list)
            for path in sorted((self.root / self.package).rglob("*.py")):
                file = path.relative_to(self.root).as_posix()
                for node in ast.walk(self._tree(file)):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                        self._users[node.id].append((file, node.lineno))
                    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                        self._users[node.attr].append((file, node.lineno))
        return self._users

    def defined(self, mutant: Mutant) -> set[str]:
        return _names_defined(self._tree(mutant.file), mutant.line)

    def _tree(self, file: str) -> ast.Module:
        if file not in self._trees:
            self._trees[file] = ast.parse((self.root / file).read_bytes())
        return self._trees[file]


def _names_defined(tree: ast.Module, line: int) -> set[str]:
    """Names that the statements around a line define: of the module, of a class in it."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or not node.lineno <= line <= (node.end_lineno or 0):
            continue
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


# -- running -------------------------------------------------------------------------------------


class Bench:
    """All that is needed to try mutants one after the other."""

    def __init__(self, options: argparse.Namespace, importer: Importer, coverage: Any) -> None:
        self.options = options
        self.importer = importer
        self.coverage = coverage
        self.root: Path = options.root
        self.items: dict[str, pytest.Item] = {}
        self.ran_before: dict[str, set[int]] = {}
        self.caches: list[Any] = []
        self.killers = defaultdict[str, dict[str, None]](dict)
        self.sound: dict[str, bool] = {}
        self.values = Values(self.root, (options.package, "tests"))

    def main(self, items: list[pytest.Item]) -> None:
        """Everything, once the tests are collected; pytest would hide what goes wrong."""
        try:
            self._main(items)
        except Exception:
            say(traceback.format_exc())
            self.failed = True
            raise

    def _main(self, items: list[pytest.Item]) -> None:
        below = BELOW if self.options.package == PACKAGE else ()
        used = [item for item in items if not item.nodeid.startswith(below)]
        self.items = {item.nodeid: item for item in used if not is_timed(item)}
        self._import_all()
        self.coverage.stop()
        lines = recorded(self.coverage, self.root)
        self._warm_up(items)
        self.ran_before = {file: set(some) for file, some in lines.items()}
        place = self.options.cache / "tests.sqlite"
        tests = TestMap(place, self.root, self.options.package, self._forget)
        limit = float("inf") if self.options.measure else self.options.renew
        are_all = not self.options.tests
        tests.renew(
            list(self.items.values()), say, limit, are_all=are_all, quick=self.options.quick
        )
        if self.options.measure:
            return
        tests.stand_for(set(self.items))
        self.choice = Choice(self.root, self.options.package, tests, set(self.items))
        mutants = chosen_mutants(self.options)
        self.try_all(mutants)

    def _import_all(self) -> None:
        for path in sorted((self.root / self.options.package).rglob("*.py")):
            if path.name != "__main__.py":
                name = ".".join(path.relative_to(self.root).with_suffix("").parts)
                with suppress(ImportError):  # what an extra needs
                    importlib.import_module(name.removesuffix(".__init__"))
        for module, function in TABLES:
            if module.startswith(f"{self.options.package}."):
                getattr(importlib.import_module(module), function)()

    def _warm_up(self, items: list[pytest.Item]) -> None:
        """Fill the caches of what is not mutated; those of what is must not hide a mutant."""
        self.functions = Functions(self.root)
        for file in WARM:
            first = next((item for item in items if item.nodeid.startswith(file)), None)
            if first is not None:
                passes(first, None)
        draw_once()
        parts = tuple(f"{self.options.package}.{part}." for part in self.options.parts)
        tables = {module for module, _ in TABLES}
        self.caches = [
            cache
            for cache in self.functions.caches
            if (module := getattr(cache, "__module__", "") or "") not in tables
            and module.startswith(parts or self.options.package)
        ]
        self._forget()
        gc.collect()
        gc.freeze()

    def _forget(self) -> None:
        """Empty the caches of what is mutated."""
        for cache in self.caches:
            cache.cache_clear()

    def try_all(self, mutants: list[Mutant]) -> None:
        equivalents = Equivalents(self.options.equivalents)
        done = read_state(self.options.state)
        results: list[Result] = []
        start = time.monotonic()
        for number, mutant in enumerate(mutants, 1):
            mark = self.mark(mutant)
            if mark in done and (kept := Outcome(**done[mark]["outcome"])).is_decided:
                result = Result(mutant, kept, done[mark]["touching"])
            elif reason := equivalents.reason(mutant):
                result = Result(mutant, Outcome("", "", 0), 0, reason)
            else:
                result = self.attempt(mutant)
                write_state(self.options.state, mark, result)
            results.append(result)
            if not result.outcome.how and not result.equivalent:
                say(survivor(self.root, result))
            if not result.outcome.is_decided:
                say(f"UNDECIDED {mutant.file}:{mutant.line} by {result.outcome.killed_by}")
            if number % 25 == 0:
                say(f"{number} of {len(mutants)} in {time.monotonic() - start:.0f} s")
        print_report(results, time.monotonic() - start)
        self.failed = any(not r.outcome.how and not r.equivalent for r in results)

    def mark(self, mutant: Mutant) -> str:
        """Names a mutant of a file with this content."""
        content = (self.root / mutant.file).read_bytes()
        return sha256(mutant.key.encode() + content).hexdigest()[:24]

    def attempt(self, mutant: Mutant) -> Result:
        """Run the tests that may notice the mutant."""
        ran_before = mutant.line in self.ran_before.get(mutant.file, ())
        names = self.choice.of(mutant, ran_before=ran_before)
        within = self._within_budget(self._killers_first(mutant.file, names))
        done = Outcome("", "", 0)
        while within:
            done = self._run(mutant, within, ran_before=ran_before)
            if not done.killed_by or self._is_sound(done.killed_by):
                break
            # It fails without the mutant, too: the others have to say.
            within = [name for name in within if self.sound.get(name, True)]
            done = Outcome("", "", 0)
        if done.killed_by and done.is_decided:
            killers = self.killers[mutant.file]
            killers.pop(done.killed_by, None)
            killers[done.killed_by] = None
        return Result(mutant, done, len(names))

    def _run(self, mutant: Mutant, names: list[str], *, ran_before: bool) -> Outcome:
        """What these tests say, the ones after the other."""
        limits = {name: self.choice.seconds[name] for name in names}
        path = self.root / mutant.file
        mutated = mutant.apply(path.read_bytes())
        done = Outcome("", "", 0)
        is_value = mutant.at_import and path.suffix == ".py" and not self._was_read(mutant)
        value = self.values.of(mutant) if is_value else None
        play = None
        if value is not None:
            play = partial(self._play_value, value, names)
        elif not mutant.at_import:
            play = partial(self._play, path, mutated, names)
        if play is not None:
            done = outcome(in_child(play, partial(limit_of, limits)))
        could_not = done.how == "crash" and not done.ran  # what is there could not take the code
        if play is None or could_not or (ran_before and not mutant.at_import and not done.how):
            done = self._imported(mutant.file, mutated, limits)
        return done

    def _was_read(self, mutant: Mutant) -> bool:
        """Whether something may have read what the mutant defines before any test began."""
        names = self.choice.defined(mutant)
        return any(
            line in self.ran_before.get(file, ())
            for name in names
            for file, line in self.choice.users.get(name, ())
        )

    def _is_sound(self, name: str) -> bool:
        """Whether a test passes without a mutant, here and now."""
        item = self.items.get(name)
        if name not in self.sound and item is not None:
            limits = {name: self.choice.seconds[name]}
            words = in_child(partial(run_items, [item]), partial(limit_of, limits))
            self.sound[name] = not outcome(words).how
            if not self.sound[name]:
                say(f"fails without a mutant, and is left out: {name}")
                self.choice.seconds.pop(name)
        return self.sound.get(name, True)

    def _killers_first(self, file: str, names: list[str]) -> list[str]:
        """Of what touches the mutant, first the tests that noticed others of its file lately."""
        touching = set(names)
        killers = [name for name in reversed(self.killers[file]) if name in touching][:4]
        return list(dict.fromkeys([*killers, *names]))

    def _within_budget(self, names: list[str]) -> list[str]:
        taken, within = 0.0, list[str]()
        for name in names:
            taken += self.choice.seconds[name]
            if within and taken > self.options.budget:
                break
            within.append(name)
        return within

    def _imported(self, file: str, mutated: bytes, limits: dict[str, float]) -> Outcome:
        """Import everything with the mutant: first for few files of tests, which load fast."""
        ran = 0
        files = list(dict.fromkeys(name.split("::")[0] for name in limits))
        for some in (files[:2], files[2:]):
            chosen = {name: t for name, t in limits.items() if name.split("::")[0] in some}
            if chosen:
                done = self.importer.run(file, mutated, chosen)
                ran += done.ran
                if done.how:
                    return Outcome(done.killed_by, done.how, ran)
        return Outcome("", "", ran)

    def _play(
        self, path: Path, mutated: bytes, names: list[str], tell: Callable[[Any], None]
    ) -> None:
        if self.functions.put(path, path.read_bytes(), mutated):
            run_items([self.items[name] for name in names], tell)

    def _play_value(self, value: Value, names: list[str], tell: Callable[[Any], None]) -> None:
        if value.put():
            run_items([self.items[name] for name in names], tell)


def chosen_mutants(options: argparse.Namespace) -> list[Mutant]:
    """The mutants that the options ask for."""
    root: Path = options.root
    if options.changed is not None:
        lines = changed_lines(root, options.changed)
        files = [
            root / file
            for file in lines
            if (root / file).exists()
            and file.startswith(tuple(f"{options.package}/{part}" for part in options.parts))
        ]
        mutants = [m for path in files for m in mutants_in(root, path) if m.line in lines[m.file]]
    elif options.files:
        mutants = [m for file in options.files for m in mutants_in(root, root / file)]
    else:
        mutants = all_mutants(root, options.package, options.parts)
    if options.numbers:
        mutants = [
            m for m in mutants if m.operator == "constant" and m.at_import and not m.function
        ]
    if options.line:
        mutants = [mutant for mutant in mutants if mutant.line in options.line]
    if options.sample and options.sample < len(mutants):
        mutants = sampled(mutants, options.sample, options.seed)
    number, of = (int(word) for word in options.slice.split("/"))
    return [m for m in mutants if int(sha256(m.key.encode()).hexdigest(), 16) % of == number - 1]


def read_state(path: Path | None) -> dict[str, Any]:
    """What earlier runs found out, by mark."""
    if path is None or not path.exists():
        return {}
    return {entry["mark"]: entry for entry in map(json.loads, path.read_text().splitlines())}


def write_state(path: Path | None, mark: str, result: Result) -> None:
    """Append what became of a mutant."""
    if path is not None:
        entry = {
            "mark": mark,
            "outcome": asdict(result.outcome),
            "touching": result.touching,
            "mutant": asdict(result.mutant),
        }
        with path.open("a") as file:
            file.write(json.dumps(entry) + "\n")


# -- telling -------------------------------------------------------------------------------------


def survivor(root: Path, result: Result) -> str:
    """A survivor as a change to the file, and the tests that let it pass."""
    mutant = result.mutant
    source = (root / mutant.file).read_bytes()
    old, new = (text.decode().splitlines() for text in (source, mutant.apply(source)))
    diff = list(difflib.unified_diff(old, new, n=0, lineterm=""))[3:]
    ran = f"{result.outcome.ran} of {result.touching} tests that touch it ran"
    where = f"{mutant.file}:{mutant.line}"
    return "\n".join(
        (
            f"SURVIVED {where} {mutant.function} [{mutant.operator}] ({ran})",
            *map("  {}".format, diff),
        )
    )


def print_report(results: list[Result], seconds: float) -> None:
    """How many were killed, by package and by kind of change."""
    rows_of: dict[str, Callable[[Result], str]] = {
        "package": lambda result: result.part,
        "change": lambda result: result.mutant.operator,
    }
    for title, of in rows_of.items():
        rows = defaultdict[str, Counter[str]](Counter)
        for result in results:
            for row in (of(result), "all"):
                rows[row][
                    result.outcome.how or ("equivalent" if result.equivalent else "survived")
                ] += 1
                rows[row]["untouched"] += not result.outcome.ran and not result.equivalent
        say(
            f"\n{title:20} killed   of  rate  (timeout crash) survived (untouched) equivalent"
            " undecided"
        )
        for name, row in sorted(rows.items(), key=lambda pair: (pair[0] == "all", pair[0])):
            killed = row["failed"] + row["timeout"] + row["crash"]
            total = killed + row["survived"]
            rate = f"{100 * killed / total:4.0f}%" if total else "    -"
            say(
                f"{name:20} {killed:6} {total:4} {rate}  ({row['timeout']:7} {row['crash']:5})"
                f" {row['survived']:8} {row['untouched']:11} {row['equivalent']:10}"
                f" {row['undecided']:9}"
            )
    say(f"{len(results)} mutants, {seconds:.0f} s")


_OUT = os.dup(1)


def say(text: str) -> None:
    """Print past pytest, which captures."""
    os.write(_OUT, (text + "\n").encode())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--changed", nargs="?", const="HEAD", metavar="BASE", help="lines changed since"
    )
    what.add_argument("--whole", action="store_true", help="all mutants")
    what.add_argument("--measure", action="store_true", help="only measure what tests touch")
    parser.add_argument("--quick", action="store_true", help="measure faster, and less exactly")
    parser.add_argument("--sample", type=int, metavar="N", help="only so many, by chance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", nargs="+", help="only these, relative to the root")
    parser.add_argument(
        "--numbers", action="store_true", help="only numbers that stand at the top of a module"
    )
    parser.add_argument("--line", type=int, nargs="+", help="only these lines")
    parser.add_argument("--tests", nargs="+", default=[], help="only these tests, for a quick look")
    parser.add_argument("--slice", default="1/1", help="1/4: the first of four parts, for machines")
    parser.add_argument(
        "--state", type=Path, help="file of results; a run goes on where it stopped"
    )
    parser.add_argument("--budget", type=float, default=20, help="seconds of tests a mutant")
    parser.add_argument(
        "--renew", type=float, default=300, help="seconds to measure tests again; 0: measure none"
    )
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--package", default=PACKAGE)
    parser.add_argument("--parts", nargs="*", help="packages of the package that are mutated")
    parser.add_argument("--cache", type=Path, help="folder of what was measured")
    parser.add_argument("--equivalents", type=Path)
    options = parser.parse_args()
    chosen = (options.changed is not None, options.whole, options.measure, options.sample)
    if not any((*chosen, options.files)):
        parser.error("say which: --changed, --sample, --files, --whole (or only --measure)")
    options.root = options.root.resolve()
    options.cache = (options.cache or options.root / ".mutants").resolve()
    options.equivalents = options.equivalents or ROOT / "benchmarks" / "mutants_equivalent.toml"
    if options.parts is None:
        folder = options.root / options.package
        options.parts = (
            [p for p in PARTS if (folder / p).is_dir()] if folder == ROOT / PACKAGE else []
        )
    return options


def main() -> int:
    """0: all killed; 1: some survived; 2: nothing could be run."""
    options = arguments()
    sys.path.insert(0, str(options.root))
    os.chdir(options.root)
    importer = Importer(options.root, BEFORE if options.package == PACKAGE else ())
    coverage = recorder(options.root, [options.package])
    bench = Bench(options, importer, coverage)
    coverage.start()
    collect(options.root, bench.main, *options.tests)
    importer.close()
    if not bench.items:
        say("no tests were collected")
        return 2
    return int(getattr(bench, "failed", False))


if __name__ == "__main__":
    sys.exit(main())
