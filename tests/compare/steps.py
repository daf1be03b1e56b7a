"""Two runs of a few operators, with measures that a test states instead of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from irtool.compare.tensors.judging.judge import Judge
from irtool.compare.tensors.judging.past import Training
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Columns, Op, Phase, Places, Shape, TensorRun
from irtool.compare.tensors.pairing.makers import Makers
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import pair_tensors
from tests.compare.operators import tensor

U = 2.0**-24
"""Roundoff of Float32."""


class Given(NamedTuple):
    """A tensor of both sides, and how far apart they are."""

    error: float = 0.0
    norm: float = 1.0
    shape: Shape = (4, 4)
    dtypes: tuple[str, str] = ("Float32", "Float32")
    broken: tuple[int, int] = (0, 0)
    exact: bool = True
    equal: bool | None = None
    is_parameter: bool = False
    right_shape: Shape | None = None
    right_norm: float | None = None
    is_measured: bool = True

    @property
    def measure(self) -> Measure:
        is_equal = not self.error and self.broken == (0, 0) if self.equal is None else self.equal
        other = self.norm if self.right_norm is None else self.right_norm
        return Measure(self.error, self.norm, other, is_equal, *self.broken, self.exact)


@dataclass
class Steps:
    """Operators that both sides ran, in their order."""

    framework: str = "pytorch"
    same_framework: bool = True
    training: Training = "first step"
    left: Columns = field(default_factory=Columns)
    right: Columns = field(default_factory=Columns)
    pairs: list[OpPair] = field(default_factory=list[OpPair])
    measures: dict[Places, Measure] = field(default_factory=dict[Places, Measure])

    def add(
        self,
        type_: str,
        inputs: Sequence[Given],
        outputs: Sequence[Given],
        *,
        phase: Phase = "forward",
        call: str = "",
        is_module: bool = False,
        other_type: str = "",
        owner: str = "",
        attributes: tuple[Mapping[str, object], Mapping[str, object]] = ({}, {}),
    ) -> Steps:
        """One more operator; returns itself."""
        places: list[tuple[list[int], list[int]]] = []
        parameters: tuple[set[int], set[int]] = (set(), set())
        for way, tensors in (("input", inputs), ("output", outputs)):
            rows: tuple[list[int], list[int]] = ([], [])
            for number, one in enumerate(tensors):
                label = f"{way}.{number}"
                ours = tensor(self.left, label, one.shape, one.dtypes[0], one.norm)
                shape = one.shape if one.right_shape is None else one.right_shape
                norm = one.norm if one.right_norm is None else one.right_norm
                theirs = tensor(self.right, label, shape, one.dtypes[1], norm)
                if one.is_measured:
                    self.measures[ours, theirs] = one.measure
                for row, place, known in zip(rows, (ours, theirs), parameters, strict=True):
                    row.append(place)
                    if one.is_parameter:
                        known.add(place)
            places.append(rows)
        ops = [
            Op(
                len(self.pairs), name, name, phase, places[0][side], places[1][side],
                frozenset(parameters[side]), attributes[side], owner, call, is_module=is_module,
            )
            for side, name in enumerate((type_, other_type or type_))
        ]  # fmt: skip
        self.pairs.append(OpPair(ops[0], ops[1], "order"))
        return self

    def judged(self) -> list[Judged]:
        """The verdicts, in their order."""
        runs = [
            TensorRun(
                "run", "msprobe", "tensors", self.framework, columns, [p[side] for p in self.pairs]
            )
            for side, columns in enumerate((self.left, self.right))
        ]
        makers = Makers(runs[0], runs[1], self.pairs)
        judge = Judge(runs[0], runs[1], self.measures, makers, self.same_framework, self.training)
        return [judge.judge(p, pair_tensors(p, self.left, self.right)) for p in self.pairs]
