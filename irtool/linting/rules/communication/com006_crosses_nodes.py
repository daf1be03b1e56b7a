"""COM006: a small group that is spread over several nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from irtool.ir.collectives import Collective
from irtool.ir.finding import Finding
from irtool.ir.units import bytes_text, plural
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import MIB, DumpRule, Threshold


class CrossesNodes(DumpRule):
    """Tensor-parallel collectives between nodes whose group would fit into one node."""

    code = "COM006"
    name = "group-crosses-nodes"
    severity = "warning"
    summary = "A group that would fit into one node is spread over several"
    explanation = """
        Links inside a node are several times faster than those between nodes. Collectives of
        tensor parallelism run in every layer and wait for each other, so their groups belong inside
        a node; those of data parallelism run once a step and can be hidden. Ranks that differ in
        the last axis of a device matrix are neighbours: the axis that communicates most should be
        the last one.
        """
    hint = "put the axis that this collective runs along last in the layout's device matrix"
    bad = "%8(a) = PrimFunc_AllReduce(%7) {instance name: forward_op_…, rank_list: (0, 8)}"
    good = "%8(a) = PrimFunc_AllReduce(%7) {instance name: forward_op_…, rank_list: (0, 1)}"
    cases = ("tests/linting/evidence/mesh_across_gated.validate",)
    needs = ("machine",)
    least_bytes = Threshold(64 * MIB, "bytes", "minimum traffic of a group in a step to report")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        size = facts.compilation.machine.node_devices
        if size is None:
            return
        spread: dict[tuple[int, ...], list[Collective]] = defaultdict(list)
        for item in facts.collectives:
            in_layers = item.origin in ("forward reduction", "redistribution", "operator")
            if not in_layers or item.is_virtual or not item.ranks or len(item.ranks) > size:
                continue
            if len({rank // size for rank in item.ranks}) > 1:
                spread[item.ranks].append(item)
        for ranks, crossing in spread.items():
            moved = sum(item.bytes or 0 for item in crossing)
            if moved >= self.least_bytes:
                nodes = len({rank // size for rank in ranks})
                yield self.finding(
                    f"{len(ranks)} ranks on {nodes} nodes exchange {bytes_text(moved)} a step "
                    f"in {plural(len(crossing), 'collective')}; a node holds {size} devices",
                    max(crossing, key=_bytes).node,
                    key=f"{len(ranks)} ranks",
                )


def _bytes(item: Collective) -> int:
    return item.bytes or 0
