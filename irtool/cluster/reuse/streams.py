"""Streams and labels of a graph that MindSpore 1.8 to 2.2 sinks to an Ascend device.

Collectives take tasks of a stream; those of one group share streams until the tasks are used up,
in launch order.  Every communication stream brings three secondary ones.  Figures are those of
the branches r1.8 to r2.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Literal, TypeAlias

from irtool.ir.dataclass import dataclass
from irtool.ir.group_names import WORLD_GROUPS
from irtool.ir.operators import POINT_TO_POINT

TASKS_PER_STREAM = 1024
"""Tasks that a stream of an Ascend 910 holds, as its runtime answers."""
STREAM_LIMIT = 2048
"""Streams of Atlas training series, after CANN's documentation."""
LABEL_LIMIT = 1024
"""Labels, as the text of MindSpore's error says."""
STREAMS_PER_COMMUNICATION = 4
"""A communication stream and its three secondary ones."""
TASKS_PER_OPERATOR = 3
GROUP_BUFFER_BYTES = 200 << 20
"""Device memory of one more HCCL group, unless ``HCCL_BUFFSIZE`` says another."""
SERVER_DEVICES = 8

_MANY_DEVICES = 1024
_TASK_OPTIMISED: Mapping[str, Mapping[int, int]] = {
    "AllReduce": {2: 30, 4: 59, 8: 107},
    "AllGather": {2: 20, 4: 31, 8: 55},
    "ReduceScatter": {2: 21, 4: 48, 8: 62},
}

ParallelMode: TypeAlias = Literal[
    "all_group_parallel", "same_server_group_parallel", "no_group_parallel"
]
"""``communi_parallel_mode``: which groups have streams of their own."""


def reserved_streams(version: tuple[int, int]) -> int:
    """Streams that a version keeps free for itself.

    Args:
        version: major and minor number.
    """
    return 40 if version >= (2, 1) else 0


def in_one_server(ranks: Sequence[int]) -> bool:
    """Whether all ranks are of one server of eight."""
    return len({rank // SERVER_DEVICES for rank in ranks}) <= 1


def tasks(
    op: str,
    group: str | None,
    ranks: Sequence[int] | None,
    devices: int,
    version: tuple[int, int] = (2, 2),
    optimised: bool = False,
) -> int:
    """Tasks that one communication takes.

    Args:
        op: the collective.
        group: name of its group.
        ranks: members, None where unknown.
        devices: how many there are in all.
        version: MindSpore's.
        optimised: whether HCCL's task optimisation is on (2.0 and later, inside a server).
    """
    if op in POINT_TO_POINT:
        return 15
    is_world = (group or "").startswith(WORLD_GROUPS)
    if is_world or ranks is None:
        return 350 if is_world and devices >= _MANY_DEVICES else 300
    if in_one_server(ranks):
        if optimised and version >= (2, 0) and _aligned(ranks):
            return _TASK_OPTIMISED.get(op, {}).get(len(ranks), 125)
        return 125
    return 350 if len(ranks) == devices and devices >= _MANY_DEVICES else 300


def _aligned(ranks: Sequence[int]) -> bool:
    size = len(ranks)
    return ranks[-1] - ranks[0] == size - 1 and ranks[0] % size == 0


@dataclass(frozen=True, slots=True)
class Communicated:
    """One communication as streams see it: where it queues, and how many tasks it takes."""

    queue: str
    tasks: int


def queue_name(group: str | None, ranks: Sequence[int] | None, mode: ParallelMode) -> str:
    """The name of the queue in which a communication shares streams with others.

    Args:
        group: that it communicates in.
        ranks: of the group; None: not known.
        mode: which groups have streams of their own.

    Returns:
        "" for the queue of all that have none of their own.
    """
    if mode == "no_group_parallel":
        return ""
    if mode == "same_server_group_parallel" and not (ranks and in_one_server(ranks)):
        return ""
    return group or ""


def communication_streams(communications: Sequence[Communicated]) -> int:
    """Streams that communications take, packed in launch order, each queue by itself.

    Args:
        communications: in launch order.
    """
    used: dict[str, int] = {}
    count = 0
    for item in communications:
        left = TASKS_PER_STREAM - used.get(item.queue, TASKS_PER_STREAM)
        if item.tasks > left:
            count += 1
            used[item.queue] = 0
        used[item.queue] += item.tasks
    return count


def compute_streams(operators: int) -> int:
    """Streams that operators other than communication take.

    Args:
        operators: how many there are, communication left out.
    """
    return ceil(operators / (TASKS_PER_STREAM // TASKS_PER_OPERATOR))


def total_streams(compute: int, communication: int) -> int:
    """Streams of the device, those included that each communication stream brings with it.

    Args:
        compute: streams of operators.
        communication: streams of collectives.
    """
    return compute + STREAMS_PER_COMMUNICATION * communication
