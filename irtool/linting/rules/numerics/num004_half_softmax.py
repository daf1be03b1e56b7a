"""NUM004: softmax and normalisation over a long axis in half precision."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import NodeRule, Threshold
from irtool.linting.rules.numerics.half import NEAREST, half_type
from irtool.operators.table import operator_of


class HalfSoftmax(NodeRule):
    """Softmax or a normalisation whose input is in half precision."""

    code = "NUM004"
    name = "half-precision-softmax-or-norm"
    severity = "info"
    summary = "Softmax or a normalisation over a long axis works in half precision"
    explanation = """
        Both sum over an axis and divide by the sum. In half precision the sum of exponentials loses
        small terms, and the mean of squares in a normalisation overflows float16 beyond 255 in
        root mean square. Many kernels compute inside in float32 and round only the result; then
        what is lost is the rounding of the input. Reference implementations on GPUs (PyTorch
        autocast) run these operators in float32, so this is a usual place where two runs part. Off
        unless it is selected.
        """
    hint = "compute it in float32: cast before, cast back after"
    bad = """
        %8(p) = PrimFunc_Softmax(%7, (I64(-1)))
            : (<Tensor[Float16], (8, 16, 64, 4096)>, …) -> (<Tensor[Float16], (8, 16, 64, 4096)>)
        """
    good = """
        %8(p) = PrimFunc_Softmax(%7, (I64(-1)))
            : (<Tensor[Float32], (8, 16, 64, 4096)>, …) -> (<Tensor[Float32], (8, 16, 64, 4096)>)
        """
    cases = ("tests/linting/evidence/half_softmax_encoder.validate",)
    dumps = NEAREST
    is_default = False
    least_length = Threshold(2048, "elements", "minimum length of an axis to report")

    def looks_at(self, op: str) -> bool:
        entry = operator_of(op)
        return entry.computes in ("softmax", "norm") and not entry.gradient_of

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        if node.is_recomputed or not node.input_types:
            return
        source = node.input_types[0]
        dtype = half_type(source)
        if dtype is None or source is None or not source.dimensions:
            return
        length = source.dimensions[-1]
        if length >= self.least_length:
            yield self.finding(
                f"{node.op} over an axis of {length:,} works in {dtype.lower()}", node
            )
