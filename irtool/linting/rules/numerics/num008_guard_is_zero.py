"""NUM008: a guard against 0 that is 0 itself in its type."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import NodeRule
from irtool.linting.rules.communication.chains import CARRIES
from irtool.linting.rules.numerics.half import HALF, NEAREST, half_type
from irtool.linting.rules.numerics.num007_epsilon import epsilons
from irtool.operators.table import operator_of

NEEDS_GUARD = frozenset(
    ("Rsqrt", "Sqrt", "Reciprocal", "Inv", "Log", "Pow", "Div", "RealDiv", "Divide", "DivNoNan")
)
"""What is infinite, or has an infinite gradient, at 0; of a division the divisor."""
_DIVISIONS = frozenset(("Div", "RealDiv", "Divide"))


class GuardIsZero(NodeRule):
    """An epsilon that was rounded to 0 when it took the type of the tensor beside it."""

    code = "NUM008"
    name = "guard-is-zero"
    severity = "warning"
    summary = "A guard constant is 0 in its type"
    explanation = """
        A small constant is added to what is divided by, or under a root, or is its least value.
        Where the tensor is float16 the constant becomes float16 too, and what is below 3·10⁻⁸
        becomes 0: a row of zeros divides by 0 and gives inf or nan, in the forward pass or in the
        gradient. MindSpore prints the constant as `Tensor(dtype=Float16, value=0)`.

        An operator that adds 0 or takes the maximum with 0 is told only where its result goes into
        a root, a logarithm or a divisor. `Maximum(x, 0)` by itself is a ReLU. Normalisations and
        optimizers often compute inside in float32; of them only an epsilon that float16 would round
        to 0 is told.
        """
    hint = "use an epsilon of at least 1e-4 in float16, or compute this part in float32"
    bad = """
        %8(a) = PrimFunc_Add(%7, Tensor(shape=[], dtype=Float16, value=0))
            : (<Tensor[Float16], (8, 1)>, …) -> (<Tensor[Float16], (8, 1)>)
        %9(r) = PrimFunc_Rsqrt(%8)
        """
    good = """
        %8(a) = PrimFunc_Add(%7, Tensor(shape=[], dtype=Float16, value=0.0001))
            : (<Tensor[Float16], (8, 1)>, …) -> (<Tensor[Float16], (8, 1)>)
        %9(r) = PrimFunc_Rsqrt(%8)
        """
    cases = (
        "tests/linting/evidence/epsilon_half_gated.validate",
        "tests/linting/evidence/guard_log_dense.validate",
    )
    dumps = NEAREST

    def looks_at(self, op: str) -> bool:
        entry = operator_of(op)
        return entry.is_("guard") or entry.is_("epsilon")

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        if node.is_recomputed or node.is_backward or not node.input_types:
            return
        dtype = next((half for abstract in node.input_types if (half := half_type(abstract))), None)
        if dtype is None:
            return
        for value in epsilons(node):
            if abs(value) > HALF[dtype].least:
                continue
            reader = guarded_by(node) if operator_of(node.op).is_("guard") else None
            if value == 0 and reader is None:
                continue
            problem = "is 0" if value == 0 else f"{value:g} is rounded to 0"
            guards = "" if reader is None else f": nothing keeps {reader.op} away from 0"
            yield self.finding(
                f"the constant of {node.op} {problem} in {dtype.lower()}{guards}",
                node,
                related=() if reader is None else (("what it should guard", reader),),
            )
            return


def guarded_by(node: Node) -> Node | None:
    """The operator that needs its operand kept away from 0, and takes it from this node."""
    queue = [node]
    for _ in range(16):
        if not queue:
            return None
        current = queue.pop()
        for user in current.users:
            if user.op in CARRIES or operator_of(user.op).moves:
                queue.append(user)
            elif user.op in _DIVISIONS:
                if len(user.inputs) > 1 and user.inputs[1] is current:
                    return user
            elif user.op in NEEDS_GUARD:
                return user
    return None
