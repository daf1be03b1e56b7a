"""NUM005: a loss in half precision."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import NodeRule
from irtool.linting.rules.numerics.half import NEAREST, half_type
from irtool.operators.table import operator_of


class HalfLoss(NodeRule):
    """A loss operator whose input is in half precision."""

    code = "NUM005"
    name = "half-precision-loss"
    severity = "warning"
    summary = "A loss is computed in half precision"
    explanation = """
        The loss is one number made of many: its error goes into every gradient, and with logits in
        float16 an exponential overflows at 11.1. Mixed-precision training keeps the loss in
        float32 on every platform (MindSpore's `amp_level="O2"` casts the network's output back for
        this reason).
        """
    hint = "cast the network's output to float32 before the loss"
    bad = """
        %8(l) = PrimFunc_SparseSoftmaxCrossEntropyWithLogits(%6, %7, Bool(0))
            : (<Tensor[Float16], (4096, 32000)>, …) -> (<Tensor[Float16], ()>)
        """
    good = """
        %8(l) = PrimFunc_SparseSoftmaxCrossEntropyWithLogits(%6, %7, Bool(0))
            : (<Tensor[Float32], (4096, 32000)>, …) -> (<Tensor[Float32], ()>)
        """
    cases = ("tests/linting/evidence/loss_half_gated.validate",)
    dumps = NEAREST

    def looks_at(self, op: str) -> bool:
        entry = operator_of(op)
        return entry.computes == "loss" and not entry.gradient_of

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        if node.is_recomputed or not node.input_types:
            return
        dtype = half_type(node.input_types[0])
        if dtype is not None:
            yield self.finding(f"{node.op} is computed in {dtype.lower()}", node)
