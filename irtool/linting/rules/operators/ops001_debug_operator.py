"""OPS001: an operator that only shows or stores what passes by."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Edit, Finding
from irtool.ir.graph import Node
from irtool.linting.facts import DumpFacts
from irtool.linting.places import user_frames
from irtool.linting.rule import NodeRule
from irtool.linting.rules.numerics.half import NEAREST
from irtool.operators.table import operator_of


class DebugOperator(NodeRule):
    """Print, TensorDump or a summary in the graph of a training step."""

    code = "OPS001"
    name = "debug-operator"
    severity = "warning"
    summary = "An operator that shows or stores a tensor is left in the graph"
    explanation = """
        `Print`, `TensorDump` and the like have a side effect in the order of the program: all that
        stands before waits for all that stands behind, the tensor is copied to the host in every
        step, and in a parallel network it is gathered nowhere, so that each rank shows its slice.
        Nothing of it is needed once the fault is found.

        Summaries (`ScalarSummary`, …) are told as an info: they copy to the host as well, and may
        be meant to stay.
        """
    hint = "take it out, or keep it behind a setting that is off in training"
    bad = '%757(CNode_33) = Print("layer", %70, IOMonad[IO]) {instance name: tell}'
    good = "(nothing)"
    cases = (
        "tests/linting/evidence/print_gated.begin",
        "tests/linting/evidence/tensor_dump_encoder.begin",
        "tests/linting/evidence/summary_gated.begin",
        "samples/fragment_2.1.ir",
    )
    dumps = NEAREST

    def looks_at(self, op: str) -> bool:
        entry = operator_of(op)
        return entry.is_("debug") or entry.is_("summary")

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        if node.is_backward or node.is_recomputed or (node.micro or 0) > 0:
            return
        frames = user_frames(node)
        summary = operator_of(node.op).is_("summary")
        edit = (
            Edit(frames[-1].path, frames[-1].line, new="# take this line out") if frames else None
        )
        what = (
            "writes a summary"
            if summary
            else "is left in the graph: it copies a tensor to the host"
        )
        yield self.finding(
            f"{node.op} {what} in every step",
            node,
            severity="info" if summary else None,
            edit=edit,
        )
