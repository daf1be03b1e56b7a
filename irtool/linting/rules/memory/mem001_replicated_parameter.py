"""MEM001: a large weight that every device holds whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.units import bytes_text
from irtool.linting.facts import DumpFacts
from irtool.linting.layers import kind_of
from irtool.linting.rule import MIB, ReportRule, Threshold
from irtool.linting.rules.memory.parameters import HeldParameter, held_parameters
from irtool.sharding.network.report import CheckResult


class ReplicatedParameter(ReportRule):
    """A weight of many bytes that no strategy and no optimizer parallel splits."""

    code = "MEM001"
    name = "replicated-large-parameter"
    severity = "warning"
    summary = "A large weight is held whole by every device"
    explanation = """
        Each device of the stage keeps the whole weight, its gradient and its optimizer state, and
        the gradient of all its bytes is summed over all of them. A split of one of its dimensions
        (`in_strategy` of the operator that uses it) or optimizer parallel divides all three. The
        embedding table is the usual case: the recursive search leaves it whole.
        """
    hint = "split it in the strategy of the operator that uses it, or enable_parallel_optimizer"
    bad = "%para3_word_embedding.table: (32768, 80) on 8 devices, slice (32768, 80)"
    good = "%para3_word_embedding.table: (32768, 80) on 8 devices, slice (4096, 80)"
    cases = (
        "tests/linting/evidence/alltoall_dense.begin",
        "tests/linting/evidence/table_whole_gated.begin",
    )
    least_bytes = Threshold(256 * MIB, "bytes", "minimum size of a weight to report")

    def check(self, report: CheckResult, facts: DumpFacts) -> Iterator[Finding]:
        alike: dict[tuple[str, int, int], list[HeldParameter]] = defaultdict(list)
        for item in held_parameters(report):
            if item.is_state or item.replicas < 2 or item.slice != item.whole:
                continue
            if item.slice >= self.least_bytes:
                alike[kind_of(item.report.name), item.slice, item.replicas].append(item)
        for (kind, size, replicas), (item, *others) in alike.items():
            more = f" and {len(others)} more like it" if others else ""
            quantifier = "each " if others else ""
            yield self.finding(
                f"{item.report.name}{more} ({quantifier}{bytes_text(size)}) "
                f"{'are' if others else 'is'} held whole by {replicas} devices",
                item.report.user,
                item.report.parameter,
                related=[(f"{other.report.name} as well", other.report.user)
                         for other in others[:20] if other.report.user is not None],
                key=kind,
            )  # fmt: skip
