"""ENV003: options of optimizer parallel while it is off."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import DumpRule

KEYS = ("parallel_optimizer_config", "optimizer_weight_shard_size")


class OptimizerConfig(DumpRule):
    """A configuration of optimizer parallel that nothing reads."""

    code = "ENV003"
    name = "optimizer-config-without-effect"
    severity = "warning"
    summary = "Optimizer parallel is configured, but not switched on"
    explanation = """
        `parallel_optimizer_config` (threshold, sharding of accumulated gradients, shard size) is
        read only with `enable_parallel_optimizer=True`. Without it weights, gradients and optimizer
        state stay whole on every device, without a word.
        """
    hint = "set enable_parallel_optimizer=True"
    bad = 'parallel_optimizer_config={"parallel_optimizer_threshold": 0}'
    good = """
        enable_parallel_optimizer=True,
        parallel_optimizer_config={"parallel_optimizer_threshold": 0}
        """
    cases = ("tests/linting/evidence/twins/unheard_gated.validate",)
    dumps = ("begin", "validate", "end", "auto_begin", "other")
    needs = ("devices",)

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        if facts.parallel.parallel_optimizer:
            return
        context = facts.compilation.surroundings.context or {}
        for key in KEYS:
            if context.get(key) not in (None, "", "{}", {}, -1, "-1"):
                yield self.finding(
                    f"{key} is set, but enable_parallel_optimizer is off", line=1, key=key
                )
