"""Optimizer parallel as the later dumps show it: which weights are cut, over whom, and which not.

A weight is cut over its replicas where its whole bytes reach a threshold and what is left of its
first dimension divides (facts measured with MindSpore 2.7.0: a weight of exactly the threshold is
cut). Thresholds are whole kilobytes, so the weights that are cut and those that are not leave an
interval of them; a weight that is whole although a smaller one is cut was excluded by
``Parameter(parallel_optimizer=False)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from irtool.cluster.context.evidence import Evidence
from irtool.cluster.context.shown import Gather, Shown
from irtool.ir.dataclass import dataclass
from irtool.ir.items import Parameter
from irtool.ir.operators import ACCUMULATED
from irtool.ir.types import BITS

KILOBYTE = 1024


@dataclass(frozen=True, slots=True)
class Threshold:
    """Thresholds in KB that the dumps allow: ``low`` to ``high``."""

    low: int
    high: int

    def allows(self, value: int) -> bool:
        """Whether the weights would be cut as they are."""
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class SeenOptimizer:
    """What the later dumps show.

    Attributes:
        path: the dump.
        gathers: weights that are cut, with who shares each.
        uncut: weights with replicas, large or small, that could be cut and are not, by bytes.
        threshold: what it may be; None where begin dumps lack, so that sizes are not known.
        shard_size: over how many replicas weights are cut; None where these are all there are.
        accumulated: whether accumulated gradients are cut, too; None where nothing is accumulated.
    """

    path: str
    gathers: dict[str, Gather]
    uncut: dict[str, int]
    threshold: Threshold | None
    shard_size: int | None
    accumulated: bool | None
    smallest: int | None = None

    def excluded(self, threshold: int) -> tuple[str, ...]:
        """Weights that are whole although a threshold (KB) would have them cut."""
        least = threshold * KILOBYTE
        return tuple(sorted(name for name, size in self.uncut.items() if size >= least))

    def surely_excluded(self) -> tuple[str, ...]:
        """Those that any threshold would have cut that has the smallest of the others cut."""
        return () if self.threshold is None else self.excluded(self.threshold.high)


def seen_optimizer(evidence: Evidence, stage_size: int | None) -> SeenOptimizer | None:
    """What later dumps show of optimizer parallel; None where there is none that could.

    Args:
        evidence: the dumps of a compilation.
        stage_size: devices of a stage; None: not known, and neither are replicas.
    """
    later = next(evidence.later, None)
    if later is None or not later.weights:
        return None
    whole_sizes = _whole_sizes(evidence.begin)
    replicas = {} if stage_size is None else _replicas(later, evidence.begin, stage_size)
    gathers = dict(later.gathers)
    shard_size = _shard_size(gathers, replicas)
    parts = shard_size or -1
    uncut = {
        name: whole_sizes[name]
        for name in later.mirrors
        if name not in gathers
        and name in whole_sizes
        and _could_be_cut(later, name, replicas.get(name), parts)
    }
    sizes = [whole_sizes[name] for name in gathers if name in whole_sizes]
    smallest = min(sizes, default=None)
    threshold = None if smallest is None else _threshold(smallest, uncut)
    accumulated = _accumulated(later, gathers)
    return SeenOptimizer(later.path, gathers, uncut, threshold, shard_size, accumulated, smallest)


def _whole_sizes(begin: Shown | None) -> dict[str, int]:
    """Bytes of whole weights, as the begin dump declares them."""
    sizes: dict[str, int] = {}
    for name, weight in _weights(begin).items():
        shape = weight.type.dimensions if weight.type is not None else None
        if shape is not None and all(size >= 0 for size in shape):
            bits = BITS.get((weight.type.dtype if weight.type else None) or "", 32)
            sizes[name] = math.prod(shape) * max(bits, 8) // 8
    return sizes


def _replicas(later: Shown, begin: Shown | None, stage_size: int) -> dict[str, int]:
    """How often each weight's slice is held, but for optimizer parallel."""
    replicas: dict[str, int] = {}
    for name, weight in _weights(begin).items():
        full = weight.type.dimensions if weight.type is not None else None
        own = _dimensions(later, name)
        if full is None or own is None or len(full) != len(own):
            continue
        gather = later.gathers.get(name)
        if gather is not None and own:
            own = (own[0] * len(gather.ranks), *own[1:])
        slices = 1
        for size, part in zip(full, own, strict=True):
            slices *= size // part if part > 0 else 1
        if slices and stage_size % slices == 0:
            replicas[name] = stage_size // slices
    return replicas


def _weights(shown: Shown | None) -> Mapping[str, Parameter]:
    return {} if shown is None else shown.weights


def _dimensions(later: Shown, name: str) -> tuple[int, ...] | None:
    weight = later.weights.get(name)
    return weight.type.dimensions if weight is not None and weight.type is not None else None


def _shard_size(gathers: dict[str, Gather], replicas: dict[str, int]) -> int | None:
    """The one size of all groups that are smaller than the replicas."""
    partial = {
        len(gather.ranks)
        for name, gather in gathers.items()
        if len(gather.ranks) < replicas.get(name, 0)
    }
    return partial.pop() if len(partial) == 1 else None


def _could_be_cut(later: Shown, name: str, replicas: int | None, shard_size: int) -> bool:
    own = _dimensions(later, name)
    if not own or replicas is None or replicas < 2:
        return False
    parts = shard_size if shard_size != -1 and replicas >= shard_size else replicas
    return own[0] % parts == 0 and replicas % parts == 0


def _threshold(smallest: int, uncut: dict[str, int]) -> Threshold:
    """What the threshold may be, in KB; ``low`` above ``high`` never."""
    high = smallest // KILOBYTE
    below = max((size for size in uncut.values() if size < smallest), default=None)
    low = 0 if below is None else below // KILOBYTE + 1
    return Threshold(min(low, high), high)


def _accumulated(later: Shown, gathers: dict[str, Gather]) -> bool | None:
    """Whether gradients are accumulated in slices as small as those of the weights."""
    for name in gathers:
        own, sums = _dimensions(later, name), _dimensions(later, f"{ACCUMULATED}{name}")
        if own and sums:
            return own == sums
    return None
