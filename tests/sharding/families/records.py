"""Statements that MindSpore 2.7.0 printed before its parallel pass, and what it then made of them.

A page of records stands for one family of rules. Each record is one compilation: a network of the
one statement, for the devices it says, as seen from one rank. What it expects is MindSpore's:

- ``matrix``, ``inputs``, ``outputs``: the device matrix and the tensor maps that it printed
  (``MS_DEV_DUMP_IR_PARALLEL_DETAIL=1``); None where it printed none, because the operator is
  replaced. Axes of size 1 may be pointed at or not: both mean a whole dimension.
- ``forward``: the collectives that it inserted for the operator itself, in order: operator,
  reduction, ranks. For an exchange of halos the ranks are those with whom something is exchanged.
- ``local``: the shape that the operator gets as input 0 after an exchange with its neighbours.
- ``check``: where its log gave the first reason for a refusal (file and function); ``says``: what
  it said there.

Attributes that don't matter are left out of the statements, and lines are wrapped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import irtool
from irtool.operators.layout import WHOLE, MapEntry, Shape, TensorMap, entries_of
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult, OperatorReport

Forward = tuple[str, str, tuple[int, ...]]


@dataclass(frozen=True)
class Compiled:
    """One statement and the context it was compiled in."""

    statement: str
    op: str = ""
    devices: int = 8
    rank: int = 0
    context: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def text(self) -> str:
        """The statements as MindSpore writes them, one line for the call and one for its types."""
        return "\n".join(_unwrapped(part) for part in self.statement.strip().split("\n\n"))

    def report(self) -> CheckResult:
        context = {
            "parallel_mode": "semi_auto_parallel",
            "device_num": self.devices,
            "global_rank": self.rank,
            "full_batch": "dataset_strategy" not in self.context,
            **self.context,
        }
        return check(irtool.loads(self.text), ParallelContext.from_mapping(context))


def _unwrapped(statement: str) -> str:
    lines = [line.strip() for line in statement.strip().splitlines()]
    types = next(place for place, line in enumerate(lines) if line.startswith(": ("))
    return f"  {' '.join(lines[:types])}\n      {' '.join(lines[types:])}"


@dataclass(frozen=True)
class Accepted(Compiled):
    """MindSpore compiled it."""

    matrix: Shape | None = None
    inputs: tuple[TensorMap, ...] | None = None
    outputs: tuple[TensorMap, ...] | None = None
    forward: tuple[Forward, ...] = ()
    local: Shape | None = None

    def verify(self) -> None:
        report = self.report()
        assert report.accepted, report.findings
        operator = self._operator(report)
        judgement = operator.judgement
        if self.matrix is not None:
            assert judgement.device_matrix == self.matrix
        for expected, found in (
            (self.inputs, judgement.input_maps),
            (self.outputs, judgement.output_maps),
        ):
            if expected is not None:
                layouts = [_without_ones(judgement.device_matrix, m) for m in found]
                assert layouts == [_without_ones(judgement.device_matrix, m) for m in expected]
        assert tuple((c.op, c.reduce, c.ranks) for c in operator.collectives) == self.forward
        if self.local is not None:
            assert judgement.raw_inputs[0] == self.local

    def _operator(self, report: CheckResult) -> OperatorReport:
        if not self.op:
            (operator,) = report.operators
            return operator
        return next(item for item in report.operators if item.op.lstrip("_") == self.op)


def _without_ones(matrix: Shape, tensor_map: TensorMap) -> list[MapEntry]:
    """A map without entries that point at axes of size 1."""
    found: list[MapEntry] = []
    for entry in tensor_map:
        axes = tuple(axis for axis in entries_of(entry) if matrix[len(matrix) - 1 - axis] > 1)
        found.append((axes[0] if len(axes) == 1 else axes) if axes else WHOLE)
    return found


@dataclass(frozen=True)
class Refused(Compiled):
    """MindSpore refused it."""

    check: str = ""
    says: str = ""

    def verify(self) -> None:
        report = self.report()
        assert report.accepted is False, report.findings
        reason = next(finding for finding in report.findings if finding.severity == "error")
        assert reason.check == self.check, reason
