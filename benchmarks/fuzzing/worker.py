"""A process that runs cases: numbers or kept cases come in by the line, outcomes go out.

One line asks for many numbers, and each outcome is written as soon as it is there: nobody waits for
anybody, and where the process dies its reader knows over which case.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from base64 import b64decode
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from benchmarks.fuzzing import material
from benchmarks.fuzzing.case import Case
from benchmarks.fuzzing.make import make
from benchmarks.fuzzing.trial import forget, resident, try_case

_FORGET_AFTER = 500
"""Cases after which caches are emptied, so that what one leaves behind meets the next."""


def main() -> None:
    os.environ["IRTOOL_CACHE_DIR"] = os.environ.get("TMPDIR", "/tmp") + "/irtool-fuzz-cache"
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    count = 0
    for line in sys.stdin:
        asked = json.loads(line)
        if count == 0 and "numbers" in asked:
            _warm(asked["large"])
        for number, case in _cases(asked):
            outcome = try_case(case)
            count += 1
            told: dict[str, Any] = {
                "number": number,
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


def _warm(large: float) -> None:
    """Read what all cases start from, and let no collection of garbage visit it again."""
    import_module("irtool.cli.main")
    material.small()
    if large > 0:
        material.large()
    gc.collect()
    gc.freeze()


def _cases(asked: dict[str, Any]) -> Iterator[tuple[int | None, Case]]:
    if "numbers" in asked:
        for number in asked["numbers"]:
            yield number, make(asked["seed"], number, asked["large"], asked["reads"])
        return
    files = {name: b64decode(data) for name, data in asked["files"].items()}
    yield None, Case(asked["command"], asked["mutator"], tuple(asked["argv"]), files, ())


if __name__ == "__main__":
    main()
