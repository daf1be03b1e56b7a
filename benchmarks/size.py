"""How commands grow with a dump, with the ranks of a run, and what a kept model saves.

    python benchmarks/size.py [--layers 24 96 480] [--ranks 256 1024 4096] [--commands parse,lint]

Dumps: the large ones of the corpus, their layers repeated and renumbered (a sample's without a
corpus, which is not comparable). Runs: a pipeline of two stages with more and more replicas. Every
command runs in a process of its own, first with an empty folder for caches, then again; told are
CPU seconds (children included), the second by the first, how time grows with size (the exponent),
and the bytes of memory that a statement takes at the peak.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from material import ROOT, large, repeated

sys.path.insert(0, str(ROOT))

from comm_ranks import PIPELINES, movable, write_stages  # needs the path above

STAGES = 2
"""Stages of the pipeline in samples/."""
LAYERS = 24
"""Layers of the network in the corpus."""
OF_DUMPS = {
    "parse": ("validate", ("parse",)),
    "lint": ("validate", ("lint", "--devices", "8")),
    "memory": ("validate", ("memory", "--devices", "8")),
    "comm": ("validate", ("comm", "groups", "--devices", "8")),
    "viz": ("validate", ("viz", "-f", "html", "-o", os.devnull)),
    "check": ("begin", ("check", "--devices", "8")),
    "cost": ("begin", ("cost", "--devices", "8")),
}
OF_RUNS = {
    "parse": ("parse",),
    "comm groups": ("comm", "groups"),
    "comm hang": ("comm", "hang"),
    "memory": ("memory",),
    "pipeline": ("pipeline",),
    "lint": ("lint",),
    "doctor": ("doctor",),
}
_COUNT = re.compile(r"(?<=Total number of cnodes: )[0-9]+")
_STATEMENT = re.compile(r"^  (?:%[0-9]+\(.*\) = |Return\()", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """What one process took."""

    seconds: float
    peak: int
    status: int


def run(words: Sequence[str], cache: str) -> Run:
    """Run irtool with some words."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IRTOOL_CACHE_DIR": cache}
    process = subprocess.Popen(
        [sys.executable, "-m", "irtool", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Run(usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, process.returncode)


def words_for(command: Sequence[str], path: str) -> list[str]:
    """The words of a command with a path behind its name."""
    names = 2 if command[0] == "comm" else 1
    return [*command[:names], path, *command[names:]]


def grown(text: str, layers: int) -> tuple[str, int]:
    """A dump with so many layers, and how many statements it has."""
    made = text if layers <= LAYERS else repeated(text, len(text) * layers // LAYERS).decode()
    count = len(_STATEMENT.findall(made))
    return _COUNT.sub(str(count), made), count


def dumps(layers: Iterable[int], commands: Sequence[str]) -> None:
    """Measure commands on dumps."""
    source, texts = large()
    print(source)
    print(f"{'':8} {'layers':>7} {'statements':>10} {'first':>8} {'second':>8} {'second/first':>12}"
          f" {'exponent':>8} {'bytes a statement':>17}")  # fmt: skip
    base = run(["--version"], os.devnull).peak
    before: dict[str, tuple[int, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in layers:
            for kind in ("validate", "begin"):
                text, count = grown(texts[kind].decode("utf-8", "surrogateescape"), number)
                path = Path(folder, f"{kind}.ir")
                path.write_text(text, encoding="utf-8", errors="surrogateescape")
                for name, (of, command) in OF_DUMPS.items():
                    if of != kind or (commands and name not in commands):
                        continue
                    first, second = twice(words_for(command, str(path)), folder)
                    exponent = growth(before.get(name), (count, first.seconds))
                    before[name] = count, first.seconds
                    print(f"{name:8} {number:7,} {count:10,} {first.seconds:8.2f}"
                          f" {second.seconds:8.2f} {second.seconds / first.seconds:12.2f}"
                          f" {exponent:>8} {(first.peak - base) / count:17,.0f}"
                          f"{_failure(first)}", flush=True)  # fmt: skip


def twice(words: Sequence[str], folder: str) -> tuple[Run, Run]:
    """A command with an empty folder for caches, and again; grammars are read from tables."""
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        run(["parse", str(ROOT / "samples" / "search_page_validate.ir")], cache)
        return run(words, cache), run(words, cache)


def growth(before: tuple[int, float] | None, now: tuple[int, float]) -> str:
    """How time grew with size: 1.0 where it is proportional; empty where there is no before."""
    if before is None or before[0] == now[0]:
        return ""
    return f"{math.log(now[1] / before[1]) / math.log(now[0] / before[0]):.2f}"


def _failure(done: Run) -> str:
    return "" if done.status in (0, 1) else f"  exit {done.status}"


def runs(counts: Iterable[int], commands: Sequence[str]) -> None:
    """Measure commands on run folders."""
    print(f"{'':12} {'ranks':>6} {'MB':>6} {'first':>8} {'second':>8} {'second/first':>12}"
          f" {'by ranks':>8} {'by text':>8}")  # fmt: skip
    pipeline = movable(ROOT / "samples" / PIPELINES[0])
    before: dict[str, tuple[int, int, float]] = {}
    for ranks in counts:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "run")
            place.mkdir()
            size = write_stages(place, pipeline, STAGES, ranks)
            for name, command in OF_RUNS.items():
                if commands and name not in commands:
                    continue
                first, second = twice(words_for(command, str(place)), folder)
                old = before.get(name)
                before[name] = ranks, size, first.seconds
                by_ranks = growth(old and (old[0], old[2]), (ranks, first.seconds))
                by_text = growth(old and (old[1], old[2]), (size, first.seconds))
                print(f"{name:12} {ranks:6,} {size / 1e6:6.0f} {first.seconds:8.2f}"
                      f" {second.seconds:8.2f} {second.seconds / first.seconds:12.2f}"
                      f" {by_ranks:>8} {by_text:>8}{_failure(first)}", flush=True)  # fmt: skip


def main() -> None:
    """Measure, and say so."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--layers", type=int, nargs="*", default=[24, 96])
    parser.add_argument("--ranks", type=int, nargs="*", default=[256, 1024])
    parser.add_argument("--commands", default="", help="comma-separated; all if absent")
    options = parser.parse_args()
    commands = [name for name in options.commands.split(",") if name]
    if options.layers:
        dumps(options.layers, commands)
    if options.ranks:
        runs(options.ranks, commands)


if __name__ == "__main__":
    main()
