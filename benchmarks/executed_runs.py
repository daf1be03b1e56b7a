"""Compare slices that `irtool check` predicts with the tensors that executed runs left.

    python benchmarks/executed_runs.py [RUNS] [--list]

RUNS is a folder of run folders, or `runs.tar.xz` of the corpus unpacked: each holds `rank_N/ir` and
MindSpore's own tensor dump in `rank_N/Net/`. Nothing else is given: devices, stages, dataset and
optimizer parallel are found in the dumps and the folder. Compared are the slices of every weight
and optimizer state of every rank with the shapes of the npy files, first without, then with the
context that `run.json` records, as far as it does.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from material import needed_corpus

import irtool
from irtool.cluster.context.evidence import evidence_of
from irtool.cluster.context.find import find_context
from irtool.cluster.context.given import Given, Layer, merged
from irtool.cluster.context.model import Origin
from irtool.sharding.check import check

_PARAMETER = re.compile(r"Parameter\.(.+?)\.\d+\.\d+\.\d+\.output\.0\.")


def dumped(rank: Path) -> Mapping[str, tuple[int, ...]]:
    """Shapes of the parameters that a rank dumped, by name with underscores."""
    found: dict[str, tuple[int, ...]] = {}
    for path in rank.glob("Net/*/*/Parameter.*.npy"):
        match = _PARAMETER.match(path.name)
        if match is not None:
            found[match[1]] = np.load(path, mmap_mode="r").shape
    return found


def compared(folder: Path, given: Given) -> Iterator[tuple[str, bool, str]]:
    """Per parameter of each rank: its name, whether the slice is right, and what differs."""
    run = irtool.load_run(folder)
    for rank, compilation in run.across_ranks().items():
        begin, shapes = compilation.begin, dumped(folder / f"rank_{rank}")
        if begin is None or not shapes:
            continue
        own = merged([Layer(given.values, Origin("file", "run.json")),
                      Layer({"global_rank": rank}, Origin("folder"))])  # fmt: skip
        found = find_context(own, evidence_of(run, compilation))
        if found.parallel is None:
            yield f"rank {rank}", False, "no context"
            continue
        report = check(begin, replace(found.parallel, rank=rank))
        for item in report.parameters:
            real = shapes.get(item.name.replace(".", "_"))
            if real is not None:
                wanted = item.slice or ()
                yield f"rank {rank} {item.name}", wanted == real, f"{wanted} for {real}"


def recorded(folder: Path) -> Given:
    """The context that ``run.json`` says."""
    text = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    values = {"device_num": text["devices"], "dataset_strategy": "full_batch", **text["set"]}
    return merged([Layer(values, Origin("file", "run.json"))])


def unpacked(given: Path | None) -> Path:
    if given is not None and given.is_dir():
        return given
    archive = given or needed_corpus() / "parallel_runs" / "runs.tar.xz"
    folder = Path(tempfile.mkdtemp(prefix="executed_runs_"))
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="?", type=Path)
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    totals: Counter[str] = Counter()
    for folder in sorted(path.parent for path in unpacked(given.runs).glob("*/run.json")):
        line = [f"{folder.name:36}"]
        for name, context in (("folder", Given()), ("context", recorded(folder))):
            items = list(compared(folder, context))
            right = sum(same for _, same, _ in items)
            totals[name] += right
            totals[f"{name} of"] += len(items)
            line.append(f"{name} {right} of {len(items)}")
            if given.list:
                line += [f"\n    {what}: {why}" for what, same, why in items if not same]
        print("  ".join(line))
    for name in ("folder", "context"):
        print(f"with the {name}: {totals[name]} of {totals[f'{name} of']} slices")


if __name__ == "__main__":
    main()
