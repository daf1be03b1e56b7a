"""What irtool says of runs of other layouts that were executed: named, with ranks, accused.

    python benchmarks/precision/parallel_judge.py OUT [--only PATTERN] [--statistics]

of the runs that ``parallel_runs.py`` (PyTorch, with a layout file) and ``sharded_runs.py``
(MindSpore, by the layouts of its IR) made.  A fault counts as named where the operator that is
named first is one of its place; its ranks count by themselves: right, wrong, or not told.  A fault
of the settings has to be told, and where ranks only have their rows in another order, statistics
hold the same figures: "cannot be told".  A healthy pair has to accuse nobody.
"""

from __future__ import annotations

import os
import re
import sys

from judge import side_of
from mindspore_statistics import with_statistics
from tally import Entry, Tally, arguments, pairs

from irtool.compare.layouts.declared import layouts_of
from irtool.compare.runs.comparison import RunComparison, compare_runs
from irtool.compare.runs.units import Settings
from irtool.report.diff.runs.sentences import why_text


def verdict(found: RunComparison, entry: Entry) -> tuple[str, bool]:
    """A word, and whether the ranks are right."""
    first = found.first
    if entry["healthy"]:
        return ("quiet" if not found.is_suspicious else "accused"), True
    if first is None:
        return ("told" if found.is_suspicious else "missed"), not entry["ranks"]
    ops = (first.pair.left, first.pair.right, first.maker_left, first.maker_right)
    names = [_name(op.name, entry) for op in ops if op is not None]
    wanted = {_name(name, entry) for name in entry["names"]}
    right = not entry["ranks"] or list(first.ranks) == entry["ranks"]
    if entry["layout"] is None:  # parts of names
        named = any(part in name for part in wanted for name in names)
    else:
        named = bool(wanted.intersection(names))
    return ("named" if named else "wrong"), right


def reorders(entry: Entry) -> bool:
    """Whether a fault only puts rows of a rank into another order."""
    if entry["layout"] is None:
        return False
    return entry["fault"] == "wrong_data" and entry["layout"]["right"]["data_parallel"] == 1


def _name(name: str, entry: Entry) -> str:
    """A call's name, without its counter where stages or micro-batches count anew."""
    name = name.partition("@")[0]  # a call that one rank alone makes
    if entry["layout"] is None:
        return name
    layout = entry["layout"]["right"]
    if layout["pipeline_parallel"] == 1 and entry["micro_batches"] == 1:
        return name
    return re.sub(r"\.\d+(?=\.(forward|backward)$)", "", name)


def main() -> int:
    asked = arguments(__doc__).parse_args()
    tally = Tally()
    for out, name, entry in pairs(asked):
        paths = [os.path.join(out, entry[side]) for side in ("left", "right")]
        if asked.statistics and entry["layout"] is None:
            sides = [side_of(with_statistics(path), False) for path in paths]
        else:
            sides = [side_of(path, asked.statistics) for path in paths]
        layouts = None if entry["layout"] is None else layouts_of(entry["layout"])
        found = compare_runs(*sides, Settings(layouts=layouts))
        word, ranks = verdict(found, entry)
        if asked.statistics and word in ("wrong", "missed") and reorders(entry):
            word = "cannot be told"
        kind = "healthy" if entry["healthy"] else "fault"
        tally.add(word, kind)
        if kind == "fault" and word == "named" and entry["ranks"]:
            tally.add("right" if ranks else "wrong" if found.first.ranks else "not told", "ranks")
        if word not in ("named", "quiet", "told") or not ranks:
            first = found.first
            text = "" if first is None else f"{first.pair.right.name} {first.ranks}"
            why = "" if first is None else why_text(first)[:160]
            print(f"{word:8} {name:64} {text}: {why}", flush=True)
    tally.show()
    return 0


if __name__ == "__main__":
    sys.exit(main())
