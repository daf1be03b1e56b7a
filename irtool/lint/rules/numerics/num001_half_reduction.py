"""NUM001: a long sum in half precision."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.lint.facts import DumpFacts
from irtool.lint.rule import NodeRule, Threshold
from irtool.lint.rules.numerics.half import HALF, NEAREST, elements, half_type
from irtool.operators.table import operator_of


class HalfReduction(NodeRule):
    """A reduction over many elements with input and result in half precision."""

    code = "NUM001"
    name = "half-precision-reduction"
    severity = "warning"
    summary = "A reduction over a long axis has input and result in half precision"
    explanation = """
        The rounding error of a sum of `k` terms grows like `√k · u`, `u` being the unit roundoff
        (2⁻¹¹ for float16, 2⁻⁸ for bfloat16). Where a kernel keeps its running sum in the input's
        type, terms that are smaller than half a unit of the running sum are lost altogether, and a
        float16 sum overflows at 65504.

        Products of matrices are not meant: their kernels accumulate in float32. It is fine where
        the kernel is known to do so for this operator too.
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
    references = ("Higham, Mary: A new approach to probabilistic rounding error analysis (2019)",)
    dumps = NEAREST
    least_length = Threshold(8192, "elements", "reductions of at least so many elements are told")

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
        error = length**0.5 * HALF[dtype].unit
        yield self.finding(
            f"{node.op} adds {length:,} numbers in {dtype.lower()}: "
            f"expect a relative error of up to {error:.1%}",
            node,
        )


def _summed(node: Node, before: int, after: int) -> int:
    """How many numbers go into one of the result; a running sum goes along an axis."""
    if not node.op.startswith("Cum"):
        return before // after
    source = node.input_types[0]
    return max(source.dimensions or (1,)) if source is not None else 1
