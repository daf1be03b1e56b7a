"""STR004: a dimension split into more parts than it has elements."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.lint.facts import DumpFacts
from irtool.lint.rule import ReportRule
from irtool.sharding.network.report import CheckResult, OperatorReport


class Oversplit(ReportRule):
    """A number of a strategy that is larger than the dimension it divides."""

    code = "STR004"
    name = "split-larger-than-dimension"
    severity = "error"
    summary = "A dimension is split into more parts than it has elements"
    explanation = """
        A dimension of 4 cannot be split into 8 slices; MindSpore refuses the strategy. It happens
        when a batch or a number of heads shrinks while the strategy stays, and when a strategy is
        written for another order of dimensions.
        """
    hint = "split this dimension into at most as many parts as it has elements"
    bad = "%8(x) = PrimFunc_Softmax(%7, (I64(-1))) {in_strategy: ((8, 1))}      of shape (4, 16)"
    good = "%8(x) = PrimFunc_Softmax(%7, (I64(-1))) {in_strategy: ((4, 1))}     of shape (4, 16)"

    def check(self, report: CheckResult, facts: DumpFacts) -> Iterator[Finding]:
        for item in report.operators:
            found = oversplit(item) if item.verdict == "illegal" else None
            if found is not None:
                tensor, axis, size, parts = found
                yield self.finding(
                    f"{item.op}: dimension {axis} of input {tensor} has {size} elements and is "
                    f"split into {parts}",
                    item.node,
                )


def oversplit(item: OperatorReport) -> tuple[int, int, int, int] | None:
    """Input and dimension (both from 0), its size and its parts, where there are too few."""
    tensors = item.call.call.tensors
    for number, (tensor, splits) in enumerate(zip(tensors, item.strategy or (), strict=False)):
        for axis, (size, parts) in enumerate(zip(tensor.shape or (), splits, strict=False)):
            if 0 < size < parts:
                return number, axis, size, parts
    return None
