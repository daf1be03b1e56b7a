"""What irtool says of the runs that ``parallel_runs.py`` executed: named, with ranks, accused.

    python benchmarks/precision/parallel_judge.py OUT [--only PATTERN] [--statistics]

A fault counts as named where the operator that is named first is one of its place; its ranks count
by themselves.  A fault of the settings has to be told.  A healthy pair has to accuse nobody.
"""

from __future__ import annotations

import os
import sys

from judge import side_of
from tally import Entry, Tally, arguments, pairs

from irtool.compare.layouts.declared import layouts_of
from irtool.compare.runs.comparison import RunComparison, compare_runs
from irtool.compare.runs.units import Settings
from irtool.report.diff.runs.sentences import why_text


def verdict(found: RunComparison, entry: Entry) -> tuple[str, bool]:
    """A word, and whether the ranks are right."""
    first = found.first
    if entry["fault"] == "none":
        return ("quiet" if not found.is_suspicious else "accused"), True
    if first is None:
        return ("told" if found.is_suspicious else "missed"), not entry["ranks"]
    ops = (first.pair.left, first.pair.right, first.maker_left, first.maker_right)
    names = [op.name for op in ops if op is not None]
    right = not entry["ranks"] or list(first.ranks) == entry["ranks"]
    named = any(part in name for part in entry["names"] for name in names)
    return ("named" if named else "wrong"), right


def main() -> int:
    asked = arguments(__doc__).parse_args()
    tally = Tally()
    for out, name, entry in pairs(asked):
        sides = [
            side_of(os.path.join(out, entry[side]), asked.statistics) for side in ("left", "right")
        ]
        found = compare_runs(*sides, Settings(layouts=layouts_of(entry["layout"])))
        word, ranks = verdict(found, entry)
        kind = "healthy" if entry["fault"] == "none" else "fault"
        tally.add(word, kind)
        if kind == "fault" and word == "named" and entry["ranks"]:
            tally.add("right" if ranks else "wrong", "ranks")
        if word not in ("named", "quiet", "told") or not ranks:
            first = found.first
            text = "" if first is None else f"{first.pair.right.name} {first.ranks}"
            why = "" if first is None else why_text(first)[:160]
            print(f"{word:8} {name:64} {text}: {why}", flush=True)
    tally.show()
    return 0


if __name__ == "__main__":
    sys.exit(main())
