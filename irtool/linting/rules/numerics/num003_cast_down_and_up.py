"""NUM003: a cast to half precision and straight back."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import NodeRule
from irtool.linting.rules.numerics.half import NEAREST, half_type
from irtool.operators.table import operator_of


class CastDownAndUp(NodeRule):
    """A Cast from half precision back to the type that a Cast made it of, or a softmax between."""

    code = "NUM003"
    name = "cast-down-and-up"
    severity = "warning"
    summary = "A tensor is cast to half precision and straight back"
    explanation = """
        Both casts cost a pass over the tensor, and the first one drops digits for good. Between
        them nothing is computed and nothing is communicated, so nothing is won. It comes from cells
        that cast their input and their output each for themselves.

        A softmax alone between the two is told as well: it sums exponentials, of which half
        precision loses the small ones, and all around it is wide.

        Told only where the half-precision tensor has no other reader: then both casts can go. The
        casts that differentiation makes of a pair of casts are not told again.
        """
    hint = "leave both casts out"
    bad = """
        %8(a) = PrimFunc_Cast(%7, I64(42))
            : (<Tensor[Float32], (64, 64)>, …) -> (<Tensor[Float16], (64, 64)>)
        %9(b) = PrimFunc_Cast(%8, I64(43))
            : (<Tensor[Float16], (64, 64)>, …) -> (<Tensor[Float32], (64, 64)>)
        """
    good = "(neither of them)"
    cases = ("tests/linting/evidence/round_trip_gated.validate",)
    dumps = NEAREST
    operators = ("Cast",)

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        if node.is_backward or node.is_recomputed or not node.operands or not node.input_types:
            return
        half = half_type(node.input_types[0])
        first = node.inputs[0] if half else None
        if not isinstance(first, Node) or not first.input_types:
            return
        between = first if operator_of(first.op).computes == "softmax" else None
        if between is not None and _is_read_by(between, node):
            first = between.inputs[0] if between.inputs else None
        if not isinstance(first, Node) or first.op != "Cast" or not first.input_types:
            return
        wide = first.input_types[0]
        result = node.output_type
        if wide is None or result is None or wide.dtype != result.dtype or half_type(wide):
            return
        if between is not None:
            if _is_read_by(first, between):
                yield self.finding(
                    f"{between.op} alone works in {half}: its input is cast from {wide.dtype} and "
                    "its result straight back",
                    between,
                    related=(("cast to half precision here", first),),
                )
            return
        # A user without data (a Depend that orders) does not need the value.
        if len(first.users) == 1:
            yield self.finding(
                f"{wide.dtype} is cast to {half} and straight back",
                node,
                related=(("cast to half precision here", first),),
            )


def _is_read_by(node: Node, user: Node) -> bool:
    """Whether only one node of the forward pass reads a value; its gradients may as well."""
    others = (other for other in node.users if other is not user)
    return all(other.is_backward for other in others)
