"""Parameters that hold what others are on the other side: weights that changed places.

Only what differs is looked at, and what may be meant by it: parameters of its type and size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from irtool.compare.checkpoints.joining import Whole
from irtool.compare.checkpoints.measuring import Difference
from irtool.compare.checkpoints.naming import LEAST, Pair, digest_of
from irtool.compare.tensors.formats.window import BadPayload

_MAY_BE_OTHERS = ("differs", "reordered", "scaled", "transposed")


def exchanged(
    left: Mapping[str, Whole],
    right: Mapping[str, Whole],
    differences: Sequence[tuple[Pair, Difference]],
) -> list[Difference]:
    """The same differences; those say so that are what another parameter is on the left.

    Args:
        left: parameters of the left side by name.
        right: of the right one.
        differences: of all pairs, in their order.
    """
    differing = [
        pair
        for pair, difference in differences
        if difference.verdict in _MAY_BE_OTHERS and left[pair.left].elements >= LEAST
    ]
    kinds = {(right[pair.right].dtype, right[pair.right].shape) for pair in differing}
    owners: dict[bytes, list[str]] = {}
    for name, one in left.items() if differing else ():
        if (one.dtype, one.shape) in kinds and (key := _digest(one)) is not None:
            owners.setdefault(key, []).append(name)
    whose: dict[str, str] = {}
    for pair in differing:
        key = _digest(right[pair.right])
        names = owners.get(key, []) if key is not None else []
        if len(names) == 1:  # zeros and ones that many hold tell nothing
            whose[pair.left] = names[0]
    return [
        replace(difference, verdict="exchanged", note=whose[pair.left])
        if pair.left in whose
        else difference
        for pair, difference in differences
    ]


def _digest(one: Whole) -> bytes | None:
    try:
        return digest_of(one)
    except BadPayload:
        return None
