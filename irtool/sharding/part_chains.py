"""What stands between operators of which one computes in parts, in turn.

MindSpore takes the axis that interleaves parts for one of devices: what gathers along it joins the
parts on the device, and what cuts along it makes them. Whatever else stands there runs once a part
where the parts are apart, and once where they are not.

Source: the chains of such layouts in compilations with MindSpore 2.7.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from irtool.operators.layout import TensorLayout, TensorMap, entries_of
from irtool.sharding.redistribution import RedistributionError, RedistributionStep, infer


def with_part_axis(layout: TensorLayout, parts: int) -> TensorLayout:
    """A layout of devices with the axis of parts behind those of devices, which splits nothing.

    Args:
        layout: over axes of devices only.
        parts: how many a device computes in turn.
    """

    def shifted(entry: int | tuple[int, ...]) -> int | tuple[int, ...]:
        if isinstance(entry, tuple):
            return tuple(axis + 1 for axis in entry)
        return entry + 1 if entry >= 0 else entry

    entries: TensorMap = tuple(map(shifted, layout.tensor_map))
    return TensorLayout((*layout.device_matrix, parts), entries, layout.tensor_shape)


def exchanged(
    source: TensorLayout,
    target: TensorLayout,
    ranks: Sequence[int],
    rank: int,
    *,
    enable_alltoall: bool = False,
) -> Iterator[tuple[RedistributionStep, int]]:
    """The collectives between layouts whose last axis is that of parts, and how often each runs.

    Args:
        source: layout that the producer leaves, with :func:`with_part_axis` where it has no parts.
        target: layout that the consumer wants, likewise.
        ranks: all ranks of the stage, sorted and consecutive.
        rank: the rank for which groups are given.
        enable_alltoall: as in ``set_auto_parallel_context``.

    Raises:
        RedistributionError: the chain is not known, or parts would be exchanged between devices.
    """
    parts = source.device_matrix[-1]
    places = range(ranks[0] * parts, (ranks[-1] + 1) * parts)
    first, second = (
        infer(source, target, places, place, enable_alltoall=enable_alltoall)
        for place in (rank * parts, rank * parts + 1)
    )
    count = parts if _is_in_parts(source) else 1
    for step, other in zip(first, second, strict=True):
        group = tuple(sorted({place // parts for place in step.ranks}))
        if len(group) < len(step.ranks):
            if step.op != "AllGather":
                raise RedistributionError("parts and devices take turns in an exchange")
            count = 1
        elif not step.is_collective and step.index != other.index:
            count = parts
        if len(group) > 1:
            yield replace(step, ranks=group), count


def _is_in_parts(layout: TensorLayout) -> bool:
    return any(0 in entries_of(entry) for entry in layout.tensor_map)
