"""Names of communication groups: ``"<size>-<hash>"``, and back from a name to its ranks.

The hash is what ``std::hash<std::string>`` of GNU's C++ library gives for the sorted ranks joined
by ``-`` (a 64-bit Murmur hash), as seen in the ``group`` and ``group_ranks`` of dumps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

WORLD_GROUPS = ("hccl_world_group", "nccl_world_group")
"""What the group of all devices is called on Ascend and on GPU."""

_MASK = (1 << 64) - 1
_SEED = 0xC70F6907
_FACTOR = 0xC6A4A7935BD1E995


def _mixed(value: int) -> int:
    return value ^ (value >> 47)


def text_hash(text: str) -> int:
    """The 64-bit hash of a text (UTF-8).

    Source: ``std::_Hash_bytes`` of GNU's C++ library (``hash_bytes.cc``), for 64 bits.

    Args:
        text: a group's ranks, ascending and joined by ``-``.
    """
    data = text.encode()
    state = _SEED ^ (len(data) * _FACTOR & _MASK)
    aligned = len(data) & ~7
    for start in range(0, aligned, 8):
        word = int.from_bytes(data[start : start + 8], "little") * _FACTOR & _MASK
        state = (state ^ (_mixed(word) * _FACTOR & _MASK)) * _FACTOR & _MASK
    if aligned < len(data):
        state = (state ^ int.from_bytes(data[aligned:], "little")) * _FACTOR & _MASK
    state = _mixed(state) * _FACTOR & _MASK
    return _mixed(state)


def group_name(ranks: Iterable[int], device_num: int | None = None, target: str = "Ascend") -> str:
    """The name that MindSpore gives the group of some ranks: their number and a hash.

    Args:
        ranks: global ranks, in any order; the name does not depend on it.
        device_num: devices of the run, so that the group of all is called by its own name; None:
            no group is taken for that of all.
        target: ``GPU`` or ``Ascend``, whose groups of all devices have different names.
    """
    ordered = sorted(ranks)
    if device_num is not None and len(ordered) == device_num:
        return WORLD_GROUPS[1] if target.upper() == "GPU" else WORLD_GROUPS[0]
    return f"{len(ordered)}-{text_hash('-'.join(map(str, ordered)))}"


def decode(
    name: str, device_num: int, candidates: Iterable[Sequence[int]] = ()
) -> tuple[int, ...] | None:
    """The ranks of a group name in a world of ``device_num`` devices, or None.

    Tried are the ``candidates``, then the groups that arise from device matrices: ranks at a
    constant stride, and those closed over two such strides. Suffixes of derived names
    (``…_all2all``, ``…Send``, ``…backward``, …) don't matter.

    Args:
        name: of the group, as dumps and logs have it.
        device_num: devices of the run.
        candidates: groups to try first, their ranks in ascending order.

    Returns:
        Global ranks in ascending order; None where no group that is tried has the name.
    """
    if name.startswith(WORLD_GROUPS):
        return tuple(range(device_num))
    parsed = _parsed(name)
    if parsed is None:
        return None
    size, wanted = parsed
    if size > device_num:
        return None
    for ranks in _candidates(size, device_num, candidates):
        if text_hash("-".join(map(str, ranks))) == wanted:
            return ranks
    return None


MOST_RANKS = 1 << 20
"""A number from here on is no rank: nobody has so many devices."""
MOST_DEVICES = 4096
"""Largest world that :func:`search` looks into."""

_MOST_HASHED = 1_000_000


@lru_cache(maxsize=4096)
def search(name: str, at_least: int = 1, at_most: int = MOST_DEVICES) -> tuple[int, ...] | None:
    """The ranks of a group name in a world of unknown size, or None.

    A hash of 64 bits that agrees is no coincidence, so the first group found is the one.  Tried
    are worlds from ``at_least`` devices on, doubling, and in each the groups whose strides divide
    it.  The work is bounded: groups of many ranks in large worlds may not be found.

    Args:
        name: of the group, as dumps and logs have it.
        at_least: devices that the run has in any case.
        at_most: devices of the largest world to look into.

    Returns:
        Global ranks in ascending order.
    """
    parsed = _parsed(name)
    if parsed is None:
        return None
    size, wanted = parsed
    world = max(at_least, size, 2)
    budget = _MOST_HASHED
    tried: set[tuple[int, ...]] = set()
    while world <= at_most and budget > 0:
        for ranks in _regular(size, world):
            if ranks in tried:
                continue
            tried.add(ranks)
            text = "-".join(map(str, ranks))
            budget -= len(text)
            if text_hash(text) == wanted:
                return ranks
            if budget <= 0:
                break
        world *= 2
    return None


def _parsed(name: str) -> tuple[int, int] | None:
    """Size and hash of a group name; suffixes of derived names are left out."""
    size, _, rest = name.partition("-")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    if not size.isdecimal() or not digits.isdecimal() or len(size) > 9 or len(digits) > 20:
        return None
    return int(size), int(digits)


def _regular(size: int, world: int) -> Iterator[tuple[int, ...]]:
    """Groups of ``size`` ranks at strides that divide ``world``: rows of a device matrix."""
    strides = _divisors(world)
    for stride in strides:
        if stride * (size - 1) < world:
            for start in range(world - stride * (size - 1)):
                yield tuple(range(start, start + stride * size, stride))
    for inner in _divisors(size)[1:-1]:
        yield from _nested(inner, size // inner, world)


def _candidates(
    size: int, device_num: int, first: Iterable[Sequence[int]]
) -> Iterator[tuple[int, ...]]:
    """Groups of ``size`` ranks in likely order: given ones, one stride, two nested strides."""
    for ranks in first:
        if len(ranks) == size:
            yield tuple(sorted(ranks))
    strides = [stride for stride in range(1, device_num) if stride * (size - 1) < device_num]
    for stride in sorted(strides, key=lambda stride: (device_num % stride != 0, stride)):
        for start in range(device_num - stride * (size - 1)):
            yield tuple(range(start, start + stride * size, stride))
    for inner in _divisors(size)[1:-1]:
        yield from _nested(inner, size // inner, device_num)


def _nested(inner: int, outer: int, device_num: int) -> Iterator[tuple[int, ...]]:
    """``outer`` runs of ``inner`` ranks: strides divide the number of devices."""
    strides = _divisors(device_num)
    for small in strides:
        for large in strides:
            if large <= small * (inner - 1):
                continue
            span = small * (inner - 1) + large * (outer - 1)
            for start in range(device_num - span):
                yield tuple(
                    sorted(
                        start + large * high + small * low
                        for high in range(outer)
                        for low in range(inner)
                    )
                )


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]
