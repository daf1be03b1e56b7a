"""How commands grow with a dump, with the ranks of a run, and what a kept model saves.

    python benchmarks/size.py [--layers 24 96 480] [--ranks 256 1024 4096] [--commands parse,lint]
    python benchmarks/size.py --layers --ranks 256 1024 4096 --table    # that of docs/large-runs.md

Dumps: the large ones of the corpus, their layers repeated and renumbered (a sample's without a
corpus, which is not comparable). Runs: a pipeline of two stages with more and more replicas. Every
command runs in a process of its own, its modules compiled as an installation has them: first with
an empty folder for caches, then where another command read the same dumps before, then again. Told
are CPU seconds (children included), the others by the first, how time grows with size (the
exponent), and the bytes of memory that a statement takes at the peak.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from material import ROOT, large, repeated

sys.path.insert(0, str(ROOT))

from comm_ranks import PIPELINES, movable, write_stages  # needs the path above

STAGES = 2
"""Stages of the pipeline in samples/."""
LAYERS = 24
"""Layers of the network in the corpus."""
OTHER = "OTHER"
"""Stands for the validate dump of the same size."""
OF_DUMPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "parse": ("validate", ("parse",)),
    "lint": ("validate", ("lint", "--devices", "8")),
    "memory": ("validate", ("memory", "--devices", "8")),
    "comm": ("validate", ("comm", "groups", "--devices", "8")),
    "viz": ("validate", ("viz", "-f", "html", "-o", os.devnull)),
    "check": ("begin", ("check", "--devices", "8")),
    "cost": ("begin", ("cost", "--devices", "8")),
    "diff": ("begin", ("diff", OTHER)),
}
OF_RUNS = {
    "parse": ("parse",),
    "comm groups": ("comm", "groups"),
    "comm hang": ("comm", "hang"),
    "memory": ("memory",),
    "pipeline": ("pipeline",),
    "lint": ("lint",),
    "doctor": ("doctor",),
    "diff": ("diff", OTHER),
}
_COUNT = re.compile(r"(?<=Total number of cnodes: )[0-9]+")
_STATEMENT = re.compile(r"^  (?:%[0-9]+\(.*\) = |Return\()", re.MULTILINE)


COMPILED: dict[str, str] = {}
"""Where compiled modules are, as a variable of the environment."""


@dataclass(frozen=True)
class Run:
    """What one process took."""

    seconds: float
    peak: int
    status: int


def run(words: Sequence[str], cache: str) -> Run:
    """Run irtool with some words."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IRTOOL_CACHE_DIR": cache, **COMPILED}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "irtool", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Run(usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, process.returncode)


def words_for(command: Sequence[str], *paths: str) -> list[str]:
    """The words of a command with paths behind its name."""
    names = 2 if command[0] == "comm" else 1
    return [*command[:names], *paths, *command[names:]]


