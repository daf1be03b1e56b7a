"""COM003: an AllGather most of whose result is thrown away."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.units import bytes_text
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import MIB, NodeRule, Threshold
from irtool.linting.rules.communication.chains import only_reader
from irtool.operators.table import operator_of


class GatherThenSlice(NodeRule):
    """An AllGather whose result is cut down again by its only reader."""

    code = "COM003"
    name = "gather-then-slice"
    severity = "warning"
    summary = "What an AllGather collects is sliced away again"
    explanation = """
        Moving a split from one dimension to another takes an AlltoAll. With `enable_alltoall` off
        (the default) MindSpore does it by AllGather, Split, Concat and StridedSlice: each device
        receives the whole and keeps a part, so that a group of `n` moves `n` times as many bytes,
        and the whole stands in memory for a moment.

        Told where only a later dump is there: with `step_parallel_begin` and the number of devices
        STR005 and COM009 tell the same cause at the edge that makes it necessary.
        """
    hint = "set enable_alltoall=True, or let both operators split the same dimension"
    bad = """
        %8(g) = PrimFunc_AllGather(%7) {instance name: redistribution_op_…}
        %9(s) = PrimFunc_StridedSlice(%8, …)     keeps a quarter
        """
    good = "%8(a) = PrimFunc_AlltoAll(%7) {instance name: redistribution_op_…}"
    cases = ("tests/linting/evidence/mesh_across_gated.validate",)
    operators = ("AllGather",)
    least_bytes = Threshold(64 * MIB, "bytes", "minimum size of a gathered tensor to report")

    def check(self, node: Node, facts: DumpFacts) -> Iterator[Finding]:
        gathered = node.output_bytes or 0
        if gathered < self.least_bytes or knows_edges(facts):
            return
        cut = _cut_behind(node)
        kept = cut.output_bytes if cut is not None else None
        if cut is not None and kept is not None and 0 < kept <= gathered // 2:
            yield self.finding(
                f"AllGather collects {bytes_text(gathered)}, of which {bytes_text(kept)} are kept",
                node,
                related=(("the rest is cut off here", cut),),
            )


def knows_edges(facts: DumpFacts) -> bool:
    """Whether rules about strategies see the edges that this comes from."""
    compilation = facts.compilation
    return (
        compilation.of_kind("begin") is not None and compilation.surroundings.parallel is not None
    )


def _cut_behind(node: Node) -> Node | None:
    """The slice that an AllGather ends in, through what only regroups its result."""
    current = node
    for _ in range(16):
        readers = {user for user in current.users if user.op not in ("UpdateState", "Depend")}
        if readers and all(reader.op == "TupleGetItem" for reader in readers):
            # All pieces of a Split, put together again by one Concat.
            joined = {only_reader(reader) for reader in readers}
            following = joined.pop() if len(joined) == 1 else None
        else:
            following = only_reader(current)
        if following is None or operator_of(following.op).is_("cuts"):
            return following
        if following.op != "MakeTuple" and not operator_of(following.op).moves:
            return None
        current = following
    return None
