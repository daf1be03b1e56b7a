"""What commands answer while workers and the scheduler of a Dask cluster are killed.

    python benchmarks/scheduler_kills.py [--seed 1] [--kills 2] [--commands parse,lint]

A scheduler and three workers of this machine, programs of their own, read a run of six ranks that
all differ. Each command runs alone, with the cluster, and with the cluster while a worker, then the
scheduler, is killed at a random moment after the command found its workers. What counts: the same
output and exit status as alone, or exit status 2 with one line. Needs irtool[dask].
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from material import ROOT, repeated

WORKERS = 3
RANKS = 6
_SMALLEST = 300_000
"""Bytes of the first rank's dump: from 256 kB on, all commands let the cluster read."""
COMMANDS = {
    "parse": ("parse",),
    "lint": ("lint",),
    "comm groups": ("comm", "groups"),
    "comm hang": ("comm", "hang"),
    "memory": ("memory",),
    "pipeline": ("pipeline",),
    "doctor": ("doctor",),
    "diff": ("diff",),
}
_PYTHON = {**os.environ, "PYTHONPATH": str(ROOT), "DASK_LOGGING__DISTRIBUTED": "critical"}


@dataclass(frozen=True)
class Answer:
    """What a command wrote, how long it took in all, and until it had its workers."""

    status: int
    output: bytes
    errors: str
    seconds: float
    connected: float = 0.0
    killed: bool = False


class Programs:
    """A scheduler and its workers, started again after each kill."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self.start()

    def start(self) -> None:
        """Start all of them, and wait until the workers are there."""
        from dask.distributed import Client

        self._count += 1
        place = self._folder / f"scheduler-{self._count}.json"
        words = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self.scheduler = self._started("dask_scheduler", place, *words)
        while not place.exists():
            time.sleep(0.1)
        self.workers = [
            self._started("dask_worker", place, "--nthreads", "1", "--no-nanny", "--no-dashboard")
            for _ in range(WORKERS)
        ]
        with Client(scheduler_file=str(place), timeout=300) as client:  # type: ignore[no-untyped-call]
            client.wait_for_workers(WORKERS, timeout=300)
            self.address = client.scheduler.address

    def _started(self, module: str, place: Path, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *words]
        command += ["--scheduler-file", str(place)]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, stdout=quiet, stderr=quiet, env=_PYTHON, cwd=self._folder)

    def stop(self) -> None:
        """Kill all of them."""
        for program in (*self.workers, self.scheduler):
            program.kill()
            program.wait()


def write_run(folder: Path, text: str) -> None:
    """A run whose ranks differ in how many statements they have."""
    for rank in range(RANKS):
        place = folder / f"rank_{rank}"
        place.mkdir(parents=True)
        (place / "20_validate_0080.ir").write_bytes(repeated(text, _SMALLEST + rank * 60_000))


def answer(
    words: Sequence[str], kill: subprocess.Popen[bytes] | None = None, after: float = 0.0
) -> Answer:
    """Run irtool, and kill a program so many seconds after it said who its workers are."""
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "irtool", *words, "--no-cache"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_PYTHON,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    said: list[bytes] = []
    connected: list[float] = []
    is_connected = threading.Event()

    def listen(stream: IO[bytes]) -> None:
        for line in stream:
            said.append(line)
            if b" workers at " in line:
                connected.append(time.monotonic() - begun)
                is_connected.set()
        is_connected.set()

    listener = threading.Thread(target=listen, args=(process.stderr,))
    listener.start()
    killed = threading.Event()

    def end() -> None:
        if kill is not None:
            kill.kill()
            killed.set()

    killer = threading.Timer(after, end)
    if kill is not None:
        is_connected.wait()
        killer.start()
    output = process.stdout.read()
    status = process.wait()
    seconds = time.monotonic() - begun
    listener.join()
    killer.cancel()
    errors = b"".join(said).decode()
    return Answer(
        status, output, errors, seconds, connected[0] if connected else 0.0, killed.is_set()
    )


def verdict(alone: Answer, other: Answer) -> str:
    """Whether an answer counts."""
    if (other.status, other.output) == (alone.status, alone.output):
        return "same"
    lines = [line for line in other.errors.splitlines() if not line.startswith(" ")]
    if other.status == 2 and not other.output and len(lines) <= 2:
        return f"one line: {lines[-1] if lines else ''}"
    return f"DIFFERS: exit {other.status} for {alone.status}, {other.errors[-300:]!r}"


def main() -> None:
    """Measure, and say so."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=1, help="of a worker, and of the scheduler")
    parser.add_argument("--commands", default="", help="comma-separated; all if absent")
    options = parser.parse_args()
    wanted = options.commands.split(",") if options.commands else list(COMMANDS)
    moments = random.Random(options.seed)
    text = (ROOT / "samples" / "gpt" / "20_validate_0080.ir").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_run(folder / "run", text)
        write_run(folder / "other", text.replace("Default", "Default", 1))
        programs = Programs(folder)
        for command in wanted:
            words = [*COMMANDS[command], str(folder / "run")]
            if command == "diff":
                words.append(str(folder / "other"))
            alone = answer([*words, "--jobs", "1"])
            undisturbed = answer([*words, "--scheduler", programs.address])
            print(f"{command:12} exit {alone.status}, alone {alone.seconds:.1f} s,"
                  f" with {WORKERS} workers {undisturbed.seconds:.1f} s:"
                  f" {verdict(alone, undisturbed)}", flush=True)  # fmt: skip
            for _ in range(options.kills):
                for victim in ("worker", "scheduler"):
                    target = programs.workers[0] if victim == "worker" else programs.scheduler
                    working = undisturbed.seconds - undisturbed.connected
                    moment = moments.uniform(0.0, 0.3) * working
                    asked = [*words, "--scheduler", programs.address]
                    said = answer(asked, target, moment)
                    when = f"killed after {said.connected + moment:.1f} of {said.seconds:.1f} s"
                    print(f"{'':12} {victim} {when if said.killed else 'not killed in time'}:"
                          f" {verdict(alone, said)}", flush=True)  # fmt: skip
                    if said.killed:
                        programs.stop()
                        programs.start()
        programs.stop()


if __name__ == "__main__":
    main()
