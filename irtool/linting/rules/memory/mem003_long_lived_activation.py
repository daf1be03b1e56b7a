"""MEM003: an activation that is kept from the beginning of the forward pass to the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from irtool.cluster.liveness import Buffer, Liveness, liveness
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.phases import Phase
from irtool.ir.units import bytes_text
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import MIB, DumpRule, Threshold


class LongLivedActivation(DumpRule):
    """A large result of the early forward pass that the late backward pass still needs."""

    code = "MEM003"
    name = "activation-kept-across-backward"
    severity = "info"
    summary = "A large activation is kept across the whole backward pass"
    explanation = """
        A result of the first layers that their gradients need is alive while everything else runs,
        at the peak too. In launch order, such a tensor is made in the first tenth of the forward
        pass and used last in the last tenth of the backward pass. Recomputing it
        (`cell.recompute()`) costs the operators that make it once more.

        Masks and position tables that are made anew in every step are the usual finding: make them
        constants, or make them where they are used.
        """
    hint = "recompute the cell that makes it, or make it where it is used"
    bad = "%4(mask) of 2 GiB: made by launch 3 of 900, used last by launch 895"
    good = "%4(mask) of 2 GiB: made again by launch 890, used last by launch 895"
    cases = ("tests/linting/evidence/mask_kept_encoder.validate",)
    dumps = ("validate",)
    least_bytes = Threshold(1024 * MIB, "bytes", "minimum size of a tensor to report")
    margin_percent = Threshold(10, "percent", "how early and how late, of either pass")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        sizes = (node.output_bytes or 0 for node in facts.dump.nodes())
        if max(sizes, default=0) < self.least_bytes:
            return
        live: Liveness = facts.kept("liveness", lambda: liveness(facts.whole))
        spans = _spans(live, facts.phases)
        if spans is None:
            return
        (first, last_forward), (first_backward, last) = spans
        early = first + (last_forward - first) * self.margin_percent // 100
        late = last - (last - first_backward) * self.margin_percent // 100
        reported: set[Node] = set()
        for buffer in live.buffers:
            node = buffer.node.node
            if node in reported or not self._is_kept(buffer, early, late):
                continue
            if facts.phases.get(node) == "forward":
                reported.add(node)
                yield self.finding(
                    f"{node.op} makes {bytes_text(buffer.size or 0)} that are kept across "
                    "the whole backward pass",
                    node,
                )

    def _is_kept(self, buffer: Buffer, early: int, late: int) -> bool:
        size = buffer.size or 0
        return size >= self.least_bytes and buffer.born <= early and buffer.dies >= late


def _spans(
    live: Liveness, phases: Mapping[Node, Phase]
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """First and last launch of the forward and of the backward pass; None if one is missing."""
    places: dict[str, list[int]] = {"forward": [], "backward": []}
    for place, item in enumerate(live.launched):
        launches = places.get(phases.get(item.node, "other"))
        if launches is not None:
            launches.append(place)
    forward, backward = places["forward"], places["backward"]
    if not forward or not backward:
        return None
    return (forward[0], forward[-1]), (backward[0], backward[-1])
