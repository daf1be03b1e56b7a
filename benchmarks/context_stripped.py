"""Find the context of compilations from their dumps alone, and compare it with the recorded one.

    python benchmarks/context_stripped.py [FOLDER] [--list KEY] [--without PASS]

The folder is `verdicts` of the corpus: `$IRTOOL_CORPUS`, or `../shared/corpus`. Every folder in it
that has a validate dump is read as if its `case.json` were not there; then each key is compared
with what `case.json` records: equal, assumed (nothing shows it, MindSpore's default is taken), or
wrong. `--without end` leaves that dump out, to see what the others tell.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from material import needed_corpus

from irtool.cluster.context.dataset import given_dataset, same_split
from irtool.cluster.context.evidence import PASSES, Evidence
from irtool.cluster.context.find import find_context
from irtool.cluster.context.given import Given
from irtool.cluster.context.model import RunContext, Source
from irtool.cluster.context.shown import Pass
from irtool.sharding.network.context import ParallelContext

KEYS = (
    "device_num", "pipeline_stages", "global_rank", "parallel_mode", "search_mode",
    "dataset_strategy", "enable_parallel_optimizer", "gradients_mean",
)  # fmt: skip


def evidence_in(folder: Path, without: str) -> Evidence:
    paths: dict[Pass, str] = {}
    for kind, name in PASSES.items():
        found = sorted(folder.glob(f"*{name}_*.ir"))
        if found and kind != without:
            paths[kind] = str(found[-1])
    return Evidence(paths)


def compared(
    found: RunContext, case: Mapping[str, object]
) -> Iterator[tuple[str, str, object, object]]:
    """Key, class, what was found, what is recorded."""
    wanted = ParallelContext.from_mapping(case)
    recorded: dict[str, object] = {
        "device_num": wanted.devices,
        "pipeline_stages": wanted.stages,
        "global_rank": wanted.rank,
        "parallel_mode": wanted.mode,
        "search_mode": wanted.search,
        "dataset_strategy": given_dataset(case),
        "enable_parallel_optimizer": wanted.parallel_optimizer,
        "gradients_mean": wanted.gradients_mean,
    }
    for key in KEYS:
        entry = found.entries.get(key)
        if entry is None:
            yield key, "unknown", None, recorded[key]
            continue
        source: Source = entry.origin.source
        same = entry.value == recorded[key]
        if key == "dataset_strategy":
            same = same_split(entry.value, recorded[key], wanted.stage_size)  # type: ignore[arg-type]
        if key == "search_mode" and not wanted.searches:
            same = True
        kind = "assumed" if source == "assumed" else "shown"
        yield key, f"{kind}, {'equal' if same else 'other'}", entry.value, recorded[key]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--list", metavar="KEY", default="")
    parser.add_argument("--without", metavar="PASS", default="")
    given = parser.parse_args()
    folder = given.folder or needed_corpus() / "verdicts"
    counts: dict[str, Counter[str]] = {key: Counter() for key in KEYS}
    total = 0
    for each in sorted(path.parent for path in folder.glob("*/case.json")):
        if not any(each.glob("*_validate_*.ir")):
            continue
        total += 1
        case = json.loads((each / "case.json").read_text(encoding="utf-8"))["context"]
        try:
            found = find_context(Given({}, {}), evidence_in(each, given.without))
        except ValueError as error:
            print(each.name, error)
            continue
        for key, kind, value, recorded in compared(found, case):
            counts[key][kind] += 1
            if given.list == key and not kind.endswith("equal"):
                print(f"  {each.name}: {kind}: {value} for {recorded}")
    print(f"{total} compilations with a validate dump, case.json not read")
    for key, classes in counts.items():
        print(f"  {key:26}", ", ".join(f"{kind}: {n}" for kind, n in sorted(classes.items())))


if __name__ == "__main__":
    main()
