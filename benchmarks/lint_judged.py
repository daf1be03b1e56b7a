"""How often ``irtool lint`` is right: findings by rule on accepted networks, and a judged sample.

    python benchmarks/lint_judged.py count FOLDER… --name TEXT --out SET.json [--sample 25]
    python benchmarks/lint_judged.py keep SET.json     # once every finding in it has its verdict
    python benchmarks/lint_judged.py show [--write]    # the documentation's table of all sets

FOLDER holds folders of compilations with a ``case.json`` each that says whether MindSpore accepted
the network (benchmarks/networks and benchmarks/plants write it); those refused are left out.
``count`` writes how many errors, warnings and infos each rule gave, and draws a sample of the
warnings without a verdict, with at least ``--each`` of every rule: a person reads each against its
dump and writes ``true`` (it says what is so, and there is something to do about it) or ``false``,
with a reason.  ``keep`` adds the set to ``lint_judged.json``; the table in ``docs/lint.md`` is made
of that file, and a test holds the two to each other.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KEPT = Path(__file__).with_suffix(".json")
PAGE = ROOT / "docs" / "lint.md"
BEGIN = "<!-- Written by `python benchmarks/lint_judged.py show --write`. -->\n"
END = "<!-- End of what is written. -->\n"

Set = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(dest="what", required=True)
    count = parts.add_parser("count")
    count.add_argument("folders", nargs="+", type=Path)
    count.add_argument("--name", required=True)
    count.add_argument("--out", type=Path, required=True)
    count.add_argument("--sample", type=int, default=25)
    count.add_argument("--each", type=int, default=5)
    count.add_argument("--seed", type=int, default=7)
    count.add_argument("--jobs", default="2")
    parts.add_parser("keep").add_argument("set", type=Path)
    parts.add_parser("show").add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.what == "count":
        made = counted(options)
        options.out.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        print(f"{options.out}: {made['networks']} networks, {len(made['judged'])} to be judged")
    elif options.what == "keep":
        keep(json.loads(options.set.read_text(encoding="utf-8")))
    elif options.write:
        PAGE.write_text(placed(PAGE.read_text(encoding="utf-8"), table(kept())), encoding="utf-8")
    else:
        print(table(kept()), end="")


def counted(options: argparse.Namespace) -> Set:
    """One set: how often each rule spoke, and a sample of its warnings."""
    accepted = [
        case.parent
        for folder in options.folders
        for case in sorted(folder.glob("*/case.json"))
        if json.loads(case.read_text(encoding="utf-8")).get("accepted")
    ]
    found = linted(accepted, options.jobs)
    warnings = [each for each in found if each["severity"] == "warning"]
    random.Random(options.seed).shuffle(warnings)
    drawn = Counter[str]()
    chosen: list[dict[str, Any]] = []
    for number, each in enumerate(warnings):
        if number < options.sample or drawn[each["code"]] < options.each:
            drawn[each["code"]] += 1
            chosen.append(each)
    return {
        "name": options.name,
        "networks": len(accepted),
        **{
            severity: by_rule(each for each in found if each["severity"] == severity)
            for severity in ("error", "warning", "info")
        },
        "judged": [
            {
                "network": Path(each["file"]).parent.name,
                "code": each["code"],
                "line": each["line"],
                "message": each["message"],
                "verdict": None,
                "why": "",
            }
            for each in chosen
        ],
    }


def linted(folders: list[Path], jobs: str) -> list[dict[str, Any]]:
    """All findings about these compilations."""
    with tempfile.TemporaryDirectory() as cache:
        output = os.path.join(cache, "answer.json")
        command = [sys.executable, "-m", "irtool", "lint", *map(str, folders)]
        subprocess.run(
            [*command, "--no-cache", "--jobs", jobs, "-f", "json", "-o", output],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.DEVNULL,
            check=False,
        )
        answer: dict[str, Any] = json.loads(Path(output).read_text(encoding="utf-8"))
        return answer["findings"]


def by_rule(findings: Any) -> dict[str, int]:
    """How often each rule spoke."""
    return dict(sorted(Counter(each["code"] for each in findings).items()))


def kept() -> list[Set]:
    """All sets that were judged."""
    sets: list[Set] = json.loads(KEPT.read_text(encoding="utf-8"))
    return sets


def keep(made: Set) -> None:
    """Add a judged set.

    Raises:
        SystemExit: a finding has no verdict.
    """
    open_ones = [each for each in made["judged"] if each["verdict"] not in (True, False)]
    if open_ones:
        sys.exit(f"{len(open_ones)} of {len(made['judged'])} findings have no verdict")
    sets = [each for each in kept() if each["name"] != made["name"]]
    KEPT.write_text(json.dumps([*sets, made], indent=1) + "\n", encoding="utf-8")


def table(sets: list[Set]) -> str:
    """Sets, then rules: spoken, judged, true."""
    lines = ["| accepted networks | | errors | warnings | judged | true and actionable |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for each in sets:
        judged = each["judged"]
        true = sum(one["verdict"] for one in judged)
        cells = (
            each["name"], f"{each['networks']:,}", sum(each["error"].values()),
            sum(each["warning"].values()), len(judged), true,
        )  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += ["", "| rule | warnings | judged | true and actionable |", "| --- | --- | --- | --- |"]
    spoken: Counter[str] = Counter()
    judged_of: Counter[str] = Counter()
    true_of: Counter[str] = Counter()
    for each in sets:
        spoken.update(each["warning"])
        judged_of.update(one["code"] for one in each["judged"])
        true_of.update(one["code"] for one in each["judged"] if one["verdict"])
    for code in sorted(spoken):
        lines.append(f"| {code} | {spoken[code]} | {judged_of[code]} | {true_of[code]} |")
    total, right = sum(judged_of.values()), sum(true_of.values())
    share = f" ({right / total:.0%})" if total else ""
    lines.append(f"| all | {sum(spoken.values())} | {total} | {right}{share} |")
    return "\n".join(lines) + "\n"


def placed(page: str, text: str) -> str:
    """The page with the table between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


if __name__ == "__main__":
    main()
