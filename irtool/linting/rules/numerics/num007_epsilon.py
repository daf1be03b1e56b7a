"""NUM007: an epsilon that its type cannot hold."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.linting.constants import number
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import NodeRule
from irtool.linting.rules.numerics.half import HALF, NEAREST, half_type
from irtool.operators.table import operator_of

_MOST = 1e-3
"""A constant above this is no epsilon."""


class Epsilon(NodeRule):
    """A small constant beside half-precision tensors that devices may flush to 0."""

    code = "NUM007"
    name = "epsilon-too-small"
    severity = "warning"
    summary = "An epsilon is subnormal in its type"
    explanation = """
        An epsilon keeps a division or a root away from 0. Between 6·10⁻⁸ and 6·10⁻⁵ a float16 is
        subnormal, which many devices flush to 0: then the guard is gone without a word. bfloat16
        has the range of float32, so it is no problem there. A smaller one is 0 in float16 on every
        device: NUM008 tells that.

        Normalisations and optimizers compute inside in float32, and are not told.
        """
    hint = "use an epsilon of at least 1e-4 in float16, or compute this in float32"
    bad = """
        %8(a) = PrimFunc_Add(%7, Tensor(shape=[], dtype=Float16, value=1e-06))
            : (<Tensor[Float16], (8, 16)>, …) -> (<Tensor[Float16], (8, 16)>)
        """
    good = """
        %8(a) = PrimFunc_Add(%7, F16(0.0001))
            : (<Tensor[Float16], (8, 16)>, …) -> (<Tensor[Float16], (8, 16)>)
        """
    cases = (
        "tests/linting/evidence/epsilon_subnormal_gated.begin",
        "tests/linting/evidence/half_sums_gated.validate",
        "tests/linting/evidence/half_gradients_gated.validate",
    )
    dumps = NEAREST

    def looks_at(self, op: str) -> bool:
        return operator_of(op).is_("guard")

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        if node.is_recomputed or not node.input_types:
            return
        dtype = next((half for abstract in node.input_types if (half := half_type(abstract))), None)
        if dtype is None:
            return
        for value in epsilons(node):
            if HALF[dtype].least < abs(value) < min(_MOST, HALF[dtype].least_normal):
                yield self.finding(
                    f"{value:.3g} in {node.op} is subnormal in {dtype.lower()}, which devices "
                    "flush to 0",
                    node,
                )


def epsilons(node: Node) -> Iterator[float]:
    """Floating-point constants among the operands, and attributes that are called epsilon.

    Args:
        node: that adds or takes one.
    """
    for operand in node.operands:
        value = number(operand)
        if value is not None:
            yield value
    for key in ("epsilon", "eps"):
        value = node.attribute(key)
        if isinstance(value, float):
            yield value
