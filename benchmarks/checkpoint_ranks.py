"""Hold the ranks that ``irtool ckpt`` says MindSpore names to MindSpore's own answers.

python benchmarks/checkpoint_ranks.py FILES… --mindspore PYTHON

FILES are strategy files (a folder: stage files), any of which may be the source or the target of a
conversion; PYTHON is an interpreter with MindSpore in it.  Every ordered pair and ``None`` on
either side, every rank.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from irtool.artefacts.strategies import read_layouts
from irtool.planning.checkpoints.rank_lists import all_mindspore_ranks

_ASK = """
import json, os, sys
import mindspore
asked = json.load(open(sys.argv[1]))
for folder, merged in asked["merge"]:
    mindspore.merge_pipeline_strategys(folder, merged)
for old, new, ranks in asked["pairs"]:
    answers = []
    for rank in range(ranks):
        try:
            named = mindspore.rank_list_for_transform(rank, old, new)
            answers.append(sorted(int(each) for each in named))
        except Exception as error:
            answers.append(f"{type(error).__name__}: {error}"[:200])
    print("ANSWER", json.dumps([old, new, answers]), flush=True)
"""


def main() -> int:
    """Compare, and print how many answers are equal; exit 1 where one is not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--mindspore", required=True, help="a Python with MindSpore")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        merge: list[tuple[str, str]] = []
        paths: dict[str | None, Any] = {None: None}
        for place, path in enumerate(options.files):
            file = read_layouts(path)
            theirs = str(Path(path).resolve())
            if os.path.isdir(path):
                suffix = "json" if file.form == "json" else "ckpt"
                merge.append((theirs, f"{scratch}/merged_{place}.{suffix}"))
                theirs = merge[-1][1]
            paths[theirs] = file
        pairs = [
            (old, new, 1 if new is None else paths[new].devices)
            for old in paths
            for new in paths
            if old != new
        ]
        asked = Path(scratch, "asked.json")
        asked.write_text(json.dumps({"merge": merge, "pairs": pairs}), encoding="utf-8")
        answers = _answers(options.mindspore, str(asked))
    counts: Counter[str] = Counter()
    for old, new, theirs in answers:
        ours = all_mindspore_ranks(paths[old], paths[new], range(len(theirs)))
        for rank, answer in enumerate(theirs):
            kind = _compared(ours[rank], answer)
            counts[kind] += 1
            if kind not in ("equal", "both refuse"):
                print(f"{kind}: {old} -> {new}, rank {rank}: {ours[rank]} for {answer}")
    print(f"{len(answers)} pairs, {dict(counts)}")
    return 0 if set(counts) <= {"equal", "both refuse"} and answers else 1


def _compared(ours: list[int] | str, theirs: list[int] | str) -> str:
    if isinstance(ours, str) or isinstance(theirs, str):
        both = isinstance(ours, str) and isinstance(theirs, str)
        return "both refuse" if both else ("we refuse" if isinstance(ours, str) else "they refuse")
    return "equal" if ours == theirs else "different"


def _answers(python: str, asked: str) -> list[tuple[str | None, str | None, list[Any]]]:
    done = subprocess.run([python, "-c", _ASK, asked], capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    if not lines:
        raise SystemExit(f"MindSpore answered nothing: {done.stderr[-800:]}")
    return [tuple(json.loads(line.removeprefix("ANSWER "))) for line in lines]


if __name__ == "__main__":
    sys.exit(main())
