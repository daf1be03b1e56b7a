"""A process that runs cases: numbers or kept cases come in by the line, outcomes go out."""

from __future__ import annotations

import json
import os
import sys
from base64 import b64decode
from typing import Any

from benchmarks.fuzzing.case import Case
from benchmarks.fuzzing.make import make
from benchmarks.fuzzing.trial import forget, resident, try_case

_FORGET_AFTER = 150
"""Cases after which caches are emptied, so that what one leaves behind meets the next."""


def main() -> None:
    os.environ["IRTOOL_CACHE_DIR"] = os.environ.get("TMPDIR", "/tmp") + "/irtool-fuzz-cache"
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    for count, line in enumerate(sys.stdin, start=1):
        asked = json.loads(line)
        case = _case(asked)
        outcome = try_case(case)
        told: dict[str, Any] = {
            "outcome": outcome.as_json(),
            "command": case.command,
            "format": case.format,
            "mutator": case.mutator,
            "size": case.size,
            "resident": resident(),
        }
        answers.write(json.dumps(told) + "\n")
        answers.flush()
        if count % _FORGET_AFTER == 0:
            forget()


def _case(asked: dict[str, Any]) -> Case:
    if "number" in asked:
        return make(asked["seed"], asked["number"], asked["large"], asked["reads"])
    files = {name: b64decode(data) for name, data in asked["files"].items()}
    return Case(asked["command"], asked["mutator"], tuple(asked["argv"]), files, ())


if __name__ == "__main__":
    main()
