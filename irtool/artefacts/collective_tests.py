"""Outputs of hccl_test and nccl-tests: how long a collective of a size took.

Formats: the format strings of nccl-tests (``util.cu`` at a0b82b22) and of hccl_test
(``hccl_opbase_rootinfo_base.cc``); no output of a real machine was seen but single rows of public
tests.  Columns go by their header, since they come and go with versions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Literal, cast

from irtool.artefacts.damage import Damage
from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.json_files import json_object, number_of, table_of
from irtool.artefacts.tables import text_lines
from irtool.ir.dataclass import dataclass

Tool = Literal["hccl_test", "nccl-tests"]
OPERATORS = {
    "all_reduce": "AllReduce",
    "all_gather": "AllGather",
    "reduce_scatter": "ReduceScatter",
    "alltoall": "AlltoAll",
    "broadcast": "Broadcast",
    "sendrecv": "Send",
}
"""Primitives by the part of a test's name, ``all_reduce_perf`` or ``all_reduce_test``."""

_MOST_HEADER = 2000
_HCCL = re.compile(r"\s*data_size\(Bytes\):\s*\|")
_NCCL = re.compile(r"#\s+size\s+count\b")
_COUNT = re.compile(
    r"(\d{1,6})[-_ ]?(?:ranks?|cards?|npus?|gpus?|devices?)(?![a-z])", re.IGNORECASE
)
_RANK = re.compile(r"#\s+Rank\s+(\d{1,6})\b")


@dataclass(frozen=True, slots=True)
class TimedCollective:
    """A row of a test's output: a collective of one size.

    Attributes:
        line: in the file.
        bytes: of the whole array: what all-gather makes, what the others are given.
        seconds: of one operation.
        passed: whether the result was right; None where it was not checked.
    """

    line: int
    bytes: float
    seconds: float
    passed: bool | None


@dataclass(frozen=True, slots=True)
class CollectiveTest:
    """What hccl_test or nccl-tests measured in one run.

    ``op`` and ``ranks`` are None where neither the output nor the file's name says them.
    """

    path: str
    tool: Tool
    op: str | None
    ranks: int | None
    rows: tuple[TimedCollective, ...]


def collective_test(path: str, damage: Damage) -> CollectiveTest:
    """The measurements in the output of hccl_test or nccl-tests.

    Args:
        path: what the tool printed, or the JSON of nccl-tests (by the ending ``.json``).
        damage: collects the lines that can't be read.

    Raises:
        ArtefactError: it is of neither tool.
    """
    if path.lower().endswith(".json"):
        return _nccl_document(path, damage)
    rows: list[TimedCollective] = []
    op, ranks, tool, columns = operator_in(os.path.basename(path)), 0, None, None
    with text_lines(path) as stream:
        for line, text in enumerate(stream, 1):
            if _HCCL.match(text):
                tool = "hccl_test"
            elif _NCCL.match(text):
                tool, columns = "nccl-tests", text[1:].split()
            elif text.startswith("#"):
                op = op or (operator_in(text) if "Collective test" in text else None)
                match = _RANK.match(text)
                ranks = max(ranks, int(match[1]) + 1) if match else ranks
            elif tool == "hccl_test":
                rows += _hccl_rows(line, text, damage)
            elif tool == "nccl-tests" and text.strip():
                rows += _nccl_rows(line, text, columns or [], damage)
            elif line > _MOST_HEADER:
                break
    if tool is None:
        hint = "hccl_test prints a line 'data_size(Bytes): | …', nccl-tests '#  size  count  …'"
        raise ArtefactError(path, "is no output of hccl_test or nccl-tests", hint=hint)
    return CollectiveTest(path, tool, op, ranks or _ranks_in(path), tuple(rows))


def _ranks_in(path: str) -> int | None:
    """How many ranks a file's name tells: ``all_reduce_8ranks.txt``."""
    match = _COUNT.search(os.path.basename(path))
    return int(match[1]) if match is not None and int(match[1]) else None


def _nccl_document(path: str, damage: Damage) -> CollectiveTest:
    """The JSON output of nccl-tests: ``results``, each with ``size`` and ``out_of_place.time``.

    Raises:
        ArtefactError: it is no such document.
    """
    results: object = json_object(path, "output of nccl-tests").get("results")
    if not isinstance(results, list):
        raise ArtefactError(path, "is no output of nccl-tests: it has no results", 1)
    rows: list[TimedCollective] = []
    for place, entry in enumerate(cast("list[object]", results)):
        timed = table_of(table_of(entry).get("out_of_place"))
        size, time = number_of(table_of(entry), "size"), number_of(timed, "time")
        if size is None or time is None or size < 0 or time < 0:
            damage.add(1, f"results[{place}] has no size and time")
            continue
        wrong = number_of(timed, "nwrong")
        rows.append(TimedCollective(1, size, time / 1e6, None if wrong is None else wrong == 0))
    op = operator_in(os.path.basename(path))
    return CollectiveTest(path, "nccl-tests", op, _ranks_in(path), tuple(rows))


def operator_in(text: str) -> str | None:
    """The primitive that a test's name means: ``all_reduce_perf`` is AllReduce.

    Args:
        text: any that names a collective, in any case, with ``_``, ``-`` or nothing between words.

    Returns:
        None where it names none.
    """
    plain = text.lower().replace("-", "_")
    primitives = (
        op for name, op in OPERATORS.items() if name in plain or name in plain.replace("_", "")
    )
    return next(primitives, None)


def _hccl_rows(line: int, text: str, damage: Damage) -> Iterator[TimedCollective]:
    """``<size> | <time> | <bandwidth> | <result>``; S is bandwidth × time, whatever size means."""
    if "result failed" in text:
        damage.add(line, "a rank's result was wrong", text=text.strip())
        return
    cells = [cell.strip() for cell in text.split("|")]
    if len(cells) < 4:
        if text.strip():
            damage.add(line, "no row of the test", text=text.strip())
        return
    numbers = _numbers(cells[:3])
    if numbers is None:
        damage.add(line, "no size, time and bandwidth", text=text.strip())
        return
    _, microseconds, bandwidth = numbers
    seconds = microseconds / 1e6
    passed = {"success": True, "failed": False}.get(cells[3].lower())
    yield TimedCollective(line, bandwidth * 1e9 * seconds, seconds, passed)


def _nccl_rows(
    line: int, text: str, columns: list[str], damage: Damage
) -> Iterator[TimedCollective]:
    """``size count type redop root time algbw busbw #wrong``: out-of-place, the first ``time``."""
    cells = text.split()
    name = next((heading for heading in ("time", "cputime") if heading in columns), None)
    if name is None or len(cells) <= columns.index(name):
        damage.add(line, "no row of the test", text=text.strip())
        return
    numbers = _numbers([cells[0], cells[columns.index(name)]])
    if numbers is None:
        damage.add(line, "no size and time", text=text.strip())
        return
    place = columns.index("#wrong") if "#wrong" in columns else len(cells)
    wrong = cells[place] if place < len(cells) else "N/A"
    passed = wrong == "0" if wrong.isdecimal() else None
    yield TimedCollective(line, numbers[0], numbers[1] / 1e6, passed)


def _numbers(cells: list[str]) -> list[float] | None:
    try:
        numbers = [float(cell) for cell in cells]
    except ValueError:
        return None
    return numbers if all(0 <= number < 1e30 for number in numbers) else None
