"""Fusion of collectives as a dump has it configured: fusion ids, and the buckets they make.

A dump up to ``validate`` holds no fused collective: the backend fuses, and goes by operator, group,
reduction, element type and fusion id (0 is never fused).  Members that depend on each other are
kept apart, by the number of fusible ones of the same operator on the longest way to Return.

``comm_fusion`` gives the ids.  With mode ``size`` thresholds count **elements** (the given MB times
262,144), whatever the type, and the tensor that opens a bucket is not charged, except the first:
behaviour of MindSpore 2.7, reproduced by :func:`ids_by_size`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from irtool.cluster.pricing import FUSIBLE, Launch, bucket_key
from irtool.cluster.ranks import Party, RankProgram, Step
from irtool.ir.collectives import Collective
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown
from irtool.ir.graph import Node
from irtool.ir.whole import WholeNode

ELEMENTS_PER_MB = 262_144
DEFAULT_MB = 64
_ALIGNMENT = 1024


@dataclass(frozen=True, slots=True)
class Tensor:
    """One collective that may be fused.

    ``place`` counts in launch order; ``elements`` are those that thresholds count (of a gathered or
    scattered tensor one rank's slice), None where unknown.
    """

    collective: Collective
    place: int
    zone: int
    elements: int | None
    parameter: str | None

    @property
    def bytes(self) -> int:
        """Bytes of the larger of input and output, 0 where unknown."""
        return self.collective.bytes or 0

    def launch(self, fusion: int | None = None) -> Launch:
        """What it is to the model of prices, under its own fusion id or another."""
        return launch_of(self.collective, self.collective.ranks, self.zone, fusion)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Collectives that the backend makes one of; a bucket of one is not fused.

    ``fused_bytes`` is what the contiguous tensor takes: each member rounded up to 1,024 bytes with
    one more 1,024; 0 where nothing is fused.
    """

    op: str
    fusion: int
    group: str | None
    ranks: tuple[int, ...] | None
    dtype: str | None
    reduction: str | None
    zone: int
    tensors: tuple[Tensor, ...]

    @property
    def elements(self) -> int | None:
        """Elements of all members, None where one is unknown."""
        counts = [tensor.elements for tensor in self.tensors]
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def bytes(self) -> int:
        """Bytes of all members."""
        return sum(tensor.bytes for tensor in self.tensors)

    @property
    def fused_bytes(self) -> int:
        """Bytes of the tensor that the members are copied into."""
        if len(self.tensors) < 2:
            return 0
        return sum((tensor.bytes // _ALIGNMENT + 1) * _ALIGNMENT for tensor in self.tensors)

    @property
    def ready(self) -> int:
        """Place in launch order of the last member."""
        return max(tensor.place for tensor in self.tensors)


@dataclass(frozen=True, slots=True)
class Fusion(Shown):
    """How a dump is configured; ``separate`` are collectives with fusion id 0, by operator."""

    buckets: tuple[Bucket, ...]
    separate: Mapping[str, int]


def fusion(one: RankProgram) -> Fusion:
    """The buckets that the backend makes of one rank's graph.

    Args:
        one: the rank, with its validate dump.
    """
    tensors = _tensors(one)
    separate: dict[str, int] = {}
    for step in one.program.steps:
        if step.collective.op in FUSIBLE and not step.collective.fusion:
            separate[step.collective.op] = separate.get(step.collective.op, 0) + 1
    return Fusion(buckets_of(tensors), separate)


def buckets_of(
    tensors: Iterable[Tensor], ids: Mapping[Node, int] | None = None
) -> tuple[Bucket, ...]:
    """Buckets of tensors, under their own fusion ids or others, in the order of readiness.

    Args:
        tensors: of a dump.
        ids: fusion ids by node that go before their own; None: none do.

    Returns:
        One that is never fused is a bucket of its own.
    """
    members: dict[object, list[Tensor]] = {}
    for tensor in tensors:
        number = (ids or {}).get(tensor.collective.node)
        key = bucket_key(tensor.launch(number))
        members.setdefault(tensor.place if key is None else key, []).append(tensor)
    made = [
        Bucket(
            item.op,
            (ids or {}).get(item.node, item.fusion or 0),
            item.group,
            item.ranks,
            item.dtype,
            item.reduction,
            same[0].zone,
            tuple(same),
        )
        for same in members.values()
        for item in (same[0].collective,)
    ]
    return tuple(sorted(made, key=lambda bucket: bucket.ready))


def launch_of(
    item: Collective, ranks: tuple[int, ...] | None, zone: int = 0, fusion: int | None = None
) -> Launch:
    """A dump's collective as the model of prices takes it.

    Args:
        item: the collective.
        ranks: who takes part, as one rank sees it; None: nobody knows.
        zone: of a fusible one, see :func:`zones`.
        fusion: the fusion id, if not its own.
    """
    number = item.fusion if fusion is None else fusion
    return Launch(
        item.op, item.bytes or 0, ranks or (), number or 0, item.dtype, item.reduction, zone,
        item.group,
    )  # fmt: skip


def zones(one: RankProgram) -> dict[Node, int]:
    """For each fusible node of a rank how many of its operator lie on the longest way to Return.

    Args:
        one: the rank, with its validate dump.
    """
    fusible = [
        step.collective.node
        for step in one.program.steps
        if step.collective.op in FUSIBLE and step.collective.fusion
    ]
    return _zones(one, set(fusible)) if len(fusible) > 1 else dict.fromkeys(fusible, 1)


def _tensors(one: RankProgram) -> list[Tensor]:
    fusible = [
        (place, step)
        for place, step in enumerate(one.program.steps)
        if step.collective.op in FUSIBLE and step.collective.fusion
    ]
    zone_of = zones(one)
    return [
        Tensor(
            replace(
                step.collective, ranks=one.parties[place].ranks, group=one.parties[place].group
            ),
            place,
            zone_of.get(step.collective.node, 1),
            _elements(step, one.parties[place]),
            step.collective.parameter,
        )
        for place, step in fusible
    ]


def _elements(step: Step, party: Party) -> int | None:
    """Elements that thresholds count: of a gathered or scattered tensor one rank's slice."""
    shape = step.collective.shape
    if shape is None or any(size < 0 for size in shape):
        return None
    count = math.prod(shape)
    if step.collective.op == "AllReduce":
        return count
    return count // len(party.ranks) if party.ranks else None


def _zones(one: RankProgram, fusible: set[Node]) -> dict[Node, int]:
    inlined = one.program.dump.whole()
    counts: dict[WholeNode, dict[str, int]] = {}
    zone_of: dict[Node, int] = {}
    for item in reversed(inlined.nodes):
        most: dict[str, int] = {}
        for user in _readers(item):
            for op, number in counts.get(user, {}).items():
                if number > most.get(op, 0):
                    most[op] = number
        if item.node in fusible:
            op = item.op
            most[op] = most.get(op, 0) + 1
            zone_of[item.node] = most[op]
        if most:
            counts[item] = most
    return zone_of


def _readers(item: WholeNode) -> Iterator[WholeNode]:
    """Who reads a result: of one that a tuple holds, who takes it out, not who takes others.

    What a called graph gives comes out in tuples, which are gone when the backend fuses.
    """
    for user in item.users:
        if user.op != "MakeTuple":
            yield user
            continue
        places = {place for place, source in enumerate(user.inputs) if source is item}
        for reader in user.users:
            number = _number(reader) if reader.op == "TupleGetItem" else None
            if number is None or not places or number in places:
                yield reader


def _number(reader: WholeNode) -> int | None:
    """Which item a TupleGetItem takes; None where that is no constant."""
    number = getattr(reader.inputs[1], "value", None) if len(reader.inputs) > 1 else None
    return number if isinstance(number, int) else None


# -- comm_fusion ---------------------------------------------------------------------------------


def ids_by_size(elements: Sequence[int], megabytes: int) -> list[int]:
    """Fusion ids that mode ``size`` gives to tensors in the order of the network's parameters.

    Args:
        elements: of each tensor.
        megabytes: the value of ``config``; 64 is what mode ``auto`` takes.
    """
    budget = megabytes * ELEMENTS_PER_MB
    left = budget
    number = 1
    ids: list[int] = []
    for place, count in enumerate(elements):
        if place == 0 or count < left:
            left -= count
        else:
            number += 1
            left = budget
        ids.append(number)
    return ids


def ids_by_index(count: int, cuts: Sequence[int]) -> tuple[list[int], list[int]]:
    """Fusion ids that mode ``index`` gives, and the cuts beyond the last tensor (skipped).

    Args:
        count: of tensors.
        cuts: positions at which a new bucket begins.

    Raises:
        ValueError: the positions do not increase.
    """
    if any(b <= a for a, b in pairwise(cuts)):
        raise ValueError(f"positions must increase: {list(cuts)}")
    used = [cut for cut in cuts if cut < count]
    ids = [1 + sum(cut <= place for cut in used) for place in range(count)]
    return ids, [cut for cut in cuts if cut >= count]


def in_parameter_order(one: RankProgram, tensors: Iterable[Tensor]) -> list[Tensor]:
    """Tensors in the order of the network's parameters, in which ``comm_fusion`` numbers them.

    Args:
        one: the rank, whose dump has the parameters.
        tensors: in any order; those of no parameter come last, in launch order.
    """
    order = {item.name: place for place, item in enumerate(one.program.dump.parameters)}
    last = len(order)
    return sorted(tensors, key=lambda item: (order.get(item.parameter or "", last), item.place))
