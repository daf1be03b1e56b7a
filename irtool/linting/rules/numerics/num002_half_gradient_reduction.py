"""NUM002: gradients summed over ranks in half precision."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION
from irtool.ir.units import share_text
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import NodeRule, Threshold
from irtool.linting.rules.numerics.half import HALF, NEAREST

_REDUCES = ("AllReduce", "ReduceScatter", "Reduce", "ReduceScatterV")


class HalfGradientReduction(NodeRule):
    """An AllReduce or ReduceScatter of gradients in half precision over many ranks."""

    code = "NUM002"
    name = "half-precision-gradients"
    severity = "info"
    summary = "Gradients are summed over many ranks in half precision"
    explanation = """
        A ring rounds at every hop, so that the relative error of a sum over `N` ranks grows like
        `0.5 · √N · u` (measured; 0.4 % for bfloat16 over 8 ranks, 3 % over 1,024), and in float16
        small gradients vanish while large ones overflow. It halves the bytes, and is mostly done on
        purpose: off unless it is selected. Select it when you look for what two runs differ in.
        """
    hint = "sum gradients in float32 (keep weights in float32, or cast before the reduction)"
    bad = """
        %9(g) = PrimFunc_AllReduce(%8) {instance name: grad_mirror_MirrorOperator}
            : (<Tensor[Float16], (4096, 4096)>) -> (<Tensor[Float16], (4096, 4096)>)
        """
    good = """
        %9(g) = PrimFunc_AllReduce(%8) {instance name: grad_mirror_MirrorOperator}
            : (<Tensor[Float32], (4096, 4096)>) -> (<Tensor[Float32], (4096, 4096)>)
        """
    cases = ("tests/linting/evidence/half_gradients_gated.validate",)
    dumps = NEAREST
    is_default = False
    operators = frozenset(op for op, what in COMMUNICATION.items() if what.base in _REDUCES)
    least_ranks = Threshold(16, "ranks", "minimum size of a group to report")

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        collective = facts.collective_by_node.get(node)
        if (
            collective is None
            or collective.is_virtual
            or collective.dtype not in HALF
            or collective.ranks is None
        ):
            return
        if collective.origin not in ("mirror", "optimizer parallel") or not collective.is_gradient:
            return
        ranks = len(collective.ranks)
        if collective.reduction in (None, "sum") and ranks >= self.least_ranks:
            error = 0.5 * ranks**0.5 * HALF[collective.dtype].unit
            yield self.finding(
                f"{collective.op} sums a gradient over {ranks} ranks in "
                f"{collective.dtype.lower()}: expect a relative error of {share_text(error)}",
                node,
                key=collective.parameter or "",
            )
