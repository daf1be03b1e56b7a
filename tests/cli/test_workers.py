"""``--jobs`` and ``--scheduler``: who reads files changes no answer, whatever dies meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from irtool.cli import work
from irtool.cli.main import main
from irtool.cli.work import Workers, run_all, working_with
from irtool.syntax import reader

COMMANDS = [
    ("parse", "--format", "json"),
    ("lint", "--format", "json", "--no-cache"),
    ("comm", "groups", "--format", "json"),
    ("comm", "hang", "--format", "json"),
    ("memory", "--format", "json"),
    ("pipeline", "--format", "json"),
    ("doctor", "--format", "json"),
    ("diff", "--ranks", "--format", "json"),
]


@pytest.fixture
def run(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of two stages, whose dumps all count as large."""
    monkeypatch.setattr("irtool.cli.prefetch.LEAST_KEPT", 1)
    monkeypatch.setattr("irtool.syntax.load.LEAST_KEPT", 1)
    return Path(shutil.copytree(samples / "pipeline_2_stages", tmp_path / "run"))


def answer_of(command: tuple[str, ...], run: Path, *more: str) -> tuple[int, Any]:
    output = run.parent / "answer.json"
    words = command[:2] if command[0] == "comm" else command[:1]
    rest = command[len(words) :]
    status = main([*words, str(run), *rest, *more, "-o", str(output)])
    return status, json.loads(output.read_text()) if output.exists() else None


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_processes_give_the_same_answer(
    command: tuple[str, ...], run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = answer_of(command, run, "--jobs", "1")
    assert alone[1] is not None
    assert answer_of(command, run, "--jobs", "2") == alone


def test_what_processes_read_is_not_parsed_here(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(text: str, path: str = "<text>", records: object = None) -> None:
        raise AssertionError(f"{path} is parsed here")

    def elsewhere(work: Any, items: Any, processes: int, together: int) -> Iterator[Any]:
        with monkeypatch.context() as patch:
            patch.setattr(reader, "loads", real)
            yield from [work_outcome(work, item) for item in items]

    real, work_outcome = reader.loads, work._outcome  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(reader, "loads", refuse)
    monkeypatch.setattr(work, "_in_processes", elsewhere)
    status, answer = answer_of(COMMANDS[2], run, "--jobs", "2", "--no-cache")
    assert status in (0, 1)
    assert answer["groups"]


def test_a_dump_that_no_process_can_read_says_why(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = next(run.glob("rank_1/**/*validate*"))
    damaged.write_bytes(damaged.read_bytes()[:3000])
    alone = answer_of(COMMANDS[2], run, "--jobs", "1")
    said = capsys.readouterr().err
    assert "SYN003" in said
    assert answer_of(COMMANDS[2], run, "--jobs", "2") == alone
    assert capsys.readouterr().err == said


def test_without_dask_or_an_answer_one_line_says_so(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["comm", "groups", str(run), "--scheduler", "tcp://127.0.0.1:9", "--no-cache"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert "Dask" in said[0] or "no scheduler answers" in said[0]


def length_or_death(text: str) -> int:
    """The length of a text; ``die`` ends the process, ``raise`` is an error."""
    if text == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if text == "raise":
        raise ValueError(text)
    return len(text)


@pytest.mark.slow
@pytest.mark.parametrize("together", [1, 3])
def test_neighbours_of_one_that_dies_or_fails_have_their_results(together: int) -> None:
    items = ["a", "die", "bb", "raise", "ccc"]
    died, failed = work.WorkerDied, ValueError
    outcomes = list(run_all(length_or_death, items, 2, bar=False, together=together))
    assert [outcomes[place].get() for place in (0, 2, 4)] == [1, 2, 3]
    for place, error in ((1, died), (3, failed)):
        with pytest.raises(error):
            outcomes[place].get()


# -- a cluster ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    made: Any = distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, dashboard_address=None, silence_logs=50
    )
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_a_cluster_gives_the_same_answer(command: tuple[str, ...], run: Path, cluster: Any) -> None:
    alone = answer_of(command, run, "--jobs", "1")
    assert answer_of(command, run, "--scheduler", cluster.scheduler_address) == alone


def killed_once(path: str) -> str:
    """Kill the process that does this first, whoever it is."""
    try:
        os.mkdir(path + ".done")
    except FileExistsError:
        return path
    os.kill(os.getpid(), signal.SIGKILL)
    return path


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing(cluster: Any, tmp_path: Path) -> None:
    items = [str(tmp_path / str(number)) for number in range(2)]
    with working_with(Workers(scheduler=cluster.scheduler_address)):
        assert [outcome.get() for outcome in run_all(killed_once, items, 1)] == items


@pytest.mark.slow
def test_a_scheduler_that_goes_away_leaves_the_rest_to_this_process(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    distributed = pytest.importorskip("distributed")
    own: Any = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50
    )
    closed: list[str] = []

    items = list(range(40))
    with working_with(Workers(scheduler=own.scheduler_address)):
        got: list[int] = []
        for outcome in run_all(abs, items, 1):
            got.append(outcome.get())
            if not closed:
                own.close()
                closed.append("closed")
    assert got == items
