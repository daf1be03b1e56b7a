"""What once made irtool break stays mended, and a few hundred fresh mutations are answered.

``benchmarks/fuzz.py`` runs long; what it finds is kept under ``findings``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="limits of time and memory are POSIX's")

from benchmarks.fuzzing import dumps, pool, text
from benchmarks.fuzzing.case import READ, Case, kept_cases, read_case
from benchmarks.fuzzing.make import COMMANDS, make, mutators
from benchmarks.fuzzing.minimise import minimised
from benchmarks.fuzzing.pool import Worker
from benchmarks.fuzzing.tally import State, Tally, clean_cells, merged, report
from benchmarks.fuzzing.trial import Outcome, try_case

FINDINGS = Path(__file__).parent / "findings"
SEED = 20
READS, ANALYSES = 60, 60
"""Cases of the smoke: some ten seconds."""
PATIENCE = 4.0
"""How much longer than usual a case may take beside other tests."""


@pytest.fixture(autouse=True)
def _as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a rule stumbles over is told, not raised as in other tests."""
    from irtool.operators import guard

    monkeypatch.setattr(guard, "strict", False)


@pytest.mark.parametrize("folder", kept_cases(FINDINGS), ids=lambda folder: folder.name)
def test_a_finding_stays_mended(folder: Path) -> None:
    outcome = try_case(read_case(folder), PATIENCE)
    assert outcome.kind == "clean", outcome.what


@pytest.mark.parametrize("part", range(4))
def test_fresh_mutations_are_read_and_printed_back(part: int) -> None:
    for number in range(part, READS, 4):
        _check(number, reads=1.0)


@pytest.mark.parametrize("part", range(6))
def test_fresh_mutations_are_analysed(part: int) -> None:
    for number in range(part, ANALYSES, 6):
        _check(number, reads=0.0)


def _check(number: int, reads: float) -> None:
    case = make(SEED, number, large=0.0, reads=reads)
    outcome = try_case(case, PATIENCE)
    assert outcome.kind == "clean", f"{number}: {case.argv} {outcome.signature}\n{outcome.what}"


def test_every_command_is_tried() -> None:
    from irtool.cli.commands import COMMANDS as ALL

    # An editor's server answers requests, and has tests of its own with damaged texts.
    assert {command.words[0] for command in COMMANDS} | {"rules", "lsp"} == set(ALL)


def test_every_command_meets_every_mutator() -> None:
    count = len(COMMANDS) * len(mutators())
    cases = [make(SEED, number, large=0.0, reads=0.0) for number in range(2 * count)]
    met = {(case.command, case.mutator) for case in cases}
    of_dumps = [pair for pair in met if pair[1] in mutators()]
    assert len(of_dumps) > 0.9 * len(COMMANDS) * len(set(mutators()))
    assert {case.command for case in cases} == {command.name for command in COMMANDS} | {"rules"}


def test_a_number_makes_the_same_case_again() -> None:
    assert make(3, 5, large=0.0) == make(3, 5, large=0.0)
    assert make(3, 5, large=0.0) != make(4, 5, large=0.0)


def test_every_mutation_changes_something(samples: Path) -> None:
    from random import Random

    source = (samples / "mlp_semi_auto" / "20_validate_0080.ir").read_text()
    begin = (samples / "mlp_semi_auto" / "step_parallel_begin_0018.ir").read_text()
    for name, mutation in dumps.MUTATIONS.items():
        changed = {
            mutation(Random(at), original) for at in range(8) for original in (source, begin)
        }
        assert changed - {source, begin}, name
    for name, mutate in text.MUTATIONS.items():
        assert {mutate(Random(at), source.encode()) for at in range(8)} - {source.encode()}, name


def test_a_crash_a_hang_and_a_wrong_status_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.fuzzing import trial

    def crash(_case: Case) -> int:
        raise KeyError("x")

    def hang(_case: Case) -> int:
        while True:
            pass

    case = Case("parse", "none", ("parse", "a.ir", "--format", "json"), {"a.ir": b""}, ())
    kinds: list[str] = []
    for replaced in (crash, hang, lambda _case: 3, lambda _case: 2, lambda _case: 0):
        monkeypatch.setattr(trial, "_main", replaced)
        kinds.append(try_case(case, 0.005).kind)
    assert kinds == ["crash", "hang", "status", "status", "output"]


