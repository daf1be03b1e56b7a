"""PIP003: a weight that several stages hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.items import Parameter
from irtool.ir.parameter_roles import parameter_roles
from irtool.ir.units import bytes_text
from irtool.linting.facts import RunFacts
from irtool.linting.rule import MIB, RunRule, Threshold
from irtool.linting.rules.pipeline.stages import one_a_stage


class SharedParameter(RunRule):
    """A large weight among the parameters of several stages."""

    code = "PIP003"
    name = "parameter-in-several-stages"
    severity = "info"
    summary = "A weight is used by several pipeline stages"
    explanation = """
        Each of the stages keeps the weight, its gradient and its optimizer state; MindSpore adds
        the gradients up between the stages once a step. Tied embeddings of a language model do this
        on purpose. It costs the memory twice, and the transfer waits for the first stage's
        backward pass, the last thing in a step.
        """
    hint = "place the operators that share it in one stage, or give each stage a weight of its own"
    bad = "stage 0 and stage 3: %para3_word_embedding.table (32768, 1024)"
    good = "stage 0: %para3_word_embedding.table (32768, 1024)"
    cases = ("tests/linting/evidence/tied_over_stages_pipes",)
    needs = ("ranks", "devices")
    least_bytes = Threshold(64 * MIB, "bytes", "minimum size of a weight to report")

    def check(self, run: RunFacts) -> Iterator[Finding]:
        stages = one_a_stage(run)
        holders: dict[str, dict[int, Parameter]] = defaultdict(dict)
        for stage, (_, facts) in stages.items():
            roles = parameter_roles(facts.dump)
            for item in facts.dump.parameters:
                is_weight = item.is_weight and roles[item.name].role == "weight"
                if is_weight and (item.size or 0) >= self.least_bytes:
                    holders[item.name][stage] = item
        for name, by_stage in holders.items():
            if len(by_stage) < 2:
                continue
            first = min(by_stage)
            rank, facts = stages[first]
            size = max(item.size or 0 for item in by_stage.values())
            numbers = " and ".join(map(str, sorted(by_stage)))
            yield self.finding(
                f"{name} ({bytes_text(size)}) is held by stages {numbers}",
                line=by_stage[first].line,
                rank=rank,
                key=name,
            )