def grown(text: str, layers: int) -> tuple[str, int]:
    """A dump with so many layers, and how many statements it has."""
    made = text if layers <= LAYERS else repeated(text, len(text) * layers // LAYERS).decode()
    count = len(_STATEMENT.findall(made))
    return _COUNT.sub(str(count), made), count


def dumps(layers: Iterable[int], commands: Sequence[str]) -> None:
    """Measure commands on dumps."""
    source, texts = large()
    print(source)
    print(f"{'':8} {'layers':>7} {'statements':>10} {'first':>8} {'after another':>13} {'again':>6}"
          f" {'exponent':>8} {'bytes a statement':>17}")  # fmt: skip
    base = run(["--version"], os.devnull).peak
    before: dict[str, tuple[int, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in layers:
            counts: dict[str, int] = {}
            for kind in ("validate", "begin"):
                text, counts[kind] = grown(texts[kind].decode("utf-8", "surrogateescape"), number)
                path = Path(folder, f"{kind}.ir")
                path.write_text(text, encoding="utf-8", errors="surrogateescape")
            for name, (of, command) in OF_DUMPS.items():
                if commands and name not in commands:
                    continue
                paths = [str(Path(folder, f"{of}.ir"))]
                if OTHER in command:
                    paths.append(str(Path(folder, "validate.ir")))
                words = words_for([word for word in command if word != OTHER], *paths)
                first, after, again = three_times(words, paths, folder)
                count = counts[of] + (counts["validate"] if OTHER in command else 0)
                exponent = growth(before.get(name), (count, first.seconds))
                before[name] = count, first.seconds
                print(f"{name:8} {number:7,} {count:10,} {first.seconds:8.2f}"
                      f" {after.seconds / first.seconds:13.2f}"
                      f" {again.seconds / first.seconds:6.2f}"
                      f" {exponent:>8} {(first.peak - base) / count:17,.0f}"
                      f"{_failure(first)}", flush=True)  # fmt: skip


def three_times(words: Sequence[str], paths: Sequence[str], folder: str) -> tuple[Run, Run, Run]:
    """A command with an empty folder for caches, after another command, and again.

    Grammars and the table of operators are there from the start, as a wheel has them.
    """
    other = ["comm", "groups", "--devices", "8"] if words[0] == "parse" else ["parse"]
    with tempfile.TemporaryDirectory(dir=folder) as made, tempfile.TemporaryDirectory() as second:
        for cache in (made, second):
            run(["check", str(ROOT / "samples" / "mlp_semi_auto")], cache)
        first = run(words, made)
        for path in paths:
            run(words_for(other, path), second)
        return first, run(words, second), run(words, made)


def growth(before: tuple[int, float] | None, now: tuple[int, float]) -> str:
    """How time grew with size: 1.0 where it is proportional; empty where there is no before."""
    if before is None or before[0] == now[0]:
        return ""
    return f"{math.log(now[1] / before[1]) / math.log(now[0] / before[0]):.2f}"


def _failure(done: Run) -> str:
    return "" if done.status in (0, 1) else f"  exit {done.status}"


def runs(counts: Sequence[int], commands: Sequence[str], as_table: bool) -> None:
    """Measure commands on run folders, each in one process."""
    if not as_table:
        print(f"{'':12} {'ranks':>6} {'MB':>6} {'first':>8} {'after another':>13} {'again':>6}"
              f" {'by ranks':>8} {'by text':>8}")  # fmt: skip
    pipeline = movable(ROOT / "samples" / PIPELINES[0])
    sizes: dict[int, int] = {}
    measured: dict[str, dict[int, tuple[Run, Run, Run]]] = {name: {} for name in OF_RUNS}
    for number, ranks in enumerate(counts):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "run")
            place.mkdir()
            sizes[ranks] = write_stages(place, pipeline, STAGES, ranks)
            (other := Path(folder, "other")).mkdir()
            write_stages(other, pipeline, STAGES, ranks)
            for name, command in OF_RUNS.items():
                if commands and name not in commands:
                    continue
                paths = [str(place), str(other)] if OTHER in command else [str(place)]
                words = words_for([word for word in command if word != OTHER], *paths)
                words += ["--jobs", "1"]
                first, after, again = three_times(words, paths, folder)
                measured[name][ranks] = first, after, again
                if as_table:
                    continue
                by_ranks = by_text = ""
                if number:
                    old = counts[number - 1]
                    known = measured[name][old][0].seconds
                    by_ranks = growth((old, known), (ranks, first.seconds))
                    by_text = growth((sizes[old], known), (sizes[ranks], first.seconds))
                print(f"{name:12} {ranks:6,} {sizes[ranks] / 1e6:6.0f} {first.seconds:8.2f}"
                      f" {after.seconds / first.seconds:13.2f}"
                      f" {again.seconds / first.seconds:6.2f}"
                      f" {by_ranks:>8} {by_text:>8}{_failure(first)}", flush=True)  # fmt: skip
    if as_table:
        print(*_table(sizes, measured), sep="\n")


def _table(
    sizes: Mapping[int, int], measured: Mapping[str, Mapping[int, tuple[Run, Run, Run]]]
) -> Iterable[str]:
    """Rows for a page of the documentation, all measured alike."""
    heads = [f"{ranks:,} ({size / 1e6:.0f} MB)" for ranks, size in sizes.items()]
    last = max(sizes)
    heads += [f"memory at {last:,}", "after another command", "the same again"]
    yield f"| ranks (text) | {' | '.join(heads)} |"
    yield "| --- |" + " ---: |" * len(heads)
    for name, by_ranks in measured.items():
        if by_ranks:
            cells = [f"{first.seconds:.1f} s{_failure(first)}" for first, _, _ in by_ranks.values()]
            first, after, again = by_ranks[last]
            cells += [f"{first.peak / 1e6:.0f} MB"]
            cells += [f"{one.seconds / first.seconds:.2f} of the first" for one in (after, again)]
            yield f"| `{name}` | {' | '.join(cells)} |"


def main() -> None:
    """Measure, and say so."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--layers", type=int, nargs="*", default=[24, 96])
    parser.add_argument("--ranks", type=int, nargs="*", default=[256, 1024])
    parser.add_argument("--commands", default="", help="comma-separated; all if absent")
    parser.add_argument("--table", action="store_true", help="of ranks, as the documentation's")
    options = parser.parse_args()
    commands = [name for name in options.commands.split(",") if name]
    with tempfile.TemporaryDirectory() as compiled:
        COMPILED["PYTHONPYCACHEPREFIX"] = compiled
        compiling = [sys.executable, "-m", "compileall", "-q", str(ROOT / "irtool")]
        subprocess.run(compiling, env={**os.environ, **COMPILED}, check=True)
        if options.layers:
            dumps(options.layers, commands)
        if options.ranks:
            runs(options.ranks, commands, options.table)


if __name__ == "__main__":
    main()
