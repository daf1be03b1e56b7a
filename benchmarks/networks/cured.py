"""Does what `irtool check` proposes for refused networks cure them, all of it together?

    python benchmarks/networks/cured.py FOLDER... [--list] [--edits OUT]

The folders hold what ``compile.py`` wrote. Of every network that ``check`` refuses, the first
proposal of each finding, and what changes beside them, is asked of the operators, and the network
is checked again: cured, cured as far as is known, not cured (with what is refused then), or nothing
proposed (with the reason that is told). ``--edits`` writes them for ``compile.py --edits``, by the
cell and the attribute that hold the primitive: MindSpore says then whether it accepts the network.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import irtool
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.graph import Node, node_of
from irtool.ir.held import held_by
from irtool.operators.layout import WHOLE, MapEntry, UserLayout
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult
from irtool.sharding.network.strategies import Wanted
from irtool.sharding.suggest import Proposals, proposals

CURED, AS_FAR, NOT, NONE = "cured", "cured as far as is known", "not cured", "nothing proposed"


def errors_of(report: CheckResult) -> list[Finding]:
    return [finding for finding in report.findings if finding.severity == "error"]


def edits_of(report: CheckResult, found: Proposals) -> dict[Node, Wanted]:
    """What the answer says to write: the first of each proposal, and what changes beside."""
    edits = dict(found.beside)
    for finding in errors_of(report):
        node, first = node_of(finding), found.first.get(finding)
        if node is not None and first is not None:
            edits.setdefault(node, first)
    return edits


def verdict(dump: Dump, report: CheckResult, edits: Mapping[Node, Wanted]) -> tuple[str, str]:
    """Whether the network is cured, and what is refused still."""
    if not edits:
        return NONE, ""
    again = check(dump, report.context, edits)
    left = errors_of(again)
    if left:
        return NOT, "; ".join(f"{one.code} {one.op or ''}: {one.message[:90]}" for one in left[:3])
    before = {one.message for one in report.findings if one.code == "unknown"}
    new = [one for one in again.findings if one.code == "unknown" and one.message not in before]
    if again.accepted:
        return CURED, ""
    return AS_FAR, new[0].message if new else "what was unknown before"


def written(node: Node, asked: Wanted) -> dict[str, object]:
    """An edit as data: the cell and the name there of the primitive, and what it is given."""
    return {
        "held_by": held_by(node),
        "op": node.op,
        "in_strategy": asked.strategy,
        "out_strategy": asked.out_strategy,
        "in_layout": [layout_data(one) for one in asked.in_layout or ()],
        "out_layout": [layout_data(one) for one in asked.out_layout or ()],
    }


def layout_data(layout: UserLayout) -> dict[str, object]:
    last = len(layout.device_matrix) - 1
    names = layout.alias_name or tuple(f"x{i}" for i in range(last + 1))

    def name(entry: MapEntry) -> object:
        if isinstance(entry, tuple):
            return [name(one) for one in entry]
        return "None" if entry == WHOLE else names[last - entry]

    return {
        "device_matrix": layout.device_matrix,
        "alias_name": names,
        "entries": [name(entry) for entry in layout.tensor_map],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--list", action="store_true", help="show those that are not cured")
    parser.add_argument("--edits", type=Path, help="write what to change, a file a network")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    alone = edited = 0
    longest = 0.0
    for folder in (one for root in options.folders for one in sorted(root.iterdir())):
        begin = next(folder.glob("step_parallel_begin*"), None)
        case = folder / "case.json"
        if begin is None or not case.is_file():
            continue
        recorded = json.loads(case.read_text())
        if "accepted" not in recorded:
            continue  # it was never compiled
        context = ParallelContext.from_mapping(recorded["context"])
        dump = irtool.load(begin)
        report = check(dump, context)
        if report.accepted is not False:
            continue
        began = time.process_time()
        found = proposals(dump, report)
        longest = max(longest, time.process_time() - began)
        edits = edits_of(report, found)
        said, why = verdict(dump, report, edits)
        counts[said] += 1
        edited += len(edits)
        alone += len(found.beside)
        promised = {CURED: True, AS_FAR: True, NOT: False, NONE: None}[said]
        if promised != found.together:
            counts["the answer promises otherwise"] += 1
            print(f"{folder.name}: {said}, and the answer says {found.together}")
        if options.list and said in (NOT, NONE, AS_FAR):
            print(f"{folder.name}: {said}: {why}")
            for finding in errors_of(report):
                if found.first.get(finding) is None:
                    told = found.why_none.get(finding, "-")
                    print(f"    {finding.op or ''} {finding.message[:100]}: {told}")
        if options.edits and edits:
            options.edits.mkdir(parents=True, exist_ok=True)
            data = [written(node, asked) for node, asked in edits.items()]
            (options.edits / f"{folder.name}.json").write_text(json.dumps(data))
    total = sum(counts[said] for said in (CURED, AS_FAR, NOT, NONE))
    for said, number in counts.items():
        print(f"{said}: {number} of {total}")
    print(f"{edited} edits, {alone} of them of operators that no finding is about")
    print(f"longest search: {longest:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
