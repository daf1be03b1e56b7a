"""How often irtool can say why a collective, slice, concat or split is there, and what differs.

    python benchmarks/why_corpus.py [FOLDER] [--only TEXT] [--list] [--alone]

The folder is `verdicts` of the corpus: `$IRTOOL_CORPUS`, or `../shared/corpus`. For every accepted
compilation in it (`case.json`, the dump before the parallel
pass and those after it) the table counts causes of the validate dump by kind, and the differences
between prediction and dumps. `--list` shows unknown causes and differences; `--alone` explains the
validate dump without its begin dump.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from material import corpus

import irtool
from irtool.ir.collectives import is_collective
from irtool.ir.dump import Dump
from irtool.sharding.against import compare
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult
from irtool.sharding.why import Cause, explain_all


@dataclass
class Figures:
    """Counts over all cases."""

    causes: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    unnamed: Counter[str] = field(default_factory=Counter[str])
    unknown: list[str] = field(default_factory=list[str])
    compared: Counter[str] = field(default_factory=Counter[str])
    differences: list[str] = field(default_factory=list[str])
    failures: list[str] = field(default_factory=list[str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    def add_seconds(self, name: str, start: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def first(folder: Path, pattern: str) -> Dump | None:
    path = next(iter(sorted(folder.glob(pattern))), None)
    return irtool.load(path) if path is not None else None


def is_unnamed(cause: Cause) -> bool:
    """Whether a cause leaves open which operator or parameter it is about."""
    if cause.kind in ("forward reduction", "operator", "redistribution"):
        return cause.operator is None and cause.consumer is None and cause.parameter is None
    if cause.kind in ("mirror", "optimizer parallel"):
        return cause.parameter is None
    return cause.kind == "unknown"


def count_causes(
    figures: Figures, name: str, validate: Dump, report: CheckResult | None, begin: Dump | None
) -> None:
    start = time.perf_counter()
    for cause in explain_all(validate, report, begin):
        what = "collectives" if is_collective(cause.node) else "slices, concats, splits"
        figures.causes[what, cause.kind] += 1
        if is_unnamed(cause):
            figures.unnamed[what] += 1
            figures.unknown.append(f"{name}: {cause.node.line}: {cause.message} {cause.missing}")
        if begin is not None and cause.begin is None and not cause.parameter:
            figures.compared[f"without a begin node: {what}, {cause.kind}"] += 1
        if report is not None and cause.kind in ("redistribution", "forward reduction"):
            figures.compared[f"{cause.kind}: total"] += 1
            figures.compared[f"{cause.kind}: with a remedy"] += bool(cause.remedy)
            figures.compared[f"{cause.kind}: with layouts"] += cause.source is not None
    figures.add_seconds("why", start)


def count_differences(
    figures: Figures, name: str, report: CheckResult, begin: Dump, actual: Dump, which: str
) -> None:
    start = time.perf_counter()
    result = compare(report, begin, actual)
    figures.add_seconds(f"compare {which}", start)
    figures.compared[f"{which}: operators"] += result.total
    figures.compared[f"{which}: operators compared"] += result.matched
    figures.compared[f"{which}: unmatched"] += len(result.unmatched)
    figures.compared[f"{which}: cases that differ"] += not result.agrees
    for item in result.differences:
        figures.compared[f"{which}: difference: {item.kind}"] += 1
        figures.differences.append(
            f"{which}: {name}: {item.kind}: {item.message} | {item.predicted} | {item.actual}"
        )


def add_case(figures: Figures, folder: Path, alone: bool) -> None:
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    begin = first(folder, "step_parallel_begin*")
    validate = first(folder, "*_validate_*")
    report = None
    if begin is not None and not alone and case["accepted"]:
        report = check(begin, ParallelContext.from_mapping(case["context"]))
    if validate is not None:
        count_causes(figures, folder.name, validate, report, None if alone else begin)
    end = first(folder, "step_parallel_end*")
    if report is None or begin is None or not case["accepted"]:
        return
    for which, actual in (("end", end), ("validate", validate)):
        if actual is not None:
            count_differences(figures, folder.name, report, begin, actual, which)


def show(figures: Figures, listed: bool) -> None:
    for what in ("collectives", "slices, concats, splits"):
        total = sum(number for (of, _), number in figures.causes.items() if of == what)
        named = total - figures.unnamed[what]
        print(f"{what}: cause named for {named} of {total} ({100 * named / (total or 1):.2f} %)")
        for (of, kind), number in figures.causes.most_common():
            if of == what:
                print(f"    {kind:24} {number:7}")
    for name, number in sorted(figures.compared.items()):
        print(f"{name:60} {number:7}")
    for name, seconds in figures.seconds.items():
        print(f"seconds in {name:49} {seconds:7.1f}")
    for line in figures.failures:
        print("FAILED", line)
    if listed:
        print(*figures.unknown, *figures.differences, sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, nargs="?", help="folder of compilations")
    parser.add_argument("--only", default="", help="folders whose name holds this text")
    parser.add_argument("--list", action="store_true", help="show unknown causes and differences")
    parser.add_argument("--alone", action="store_true", help="validate dumps alone")
    options = parser.parse_args()
    folder = corpus()
    root = options.corpus or (folder and folder / "verdicts")
    if root is None or not root.is_dir():
        parser.error("no corpus here: name its folder, or set IRTOOL_CORPUS")
    figures = Figures()
    for path in sorted(root.glob("*/case.json")):
        if options.only not in path.parent.name:
            continue
        try:
            add_case(figures, path.parent, options.alone)
        except Exception as error:  # a crash is a result, too
            figures.failures.append(f"{path.parent.name}: {error!r}")
            if options.only:
                raise
    show(figures, options.list)


if __name__ == "__main__":
    main()
