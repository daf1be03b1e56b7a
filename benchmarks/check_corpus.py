"""Compare `irtool check` with what MindSpore itself did, over a folder of real compilations.

    python benchmarks/check_corpus.py [FOLDER] [--list CLASS] [--only TEXT]

The folder is `verdicts` of the corpus: `$IRTOOL_CORPUS`, or `../shared/corpus`. Every folder in it
holds `case.json` (the parallel context, and MindSpore's verdict), the dump before the parallel
pass, and, where the network was accepted, those after it. The table says how often the prediction
equals what MindSpore did; `--list` shows each difference of one class.

Classes in brackets are not about the prediction: there an option had an effect that `case.json`
does not record (see `check_corpus_context.py`), or the dump lacks what decides.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from check_corpus_end import compare_end
from material import corpus

import irtool
from irtool.ir.dump import Dump
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult

ABOUT_STRATEGIES = (
    "init failed",
    "extract configured layout failed",
    "TensorInfo are different",
    "SetCostUnder",
    "check layout for dynamic shape failed",
    "SELF_DEFINE_SHARD attribute is not a bool",
    "send or recv len larger",
    "Incorrect strategy configuration",
    "can not set to interleaved parallel",
    "micro interleaved num",
    "Manual split does not support",
    "Setting strategy for Reshape",
    "Redistribution",
    "redistribution",
    "is not in inputs_tensor_info",
    "The index is out of range",
)
"""Words in the errors of refusals that depend on strategies."""

LOG = re.compile(r"\[mindspore/\S*?([\w.]+\.(?:cc|h)):\d+\] (\w+)\] ?(.*)")


@dataclass
class Score:
    """Counts by class, and what did not agree."""

    right: Counter[str] = field(default_factory=Counter)
    total: Counter[str] = field(default_factory=Counter)
    differences: list[tuple[str, str, str]] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, right: bool, case: str, what: str = "") -> None:
        self.total[name] += 1
        self.right[name] += right
        if not right:
            self.differences.append((name, case, what))


def first(folder: Path, pattern: str) -> Path | None:
    return next(iter(sorted(folder.glob(pattern))), None)


def depends_on_strategies(case: dict[str, Any]) -> bool:
    """Whether the verdict is about strategies (accepted, or refused because of them)."""
    return case["accepted"] or any(word in case["error"] for word in ABOUT_STRATEGIES)


def logged(case: dict[str, Any]) -> tuple[str, str] | None:
    """The first reason in MindSpore's log: primitive (class without Info and number), check."""
    for line in case["log"]:
        match = LOG.match(line)
        if match is None:
            continue
        name = re.match(r"(\w+?)Info\d*\b", match[3])
        return (name[1] if name else "", f"{match[1]}:{match[2]}")
    return None


def compare_verdict(score: Score, name: str, case: dict[str, Any], report: CheckResult) -> None:
    if not depends_on_strategies(case):
        score.add("(other refusals said to be accepted)", report.accepted is not False, name)
        return
    wanted = bool(case["accepted"])
    finding = report.findings[0] if report.findings else None
    said = f"{finding.op} line {finding.line}: {finding.message}" if finding else ""
    score.add("verdict", report.accepted is wanted, name, f"{case['error']} | {said}")
    score.add("accepted is not null", report.accepted is not None, name, said)
    if wanted:
        score.add("legal network not called illegal", report.accepted is not False, name, said)
    real = logged(case)
    if real is not None and not wanted and report.accepted is False:
        errors = [item for item in report.findings if item.severity == "error"]
        mine = (errors[0].op.lstrip("_"), errors[0].check)
        same = mine[0] == real[0] or not real[0]
        score.add("first reason: primitive", same, name, f"{real} {mine}")
        score.add("first reason: check", mine[1] == real[1], name, f"{real} {mine}")


def load(path: Path | None) -> Dump | None:
    return irtool.load(path) if path is not None else None


def compare_case(score: Score, folder: Path) -> float:
    """Check one compilation; returns the seconds that the check took."""
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    begin = load(first(folder, "step_parallel_begin*"))
    if begin is None:
        return 0.0
    context = ParallelContext.from_mapping(case["context"])
    start = time.perf_counter()
    report = check(begin, context)
    seconds = time.perf_counter() - start
    compare_verdict(score, folder.name, case, report)
    for operator in report.operators:
        known = operator.verdict != "unknown"
        score.add("operators known", known, folder.name, operator.op)
    end = load(first(folder, "step_parallel_end*"))
    if end is not None and case["accepted"]:
        validate = load(first(folder, "*_validate_*"))
        compare_end(score, folder.name, report, begin, end, validate, case["context"])
    return seconds


def cases(root: Path, only: str) -> Iterator[Path]:
    for path in sorted(root.glob("*/case.json")):
        if only in path.parent.name:
            yield path.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, nargs="?", help="folder of compilations")
    parser.add_argument("--list", default="", help="show the differences of one class")
    parser.add_argument("--only", default="", help="folders whose name holds this text")
    options = parser.parse_args()
    folder = corpus()
    root = options.corpus or (folder and folder / "verdicts")
    if root is None or not root.is_dir():
        parser.error("no corpus here: name its folder, or set IRTOOL_CORPUS")
    score, seconds = Score(), 0.0
    for folder in cases(root, options.only):
        try:
            seconds += compare_case(score, folder)
        except Exception as error:  # a crash is a result, too
            score.add("no crash", False, folder.name, repr(error))
            if options.only:
                raise
        else:
            score.add("no crash", True, folder.name)
    for name, total in score.total.items():
        share = 100 * score.right[name] / total
        print(f"{name:45} {score.right[name]:7} of {total:7}  {share:7.2f} %")
    print(f"{'seconds in check':45} {seconds:7.1f}")
    for name, case, what in score.differences:
        if options.list and (options.list == "all" or options.list in name):
            print(f"{name}: {case}: {what}")


if __name__ == "__main__":
    main()
