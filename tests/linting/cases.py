"""Small cases for tests of rules: dumps as text, linted by chosen rules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from irtool.cluster.machine import Machine
from irtool.ir.finding import Finding
from irtool.linting.engine import Linted, lint_compilation, lint_run
from irtool.linting.facts import CompilationFacts, DumpFacts, RunFacts, Surroundings
from irtool.linting.registry import all_rules
from irtool.linting.rule import DumpKind, Rule
from irtool.sharding.network.context import ParallelContext
from irtool.syntax.load import load, loads

Source = str | Path
"""A dump: its text, or its path."""


def rule(code: str, **values: float) -> Rule:
    """One rule, with other thresholds if you like."""
    return all_rules()[code].load()(values)


def compilation(
    dumps: Mapping[DumpKind, Source],
    context: Mapping[str, object] | None = None,
    rank: int | None = None,
    machine: Machine | None = None,
) -> CompilationFacts:
    """A compilation of these dumps; ``context`` has keys of ``set_auto_parallel_context``."""
    values = {"global_rank": rank or 0, **context} if context is not None else None
    parallel = ParallelContext.from_mapping(values) if values and "device_num" in values else None
    surroundings = Surroundings(rank, parallel, context, machine)
    return CompilationFacts([_facts(kind, dump) for kind, dump in dumps.items()], surroundings)


def _facts(kind: DumpKind, source: Source) -> DumpFacts:
    if isinstance(source, Path):
        return DumpFacts(lambda: load(source), kind, str(source), kind)
    return DumpFacts(lambda: loads(source, f"{kind}.ir"), kind, f"{kind}.ir", kind)


def lint(checked: Rule, facts: CompilationFacts) -> Linted:
    """What one rule says of one compilation."""
    return lint_compilation(facts, [checked])


def lint_ranks(checked: Rule, ranks: Mapping[int, CompilationFacts], whole: bool = True) -> Linted:
    """What one rule over ranks says."""
    return lint_run(RunFacts(ranks, whole), [checked])


def messages(linted: Linted) -> list[str]:
    """The messages of the findings."""
    return [finding.message for finding in linted.findings]


def the_one(linted: Linted) -> Finding:
    """The only finding."""
    assert len(linted.findings) == 1, [str(each) for each in linted.findings]
    return linted.findings[0]


def dump_of(
    *statements: str, parameters: tuple[str, ...] = ("%para1_x: <Tensor[Float32], (8, 16)>",)
) -> str:
    """A dump of one graph: parameters of the entry, statements, a Return of the last one.

    The first statement stands in line 6 if there is one parameter; type lines and comments are
    lines of their own that begin with blanks.
    """
    lines = [each if each[:1] == " " else f"  {each}" for each in "\n".join(statements).split("\n")]
    numbers = [line.split("(")[0].strip() for line in lines if line.startswith("  %")]
    head = ["# IR entry: @main", "# Total subgraphs: 1", "# Params:", *parameters]
    result = numbers[-1] if numbers else "None"
    return "\n".join([*head, "subgraph @main() {", *lines, f"  Return({result})", "}", ""])
