"""The start that fused collectives share: exactly for some choices, and in parts for a search.

A search adds up numbers operator by operator, but a bucket of fused collectives starts once,
however many weights are in it.  In the tables each weight that may be in a bucket pays one part of
its start for as many as could be there, so that no plan's sum is above its price
(``seconds_within`` of :mod:`irtool.cluster.pricing`).  Where that leaves a gap, buckets are opened
and closed one by one (branch and bound): an open one is paid whole and costs its members nothing, a
closed one may have none.  What is chosen from open buckets alone is priced exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import TypeAlias

import numpy as np

from irtool.cluster.pricing import BucketKey
from irtool.ir.dataclass import dataclass
from irtool.planning.search.exact import Floats
from irtool.planning.search.starts import WeightStarts
from irtool.planning.search.tables import Model


def seconds_above(model: Model, choices: Sequence[int]) -> float:
    """What some choices cost more than the tables say: starts that nobody paid whole.

    Args:
        model: the tables of the network.
        choices: a candidate for every variable.

    Returns:
        seconds for one micro-batch.
    """
    paid = model.constant_part
    due = {start.bucket: start.seconds for start in model.constant_starts}
    times = model.structure.micro_batches
    for weights, choice in zip(model.starts, choices, strict=True):
        for weight in weights:
            for start in weight.kinds[int(weight.which[choice])]:
                due[start.bucket] = start.seconds
                paid += start.part / times
    return max(0.0, sum(due.values()) / times - paid)


Buckets: TypeAlias = frozenset[BucketKey]


@dataclass(frozen=True, slots=True)
class Case:
    """A part of all plans: those that use no closed bucket; open ones are paid for, used or not."""

    opened: Buckets = frozenset()
    closed: Buckets = frozenset()


def unpaid(model: Model, choices: Sequence[int], case: Case) -> BucketKey | None:
    """The bucket of some choices of whose start most is not paid for yet; None: all are paid.

    Args:
        model: the tables of the network.
        choices: a candidate for every variable.
        case: whose open buckets are paid for.
    """
    left: dict[BucketKey, float] = {}
    for weights, choice in zip(model.starts, choices, strict=True):
        for weight in weights:
            for start in weight.kinds[int(weight.which[choice])]:
                left.setdefault(start.bucket, start.seconds)
                left[start.bucket] -= start.part
    for start in model.constant_starts:
        left.setdefault(start.bucket, start.seconds)
        left[start.bucket] -= start.part
    open_ones = {key: rest for key, rest in left.items() if key not in case.opened}
    key = max(open_ones, key=open_ones.__getitem__, default=None)
    return key if key is not None and open_ones[key] > 0 else None


def model_of_case(model: Model, case: Case) -> Model:
    """The model of the plans of a case: no plan of it costs less than what its tables say.

    Args:
        model: the tables of the network.
        case: which buckets no plan uses, and which are paid for in any case.
    """
    times = model.structure.micro_batches
    known = _starts(model)
    made: dict[tuple[int, int], Floats] = {}
    unary: list[Floats] = []
    for weights, values in zip(model.starts, model.unary, strict=True):
        key = id(weights), id(values)
        if key not in made:
            more = [_changed(weight, case, times)[weight.which] for weight in weights]
            made[key] = values + sum(more) if more else values
        unary.append(made[key])
    constant = model.constant + sum(known[bucket] for bucket in case.opened) / times
    for start in model.constant_starts:
        if start.bucket in case.closed:
            constant = inf
        elif start.bucket in case.opened:
            constant -= start.part / times
    return replace(model, unary=tuple(unary), constant=constant)


def _starts(model: Model) -> dict[BucketKey, float]:
    """The start of every bucket that there could be."""
    starts = {start.bucket: start.seconds for start in model.constant_starts}
    for weight in {weight for weights in model.starts for weight in weights}:
        for kind in weight.kinds:
            starts.update((start.bucket, start.seconds) for start in kind)
    return starts


def _changed(weight: WeightStarts, case: Case, times: int) -> Floats:
    """By kind what a weight pays more in a case."""
    changes: list[float] = []
    for kind in weight.kinds:
        closed = any(start.bucket in case.closed for start in kind)
        paid = sum(start.part for start in kind if start.bucket in case.opened)
        changes.append(inf if closed else -paid / times)
    return np.array(changes)
