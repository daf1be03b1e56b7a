"""How many refusals of the corpus `irtool explain` names from MindSpore's log alone.

    python benchmarks/explain.py [CORPUS] [--wrong]

For every rejected compilation of `verdicts` whose `log` is not empty: the operator (that of the
exception, which is not read), and the rule (file and function of the first line). Beside it, how
often the code is the one that `irtool check` gives for the same case.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import irtool
from irtool.linting.failure.log import LogReader
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

ROOT = Path(__file__).resolve().parents[1]
_OPERATOR = re.compile(r"Failure:operator (\w+) ")
_PARAMETER = "has multiple users, but the TensorInfo are different"


@dataclass(frozen=True)
class Named:
    """What the log alone gave, and what it should have given."""

    case: str
    operator: str
    wanted: str
    rule: str
    first: str
    code: str

    @property
    def is_right(self) -> bool:
        return self.operator == self.wanted and self.rule == self.first


def refused_cases(corpus: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted((corpus / "verdicts").glob("*/case.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        if not case["accepted"] and case["log"]:
            yield path.parent, case


def named(folder: Path, case: dict[str, Any]) -> Named:
    reader = LogReader(str(folder))
    for number, line in enumerate("\n".join(case["log"]).split("\n"), 1):
        reader.feed(number, line)
    found = reader.finish().findings
    first = re.match(r"\[([^\]:]+):\d+\] (\w+)\]", case["log"][0])
    rule = f"{first[1].rpartition('/')[2]}:{first[2]}" if first else ""
    exception = _OPERATOR.search(case["error"])
    wanted = exception[1] if exception else "parameter" if _PARAMETER in case["error"] else ""
    if not found:
        return Named(folder.name, "", wanted, "", rule, "")
    return Named(folder.name, found[0].op, wanted, found[0].check, rule, found[0].code)


def code_of_check(folder: Path, case: dict[str, Any]) -> set[str]:
    begin = next(folder.glob("step_parallel_begin*"), None)
    if begin is None:
        return set()
    report = check(irtool.load(begin), ParallelContext.from_mapping(case["context"]))
    return {finding.code for finding in report.findings if finding.severity == "error"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", nargs="?", default=ROOT.parent / "shared" / "corpus", type=Path)
    parser.add_argument("--wrong", action="store_true", help="show the cases that are not named")
    options = parser.parse_args()
    cases = list(refused_cases(options.corpus))
    begun = time.perf_counter()
    results = [named(folder, case) for folder, case in cases]
    seconds = time.perf_counter() - begun
    right = sum(each.is_right for each in results)
    print(f"operator and rule named from the log: {right} of {len(results)}", end=" ")
    print(f"({100 * right / max(1, len(results)):.1f} %), {1000 * seconds:.0f} ms")
    codes = Counter[str]()
    differing: list[str] = []
    for each, (folder, case) in zip(results, cases, strict=True):
        others = code_of_check(folder, case)
        kind = "no begin dump" if not others else "equal" if each.code in others else "another"
        codes[kind] += 1
        if kind == "another":
            differing.append(f"{each.case}: {each.code}, check says {', '.join(sorted(others))}")
    print(
        f"code equal to that of irtool check: {codes['equal']}, another: {codes['another']}", end=""
    )
    print(f", no dump to check: {codes['no begin dump']}")
    if options.wrong:
        for each in results:
            if not each.is_right:
                print(f"  {each.case}: {each.operator!r} ({each.wanted!r}), {each.rule!r}")
        print("\n".join(f"  {each}" for each in differing))


if __name__ == "__main__":
    main()
