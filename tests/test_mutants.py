"""The mutation gate kills what tests notice and reports what they don't, on a made-up package."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import mutants_tests

DRIVER = Path(__file__).resolve().parents[1] / "benchmarks" / "mutants.py"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs to fork")

SOURCE = """\
from time import sleep
LIMIT = 3.0
OTHER_LIMIT = 4.0
def is_big(number):
    return number >= LIMIT
def is_negative(number):
    if number < 0:
        return True
    return False
def never_called(number):
    return number + 1
def counted_down(number):
    while number > 0:
        number -= 1
    return number
PAUSE = 0.0
def rested():
    sleep(PAUSE)
    return True
DOZEN = 12.0
SCORE = DOZEN + 8.0
def is_score(number):
    return number == SCORE
FEW = 2
MANY = FEW + 1
def is_few(number):
    return number <= FEW
"""

TABLE = "most = 7\nunread = 5\n"
READER = """\
from pathlib import Path
def most():
    lines = Path(__file__).with_name("limits.toml").read_text().splitlines()
    return int(lines[0].split("=")[1])
"""

TESTS = """\
from tiny.sizes import LIMIT, OTHER_LIMIT, counted_down, is_big, is_negative, rested
from tiny.sizes import is_few, is_score
from tiny.tables import most
def test_from_three_on_a_number_is_big():
    assert is_big(3.0)
    assert not is_big(2.9)
def test_below_zero():
    assert is_negative(-1) and not is_negative(1)
def test_down_to_zero():
    assert counted_down(3) == 0
def test_rested():
    assert rested()
def test_score():
    assert is_score(20.0)
def test_two_are_few():
    assert is_few(2)
def test_the_most_of_the_operator_most():
    assert most() == 7
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("project")
    for name, text in {
        "tiny/__init__.py": "",
        "tiny/sizes.py": SOURCE,
        "tiny/tables.py": READER,
        "tiny/limits.toml": TABLE,
        "tests/test_sizes.py": TESTS,
        "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['.']\nmarkers = ['corpus']\n",
        "equivalent.toml": '[[mutant]]\nfile = "tiny/sizes.py"\nfunction = "is_negative"\n'
        'before = "<"\nafter = "<="\nreason = "made up"\n',
    }.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    options = ("--package", "tiny", "--equivalents", str(root / "equivalent.toml"))
    command = [sys.executable, str(DRIVER), "--whole", "--root", str(root), *options]
    environment = {**os.environ, "MUTANTS_PATIENCE": "1", "MUTANTS_WAITING": "1000"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_a_number_of_a_table_that_a_test_reads_is_killed(report: str) -> None:
    found = re.findall(r"SURVIVED tiny/limits\.toml:(\d+)", report)
    assert found == ["2"]


def survivors(report: str) -> list[tuple[str, str]]:
    """Line and replacement of every survivor."""
    return re.findall(r"SURVIVED tiny/sizes\.py:(\d+) .*\n  -.*\n  \+ *(.*)", report)


def test_what_a_test_notices_is_killed(report: str) -> None:
    lines = {line for line, _ in survivors(report)}
    assert not lines & {"2", "5"}


def test_a_limit_that_no_test_looks_at_survives(report: str) -> None:
    assert ("3", "OTHER_LIMIT = 16.0") in survivors(report)


def test_a_boundary_without_a_test_on_it_survives(report: str) -> None:
    assert ("7", "if number < 1:") in survivors(report)


def test_a_value_that_another_is_made_of_when_the_module_is_imported_is_killed(report: str) -> None:
    assert not {"20", "21"} & {line for line, _ in survivors(report)}


def test_one_side_of_a_limit_alone_does_not_kill_the_other(report: str) -> None:
    assert ("24", "FEW = 3") in survivors(report)


def test_what_no_test_calls_is_said_to_be_untouched(report: str) -> None:
    assert re.search(r"SURVIVED tiny/sizes.py:11 never_called .*\(0 of 0 tests", report)


def test_a_loop_without_end_is_killed_by_its_time(report: str) -> None:
    row = re.search(
        r"^all +(\d+) +(\d+) +\d+% +\( +(\d+) +(\d+)\) +(\d+) +(\d+) +(\d+)", report, re.MULTILINE
    )
    assert row is not None
    killed, of, timeouts, crashes, survived, untouched, equivalent = map(int, row.groups())
    assert timeouts >= 1
    assert crashes == 0
    assert killed + survived == of
    assert survived == report.count("SURVIVED ")
    assert untouched == 2
    assert equivalent == 1


def test_waiting_is_no_failure(report: str) -> None:
    # Four seconds by the clock on the wall, of one that the test may compute.
    assert ("16", "PAUSE = 4.0") in survivors(report)


# -- values at the top of a module ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "is_read_later"),
    [("PAUSE", True), ("OTHER_LIMIT", True), ("DOZEN", False), ("FEW", False)],
)
def test_a_value_that_only_functions_read_needs_no_new_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_read_later: bool
) -> None:
    monkeypatch.syspath_prepend(str(DRIVER.parent))
    constants = importlib.import_module("mutants_constants")
    syntax = importlib.import_module("mutants_syntax")
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny/sizes.py").write_text(SOURCE)
    mutants = syntax.mutants_of(SOURCE.encode(), "tiny/sizes.py")
    line = SOURCE.splitlines().index(next(t for t in SOURCE.splitlines() if t.startswith(name)))
    mutant = next(m for m in mutants if m.line == line + 1)
    assert (constants.Values(tmp_path, ("tiny",)).of(mutant) is not None) == is_read_later


