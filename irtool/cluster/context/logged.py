"""What the logs of a run say of its context.

MindSpore writes what it compiles for at the beginning of its parallel pass, as INFO (``GLOG_v=1``
or 0). The lines, as MindSpore 2.7.0 and 2.10.0 write them::

    ParallelInit] The parallel context: device_num: 8, global_rank: 0, communication_backend: hccl,
        gradients_mean: 0, gradient_fp32_sync: 1
    Init] The device num: 8, rank id: 0, the backend: hccl, the stage num: 1, the stage id: 0, …
    StepAutoParallel] search_mode: recursive_programming

and where it refuses a strategy or a Layout, as ERROR::

    InferRepeatedCalcInfo] MatMulInfo22: The strategy is ((8, 1), (1, 4)), it requires 32 devices,
        but the device number of this stage is 8, it can not be divisible by 32
    The configured device_matrix (2, 2) accumulate value 4 dose not equal to the device number in
        one stage 8
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from irtool.cluster.context.model import Entry, Origin
from irtool.ir.dataclass import dataclass
from irtool.ir.run import LogFile
from irtool.sharding.network.context import SEARCHES
from irtool.syntax.lines import chunks_of, lines_in
from irtool.syntax.reading import opened
from irtool.syntax.unpacking import Damaged, UnpacksTooFar

MOST_LOGS = 8
"""How many logs of a run are looked into, one after the other, until one says something."""
MOST_BYTES = 32 << 20
"""How far a log is read: MindSpore compiles before it trains."""
_MOST_LINE = 4096
_TEXT = 120
"""Characters of a line that are told."""

STAGE_DEVICES = "stage_devices"
"""The key of how many devices one stage has, which is none of MindSpore's."""

_TARGETS = {"hccl": "Ascend", "nccl": "GPU"}


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that says something: what stands in it, and its parts by key."""

    mark: bytes
    pattern: re.Pattern[str]


_LINES = (
    _Line(
        b"The parallel context: ",
        re.compile(
            r"The parallel context: device_num: (?P<device_num>\d{1,9}), "
            r"global_rank: (?P<global_rank>\d{1,9}), "
            r"communication_backend: (?P<device_target>\w+), "
            r"gradients_mean: (?P<gradients_mean>[01]), "
            r"gradient_fp32_sync: (?P<gradient_fp32_sync>[01])"
        ),
    ),
    _Line(
        b"The device num: ",
        re.compile(
            r"The device num: (?P<device_num>\d{1,9}), rank id: (?P<global_rank>\d{1,9}), "
            r"the backend: (?P<device_target>\w+), the stage num: (?P<pipeline_stages>\d{1,9})"
        ),
    ),
    _Line(
        b"the device number of this stage is ",
        re.compile(r"the device number of this stage is (?P<stage_devices>[1-9]\d{0,8})"),
    ),
    _Line(
        b"the device number in one stage ",
        re.compile(r"equal to the device number in one stage (?P<stage_devices>[1-9]\d{0,8})"),
    ),
    _Line(b"search_mode: ", re.compile(r"StepAutoParallel\] search_mode: (?P<search_mode>\w+)")),
)


def _target(text: str) -> str | None:
    return _TARGETS.get(text)


def _search(text: str) -> str | None:
    return text if text in SEARCHES else None


_READERS: Mapping[str, Callable[[str], object]] = {
    "device_num": int,
    "global_rank": int,
    "pipeline_stages": int,
    STAGE_DEVICES: int,
    "device_target": _target,
    "search_mode": _search,
    "gradients_mean": "1".__eq__,
    "gradient_fp32_sync": "1".__eq__,
}


def logged(logs: Iterable[LogFile], rank: int | None) -> Mapping[str, Entry]:
    """What the first log that says anything says of the context, by key.

    A log in which compilations of different contexts follow one another says nothing of the keys in
    which they differ.

    Args:
        logs: those of a run.
        rank: whose context is asked for, None: of the only rank that left a log. What another
            rank's log says of its rank is left out.
    """
    logs = tuple(logs)
    ranks = {log.rank for log in logs} - {None}
    if rank is None and len(ranks) == 1:
        (rank,) = ranks
    ordered = sorted(logs, key=lambda log: (log.rank != rank, log.rank is not None, log.path))
    for log in [log for log in ordered if log.kind != "scheduler"][:MOST_LOGS]:
        entries = _of_file(log.path)
        if entries:
            of_other = log.rank is not None and log.rank != rank
            return {
                k: entry for k, entry in entries.items() if not (of_other and k == "global_rank")
            }
    return {}


def _of_file(path: str) -> Mapping[str, Entry]:
    values: dict[str, set[object]] = {}
    where: dict[str, Origin] = {}
    try:
        for line in _lines(path):
            text = line.decode("utf-8", "replace")
            for item in _LINES:
                match = item.pattern.search(text)
                if match is None:
                    continue
                origin = Origin("logs", path, match[0].partition("] ")[2] or match[0][:_TEXT])
                for key, part in match.groupdict().items():
                    value = _READERS[key](part)
                    if value is not None:
                        values.setdefault(key, set()).add(value)
                        where.setdefault(key, origin)
    except (OSError, Damaged, UnpacksTooFar):
        pass  # what comes before the damage was read; whoever reads logs says what is wrong
    return {
        key: Entry(next(iter(held)), where[key]) for key, held in values.items() if len(held) == 1
    }


def _lines(path: str) -> Iterator[bytes]:
    """Lines of the beginning of a log that may say something."""
    with opened(path) as stream:
        for line in lines_in(_beginning(chunks_of(stream)), _MOST_LINE):
            if any(item.mark in line for item in _LINES):
                yield line


def _beginning(chunks: Iterable[bytes]) -> Iterator[bytes]:
    read = 0
    for chunk in chunks:
        yield chunk
        read += len(chunk)
        if read >= MOST_BYTES:
            return
