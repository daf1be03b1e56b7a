"""PIP004: fewer micro-batches than stages."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.lint.facts import DumpFacts
from irtool.lint.rule import DumpRule
from irtool.lint.rules.pipeline.stages import micro_batches


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
    needs = ("devices",)

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        stages, micro = facts.parallel.stages, micro_batches(facts.dump)
        if 0 < micro < stages:
            node = next((each for each in facts.dump.nodes() if each.micro is not None), None)
            yield self.finding(
                f"{micro} micro-batches for {stages} stages", node, key="micro-batches"
            )
