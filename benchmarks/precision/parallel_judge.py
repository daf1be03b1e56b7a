"""What irtool says of the runs that ``parallel_runs.py`` executed: named, with ranks, accused.

    python benchmarks/precision/parallel_judge.py OUT [--only PATTERN] [--statistics]

A fault counts as named where the operator that is named first is one of its place; its ranks count
by themselves.  A fault of the settings has to be told.  A healthy pair has to accuse nobody.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter

from judge import side_of

from irtool.compare.layouts.declared import layouts_of
from irtool.compare.runs.comparison import RunComparison, compare_runs
from irtool.compare.runs.units import Settings
from irtool.report.diff.runs.sentences import why_text


def verdict(found: RunComparison, entry: dict) -> tuple[str, bool]:
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
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", nargs="+")
    parser.add_argument("--only", default="")
    parser.add_argument("--statistics", action="store_true")
    asked = parser.parse_args()
    tally: Counter[tuple[str, str]] = Counter()
    for out in asked.out:
        with open(os.path.join(out, "truth.json")) as stream:
            truth = json.load(stream)
        for name, entry in truth.items():
            if not re.search(asked.only, name):
                continue
            sides = [
                side_of(os.path.join(out, entry[side]), asked.statistics)
                for side in ("left", "right")
            ]
            found = compare_runs(*sides, Settings(layouts=layouts_of(entry["layout"])))
            word, ranks = verdict(found, entry)
            kind = "healthy" if entry["fault"] == "none" else "fault"
            tally[kind, word] += 1
            if kind == "fault" and word == "named" and entry["ranks"]:
                tally["ranks", "right" if ranks else "wrong"] += 1
            if word not in ("named", "quiet", "told") or not ranks:
                first = found.first
                text = "" if first is None else f"{first.pair.right.name} {first.ranks}"
                why = "" if first is None else why_text(first)[:160]
                print(f"{word:8} {name:64} {text}: {why}", flush=True)
    for (kind, word), count in sorted(tally.items()):
        print(f"{kind:8} {word:8} {count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
