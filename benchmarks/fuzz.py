"""Mutated dumps, contexts, payloads, logs, rules and settings through every command.

    python benchmarks/fuzz.py --seconds 600 --seed 7
    python benchmarks/fuzz.py --report /tmp/irtool-fuzz-7 /tmp/irtool-fuzz-8
    python benchmarks/fuzz.py --replay tests/fuzz/findings

Cases are made by number, so a seed and a number make the same case again.  They run in a process
with a limit of time and memory a case; what crashes, hangs, takes too much, ends with a wrong
status, writes what its format doesn't allow, or answers differently in another process, is a
finding.  Findings are made small and kept in the folder of the run, one of each kind.  A run goes
on where it was stopped, and several seeds may share a folder; counts are by revision, command and
mutator.  Exit status 1: there are findings of this revision.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.fuzzing.case import Case, kept_cases, read_case  # noqa: E402
from benchmarks.fuzzing.make import make, mutators  # noqa: E402
from benchmarks.fuzzing.minimise import minimised  # noqa: E402
from benchmarks.fuzzing.pool import Worker  # noqa: E402
from benchmarks.fuzzing.tally import State, Tally, matrix, merged, report  # noqa: E402
from benchmarks.fuzzing.trial import Outcome  # noqa: E402

_AGAIN = 0.02
"""The share of cases that run again in a process with other hashes."""
_BATCH = 400
"""Cases that are asked for at once."""
_SAVE_EVERY = 20.0


def revision() -> str:
    """The commit that runs, with ``+`` where files differ from it."""
    head, changed = (
        subprocess.run(
            ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False
        )
        for words in (
            ("rev-parse", "--short", "HEAD"),
            ("status", "--porcelain", "irtool", "grammars"),
        )
    )
    return (head.stdout.strip() or "unknown") + ("+" if changed.stdout.strip() else "")


class Run:
    """One seed on one revision, until the time is over."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.out: Path = options.out or Path(f"/tmp/irtool-fuzz-{options.seed}")
        self.out.mkdir(parents=True, exist_ok=True)
        self.options = options
        self.seed: int = options.seed
        self.asked = {"seed": self.seed, "large": options.large, "reads": options.reads}
        self.state = State.read(self.out / "state.json")
        self.tally: Tally = self.state.of(revision())
        self.known = {path.name for path in self.out.iterdir()}
        self.worker, self.beside = Worker(0), Worker(1)

    def go(self) -> int:
        """Run cases; the number of findings."""
        end = time.monotonic() + self.options.seconds
        saved = time.monotonic()
        with self.worker, self.beside:
            for first in count(self.state.seeds.get(str(self.seed), 0), _BATCH):
                again: dict[int, Outcome] = {}
                for told in self.worker.run_numbers(self.asked, range(first, first + _BATCH)):
                    self._take(told, again)
                    if time.monotonic() > end:
                        break
                    if time.monotonic() - saved > _SAVE_EVERY:
                        self.save()
                        saved = time.monotonic()
                self._run_again(again)
                self.save()
                if time.monotonic() > end:
                    break
        return self.tally.findings.total()

    def save(self) -> None:
        self.state.write(self.out / "state.json")

    def _take(self, told: dict[str, Any], again: dict[int, Outcome]) -> None:
        """Count an answer, and keep what was found."""
        number: int = told["number"]
        outcome = Outcome(**told["outcome"])
        if "command" not in told:
            case = self._case(number)
            told |= {name: getattr(case, name) for name in ("command", "format", "mutator", "size")}
        self.tally.add(told, outcome)
        self.state.seeds[str(self.seed)] = number + 1
        if outcome.kind != "clean":
            self._keep(number, outcome)
        elif Random(f"again {self.seed}:{number}").random() < _AGAIN:
            again[number] = outcome

    def _run_again(self, again: dict[int, Outcome]) -> None:
        """Run some cases in a process with other hashes: the answers have to be the same."""
        for told in self.beside.run_numbers(self.asked, list(again)):
            first, second = again[told["number"]], Outcome(**told["outcome"])
            self.tally.again += 1
            if (second.status, second.digest) != (first.status, first.digest):
                case = self._case(told["number"])
                second.kind, second.site = "differs", f"{case.command} {case.format}"
                second.what = f"{first} or {second}"
                self.tally.findings[f"{case.command} | {second.signature}"] += 1
                self._keep(told["number"], second)

    def _case(self, number: int) -> Case:
        return make(self.seed, number, self.options.large, self.options.reads)

    def _keep(self, number: int, outcome: Outcome) -> None:
        """Make the first finding of its kind small and write it down."""
        name = re.sub(r"[^\w.]+", "-", outcome.signature).strip("-")[:120]
        if name in self.known:
            return
        self.known.add(name)
        what = outcome.what.strip().rpartition("\n")[2][:300]
        print(f"{number}: {outcome.signature}\n    {what}", flush=True)
        case = self._case(number)
        patience: float = self.options.minimise
        if outcome.kind in ("crash", "output", "status") and patience:
            with Worker(0) as worker:
                case = minimised(case, outcome.signature, worker, patience)
        case.keep(
            self.out / name,
            found=f"seed {self.seed}, case {number}, revision {self.tally.revision}",
            finding=outcome.signature,
            what=what,
        )


def replay(folder: Path) -> int:
    """Run cases that were kept; the number of those that are findings still."""
    left = 0
    cases = [folder] if (folder / "fuzz.json").is_file() else kept_cases(folder)
    with Worker(0) as worker:
        for path in cases:
            case: Case = read_case(path)
            outcome = worker.run_case(case)
            left += outcome.kind != "clean"
            print(f"{outcome.kind:8} {outcome.seconds:6.2f} s  {path.name}", flush=True)
            if outcome.kind != "clean":
                print("    " + outcome.what.strip().replace("\n", "\n    "))
    print(f"{len(cases)} cases, {left} findings")
    return left


def tell(folders: list[Path], is_matrix: bool) -> None:
    """Print what the runs of some folders tried, in words or as CSV."""
    tallies = merged(State.read(folder / "state.json") for folder in folders)
    if is_matrix:
        csv.writer(sys.stdout).writerows(matrix(tallies))
    else:
        print(*report(tallies, sorted(set(mutators()))), sep="\n")


def main() -> int:
    kind = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=kind)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to run")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time")
    parser.add_argument("--large", type=float, default=0.1, help="share of cases over 1 MB")
    parser.add_argument("--reads", type=float, default=0.8, help="share of cases that only read")
    parser.add_argument(
        "--minimise", type=float, default=60.0, help="seconds to make a finding small"
    )
    parser.add_argument("--out", type=Path, help="where findings and counts go")
    parser.add_argument("--replay", type=Path, help="run kept cases instead")
    parser.add_argument(
        "--report", type=Path, nargs="+", help="tell what the runs of these folders tried instead"
    )
    parser.add_argument("--matrix", action="store_true", help="the report by command and mutator")
    options = parser.parse_args()
    if options.replay:
        return 1 if replay(options.replay) else 0
    if options.report:
        tell(options.report, options.matrix)
        return 0
    run = Run(options)
    findings = run.go()
    tell([run.out], is_matrix=False)
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
