"""ENV004: a given context says something else than the dumps."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.linting.facts import CompilationFacts, DumpFacts
from irtool.linting.rule import DumpRule


class ContextContradicts(DumpRule):
    """A key of the parallel context for which a file or option and a dump say different things."""

    code = "ENV004"
    name = "context-contradicts-dumps"
    severity = "warning"
    summary = "The context that was given says something else than the dumps show"
    explanation = """
        Options, `irtool.toml` and `case.json` say how a network was compiled; the dumps show much
        of it themselves: devices in a group of all of them, the split of the dataset in
        `_VirtualDataset`, optimizer parallel in weights that are gathered from slices. Where the
        two differ, the context is that of another run, or the run was not started as it was meant.

        The split of the dataset is left out for a stage that reads none of it: MindSpore slices
        what comes in there by data parallel, whatever the context says.
        """
    hint = "correct the context, or look at the dumps of the run that it is of"
    bad = "enable_parallel_optimizer=False beside AllGather(%para3_w): parallel_optimizer_allgather"
    good = "enable_parallel_optimizer=True beside AllGather(%para3_w): parallel_optimizer_allgather"
    cases = ("tests/linting/evidence/twins/contradicted_encoder.validate",)
    dumps = ("begin", "validate", "end", "auto_begin", "other")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        for contradiction in facts.compilation.surroundings.contradictions:
            if contradiction.key == "dataset_strategy" and _reads_no_dataset(facts.compilation):
                continue
            yield self.finding(contradiction.message, line=1, key=contradiction.key)


def _reads_no_dataset(compilation: CompilationFacts) -> bool:
    """Whether the dump before the parallel pass shows that nothing is read from a dataset."""
    begin = compilation.of_kind("begin")
    return begin is not None and not any(
        node.op in ("_VirtualDataset", "GetNext") for node in begin.dump.nodes()
    )