def test_all_that_import_a_value_read_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(DRIVER.parent))
    monkeypatch.syspath_prepend(str(tmp_path))
    constants = importlib.import_module("mutants_constants")
    syntax = importlib.import_module("mutants_syntax")
    (tmp_path / "lent").mkdir()
    sources = {
        "__init__": "",
        "limits": "LIMIT = 3.0\n",
        "handed": "from lent.limits import LIMIT as MOST\n",
        "again": "from lent.handed import MOST\ndef most():\n    return MOST\n",
        "apart": "LIMIT = 3.0\n",
    }
    for module, text in sources.items():
        (tmp_path / f"lent/{module}.py").write_text(text)
    again, apart = (importlib.import_module(f"lent.{name}") for name in ("again", "apart"))
    mutant = syntax.mutants_of(sources["limits"].encode(), "lent/limits.py")[0]
    assert constants.Values(tmp_path, ("lent",)).of(mutant).put()
    assert again.most() == float(mutant.after)
    assert apart.LIMIT == 3.0


def test_assertions_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DRIVER.parent))
    syntax = importlib.import_module("mutants_syntax")
    source = b"def f(a, b):\n    assert a\n    return list(zip(a, b, strict=%s))\n"
    for strict in (b"True", b"False"):
        assert syntax.mutants_of(source % strict, "tiny/m.py") == []
    assert syntax.mutants_of(b"def f(a):\n    return g(a, open=True)\n", "tiny/m.py")


# -- what becomes of a child ---------------------------------------------------------------------


def last_word(work: Callable[[Callable[[Any], None]], None]) -> Any:
    """What is told last of a child that may use a second of CPU."""
    return list(mutants_tests.in_child(work, lambda _: 1.0))[-1]


def test_a_child_that_computes_too_long_is_stopped() -> None:
    def work(tell: Callable[[Any], None]) -> None:
        tell("begins")
        while True:
            pass

    assert last_word(work) == "timeout"


def test_a_child_that_waits_for_ever_is_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants_tests, "WAITING", 0.5)

    def work(tell: Callable[[Any], None]) -> None:
        tell("begins")
        time.sleep(60)

    assert last_word(work) == "undecided"


def test_every_test_has_its_own_seconds() -> None:
    def work(tell: Callable[[Any], None]) -> None:
        for number in range(3):
            tell(number)
            until = time.process_time() + 0.6
            while time.process_time() < until:
                pass
        tell("done")

    assert last_word(work) == 2


def test_a_child_that_breaks_has_crashed() -> None:
    def work(tell: Callable[[Any], None]) -> None:
        tell("begins")
        os.abort()

    assert last_word(work) == "crash"


def test_a_child_says_why_it_broke() -> None:
    def work(tell: Callable[[Any], None]) -> None:
        raise ValueError("no more room")

    assert list(mutants_tests.in_child(work, lambda _: 1.0)) == [
        {"broke": "ValueError('no more room')"},
        "crash",
    ]


