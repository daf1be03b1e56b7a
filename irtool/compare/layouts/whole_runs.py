"""Two runs that a layout file tells of, put together, with what came of comparing them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import field

from irtool.compare.layouts.assembled import Assembled
from irtool.compare.layouts.chained import Chained
from irtool.compare.tensors.comparison import TensorComparison
from irtool.compare.tensors.dtypes import is_float
from irtool.compare.tensors.facts import Differing, Kind
from irtool.compare.tensors.model import TensorRun
from irtool.ir.dataclass import dataclass
from irtool.ir.units import numbered_text

Runs = Mapping[int, TensorRun]


@dataclass(slots=True)
class AcrossRanks:
    """What came of it.

    Attributes:
        comparison: of both runs, put together.
        assembled: how that was done.
        sides: both runs, chained.
        name: of the part that is compared, where both runs are cut alike in some way.
        folder: holds the joined tensors; gone with this object.
    """

    comparison: TensorComparison
    assembled: Assembled
    sides: tuple[Chained, Chained]
    name: str
    folder: tempfile.TemporaryDirectory[str] = field(repr=False)

    @property
    def unknown(self) -> list[str]:
        """Tensors that could not be put together, and why."""
        run = self.comparison.left
        return [
            f"{run.columns.labels[place]}: {why}" for place, why in self.assembled.unknown.items()
        ]

    @property
    def replicas(self) -> list[tuple[Kind, Differing]]:
        """Weights and indices that ranks should be given alike and are not, as facts."""
        given: list[tuple[Kind, Differing]] = []
        for odd in self.assembled.odd:
            run = self.sides[odd.which].run
            op = run.ops[odd.op]
            place = next((p for p in op.inputs if run.columns.labels[p] == odd.label), None)
            if place is None:
                continue
            is_weight = place in op.parameters
            if is_weight or (op.parameters and not is_float(run.columns.dtypes[place])):
                name = f"{op.name}.{odd.label} on {numbered_text('rank', odd.ranks)}"
                given.append(
                    ("initial weights" if is_weight else "indices", Differing(name, odd.error))
                )
        return given

    def joined(self, which: int) -> frozenset[int] | None:
        """Places of tensors that have the sizes of the whole.

        Args:
            which: 0 for the left run, 1 for the right one.

        Returns:
            None where all have them: the run is not cut.
        """
        if not self.sides[which].is_cut:
            return None
        return frozenset(place for side, place in self.assembled.partitions if side == which)

    @property
    def ranks(self) -> tuple[Runs, Runs]:
        """The runs of both sides, by rank."""
        return self.sides[0].runs, self.sides[1].runs

    @property
    def micros(self) -> tuple[int, int]:
        """Number of micro-batches of each side."""
        return self.sides[0].micro, self.sides[1].micro

    @property
    def undivided(self) -> tuple[float, float]:
        """How many times too large the gradients of each side are, by its micro-batches.

        A rank's loss is usually the mean over its own part of the batch, so a factor of as many as
        there are data parallel ranks is none; what micro-batches add up has to be divided.
        """
        ours, theirs = (
            1.0 if factor * side.layout.data_parallel in (1, side.layout.data_parallel)
            else float(side.micro)
            for factor, side in zip(self.assembled.factors, self.sides, strict=True)
        )  # fmt: skip
        return ours, theirs
