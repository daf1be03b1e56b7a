"""NUM006: a reduction that ranks do in parts and add up in half precision."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import NodeRule, Threshold
from irtool.linting.rules.numerics.half import HALF, NEAREST


class SplitReduction(NodeRule):
    """Partial sums of a split dimension, rounded to half precision before they are added."""

    code = "NUM006"
    name = "split-reduction"
    severity = "info"
    summary = "Partial sums of a split dimension are added up in half precision"
    explanation = """
        Splitting the contracted dimension of an operator makes every rank compute a part of each
        sum; a collective adds the parts. On one device the whole sum is kept in float32 and rounded
        once; here each part is rounded to the tensor's type first, and the order of summation
        differs from that of a single device. The result is right, but not the same, and in half
        precision the difference is larger than the usual noise.

        Off unless it is selected: tensor parallelism does this in every layer. Select it when you
        look for what two runs differ in.
        """
    hint = "split another dimension, or let the operator give float32"
    bad = """
        %9(r) = PrimFunc_AllReduce(%8) {instance name: forward_op_15…, rank_list: (0, 1, 2, 3)}
            : (<Tensor[Float16], (128, 64)>) -> (<Tensor[Float16], (128, 64)>)
        """
    good = """
        %9(r) = PrimFunc_AllReduce(%8) {instance name: forward_op_15…, rank_list: (0, 1, 2, 3)}
            : (<Tensor[Float32], (128, 64)>) -> (<Tensor[Float32], (128, 64)>)
        """
    cases = ("tests/linting/evidence/half_encoder.end",)
    is_default = False
    dumps = NEAREST
    operators = frozenset(
        op for op, what in COMMUNICATION.items() if what.base in ("AllReduce", "ReduceScatter")
    )
    least_ranks = Threshold(2, "ranks", "minimum size of a group to report")

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        collective = facts.collective_by_node.get(node)
        if (
            collective is None
            or collective.origin != "forward reduction"
            or collective.dtype not in HALF
        ):
            return
        if collective.ranks is not None and len(collective.ranks) >= self.least_ranks:
            yield self.finding(
                f"partial sums of {len(collective.ranks)} ranks are added in "
                f"{collective.dtype.lower()}",
                node,
            )
