"""COM004: many gradients that are reduced one by one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import cast

from irtool.cluster.machine import default_machine
from irtool.ir.collectives import Collective
from irtool.ir.finding import Edit, Finding, Gain
from irtool.ir.units import bytes_text
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import DumpRule, Threshold

_OFF = re.compile(r"openstate\W+false", re.IGNORECASE)
_EDIT = "1 (of these parameters, or of the cell)"


class UnfusedGradients(DumpRule):
    """Reductions of gradients of one group whose fusion is 0."""

    code = "COM004"
    name = "unfused-gradients"
    severity = "warning"
    summary = "Gradients are reduced one by one, without fusion"
    explanation = """
        `fusion: 0` tells the backend to launch each reduction for itself. Many small ones pay the
        start-up time of a collective many times; fused into buckets of tens of megabytes they run
        at the links' bandwidth. MindSpore's own mirrors have fusion 1, so that this comes from
        `Parameter.comm_fusion = 0`, from `cell.set_comm_fusion(0)`, or from user code.
        `comm_fusion={"openstate": False}` in the context switches fusion off for all of them,
        and the dump still says 1: it counts where the context is told, for all groups together.
        `irtool comm fuse` shows buckets with their gain.

        Told where the start-up times are a good part of what the reductions of one group take, on
        the machine that the settings name, else on a node of Ascend 910B: sixteen reductions of a
        gigabyte each gain nothing.
        """
    hint = "give the parameters a comm_fusion above 0"
    bad = "30 × PrimFunc_AllReduce(…) {instance name: grad_mirror_…, fusion: I64(0)}"
    good = "30 × PrimFunc_AllReduce(…) {instance name: grad_mirror_…, fusion: I64(1)}"
    cases = (
        "tests/linting/evidence/reductions_small_gated.validate",
        "tests/linting/evidence/reductions_off_dense.validate",
    )
    least_count = Threshold(16, "collectives", "told where so many of one cause are not fused")
    least_share = Threshold(20, "percent", "told where start-up takes this share of their time")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        is_off = fusion_is_off(facts.compilation.surroundings.context)
        alone: dict[tuple[str, str | None], list[Collective]] = defaultdict(list)
        for item in facts.collectives:
            gradient = item.origin in ("mirror", "optimizer parallel") and item.is_gradient
            if gradient and not item.is_virtual and (item.fusion == 0 or is_off):
                alone[item.op, item.group].append(item)
        # Switched off in the context, all of an operator have one cause; else each group its own.
        causes: dict[tuple[str, str | None], list[list[Collective]]] = defaultdict(list)
        for (op, group), members in alone.items():
            causes[op, None if is_off else group].append(members)
        for (op, group), groups in causes.items():
            yield from self._told(op, group, groups, facts)

    def _told(
        self, op: str, group: str | None, groups: list[list[Collective]], facts: DumpFacts
    ) -> Iterator[Finding]:
        machine = facts.compilation.surroundings.machine or default_machine()
        apart = together = 0.0
        gradients: list[Collective] = []
        used = 0
        for members in groups:
            ranks = members[0].ranks or tuple(range(machine.node_devices or 8))
            if len(ranks) < 2:
                continue
            used += 1
            gradients += members
            apart += sum(machine.seconds(op, item.bytes or 0, ranks) for item in members)
            together += machine.seconds(op, sum(item.bytes or 0 for item in members), ranks)
        saved = apart - together
        if len(gradients) < self.least_count or saved * 100 < self.least_share * apart:
            return
        total = bytes_text(sum(item.bytes or 0 for item in gradients))
        of = "one group" if used == 1 else f"{used} groups"
        yield self.finding(
            f"{len(gradients)} gradients ({total}) of {of} are reduced one by one",
            gradients[0].node,
            edit=Edit(setting="comm_fusion", value=_EDIT),
            gain=Gain(seconds=saved),
            related=tuple((f"{op} without fusion", item.node) for item in gradients[1:6]),
            key=f"{op} {group if group and group.endswith('world_group') else ''}",
        )


def fusion_is_off(context: Mapping[str, object] | None) -> bool:
    """Whether ``comm_fusion`` of the context switches all fusion off."""
    setting = (context or {}).get("comm_fusion")
    if isinstance(setting, Mapping):
        return cast("Mapping[str, object]", setting).get("openstate") in (False, "False", "false")
    return isinstance(setting, str) and _OFF.search(setting) is not None