# -- what tests touch, when the code changes -----------------------------------------------------

BEFORE = b"a = 1\ndef f(x):\n    if x:\n        return 1\n    return 2\n"
AFTER = b"# top\na = 1\ndef f(x):\n    if x > 0:\n        return 1\n    y = 3\n    return 2\n"


def test_lines_are_numbered_anew_and_what_is_new_is_reached_from_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(DRIVER.parent))
    coverage = importlib.import_module("mutants_coverage")
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny/m.py").write_bytes(BEFORE)
    first = coverage.TestMap(tmp_path / "tests.sqlite", tmp_path, "tiny")
    first.renew([], print, 0, are_all=False)
    for name, lines in (("one", [1, 2, 3, 5]), ("two", [1, 2])):
        found = {"seconds": 1.0, "ok": True, "lines": {"tiny/m.py": lines}}
        first._keep(SimpleNamespace(nodeid=f"tests/a.py::{name}"), "hash", found)
    first.database.commit()
    (tmp_path / "tiny/m.py").write_bytes(AFTER)
    then = coverage.TestMap(tmp_path / "tests.sqlite", tmp_path, "tiny")
    then.renew([], print, 0, are_all=False)
    both = ["tests/a.py::one", "tests/a.py::two"]
    touching = {line: sorted(then.touching("tiny/m.py", line)) for line in (2, 3, 4, 5, 6, 7)}
    assert touching == {2: both, 3: both, 4: both[:1], 5: [], 6: both[:1], 7: both[:1]}
    # Only who touched a line that is gone is measured again.
    assert then._hashes() == {"tests/a.py::one": coverage.OLD, "tests/a.py::two": "hash"}


def test_the_first_case_of_a_test_speaks_of_those_that_are_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(DRIVER.parent))
    coverage = importlib.import_module("mutants_coverage")
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny/m.py").write_bytes(BEFORE)
    tests = coverage.TestMap(tmp_path / "tests.sqlite", tmp_path, "tiny")
    found = {"seconds": 2.0, "ok": True, "lines": {"tiny/m.py": [3]}}
    tests._keep(SimpleNamespace(nodeid="tests/a.py::one[1]"), "hash", found)
    tests.stand_for({"tests/a.py::one[1]", "tests/a.py::one[2]", "tests/a.py::two"})
    assert sorted(tests.touching("tiny/m.py", 3)) == ["tests/a.py::one[1]", "tests/a.py::one[2]"]
    assert tests.seconds() == {"tests/a.py::one[1]": 2.0, "tests/a.py::one[2]": 2.0}
    # Of answers, those of the same command.
    tests._keep(SimpleNamespace(nodeid="tests/test_net.py::kept[a/check.txt]"), "hash", found)
    others = {f"tests/test_net.py::kept[b/{name}.txt]" for name in ("check", "lint")}
    tests.stand_for(others)
    assert others & set(tests.touching("tiny/m.py", 3)) == {"tests/test_net.py::kept[b/check.txt]"}


def test_what_ends_every_process_is_no_fault_of_the_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without memory must not leave a map in which tests are missing for ever."""
    monkeypatch.syspath_prepend(str(DRIVER.parent))
    coverage = importlib.import_module("mutants_coverage")
    (tmp_path / "tiny").mkdir()
    (tmp_path / "test_a.py").write_bytes(b"")
    tests = coverage.TestMap(tmp_path / "tests.sqlite", tmp_path, "tiny")

    def broken(items: Any, tell: Callable[[Any], None]) -> None:
        raise MemoryError

    monkeypatch.setattr(tests, "_record", broken)
    items = [SimpleNamespace(nodeid=f"test_a.py::{number}") for number in range(20)]
    said: list[str] = []
    tests.renew(items, said.append, 60)
    assert said[-1] == "5 processes ended at their first test: 15 are not measured"
    assert "crash at test_a.py::0 MemoryError()" in said
    # Not one is taken as known: all are measured once there is memory.
    tests.renew(items, said.append, 0)
    assert set(tests._hashes().values()) == {coverage.OLD}
