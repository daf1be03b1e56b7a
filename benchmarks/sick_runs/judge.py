"""Ask ``irtool doctor`` of runs with planted causes: is the cause first, are healthy runs silent?

    python benchmarks/sick_runs/judge.py OUT [--cases REGEX] [--verbose]

OUT is what ``compile.py`` made. A cause counts as found where the first finding is of the planted
task, its text matches what the case says of it, and no odd rank but the planted ones is named; a
healthy run is silent where no finding is graver than an info.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", default="")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    totals = {"sick": [0, 0], "healthy": [0, 0]}
    for truth_file in sorted(options.out.glob("*.truth.json")):
        name = truth_file.name.removesuffix(".truth.json")
        if not re.search(options.cases, name):
            continue
        truth = json.loads(truth_file.read_text())
        bad = ("timeout", "failed")
        if "compile-failure" not in truth["task"]:
            bad += ("refused",)
        spoilt = [end for end in truth["ends"] if end.startswith(bad)]
        if truth["task"] == "compile-failure" and set(truth["ends"]) == {"compiled"}:
            spoilt = ["this MindSpore compiles it"]
        if spoilt:
            print(f"{name}: not made: {spoilt[0]}", flush=True)
            continue
        begun = time.time()
        told = ask(options.out / name)
        (options.out / f"{name}.told.json").write_text(json.dumps(told, indent=1))
        verdict, why = judged(told, truth)
        kind = "sick" if truth["task"] else "healthy"
        totals[kind][0] += verdict
        totals[kind][1] += 1
        mark = "ok" if verdict else "WRONG"
        print(f"{name}: {mark} {time.time() - begun:.1f} s {why[:400]}", flush=True)
    for kind, (good, all_of) in totals.items():
        print(f"{kind}: {good} of {all_of}")
    return 0


def ask(folder: Path) -> dict[str, Any]:
    """The doctor's answer."""
    words = [
        sys.executable,
        "-m",
        "irtool",
        "doctor",
        str(folder),
        "--format",
        "json",
        "--jobs",
        "1",
    ]
    against = folder.with_name(f"{folder.name}.against")
    if against.exists():
        words += ["--against", str(against)]
    done = subprocess.run(words, capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout else {"error": done.stderr}


def judged(told: dict[str, Any], truth: dict[str, Any]) -> tuple[bool, str]:
    """Whether an answer is right, and what it says."""
    if "error" in told:
        return False, str(told["error"])
    found = told["findings"]
    internal = [item["why"] for item in told["not_judged"] if "internal error" in item["why"]]
    if internal:
        return False, internal[0]
    if not truth["task"]:
        grave = [item for item in found if item["severity"] != "info"]
        return not grave, "; ".join(f"{one['task']}: {one['cause']}" for one in grave)
    if not found:
        return False, "nothing found"
    first = found[0]
    text = f"{first['severity']} {first['task']}: {first['cause']}"
    good = re.fullmatch(truth["task"], first["task"]) is not None
    # Of two ranks nobody can say which one is odd: both are named then, and how they differ.
    tied = truth["devices"] == 2 and "do not communicate alike" in text
    words = [word for word in truth["words"] if not (tied and word.startswith("rank "))]
    good = good and all(re.search(word, text, re.IGNORECASE) for word in words)
    if truth.get("line") and (first["source"] or {}).get("line") != truth["line"]:
        good, text = False, f"{text} (on line {first['source']}, not {truth['line']})"
    for key in ("edit", "since"):
        said = json.dumps(first[key])
        if truth.get(key) and not re.search(truth[key], said):
            good, text = False, f"{text} ({key} is {said}, not {truth[key]})"
    if truth["odd_ranks"] and first["task"] == "hang" and not tied:
        good = good and set(first["ranks"]) <= set(truth["odd_ranks"])
    return good, text


if __name__ == "__main__":
    sys.exit(main())
