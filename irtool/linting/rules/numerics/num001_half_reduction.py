"""NUM001: a long sum in half precision."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import NodeRule, Threshold
from irtool.linting.rules.numerics.half import NEAREST, elements, half_type
from irtool.operators.table import operator_of


class HalfReduction(NodeRule):
    """A reduction over many elements with input and result in half precision."""

    code = "NUM001"
    name = "half-precision-reduction"
    severity = "info"
    summary = "A reduction over a long axis has input and result in half precision"
    explanation = """
        A kernel that keeps its running sum in the input's type loses terms smaller than half a
        unit of it, with an error that grows like the root of their number; a float16 sum overflows
        at 65504. Most kernels keep it in float32 and round once: MindSpore's own sum of 65,536
        numbers in float16 was off by 0.025 %, hundreds of times less. So it is a place to look at
        where two runs differ, and no fault by itself: off unless it is selected.

        Products of matrices are not meant.
        """
    hint = "cast the input to float32 before the reduction, and the result back"
    bad = """
        %8(s) = PrimFunc_ReduceSum(%7, (I64(1)), Bool(0), Bool(0))
            : (<Tensor[Float16], (32, 65536)>, …) -> (<Tensor[Float16], (32)>)
        """
    good = """
        %8(s) = PrimFunc_ReduceSum(%7, (I64(1)), Bool(0), Bool(0))
            : (<Tensor[Float32], (32, 65536)>, …) -> (<Tensor[Float32], (32)>)
        """
    cases = ("tests/linting/evidence/half_sums_gated.validate",)
    references = ("Higham, Mary: A new approach to probabilistic rounding error analysis (2019)",)
    dumps = NEAREST
    is_default = False
    least_length = Threshold(8192, "elements", "minimum length of a reduction to report")

    def looks_at(self, op: str) -> bool:
        return operator_of(op).is_("sums_up")

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        if not node.input_types:
            return
        source, result = node.input_types[0], node.output_type
        dtype = half_type(source)
        if dtype is None or half_type(result) is None:
            return
        before, after = elements(source), elements(result)
        if not before or not after:
            return
        length = _summed(node, before, after)
        if length < self.least_length:
            return
        yield self.finding(f"{node.op} adds {length:,} numbers in {dtype.lower()}", node)


def _summed(node: Node, before: int, after: int) -> int:
    """How many numbers go into one of the result; a running sum goes along an axis."""
    if not node.op.startswith("Cum"):
        return before // after
    source = node.input_types[0]
    return max(source.dimensions or (1,)) if source is not None else 1
