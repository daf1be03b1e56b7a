"""What a weight pays of the starts that fused collectives share: a part of each, in the tables."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from irtool.cluster.machine import Machine
from irtool.cluster.pricing import BucketKey, bucket_key
from irtool.ir.dataclass import dataclass
from irtool.planning.cost.weights import WeightCost


@dataclass(frozen=True, slots=True)
class Start:
    """One collective of a weight: its bucket, the start of that, and the part that it pays now."""

    bucket: BucketKey
    seconds: float
    part: float


@dataclass(frozen=True, eq=False, slots=True)
class WeightStarts:
    """What of common starts a weight pays under each candidate of its operator.

    ``which``: by candidate its kind; ``kinds``: by kind the collectives of the weight.
    """

    which: npt.NDArray[np.int64]
    kinds: tuple[tuple[Start, ...], ...]


def starts_of(cost: WeightCost, machine: Machine) -> tuple[Start, ...]:
    """What of common starts a weight pays, as the tables count it.

    Args:
        cost: of the weight under one layout.
        machine: whose links are used.

    Returns:
        one entry for each of its collectives that can be fused.
    """
    starts: list[Start] = []
    for communication in (*cost.mirrors, *cost.shared):
        key = bucket_key(communication.launch)
        if key is not None and communication.fusion:
            start, per_byte = machine.line(communication.op, communication.ranks)
            starts.append(Start(key, start, communication.seconds - communication.size * per_byte))
    return tuple(starts)
