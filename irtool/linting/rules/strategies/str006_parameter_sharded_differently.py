"""STR006: a parameter that its users split differently."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import GraphParameter, Node
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import ReportRule
from irtool.operators.layout import Shape
from irtool.sharding.network.report import CheckResult, OperatorReport


class ParameterShardedDifferently(ReportRule):
    """Operators that read one parameter and want different slices of it."""

    code = "STR006"
    name = "parameter-sharded-differently"
    severity = "warning"
    summary = "Operators that share a parameter split it differently"
    explanation = """
        A parameter is stored in one layout, that of one of its users. Every other user gets a
        redistribution of the whole weight in each step, forward and backward, and in some cases
        MindSpore refuses the network. Tied embeddings are the usual case: a Gather splits the
        table by rows, the MatMul of the logits by columns.
        """
    hint = "give all users of the parameter strategies that split it alike"
    bad = """
        %7 = PrimFunc_Gather(%para3_table, %2, …) {in_strategy: ((8, 1), (1, 1))}
        %9 = PrimFunc_MatMul(%8, %para3_table, …) {in_strategy: ((1, 8), (1, 8))}
        """
    good = """
        %7 = PrimFunc_Gather(%para3_table, %2, …) {in_strategy: ((8, 1), (1, 1))}
        %9 = PrimFunc_MatMul(%8, %para3_table, …) {in_strategy: ((1, 1), (8, 1))}
        """

    def check(self, report: CheckResult, facts: DumpFacts) -> Iterator[Finding]:
        slices: dict[str, dict[Shape, OperatorReport]] = defaultdict(dict)
        for item in report.operators:
            if item.verdict != "legal":
                continue
            for position, source in enumerate(item.node.inputs):
                tensor = item.call.slots.tensor(position)
                if tensor is None or tensor >= len(item.input_slices):
                    continue
                name = _parameter(source)
                if name is not None:
                    slices[name].setdefault(item.input_slices[tensor], item)
        for name, found in slices.items():
            if len(found) < 2:
                continue
            (_, first), *others = found.items()
            shapes = " and ".join(map(str, found))
            yield self.finding(
                f"{name} is wanted in slices {shapes} by different operators",
                others[0][1].node,
                related=(("and here in another slice", first.node),),
                key=name,
            )


def _parameter(source: object) -> str | None:
    """The weight that an operand is, as it is stored: loads are looked through, casts are not."""
    for _ in range(8):
        if isinstance(source, GraphParameter):
            reference = source.type.ref_key if source.type else None
            weight = source.declaration is not None and source.declaration.is_weight
            return reference or (source.name if weight else None)
        if not isinstance(source, Node) or source.op not in ("Load", "Depend"):
            return None
        if not source.operands:
            return None
        source = source.inputs[0]
    return None