def test_a_dump_that_is_not_printed_back_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    import irtool

    monkeypatch.setattr(irtool, "dumps", lambda _dump: "", raising=False)
    case = Case(READ, "none", (), {"a.ir": b"x\n"}, ())
    assert try_case(case).kind == "crash"


class _Picky(Worker):
    """Finds something wrong with every dump that holds both marks."""

    def run_case(self, case: Case) -> Outcome:
        found = all(mark in case.files.get("a.ir", b"") for mark in (b"alpha", b"beta"))
        return Outcome("crash", "place") if found else Outcome()


def test_a_finding_is_made_small() -> None:
    lines = b"\n".join([b"nothing"] * 40 + [b"it is alpha"] + [b"nothing"] * 9 + [b"and beta"])
    case = Case("parse", "none", ("parse", "a.ir", "--limit", "3"), {"a.ir": lines, "b": b"x"}, ())
    smaller = minimised(case, "crash place", _Picky(), 60)
    assert smaller.files in ({"a.ir": b"alphabeta"}, {"a.ir": b"alpha\nbeta"})
    assert smaller.argv == ("parse", "a.ir")


def test_the_driver_goes_on_where_it_stopped(tmp_path: Path) -> None:
    driver = Path(__file__).resolve().parents[2] / "benchmarks" / "fuzz.py"
    words = [sys.executable, str(driver), "--seconds", "1.5", "--seed", "2", "--reads", "1"]
    numbers: list[int] = []
    for _ in range(2):
        subprocess.run([*words, "--large", "0", "--out", str(tmp_path)], check=True, timeout=120)
        numbers.append(State.read(tmp_path / "state.json").seeds["2"])
    assert 0 < numbers[0] < numbers[1]
    (tally,) = State.read(tmp_path / "state.json").tallies.values()
    assert tally.cells.total() == numbers[1]


_DIES_ONCE = """
import json, os, sys
mark = {mark!r}
for line in sys.stdin:
    for number in json.loads(line)["numbers"]:
        if number == 3 and not os.path.exists(mark):
            open(mark, "w").close()
            os._exit(7)
        outcome = {{"kind": "clean"}}
        print(json.dumps({{"number": number, "outcome": outcome, "resident": 0}}), flush=True)
"""


def test_cases_go_on_behind_one_that_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "worker.py"
    script.write_text(_DIES_ONCE.format(mark=str(tmp_path / "mark")))
    monkeypatch.setattr(pool, "COMMAND", (str(script),))
    with Worker() as worker:
        told = list(worker.run_numbers({}, range(1, 6)))
    assert [each["number"] for each in told] == [1, 2, 3, 4, 5]
    assert [each["outcome"]["kind"] for each in told] == [
        "clean", "clean", "crash", "clean", "clean",
    ]  # fmt: skip
    assert told[2]["outcome"]["site"] == "process ended with 7"


def test_a_finding_takes_back_what_its_command_was_tried_with_before() -> None:
    early, late = Tally("a", "1"), Tally("b", "2")
    for tally, kind in ((early, "crash"), (late, "clean")):
        for command in ("plan", "check"):
            told = {"command": command, "mutator": "types", "format": "json", "size": 2_000_000}
            tally.add(told, Outcome(kind if command == "plan" else "clean", "place"))
    assert clean_cells([early, late]) == {
        ("plan", "types", "large"): 1,
        ("check", "types", "large"): 2,
    }
    assert clean_cells([early]) == {("check", "types", "large"): 1}


def test_counts_of_several_folders_add_up(tmp_path: Path) -> None:
    states: list[State] = []
    for name in ("one", "other"):
        state = State()
        told = {"command": READ, "mutator": "types", "format": "", "size": 5}
        state.of("revision").add(told, Outcome())
        state.write(tmp_path / name)
        states.append(State.read(tmp_path / name))
    (tally,) = merged(states)
    assert tally.cells == {f"{READ} | types | small": 2}
    assert "2 reads (0 of more than 1 MB), 0 analyses" in next(report([tally], ["types"]))
