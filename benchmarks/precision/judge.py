"""What irtool says of the runs that ``runs.py`` drew: named first, wrong, missed, accused.

    python benchmarks/precision/judge.py OUT [--only PATTERN] [--statistics | --level tensors]

Each pair is compared twice: with its tensors, and by the statistics that msprobe itself wrote.
A fault counts as named where the first operator that is named is one of those around its entry, or
where what a run starts from (weights, data, labels) is, and differs.  A run with half precision
inside has to be seen (exit 1) with nobody accused; a healthy one has to accuse nobody.  Faults that
change no bit are left out.  Of those that only reorder numbers statistics show nothing: there the
answer that an operator or the order of its inputs is at fault, or that order cannot be told, is
"cannot be told".  "named later" is a fault among the first three operators that are accused.
"""

from __future__ import annotations

import os
import sys

from tally import Entry, Tally, arguments, pairs

from irtool.compare.runs.comparison import RunComparison, compare_runs
from irtool.compare.runs.sides import RunSide, side_of_run
from irtool.compare.runs.units import Settings, read_unit
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.model import NoTensors
from irtool.report.diff.runs.sentences import why_text
from irtool.syntax.run import load_run

REORDERS = frozenset(
    ("batch_order", "source_order", "labels", "label_shift", "pairs_shifted", "channels", "groups",
     "signal_reversed", "wrong_heads", "transposed", "value_shift", "order_kqv", "places_flipped",
     "alibi_sign", "taps_reversed", "rows_exchanged", "columns_first", "pictures_turned",
     "wanted_turned", "kept_turned", "ways_exchanged", "axes_exchanged", "targets_not_crossed",
     "labels_of_here", "not_moved_right")
)  # fmt: skip
"""Faults that put the same numbers into another order, or what is symmetric upside down."""


def side_of(path: str, statistics: bool) -> RunSide:
    side = side_of_run(load_run(path), None)
    if statistics:
        for key, unit in list(side.units.items()):
            try:
                run = read_unit(unit)
            except NoTensors:
                continue
            run.columns.files = [""] * len(run.columns)
            run.level = "statistics"
            side.units[key] = run
    return side


def names_of(judged: Judged) -> set[str]:
    """Operators that are named with one that is accused."""
    ops = (
        judged.pair.left, judged.pair.right, judged.maker_left, judged.maker_right, judged.since,
    )  # fmt: skip
    return {op.name for op in ops if op is not None}


def verdict(found: RunComparison, entry: Entry, level: str = "tensors") -> str:
    first = found.first
    if entry["kind"] == "healthy":
        return "accused" if first is not None else "told" if found.is_suspicious else "quiet"
    if entry["kind"] == "lowered":
        if first is not None:
            return "accused"
        return "listed" if found.is_suspicious else "missed"
    wanted: set[str] = set(entry["enters"])
    if first is not None and names_of(first) & wanted:
        return "named"
    hides = level == "statistics" and entry["fault"] in REORDERS
    if hides and (first.may_be_order if first is not None else not found.is_suspicious):
        return "cannot be told"
    if first is None:
        return "told" if found.is_suspicious else "missed"
    accused = found.tensors.faults[:3] if found.tensors is not None else []
    return "named later" if any(names_of(item) & wanted for item in accused) else "wrong"


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--level", choices=("tensors", "statistics"), help="one alone")
    asked = parser.parse_args()
    tally = Tally()
    levels = ("statistics",) if asked.statistics else ("tensors", "statistics")
    for out, name, entry in pairs(asked):
        for level in levels if asked.level is None else (asked.level,):
            sides = [side_of(os.path.join(out, path), level == "statistics")
                     for path in (entry["reference"], name)]  # fmt: skip
            try:
                found = compare_runs(sides[0], sides[1], Settings())
            except Exception as error:  # an answer, if the worst one; the others are asked for
                tally.add("failed", entry["type"], level, entry["kind"])
                print(f"failed   {level:10} {name:44} {error!r}", flush=True)
                continue
            if not found.units:
                print("no tensors", name)
                continue
            word = verdict(found, entry, level)
            tally.add(word, entry["type"], level, entry["kind"])
            if word not in ("named", "quiet", "listed"):
                first = found.first
                told = "" if first is None else f"{first.pair.left.name}: {why_text(first)}"
                enters = entry["enters"][:2]
                print(f"{word:8} {level:10} {name:44} enters {enters} {told[:200]}", flush=True)
    tally.show()
    return 0


if __name__ == "__main__":
    sys.exit(main())
