"""What is said of whole networks that MindSpore compiled: a net under the analysis of networks.

    python benchmarks/net_networks.py               # networks whose answers are not those kept
    python benchmarks/net_networks.py --show NAME   # all that is said of one, to compare
    python benchmarks/net_networks.py --record      # keep the answers of now (net.py does, too)

The networks are the records of ``tests/sharding/network``.  The tests there hold verdicts, slices
and counts of communications against MindSpore's; here the whole answer is kept (maps, bytes, why,
proposals, what ``--against`` could not compare), by section as a number of entries and a digest.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

import irtool  # noqa: E402 - found by the line above
from irtool.sharding.against import compare  # noqa: E402
from irtool.sharding.check import check  # noqa: E402
from irtool.sharding.network.context import ParallelContext  # noqa: E402

RECORDS = ROOT / "tests" / "sharding" / "network"
KEPT = ROOT / "tests" / "net" / "networks.tsv"
LEFT_OUT = ("pipelines",)
"""Files of records that would take longest."""
SECTIONS = (
    *("findings", "operators", "redistributions", "parameters", "dataset", "collectives"),
    *("communications", "communications_unknown"),
)
"""Keys of the answer of ``check``."""
OTHERWISE: dict[str, dict[str, Any]] = {
    "all-to-all": {"enable_alltoall": True},
    "optimizer parallel": {
        "enable_parallel_optimizer": True,
        "parallel_optimizer_config": {"parallel_optimizer_threshold": 0},
    },
    "sliced dataset": {"dataset_strategy": "data_parallel", "full_batch": False},
    "last rank": {},
}
"""Contexts that each network is asked under in turn, one of them a network, beside its own."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A record: the dump before the parallel pass, later ones by name, and the context."""

    begin: str
    context: dict[str, Any]
    later: dict[str, str] = field(default_factory=dict[str, str])


def otherwise(number: int, network: Compiled) -> tuple[str, dict[str, Any]]:
    """The other context that the n-th network is asked under, by name."""
    name = list(OTHERWISE)[number % len(OTHERWISE)]
    devices = int(network.context.get("device_num", 8))
    changed = {"global_rank": devices - 1} if name == "last rank" else OTHERWISE[name]
    return name, {**network.context, **changed}


@cache
def networks() -> dict[str, Compiled]:
    """The records by file and name."""
    found: dict[str, Compiled] = {}
    for path in sorted(RECORDS.glob("*.xz")):
        file = path.name.partition(".")[0]
        if file in LEFT_OUT:
            continue
        text = lzma.decompress(path.read_bytes()).decode()
        lines = path.name.endswith(".jsonl.xz")
        entries = map(json.loads, text.splitlines()) if lines else json.loads(text)
        for entry in entries:
            later = {name: entry[name] for name in ("end", "validate") if name in entry}
            if "begin" in entry and "context" in entry:
                one = Compiled(entry["begin"], entry["context"], later)
                found[f"{file}/{entry['name']}"] = one
    return found


def answers(name: str) -> Iterator[tuple[str, list[Any]]]:
    """What is said of a network, by section."""
    network = networks()[name]
    begin = irtool.loads(network.begin, "step_parallel_begin_0018.ir")
    said = irtool.check(begin, network.context).to_dict()
    yield f"accepted {said['accepted']}", []
    for section in SECTIONS:
        yield section, said[section]
    other, context = otherwise(list(networks()).index(name), network)
    said = irtool.check(begin, context).to_dict()
    whole = [one for section in SECTIONS for one in said[section]]
    yield f"{other} {said['accepted']}", whole
    report = check(begin, ParallelContext.from_mapping(network.context))
    for name, text in network.later.items():
        found = compare(report, begin, irtool.loads(text, f"20_{name}_0080.ir"))
        told = [
            *(str((one.kind, one.message, one.predicted, one.actual)) for one in found.differences),
            *(str((one.what, one.why)) for one in found.unmatched),
            *(str((one.cause, one.count, [n.id for n in one.nodes])) for one in found.explained),
        ]
        yield f"against {name}", told


def kept_now(name: str) -> str:
    """The line that would be kept of a network now."""
    words = [name]
    for section, said in answers(name):
        text = json.dumps(said, sort_keys=True)
        digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
        words.append(f"{section} {len(said)} {digest[:8]}" if said else section)
    return "\t".join(words)


def kept() -> dict[str, str]:
    """The lines that are kept, by network."""
    if not KEPT.exists():
        return {}
    return {line.partition("\t")[0]: line for line in KEPT.read_text("utf-8").splitlines()}


def record() -> list[str]:
    """Keep the answers of now; the networks of which something else was kept."""
    before = kept()
    now = {name: kept_now(name) for name in networks()}
    KEPT.write_text("\n".join(now.values()) + "\n", encoding="utf-8", newline="\n")
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", metavar="NAME")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if options.show:
        for section, said in answers(options.show):
            print(section, *(json.dumps(one) for one in said), sep="\n  ")
        return 0
    before = kept()
    other = record() if options.record else [n for n in networks() if kept_now(n) != before.get(n)]
    print(*(f"other answer of {name}" for name in other), sep="\n")
    return int(bool(other) and not options.record)


if __name__ == "__main__":
    sys.exit(main())
