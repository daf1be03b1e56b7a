"""Compare what `irtool check` says of random networks with what MindSpore made of them, whole.

    python benchmarks/networks/compare.py FOLDER... [--list CLASS] [--only TEXT] [--by-kind]

The folders hold what ``compile.py`` wrote (or the corpus' ``verdicts``). The classes of
``benchmarks/check_corpus.py`` are counted, and one more: whether *all* communication operators of
the stage are predicted, forward and backward, by operator, ranks and count. Networks of which
``check`` says that it does not know all of them are a class of their own: there what it predicts
must be there, but there may be more. And ``--against`` is asked about the dumps after the pass.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from check_corpus import Score, compare_case, first
from check_corpus_context import not_recorded
from check_corpus_end import UNRECORDED

import irtool
from irtool.ir.collectives import collective, exchange_ranks
from irtool.ir.dump import Dump
from irtool.sharding.against import compare
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

Key = tuple[str, tuple[int, ...] | None]
TRANSFERS = ("Send", "Receive")


def compiled(validate: Dump, rank: int, devices: int) -> Counter[Key]:
    """The communication operators of a validate dump, calls inlined.

    Of an exchange between neighbours those count that the rank exchanges with: the group that
    stands there is all devices, whoever they are.
    """
    found: Counter[Key] = Counter()
    for node in validate.whole().nodes:
        item = collective(node.node, devices)
        if item is None or item.is_virtual:
            continue
        ranks = exchange_ranks(node.node, rank) or item.ranks
        if item.op in TRANSFERS:
            ranks = None if item.peer is None else tuple(sorted((rank, item.peer)))
        elif ranks is not None and len(ranks) < 2:
            continue
        found[item.op, ranks] += 1
    return found


def shown(key: Key) -> str:
    ranks = key[1] or ()
    return f"{key[0]} {ranks if len(ranks) < 5 else (*ranks[:3], '…', len(ranks))}"


def compare_whole(score: Score, folder: Path) -> None:
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    validate = first(folder, "*_validate_*")
    begin = first(folder, "step_parallel_begin*")
    if not case.get("accepted") or validate is None or begin is None:
        return
    context = ParallelContext.from_mapping(case["context"])
    before = irtool.load(begin)
    report = check(before, context)
    end = first(folder, "step_parallel_end*")
    known = end is None or not not_recorded(case["context"], before, irtool.load(end))
    for path in (validate, *folder.glob("step_parallel_end*")):
        # Nobody edited these dumps: every difference is a false alarm.
        alarms = compare(report, before, irtool.load(path)).differences
        told = "; ".join(f"{one.kind}: {one.message}" for one in alarms[:3])
        name = "--against an untouched dump: silent"
        score.add(name if known else f"({name}, {UNRECORDED})", not alarms, folder.name, told)
    name = "whole graph: communications"
    if not known:
        name = f"({name}, {UNRECORDED})"
    if report.accepted is not True:
        score.add(name, False, folder.name, "not accepted")
        return
    predicted: Counter[Key] = Counter()
    for item in report.communications:
        predicted[item.op, item.ranks] += item.count
    actual = compiled(irtool.load(validate), context.rank, context.devices)
    if report.communications_unknown:
        name = "(whole graph: said to be unknown in a part)"
        actual &= predicted
    wrong: list[str] = []
    for key in sorted({*actual, *predicted}, key=str):
        if actual[key] != predicted[key]:
            reasons = Counter(
                f"{item.phase} {item.why}"
                for item in report.communications
                if (item.op, item.ranks) == key
                for _ in range(item.count)
            )
            wrong.append(
                f"{shown(key)} predicted {predicted[key]} is {actual[key]} {dict(reasons)}"
            )
    score.add(name, not wrong, folder.name, "; ".join(wrong))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--list", default="", help="show the differences of one class")
    parser.add_argument("--only", default="", help="folders whose name holds this text")
    parser.add_argument("--by-kind", action="store_true", help="the same by kind of network")
    options = parser.parse_args()
    cases = [
        path.parent
        for root in options.folders
        for path in sorted(root.glob("*/case.json"))
        if options.only in path.parent.name and "unusable" not in json.loads(path.read_text())
    ]
    score, kinds = Score(), dict[str, Score]()
    for folder in cases:
        kind = json.loads((folder / "case.json").read_text()).get("kind", "")
        for counted in (score, kinds.setdefault(kind, Score())):
            try:
                compare_case(counted, folder)
                compare_whole(counted, folder)
            except Exception as error:
                counted.add("no crash", False, folder.name, repr(error))
                if options.only:
                    raise
            if not options.by_kind:
                break
    show(score)
    for kind, counted in kinds.items() if options.by_kind else ():
        print(f"\n{kind}")
        show(counted)
    for name, case, what in score.differences:
        if options.list and (options.list == "all" or options.list in name):
            print(f"{name}: {case}: {what}")


def show(score: Score) -> None:
    for name, total in score.total.items():
        share = 100 * score.right[name] / total
        print(f"{name:45} {score.right[name]:7} of {total:7}  {share:7.2f} %")


if __name__ == "__main__":
    main()
