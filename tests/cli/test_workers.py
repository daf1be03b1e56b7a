"""``--jobs`` and ``--scheduler``: who reads files changes no answer, whatever dies meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from irtool.cli import work
from irtool.cli.main import main
from irtool.cli.work import Workers, run_all, working_with
from irtool.compare.tensors.measuring.cluster import Cluster
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


class Programs:
    """A scheduler and a worker as users start them: programs of their own, which can be killed."""

    def __init__(self, folder: Path) -> None:
        distributed = pytest.importorskip("distributed")
        self._file = str(folder / "scheduler.json")
        self.scheduler = self._start("dask_scheduler", "--port", "0")
        self.worker = self._start("dask_worker", "--nthreads", "1", "--no-nanny")
        with distributed.Client(scheduler_file=self._file, timeout=300) as client:
            client.wait_for_workers(1)
            self.address = client.scheduler.address

    def _start(self, name: str, *more: str) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", f"distributed.cli.{name}", "--no-dashboard"]
        words += ["--scheduler-file", self._file, *more]
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill_scheduler(self) -> None:
        """End it at once."""
        self.scheduler.kill()
        self.scheduler.wait()

    def end(self) -> None:
        """End what still runs."""
        for program in (self.worker, self.scheduler):
            program.kill()
            program.wait()


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    made = Programs(tmp_path)
    yield made
    made.end()


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 20, 40], ids=["at first", "in the middle", "at the end"])
def test_a_scheduler_that_is_killed_leaves_the_rest_to_this_process(
    after: int, programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    items = list(range(40))
    with working_with(Workers(scheduler=programs.address)):
        got: list[int] = []
        for outcome in run_all(abs, items, 1):
            got.append(outcome.get())
            if len(got) == after:
                programs.kill_scheduler()
    assert got == items
    said = capsys.readouterr().err.splitlines()
    assert len(said) <= 2  # that there is a worker, and where the rest is done
    assert "is gone" in said[-1] or after == len(items)


@pytest.mark.slow
def test_a_scheduler_that_is_killed_while_a_command_reads_changes_no_answer(
    run: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = answer_of(COMMANDS[2], run, "--jobs", "1", "--no-cache")
    real = Cluster._submit  # pyright: ignore[reportPrivateUsage]

    def killed(cluster: Cluster, work: Any, chunk: Any) -> Any:
        handed = real(cluster, work, chunk)
        programs.kill_scheduler()
        return handed

    monkeypatch.setattr(Cluster, "_submit", killed)
    given = ("--scheduler", programs.address, "--no-cache")
    assert answer_of(COMMANDS[2], run, *given) == alone
