"""Parameters as a device holds them: bytes of the whole, of the slice, and how often it is kept."""

from __future__ import annotations

import math
from collections.abc import Iterator

from irtool.ir.dataclass import dataclass
from irtool.ir.types import BITS
from irtool.sharding.network.report import CheckResult, ParameterReport


@dataclass(frozen=True, slots=True)
class HeldParameter:
    """A weight or a state of one.

    ``whole`` and ``slice`` are bytes, ``replicas`` how many devices of a stage hold the same slice,
    ``weight`` the weight that it belongs to (its own name for a weight).
    """

    report: ParameterReport
    whole: int
    slice: int
    replicas: int
    weight: str

    @property
    def is_state(self) -> bool:
        """Whether an optimizer keeps it for a weight."""
        return self.weight != self.report.name


def held_parameters(report: CheckResult) -> Iterator[HeldParameter]:
    """Parameters of known size and slice; inputs of the network are none.

    Args:
        report: of the begin dump.
    """
    names = {
        item.name
        for item in report.parameters
        if item.parameter.declaration is not None and item.parameter.declaration.is_weight
    }
    devices = report.devices // max(1, report.context.stages)
    for item in report.parameters:
        bits = BITS.get((item.parameter.type.dtype if item.parameter.type else None) or "")
        if item.name not in names or bits is None or item.slice is None:
            continue
        if min((*item.shape, *item.slice), default=0) < 0:
            continue
        full, part = math.prod(item.shape) * bits // 8, math.prod(item.slice) * bits // 8
        if part:
            replicas = max(1, devices * part // full)
            yield HeldParameter(item, full, part, replicas, item.weight)
