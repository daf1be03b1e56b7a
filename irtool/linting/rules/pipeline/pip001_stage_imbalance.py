"""PIP001: a stage that computes much more than the others."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.cluster.flops import total_flops
from irtool.ir.finding import Finding
from irtool.ir.units import share_text
from irtool.linting.facts import RunFacts
from irtool.linting.rule import RunRule, Threshold
from irtool.linting.rules.pipeline.stages import one_a_stage


class StageImbalance(RunRule):
    """Stages whose operations differ by more than a share of their mean."""

    code = "PIP001"
    name = "stage-imbalance"
    severity = "warning"
    summary = "A pipeline stage computes much more than the mean"
    explanation = """
        A pipeline is as fast as its slowest stage: all others wait for it in every micro-batch.
        Counted are the floating-point operations of one step, recomputation included; embeddings
        and the logits of a language model are the usual reason. `irtool pipeline` shows the best
        cut of the same layers.
        """
    hint = "move layers to other stages; irtool pipeline shows the best cut"
    bad = "stage 0: 900 GFLOP, stage 1: 1500 GFLOP"
    good = "stage 0: 1200 GFLOP, stage 1: 1200 GFLOP"
    cases = ("tests/linting/evidence/stages_uneven_pipes",)
    needs = ("ranks", "devices")
    most_percent = Threshold(
        25, "percent", "told where a stage is above the mean by more than this"
    )

    def check(self, run: RunFacts) -> Iterator[Finding]:
        stages = one_a_stage(run)
        if len(stages) < 2:
            return
        work = {stage: total_flops(facts.dump.nodes()) for stage, (_, facts) in stages.items()}
        if not all(flops.is_complete for flops in work.values()):
            return  # what nobody can count is not compared
        mean = sum(flops.operations for flops in work.values()) / len(work)
        slowest = max(work, key=lambda stage: work[stage].operations)
        above = work[slowest].operations / mean - 1 if mean else 0.0
        if above * 100 > self.most_percent:
            rank, facts = stages[slowest]
            largest = max(
                facts.dump.nodes(), key=lambda node: total_flops((node,)).operations, default=None
            )
            yield self.finding(
                f"stage {slowest} computes {share_text(above)} more than the mean of "
                f"{len(work)} stages",
                largest,
                rank=rank,
                key=f"stage {slowest}",
            )
