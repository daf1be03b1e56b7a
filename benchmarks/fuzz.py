"""Mutated dumps, contexts, payloads, logs, rules and settings through every command.

    python benchmarks/fuzz.py --seconds 600 --seed 7
    python benchmarks/fuzz.py --replay tests/fuzz/findings

Cases are made by number, so a seed and a number make the same case again.  Each one runs in a
process with a limit of time and memory; what crashes, hangs, takes too much, ends with a wrong
status, writes what its format doesn't allow, or answers differently in another process, is a
finding.  Findings are made small and kept in the folder of the run, one of each kind.  A run goes
on where it was stopped; counts are by commit, command and mutator.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.fuzzing.case import READ, Case, kept_cases, read_case  # noqa: E402
from benchmarks.fuzzing.make import make  # noqa: E402
from benchmarks.fuzzing.material import LARGE  # noqa: E402
from benchmarks.fuzzing.minimise import minimised  # noqa: E402
from benchmarks.fuzzing.pool import Worker  # noqa: E402
from benchmarks.fuzzing.trial import Outcome  # noqa: E402

_AGAIN = 0.02
"""The share of cases that run again in a process with other hashes."""
_SAVE_EVERY = 20.0


@dataclass(slots=True)
class Counts:
    """What one commit was tried with."""

    reads: int = 0
    reads_large: int = 0
    analyses: int = 0
    analyses_large: int = 0
    again: int = 0
    seconds: float = 0.0
    findings: Counter[str] = field(default_factory=Counter[str])
    guarded: Counter[str] = field(default_factory=Counter[str])
    met: Counter[str] = field(default_factory=Counter[str])
    statuses: Counter[str] = field(default_factory=Counter[str])

    def add(self, told: dict[str, object], outcome: Outcome) -> None:
        """Count one case."""
        is_large = int(str(told.get("size", 0))) >= LARGE
        if told.get("command") == READ:
            self.reads += 1
            self.reads_large += is_large
        else:
            self.analyses += 1
            self.analyses_large += is_large
        self.seconds += outcome.seconds
        self.met[f"{told.get('command')} | {told.get('format')} | {told.get('mutator')}"] += 1
        self.statuses[f"{told.get('command')} | {outcome.status}"] += 1
        self.guarded.update(outcome.guarded)
        if outcome.kind != "clean":
            self.findings[outcome.signature] += 1


@dataclass(slots=True)
class State:
    """Where a run stands: the next case, and counts by commit."""

    seed: int
    number: int = 0
    commits: dict[str, Counts] = field(default_factory=dict[str, Counts])

    @classmethod
    def read(cls, path: Path, seed: int) -> State:
        """The state of an earlier run with the same seed, or a fresh one."""
        if not path.is_file():
            return cls(seed)
        told = json.loads(path.read_text())
        commits = {
            commit: Counts(
                **{
                    key: Counter(value) if isinstance(value, dict) else value
                    for key, value in counts.items()
                }
            )
            for commit, counts in told["commits"].items()
        }
        return cls(seed, told["number"], commits)

    def write(self, path: Path) -> None:
        commits = {
            commit: {name: getattr(counts, name) for name in Counts.__slots__}
            for commit, counts in self.commits.items()
        }
        text = json.dumps({"seed": self.seed, "number": self.number, "commits": commits}, indent=1)
        beside = path.with_suffix(".new")
        beside.write_text(text + "\n")
        beside.replace(path)


def commit() -> str:
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


def fuzz(options: argparse.Namespace) -> int:
    """Run cases until the time is over."""
    out: Path = options.out or Path(f"/tmp/irtool-fuzz-{options.seed}")
    out.mkdir(parents=True, exist_ok=True)
    state = State.read(out / "state.json", options.seed)
    counts = state.commits.setdefault(commit(), Counts())
    known = {path.name for path in out.iterdir()}
    end = time.monotonic() + options.seconds
    saved = time.monotonic()
    with Worker(0) as worker, Worker(1) as other:
        while time.monotonic() < end:
            asked = {
                "seed": state.seed,
                "number": state.number,
                "large": options.large,
                "reads": options.reads,
            }
            told = worker.run(asked)
            outcome = Outcome(**told["outcome"])
            if outcome.kind == "clean" and Random(f"again {state.number}").random() < _AGAIN:
                counts.again += 1
                second = Outcome(**other.run(asked)["outcome"])
                if (second.status, second.digest) != (outcome.status, outcome.digest):
                    outcome.kind = "differs"
                    outcome.site = f"{told['command']} {told['format']}"
                    outcome.what = f"{outcome} or {second}"
            if "command" not in told:
                made = make(state.seed, state.number, options.large, options.reads)
                told |= {
                    name: getattr(made, name) for name in ("command", "format", "mutator", "size")
                }
            counts.add(told, outcome)
            if outcome.kind != "clean":
                name = _file_name(outcome.signature)
                if name not in known:
                    known.add(name)
                    _keep(out / name, state, options, outcome, worker)
            state.number += 1
            if time.monotonic() - saved > _SAVE_EVERY:
                state.write(out / "state.json")
                saved = time.monotonic()
    state.write(out / "state.json")
    _tell(counts)
    return 1 if counts.findings else 0


def _file_name(signature: str) -> str:
    return re.sub(r"[^\w.]+", "-", signature).strip("-")[:120]


def _keep(
    folder: Path, state: State, options: argparse.Namespace, outcome: Outcome, worker: Worker
) -> None:
    """Make a finding small and write it down."""
    case = make(state.seed, state.number, options.large, options.reads)
    print(f"{state.number}: {outcome.signature}", flush=True)
    print("   ", outcome.what.strip().rpartition("\n")[2][:200], flush=True)
    if outcome.kind in ("crash", "output", "status") and options.minimise:
        case = minimised(case, outcome.signature, worker, options.minimise)
    case.keep(
        folder,
        found=f"seed {state.seed}, case {state.number}, commit {commit()}",
        finding=outcome.signature,
        what=outcome.what.strip().rpartition("\n")[2][:300],
    )


def _tell(counts: Counts) -> None:
    print(
        f"{counts.reads:,} reads ({counts.reads_large:,} of more than 1 MB), "
        f"{counts.analyses:,} analyses ({counts.analyses_large:,}), {counts.again:,} run twice, "
        f"{counts.seconds:,.0f} s of processor time; {sum(counts.findings.values()):,} findings "
        f"of {len(counts.findings)} kinds"
    )
    for signature, number in counts.findings.most_common():
        print(f"{number:6}  {signature}")
    if counts.guarded:
        print("operators that could not be judged, by what went wrong:")
    for site, number in counts.guarded.most_common():
        print(f"{number:6}  {site}")


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
    options = parser.parse_args()
    return (
        1 if options.replay and replay(options.replay) else 0 if options.replay else fuzz(options)
    )


if __name__ == "__main__":
    raise SystemExit(main())
