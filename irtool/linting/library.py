"""Linting from Python: one call for one dump."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.linting.engine import lint_compilation
from irtool.linting.facts import CompilationFacts, DumpFacts, Surroundings
from irtool.linting.kinds import kind_of_dump
from irtool.linting.registry import all_rules
from irtool.linting.rule import DumpKind
from irtool.linting.settings import chosen_rules, read_settings
from irtool.sharding.network.context import ParallelContext


def lint(
    *dumps: Dump,
    context: Mapping[str, object] | None = None,
    settings: Mapping[str, object] | None = None,
    kinds: Sequence[DumpKind] = (),
) -> list[Finding]:
    """Findings of the rules about the dumps of one compilation of one rank.

    Args:
        dumps: one or more: before the parallel pass, after it, ``validate``.
        context: keys of ``set_auto_parallel_context``; rules that need the number of devices are
            silent without it.
        settings: keys of the table ``[lint]``.
        kinds: what each dump is; by default what is in it tells.

    Raises:
        SettingsError: a code, key or threshold does not exist.
        ValueError: a value of the context makes no sense.
    """
    known = context is not None and "device_num" in context
    parallel = ParallelContext.from_mapping(context) if context is not None and known else None
    all_kinds: list[DumpKind] = [*kinds, *map(kind_of_dump, dumps[len(kinds) :])]
    facts = [
        DumpFacts(lambda dump=dump: dump, kind, dump.path)
        for dump, kind in zip(dumps, all_kinds, strict=True)
    ]
    rules = chosen_rules(read_settings(settings or {}), all_rules())
    surroundings = Surroundings(parallel=parallel, context=context)
    return lint_compilation(CompilationFacts(facts, surroundings), rules).findings
