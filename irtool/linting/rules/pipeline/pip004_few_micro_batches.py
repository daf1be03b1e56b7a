"""PIP004: fewer micro-batches than stages."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import DumpRule
from irtool.linting.rules.pipeline.stages import (
    first_of_a_micro_batch,
    is_training,
    micro_batches,
)


class FewMicroBatches(DumpRule):
    """A pipeline that is never full."""

    code = "PIP004"
    name = "fewer-micro-batches-than-stages"
    severity = "warning"
    summary = "There are fewer micro-batches than pipeline stages"
    explanation = """
        With fewer micro-batches than stages some stage is idle at every moment: the pipeline never
        fills. MindSpore refuses it for the interleaved schedule, and warns otherwise.
        """
    hint = "use at least as many micro-batches as stages, better four times as many"
    bad = "nn.PipelineCell(net, micro_size=2) with pipeline_stages=4"
    good = "nn.PipelineCell(net, micro_size=16) with pipeline_stages=4"
    cases = ("samples/pipeline_interleaved",)
    needs = ("devices",)

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        stages, micro = facts.parallel.stages, micro_batches(facts.dump)
        if 0 < micro < stages and is_training(facts):
            idle = (stages - 1) / (micro + stages - 1)
            yield self.finding(
                f"{micro} micro-batches for {stages} stages: each stage is idle for {idle:.0%} "
                "of a step",
                first_of_a_micro_batch(facts.dump),
                fix=f"nn.PipelineCell(network, micro_size={4 * stages})",
                key="micro-batches",
            )
