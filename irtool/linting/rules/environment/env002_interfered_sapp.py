"""ENV002: MS_INTERFERED_SAPP without a recursive search."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import DumpRule
from irtool.linting.rules.environment.settings import environment

VARIABLE = "MS_INTERFERED_SAPP"


class InterferedSapp(DumpRule):
    """The variable that keeps configured strategies, where nothing would override them."""

    code = "ENV002"
    name = "interfered-sapp-without-effect"
    severity = "info"
    summary = "MS_INTERFERED_SAPP has no effect with this mode or search"
    explanation = """
        `MS_INTERFERED_SAPP=1` makes the double recursive search keep the strategies that `shard()`
        gave. Semi-automatic mode and sharding propagation keep them anyway; so where the variable
        is set, the recursive search was probably meant: `parallel_mode="auto_parallel"` and
        `search_mode="recursive_programming"`.
        """
    hint = 'set parallel_mode="auto_parallel" and search_mode="recursive_programming", or unset it'
    bad = 'MS_INTERFERED_SAPP=1, parallel_mode="semi_auto_parallel"'
    good = (
        'MS_INTERFERED_SAPP=1, parallel_mode="auto_parallel", search_mode="recursive_programming"'
    )
    cases = ("tests/linting/evidence/twins/unheard_gated.validate",)
    dumps = ("begin", "validate", "end", "auto_begin", "other")
    needs = ("environment", "devices")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        value = environment(facts.compilation).get(VARIABLE)
        parallel = facts.parallel
        searches = parallel.mode == "auto_parallel" and parallel.search == "recursive_programming"
        if value == "1" and not searches:
            what = f"search_mode={parallel.search}" if parallel.mode[:4] == "auto" else "no search"
            yield self.finding(
                f"{VARIABLE}=1 does nothing with parallel_mode={parallel.mode} ({what})",
                line=1,
                key=VARIABLE,
            )
