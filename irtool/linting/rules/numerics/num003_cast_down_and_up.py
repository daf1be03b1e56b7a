"""NUM003: a cast to half precision and straight back."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import NodeRule
from irtool.linting.rules.numerics.half import NEAREST, half_type


class CastDownAndUp(NodeRule):
    """A Cast of a half-precision tensor whose only source is a Cast from the same wide type."""

    code = "NUM003"
    name = "cast-down-and-up"
    severity = "warning"
    summary = "A tensor is cast to half precision and straight back"
    explanation = """
        Both casts cost a pass over the tensor, and the first one drops digits for good. Between
        them nothing is computed and nothing is communicated, so nothing is won. It comes from cells
        that cast their input and their output each for themselves.

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
        if not isinstance(first, Node) or first.op != "Cast" or not first.input_types:
            return
        wide = first.input_types[0]
        result = node.output_type
        if wide is None or result is None or wide.dtype != result.dtype or half_type(wide):
            return
        # A user without data (a Depend that orders) does not need the value.
        if len(first.users) == 1:
            yield self.finding(
                f"{wide.dtype} is cast to {half} and straight back",
                node,
                related=(("cast to half precision here", first),),
            )
