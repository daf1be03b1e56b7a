"""What `msprobe compare` says of the runs that ``runs.py`` drew, beside what irtool says.

    python benchmarks/precision/msprobe_said.py OUT [--only PATTERN] [--statistics]

Runs in an environment with torch and mindstudio-probe.  msprobe marks rows `error` or `warning`:
the first row that is marked counts as what it names; a healthy pair with a marked row is accused.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile

from tally import Entry, Tally, arguments, pairs

_MARKS = ("error", "warning")


def rows_of(left: str, right: str, statistics: bool) -> list[dict[str, str]]:
    """The table that msprobe writes of two dumps, the second one being the bench."""
    with tempfile.TemporaryDirectory() as folder:
        sides: list[str] = []
        for name, path in (("npu", right), ("bench", left)):
            step = os.path.join(path, "step0")
            rank = next(n for n in sorted(os.listdir(step)) if n[:4] in ("rank", "proc"))
            with open(os.path.join(step, rank, "dump.json")) as stream:
                document = json.load(stream)
            if statistics:
                document["task"], document["dump_data_dir"] = "statistics", None
                _forget_values(document["data"])
            made = os.path.join(folder, name)
            os.makedirs(made)
            with open(os.path.join(made, "dump.json"), "w") as stream:
                json.dump(document, stream)
            for other in ("stack.json", "construct.json"):
                os.symlink(os.path.join(step, rank, other), os.path.join(made, other))
            if not statistics:
                values = os.path.join(step, rank, "dump_tensor_data")
                os.symlink(os.path.abspath(values), os.path.join(made, "dump_tensor_data"))
            sides.append(os.path.join(made, "dump.json"))
        out = os.path.join(folder, "out")
        program = os.path.join(os.path.dirname(sys.executable), "msprobe")
        command = [program, "compare", "-tp", sides[0], "-gp", sides[1], "-o", out]
        subprocess.run(command, check=True, capture_output=True)
        tables = [name for name in os.listdir(out) if name.endswith(".csv")]
        with open(os.path.join(out, tables[0]), newline="") as stream:
            return list(csv.DictReader(stream))


def _forget_values(item: object) -> None:
    if isinstance(item, dict):
        item.pop("data_name", None)
        for value in item.values():
            _forget_values(value)
    elif isinstance(item, list):
        for value in item:
            _forget_values(value)


def word_of(rows: list[dict[str, str]], entry: Entry) -> str:
    """What its marks amount to."""
    marked = [row for row in rows if row.get("Result", "").lower() in _MARKS]
    if entry["kind"] != "fault":
        return "accused" if marked else "quiet"
    if not marked:
        return "missed"
    name = marked[0]["NPU Name"] if marked[0]["NPU Name"] != "N/A" else marked[0]["Bench Name"]
    return "named" if any(name.startswith(f"{op}.") for op in entry["enters"]) else "wrong"


def main() -> int:
    asked = arguments(__doc__).parse_args()
    tally = Tally()
    for out, name, entry in pairs(asked):
        left = os.path.join(out, entry["reference"])
        rows = rows_of(left, os.path.join(out, name), asked.statistics)
        word = word_of(rows, entry)
        tally.add(word, entry["type"], entry["kind"])
        print(f"{word:8} {name}", flush=True)
    tally.show()
    return 0


if __name__ == "__main__":
    sys.exit(main())
