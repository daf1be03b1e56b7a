"""ENV001: MS_COMM_COMPILER_OPT where it does nothing."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import DumpRule
from irtool.linting.rules.environment.settings import environment, version_at_least

VARIABLE = "MS_COMM_COMPILER_OPT"


class CommCompilerOpt(DumpRule):
    """The variable for communication subgraph reuse, set for a version that lacks it."""

    code = "ENV001"
    name = "comm-compiler-opt-without-effect"
    severity = "warning"
    summary = "MS_COMM_COMPILER_OPT has no effect in this version"
    explanation = """
        Extraction and reuse of communication subgraphs existed on Ascend from MindSpore 1.8 to 2.2.
        Since 2.3 only its tags are left in the dumps (`comm_reuse: Bool(1)`): the variable changes
        nothing, although some documents still list it. Together with cell reuse (`lazy_inline`)
        it makes later versions raise an exception. `irtool comm reuse` says what it would have
        saved, and what helps instead.

        The variable has to be told: `[context.environment]` in irtool.toml, or the key
        `environment` of `--context`.
        """
    hint = "unset it; cell reuse (lazy_inline) is what shortens compilation now"
    bad = "MS_COMM_COMPILER_OPT=-1 with MindSpore 2.7"
    good = "MS_COMM_COMPILER_OPT unset"
    cases = ("tests/linting/evidence/twins/unheard_gated.validate",)
    needs = ("environment",)
    dumps = ("validate", "end", "begin", "auto_begin", "other")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        value = environment(facts.compilation).get(VARIABLE)
        if value and version_at_least(facts.dump, 2, 3):
            yield self.finding(
                f"{VARIABLE}={value} does nothing in MindSpore {facts.dump.dialect}",
                line=1,
                key=VARIABLE,
            )
