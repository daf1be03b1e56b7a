#!/usr/bin/env python3
"""What was measured of each operator: does it take tuples, layouts, strategies of outputs?

    python benchmarks/measured_operators.py [--write]

One line a form, from the records of `record_operators/` alone, those of drawn networks left out
(one case of a form says nothing of what else it takes); `--write` keeps them in
`record_operators/measured.tsv`, and which operators take layouts in `layouts.tsv`. `yes`: at least
one case that splits something was accepted; `whole`: only cases that split nothing were; `no`:
none; `-`: none was tried. The last column is MindSpore's own reason where layouts are not taken.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent / "record_operators"
KINDS = ("tuple", "layout", "out_strategy", "out_layout")
DRAWN = "drawn.jsonl.xz"
COLUMNS = ("operator", "form", "mindspore", "cases", "default", *KINDS, "why no layout")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    forms: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for path in sorted((HERE / "records").glob("*.jsonl.xz")):
        if path.name == DRAWN:
            continue
        with lzma.open(path, "rt", encoding="utf-8", errors="surrogateescape") as stream:
            for line in stream:
                record = json.loads(line)
                record.pop("begin", None)
                case = record["case"]
                key = case["operator"], case["form"], record["mindspore"]
                forms.setdefault(key, []).append(record)
    rows = [row(*key, of) for key, of in sorted(forms.items())]
    lines = ["\t".join(line) for line in (COLUMNS, *rows)]
    if options.write:
        (HERE / "measured.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        print("\n".join(lines))
    answers = layouts(rows)
    if options.write:
        text = "".join("\t".join(line) + "\n" for line in answers)
        (HERE / "layouts.tsv").write_text("operator\tlayout\twhy not\n" + text, encoding="utf-8")
    counted = dict(Counter(answer for _, answer, _ in answers))
    print(f"{len(answers)} operators, {len(rows)} forms; layouts: {counted}", file=sys.stderr)
    return 0


def layouts(rows: list[tuple[str, ...]]) -> list[tuple[str, str, str]]:
    """Operator, whether it takes layouts (``by form`` where that depends), and why it does not."""
    lines: list[tuple[str, str, str]] = []
    for name in dict.fromkeys(row_[0] for row_ in rows):
        mine = [row_ for row_ in rows if row_[0] == name]
        answers = {row_[COLUMNS.index("layout")] for row_ in mine} - {"-"}
        answer = "-" if not answers else answers.pop() if len(answers) == 1 else "by form"
        lines.append((name, answer, next((row_[-1] for row_ in mine if row_[-1]), "")))
    return lines


def row(operator: str, form: str, version: str, records: list[dict[str, Any]]) -> tuple[str, ...]:
    """One form's line."""
    default = {record.get("default", "") for record in records} - {""}
    why = next(
        (
            (record["log"] or [record.get("error", "")])[0]
            for record in records
            if record["case"]["kind"] == "layout" and record["verdict"] == "refused"
        ),
        "",
    )
    answers = [taken(records, kind) for kind in KINDS]
    return (
        operator,
        form,
        version,
        str(len(records)),
        ",".join(sorted(default)),
        *answers,
        " ".join(why.split())[:200] if answers[1] in ("no", "whole") else "",
    )


def taken(records: list[dict[str, Any]], kind: str) -> str:
    """Whether cases of a kind were accepted: ``yes``, ``whole``, ``no``, ``-``, or ``later``."""
    asked = [record for record in records if record["case"]["kind"] == kind]
    verdicts = {record["verdict"] for record in asked}
    if not asked or verdicts == {"unbuilt"}:
        return "-"
    accepted = [record for record in asked if record["verdict"] == "accepted"]
    if not accepted:
        return "later" if "later" in verdicts else "no"
    key = "out_strategy" if kind.startswith("out") else "in_strategy"
    return "yes" if any(splits(record["case"][key]) for record in accepted) else "whole"


def splits(strategy: Any) -> bool:
    """Whether a strategy or layouts split anything."""
    if isinstance(strategy, dict):
        return splits(strategy.get("maps", strategy.get("map")))
    if isinstance(strategy, list):
        return any(splits(item) for item in strategy)
    return strategy not in (1, "None", None)


if __name__ == "__main__":
    sys.exit(main())
