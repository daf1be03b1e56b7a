#!/usr/bin/env python3
"""Which forms of calls the records of ``record_operators`` have measured, for irtool's table.

    python benchmarks/measured_forms.py [--write] [--seen] [FOLDER...]

Without folders: how many of the records could be read, and how many forms they have of how many
operators; ``--write`` keeps them in ``irtool/operators/measured.tsv``. With folders of dumps
(``step_parallel_begin``): how many of their sharded operators were measured in the form that they
have, and what is missing most. With ``--seen`` the forms in them that no record holds are kept in
``record_operators/seen.tsv``, with the name of the network: all of networks that MindSpore took,
the operator that it named of those it refused. Such a network is MindSpore's own answer, too, but
its dump is not kept here.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import irtool
from benchmarks.replay_operators import is_judgeable, records
from irtool.operators.measured import FILE, Kind, form_of, kind_of, why_not_measured
from irtool.sharding.network.analysis import Judged, analysis_of
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.graphs import network_of
from irtool.sharding.network.judged import judge_operators
from irtool.sharding.network.strategies import Wanted

SEEN = Path(__file__).resolve().parent / "record_operators" / "seen.tsv"
OWN_FILE = Path(irtool.__file__).parent / "operators" / FILE


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--seen", action="store_true")
    options = parser.parse_args()
    if options.seen:
        return keep_seen(options.folders)
    return coverage(options.folders) if options.folders else collect(options.write)


def collect(write: bool) -> int:
    """The forms of all records."""
    forms: dict[tuple[str, str], set[str]] = {}
    read = skipped = 0
    for record in records():
        if not is_judgeable(record):
            continue
        case = record["case"]
        context = {"device_num": case["devices"], **case.get("context", {})}
        found = False
        for judged in _judged(record["begin"], context):
            name = judged.call.call.op.removeprefix("_")
            asked = kind_asked(judged.wanted)
            # some primitives are others by the time that the parallel pass sees them
            own = name == case["operator"] or (asked != "none" and asked == case["kind"])
            found = found or own
            if own or record["verdict"] == "accepted":  # what stands beside it was accepted, too
                for kind in kinds(case) if own else (asked,):
                    forms.setdefault((name, kind), set()).add(form_of(judged.call.call))
        read, skipped = read + found, skipped + (not found)
    for op, kind, form, _ in seen():
        forms.setdefault((op, kind), set()).add(form)
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


def _judged(text: str, context: dict[str, Any]) -> Iterator[Judged]:
    values = {"full_batch": True, "parallel_mode": "semi_auto_parallel", **context}
    dump = irtool.load(text.encode("utf-8", "surrogateescape"))
    analysis = analysis_of(network_of(dump), ParallelContext.from_mapping(values))
    judge_operators(analysis)
    yield from analysis.judged.values()


Network = tuple[Path, str, dict[str, Any]]


def networks_of(folders: list[Path]) -> Iterator[Network]:
    """Compiled networks: the dump before the parallel pass, its text, and what is known of it."""
    for folder in folders:
        for path in sorted(folder.rglob("*step_parallel_begin*.ir")):
            described = path.with_name("case.json")
            case = json.loads(described.read_text()) if described.exists() else {}
            yield path, path.read_bytes().decode("utf-8", "surrogateescape"), case


def seen() -> Iterator[tuple[str, str, str, str]]:
    """Operator, kind of strategy, form and network of what was seen in compiled networks."""
    if SEEN.exists():
        for line in SEEN.read_text(encoding="utf-8").splitlines():
            op, kind, form, network = line.split("\t")
            yield op, kind, form, network


def keep_seen(folders: list[Path]) -> int:
    """Add what compiled networks show to what was seen."""
    kept = {(op, kind, form): network for op, kind, form, network in seen()}
    for path, text, case in networks_of(folders):
        logged = re.search(r"\] \w+\] (\w+?)Info\d*\b", " ".join(case.get("log", [])[:1]))
        if "accepted" not in case or not (case["accepted"] or logged):
            continue
        try:
            judged = list(_judged(text, case["context"]))
        except ValueError:
            continue
        for one in judged:
            call, kind = one.call.call, kind_asked(one.wanted)
            name = call.op.removeprefix("_")
            answered = case["accepted"] or (logged is not None and logged[1] == name)
            if answered and why_not_measured(call, kind):
                kept.setdefault((name, kind, form_of(call)), path.parent.name)
    lines = [f"{op}\t{kind}\t{form}\t{network}" for (op, kind, form), network in kept.items()]
    SEEN.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")
    print(f"{len(lines)} forms")
    return 0


def coverage(folders: list[Path]) -> int:
    """How much of some networks was measured."""
    asked = networks = open_networks = 0
    missing: dict[str, list[Path]] = {}
    for path, text, case in networks_of(folders):
        try:
            judged = list(_judged(text, case.get("context", {"device_num": 8})))
        except ValueError:
            continue
        reasons = [
            why
            for one in judged
            if (why := why_not_measured(one.call.call, kind_asked(one.wanted)))
        ]
        asked, networks = asked + len(judged), networks + 1
        open_networks += bool(reasons)
        for why in reasons:
            missing.setdefault(why, []).append(path.parent)
    count = sum(map(len, missing.values()))
    print(f"{asked} operators, {asked - count} of a form that was measured")
    print(f"{networks} networks, {networks - open_networks} of measured forms alone")
    for why, where in sorted(missing.items(), key=lambda item: -len(item[1])):
        print(f"{len(where):6} {why}  [{where[0].name[:80]}]")
    return 0


def kind_asked(asked: Wanted) -> Kind:
    """What is given to an operator, in the words of the records."""
    if asked.by_attribute:
        return "attribute"
    return kind_of(asked.strategy, asked.in_layout, asked.out_strategy, asked.out_layout)


if __name__ == "__main__":
    sys.exit(main())
