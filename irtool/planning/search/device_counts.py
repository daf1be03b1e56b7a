"""Numbers of devices that MindSpore accepts."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.sharding.network.context import LARGEST_WORLD, ParallelContext


def device_count_problem(count: int, context: ParallelContext) -> str:
    """Why MindSpore refuses a number of devices; empty if it does not.

    The number must be 1, 2, 4 or a multiple of 8 (servers hold 8; of GPUs it is asked, too), each
    stage must get as many as the next, and the double recursive search takes powers of two only
    (refusals of MindSpore 2.7).

    Args:
        count: devices of all stages.
        context: stages, mode and search.
    """
    if count < 1:
        return "there are no devices"
    if count not in (1, 2, 4) and count % 8:
        return "the number of devices is 1, 2, 4 or a multiple of 8"
    if count % context.stages:
        return f"{count} devices cannot be divided among {context.stages} stages"
    searches = context.mode == "auto_parallel" and context.search == "recursive_programming"
    if searches and count & (count - 1):
        return "the double recursive search takes powers of two only"
    if searches and count > 1024:
        return "the double recursive search takes 1024 devices at most"
    return ""


def legal_counts(most: int, context: ParallelContext) -> Iterator[int]:
    """Legal numbers of devices, the largest first, none above ``most``.

    Args:
        most: devices.
        context: stages, mode and search.
    """
    for count in range(most, 0, -1):
        if not device_count_problem(count, context):
            yield count


def nearest_legal(count: int, context: ParallelContext) -> str:
    """Why a number of devices is refused, and which ones near it are not; empty if it is legal.

    Args:
        count: devices of all stages.
        context: stages, mode and search.
    """
    problem = device_count_problem(count, context)
    if not problem:
        return ""
    near = " or ".join(map(str, near_counts(count, context)))
    return f"{count} devices: {problem}; {near} would do" if near else f"{count} devices: {problem}"


def near_counts(count: int, context: ParallelContext) -> tuple[int, ...]:
    """The legal numbers of devices below and above one that is none.

    Args:
        count: devices of all stages.
        context: stages, mode and search.

    Returns:
        the lower one first; either is missing where there is none near.
    """
    less = next(legal_counts(min(count, LARGEST_WORLD), context), None)
    most = min(2 * count + 8, LARGEST_WORLD)
    more = next(
        (n for n in range(count + 1, most + 1) if not device_count_problem(n, context)), None
    )
    return tuple(n for n in (less, more) if n is not None)
