"""Two checkpoints, parameter by parameter."""

from __future__ import annotations

from collections.abc import Mapping

from irtool.compare.checkpoints.exchanged import exchanged
from irtool.compare.checkpoints.joining import OddReplica, Side, Whole
from irtool.compare.checkpoints.measuring import ALIKE, Difference, difference_of
from irtool.compare.checkpoints.naming import Pair, pairs_of
from irtool.compare.checkpoints.packed import packed_parts
from irtool.compare.tensors.formats.window import BadPayload
from irtool.compare.tensors.model import Shape
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown


@dataclass(frozen=True, slots=True)
class ComparedParameter:
    """A parameter that both checkpoints have."""

    pair: Pair
    dtypes: tuple[str, str]
    shapes: tuple[Shape, Shape]
    elements: int
    difference: Difference

    @property
    def differs(self) -> bool:
        """Whether the two differ by more than rounding one to the other's type explains."""
        return self.difference.verdict not in ALIKE


@dataclass(frozen=True, slots=True)
class LoneParameter:
    """A parameter that only one checkpoint has."""

    name: str
    dtype: str
    shape: Shape


@dataclass(frozen=True, eq=False)
class CheckpointComparison(Shown):
    """What differs between two checkpoints.

    Attributes:
        left, right: what was compared.
        parameters: that both have, in the order of the left one.
        only_left, only_right: that one has alone.
    """

    left: Side
    right: Side
    parameters: tuple[ComparedParameter, ...]
    only_left: tuple[LoneParameter, ...]
    only_right: tuple[LoneParameter, ...]

    @property
    def differing(self) -> list[ComparedParameter]:
        """Parameters that are not the same, and those that can't be read."""
        return [one for one in self.parameters if one.differs]

    @property
    def unreadable(self) -> list[ComparedParameter]:
        """Parameters of which nothing is known."""
        return [one for one in self.parameters if one.difference.verdict == "unreadable"]

    @property
    def odd(self) -> list[tuple[str, OddReplica]]:
        """Replicas that differ within a side: its path, and which."""
        return [(side.path, replica) for side in (self.left, self.right) for replica in side.odd]

    @property
    def apart(self) -> list[tuple[str, str, str]]:
        """Parameters that could not be put together: path, name and why."""
        return [
            (side.path, name, why)
            for side in (self.left, self.right)
            for name, why in (side.apart or {}).items()
        ]

    @property
    def is_equal(self) -> bool:
        """Whether there is nothing to see."""
        alone = self.only_left or self.only_right
        return not (self.differing or alone or self.odd or self.apart)


def compare_checkpoints(
    left: Side, right: Side, names: Mapping[str, str] | None = None
) -> CheckpointComparison:
    """Compare two checkpoints; memory grows with the largest parameter, not with the files.

    Args:
        left: one.
        right: the other.
        names: names on the left (or their beginnings) and what they are called on the right.
    """
    pairs = pairs_of(left.parameters, right.parameters, names or {})
    taken = {pair.left for pair in pairs}, {pair.right for pair in pairs}
    alone = [
        {name: one for name, one in side.parameters.items() if name not in names}
        for side, names in zip((left, right), taken, strict=True)
    ]
    differences = [
        (pair, _difference(left.parameters[pair.left], right.parameters[pair.right]))
        for pair in pairs
    ]
    told = exchanged(left.parameters, right.parameters, differences)
    compared = [
        _compared(pair, left.parameters[pair.left], right.parameters[pair.right], difference)
        for pair, difference in zip(pairs, told, strict=True)
    ]
    for part in packed_parts(alone[0], alone[1]):
        taken[0].add(part.pair.left)
        taken[1].add(part.pair.right)
        difference = _difference(part.left, part.right)
        if difference.verdict == "equal" and part.is_unusual:
            difference = Difference("reordered", note="packed in another order than in most layers")
        compared.append(_compared(part.pair, part.left, part.right, difference))
    return CheckpointComparison(
        left, right, tuple(compared), _alone(left, taken[0]), _alone(right, taken[1])
    )


def _difference(ours: Whole, theirs: Whole) -> Difference:
    try:
        return difference_of(ours, theirs)
    except BadPayload as error:
        return Difference("unreadable", note=str(error))


def _compared(pair: Pair, ours: Whole, theirs: Whole, difference: Difference) -> ComparedParameter:
    return ComparedParameter(
        pair, (ours.dtype, theirs.dtype), (ours.shape, theirs.shape), ours.elements, difference
    )


def _alone(side: Side, taken: set[str]) -> tuple[LoneParameter, ...]:
    return tuple(
        LoneParameter(name, one.dtype, one.shape)
        for name, one in side.parameters.items()
        if name not in taken
    )
