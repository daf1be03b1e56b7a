"""Refusals of MindSpore's own tests: the log alone names operator and rule."""

from __future__ import annotations

import json
import re
from pathlib import Path

from irtool.linting.failure.log import LogReader

_OPERATOR = re.compile(r"Failure:operator (\w+) ")
_SHARED = "has multiple users, but the TensorInfo are different"


def test_operator_and_rule_are_named_from_the_log(corpus: Path) -> None:
    total = right = 0
    for path in sorted((corpus / "verdicts").glob("*/case.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        if case["accepted"] or not case["log"]:
            continue
        reader = LogReader(str(path))
        for number, line in enumerate("\n".join(case["log"]).split("\n"), 1):
            reader.feed(number, line)
        findings = reader.finish().findings
        exception = _OPERATOR.search(case["error"])
        operator = exception[1] if exception else "parameter" if _SHARED in case["error"] else None
        place = re.match(r"\[\S*?([^/\]:]+):\d+\] (\w+)\]", case["log"][0])
        total += 1
        assert findings, path
        assert place is not None
        named = findings[0].op == operator and findings[0].check == f"{place[1]}:{place[2]}"
        right += named and findings[0].code != "unknown"
    assert total > 50
    assert right >= 0.95 * total
