"""How long ``irtool lint`` takes: a folder of many dumps for the first and for the second time.

    python benchmarks/lint.py                 # the folder verdicts of the corpus, about a minute
    python benchmarks/lint.py FOLDER --jobs 2

Prints wall and CPU seconds of whole processes with an empty cache and with the one that the first
run left, what was found by rule, where ``case.json`` tells it findings of severity error on
networks that MindSpore accepted (there should be none), and which rules take how long in one
process.  Asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from material import corpus  # noqa: E402 - beside this file, found by the line above


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--runs", type=int, default=3, help="of the second time")
    parser.add_argument("--rules", action="store_true", help="time of each rule")
    options = parser.parse_args()
    found = corpus()
    folder = options.folder or (str(found / "verdicts") if found else str(ROOT / "samples"))
    if options.rules:
        by_rule(folder)
        return
    with tempfile.TemporaryDirectory() as cache:
        first, report = timed(folder, cache, options.jobs)
        later = [timed(folder, cache, options.jobs)[0] for _ in range(options.runs)]
    counts = report["counts"]
    size = sum(path.stat().st_size for path in Path(folder).rglob("*.ir"))
    print(f"{counts['files']:,} dumps, {size / 1e6:.0f} MB, {counts['rules']} rules, "
          f"{options.jobs} processes on {os.cpu_count()} cores")  # fmt: skip
    best = min(later)
    print(f"first run   {first[0]:6.2f} s wall {first[1]:6.2f} s CPU")
    print(f"second run  {best[0]:6.2f} s wall {best[1]:6.2f} s CPU   (best of {options.runs})")
    print(f"ratio       {first[0] / best[0]:6.1f}        {first[1] / best[1]:6.1f}")
    names = {each["code"]: each["name"] for each in report["findings"]}
    for code, count in counts["by_code"].items():
        print(f"{count:7,}  {code}  {names[code]}")
    judge(report["findings"])


def timed(folder: str, cache: str, jobs: str) -> tuple[tuple[float, float], dict[str, Any]]:
    """Wall and CPU seconds of a whole process, and what it wrote."""
    output = os.path.join(cache, "report.json")
    command = [sys.executable, "-m", "irtool", "lint", folder, "--jobs", jobs, "-f", "json"]
    environment = {**os.environ, "IRTOOL_CACHE_DIR": cache, "PYTHONPATH": str(ROOT)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        [*command, "-o", output], env=environment, check=False, stderr=subprocess.DEVNULL, cwd=cache
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (wall, cpu), json.loads(Path(output).read_text(encoding="utf-8"))


def judge(findings: list[dict[str, Any]]) -> None:
    """Findings of severity error by what MindSpore decided."""
    decided: Counter[object] = Counter()
    for each in findings:
        case = Path(each["file"]).with_name("case.json")
        if each["severity"] == "error" and case.exists():
            accepted = json.loads(case.read_text(encoding="utf-8")).get("accepted")
            decided[accepted] += 1
            if accepted:
                print(f"WRONG: {each['file']}:{each['line']}: {each['code']} {each['message']}")
    print(f"errors: {decided[False]} on refused networks, {decided[True]} on accepted ones")


def by_rule(folder: str) -> None:
    """CPU seconds inside each rule's own check, in this process; shared facts count once."""
    from irtool.cli.main import main as irtool
    from irtool.linting.registry import all_rules

    spent: defaultdict[str, float] = defaultdict(float)

    def measured(code: str, check: Any) -> Any:
        @wraps(check)
        def wrapped(*arguments: Any) -> Iterator[Any]:
            start = time.process_time()
            made: Iterable[Any] = []
            try:
                made = list(check(*arguments))
            finally:
                spent[code] += time.process_time() - start
            return iter(made)

        return wrapped

    for code, entry in all_rules().items():
        rule: Any = entry.load()
        if hasattr(rule, "check"):
            rule.check = measured(code, rule.check)
    start = time.process_time()
    irtool(["lint", folder, "--no-cache", "--jobs", "1", "-f", "json", "-o", os.devnull])
    print(f"{time.process_time() - start:8.2f} s in all")
    for code, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        print(f"{seconds:8.2f} s  {code}")


if __name__ == "__main__":
    main()
