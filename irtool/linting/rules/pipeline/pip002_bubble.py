"""PIP002: a pipeline that waits more than it should."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.units import share_text
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import DumpRule, Threshold
from irtool.linting.rules.pipeline.stages import (
    first_of_a_micro_batch,
    is_training,
    micro_batches,
)


class Bubble(DumpRule):
    """Too few micro-batches for the number of stages."""

    code = "PIP002"
    name = "pipeline-bubble"
    severity = "warning"
    summary = "The pipeline's bubble is a large share of a step"
    explanation = """
        With `p` equal stages and `m` micro-batches each stage is idle for `(p - 1) / (m + p - 1)`
        of a step, in the order one-forward-one-backward as in GPipe's. Twice the micro-batches
        halve it, as long as each is large enough to keep a device busy; `pipeline_interleave`
        divides it by the number of chunks a stage holds. Fewer micro-batches than stages MindSpore
        refuses (`irtool explain` reads its message). A network that is only run forward has no
        such order, and is not told.
        """
    hint = "use more micro-batches, or pipeline_interleave"
    bad = "8 stages, 8 micro-batches: idle for 47 % of a step"
    good = "8 stages, 32 micro-batches: idle for 18 % of a step"
    cases = ("samples/pipeline_4_stages",)
    references = ("Huang and others: GPipe (2019)", "Narayanan and others: PipeDream-2BW (2021)")
    needs = ("devices",)
    most_percent = Threshold(40, "percent", "told where more of a step than this is idle")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        stages, micro = facts.parallel.stages, micro_batches(facts.dump)
        if stages < 2 or micro < 1 or facts.parallel.interleave or not is_training(facts):
            return
        idle = (stages - 1) / (micro + stages - 1)
        if idle * 100 > self.most_percent:
            yield self.finding(
                f"{stages} stages and {micro} micro-batches leave each stage idle for "
                f"{share_text(idle)} of a step even if all stages are equal",
                first_of_a_micro_batch(facts.dump),
                fix=f"nn.PipelineCell(network, micro_size={4 * stages})",
                key="bubble",
            )
