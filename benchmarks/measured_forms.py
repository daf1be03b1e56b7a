#!/usr/bin/env python3
"""Which forms of calls the records of ``record_operators`` have measured, for irtool's table.

    python benchmarks/measured_forms.py [--write] [FOLDER...]

Without folders: how many of the records could be read, and how many forms they have of how many
operators; ``--write`` keeps them in ``irtool/operators/measured.tsv``. With folders of dumps
(``step_parallel_begin``): how many of their sharded operators were measured in the form that they
have, and what is missing most.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import irtool
from benchmarks.replay_operators import is_judgeable, records
from irtool.ir.dump import Dump
from irtool.operators.call import OperatorCall
from irtool.operators.measured import FILE, form_of, why_not_measured
from irtool.sharding.network.analysis import analysis_of
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.graphs import network_of
from irtool.sharding.network.judged import judge_operators

KINDS = ("none", "tuple", "layout", "out_strategy", "out_layout")
OWN_FILE = Path(irtool.__file__).parent / "operators" / FILE


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    return coverage(options.folders) if options.folders else collect(options.write)


def collect(write: bool) -> int:
    """The forms of all records."""
    forms: dict[tuple[str, str], set[str]] = {}
    read = skipped = 0
    for record in records():
        if not is_judgeable(record):
            continue
        case = record["case"]
        calls = [
            call
            for call in calls_of(record["begin"], case["devices"], case.get("context", {}))
            if call.op.removeprefix("_") == case["operator"]
        ]
        read, skipped = read + bool(calls), skipped + (not calls)
        for kind in kinds(case):
            of = forms.setdefault((case["operator"], kind), set())
            of.update(form_of(call) for call in calls)
    lines = [f"{op}\t{kind}\t{' | '.join(sorted(of))}" for (op, kind), of in forms.items() if of]
    print(f"{read} records, {skipped} without the operator; {len(lines)} operators and kinds")
    if write:
        OWN_FILE.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")
    return 0


def kinds(case: dict[str, Any]) -> Iterator[str]:
    """What a case gives its operator."""
    given = case["kind"]
    yield given
    if given in ("out_strategy", "out_layout"):
        yield "tuple" if given == "out_strategy" else "layout"


def calls_of(text: str, devices: int, context: dict[str, Any]) -> Iterator[OperatorCall]:
    """The operators of a dump that get a strategy."""
    values = {
        "device_num": devices,
        "full_batch": True,
        "parallel_mode": "semi_auto_parallel",
        **context,
    }
    dump = irtool.load(text.encode("utf-8", "surrogateescape"))
    yield from _calls(dump, ParallelContext.from_mapping(values))


def _calls(dump: Dump, context: ParallelContext) -> Iterator[OperatorCall]:
    analysis = analysis_of(network_of(dump), context)
    judge_operators(analysis)
    for judged in analysis.judged.values():
        yield judged.call.call


def coverage(folders: list[Path]) -> int:
    """How much of some networks was measured."""
    asked = 0
    missing: Counter[str] = Counter()
    for folder in folders:
        for path in sorted(folder.rglob("*step_parallel_begin*.ir")):
            text = path.read_bytes().decode("utf-8", "surrogateescape")
            try:
                calls = list(calls_of(text, 8, {}))
            except ValueError:
                continue
            asked += len(calls)
            missing.update(why for call in calls if (why := why_not_measured(call, "tuple")))
    print(f"{asked} operators, {asked - missing.total()} of a form that was measured")
    for why, count in missing.most_common(40):
        print(f"{count:6} {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
