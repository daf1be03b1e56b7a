"""The work of ``irtool lint`` on one compilation or run; done in several processes, and cached."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from irtool.cli.configuration import Configuration, load_custom_rules
from irtool.cli.context import ContextArguments
from irtool.cli.inputs.dumps import read_input
from irtool.cli.lint.units import LintFile, RunUnit, Unit, with_context
from irtool.cluster.context.model import RunContext
from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding, Severity, Silenced
from irtool.ir.run import InputFile
from irtool.linting.engine import Linted, lint_compilation, lint_run
from irtool.linting.facts import CompilationFacts, DumpFacts, RunFacts, Surroundings
from irtool.linting.kinds import kind_of_dump
from irtool.linting.registry import all_rules
from irtool.linting.rule import DumpKind, Lacking, Rule
from irtool.linting.rules.syntax.syn000_unreadable_file import UnreadableFile
from irtool.syntax import file_facts
from irtool.syntax.cache_files import digest, program_digest
from irtool.syntax.run.expanding import STDIN
from irtool.syntax.source import DumpError, read_content

_MAIN_KINDS = ("begin", "end", "validate")


@dataclass(frozen=True, slots=True)
class PlannedRule:
    """A rule as the settings want it, in a form that travels between processes."""

    code: str
    values: tuple[tuple[str, int | float], ...] = ()
    severity: Severity | None = None

    @classmethod
    def of(cls, rule: Rule) -> PlannedRule:
        """The plan of a rule."""
        return cls(rule.code, tuple(sorted(rule.values.items())), rule.chosen_severity)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with every compilation."""

    rules: tuple[PlannedRule, ...]
    arguments: ContextArguments
    configuration: Configuration
    where: str | None = None
    machine: Machine | None = None
    process: int = 0

    def key(self) -> bytes:
        """Of all that decides what rules say, apart from the dumps and their contexts."""
        custom = [_content(path) for path in self.configuration.rules]
        if self.arguments.file is not None:
            custom.append(_content(self.arguments.file))
        given = (dict(self.arguments.given), dict(self.configuration.context))
        parts = (self.rules, self.where, self.machine, given)
        origins = sorted(entry.origin for entry in all_rules().values() if entry.origin)
        return digest(program_digest(), repr(parts), repr(origins), *custom)


@dataclass(frozen=True, slots=True)
class Worked:
    """What came of one unit: findings, how many of its files could be read, and its context."""

    linted: Linted
    read: int
    known: RunContext | None = None


def unit_key(
    plan_key: bytes, unit: Unit | RunUnit, digests: dict[str, bytes] | None = None
) -> bytes | None:
    """What the result of a unit depends on; None where a file cannot be read.

    Args:
        plan_key: of the plan.
        unit: the compilation, or several ranks' one.
        digests: of dumps of other ranks, by path, which many units may ask for.
    """
    units = unit.units if isinstance(unit, RunUnit) else (unit,)
    parts: list[bytes | str] = [plan_key, type(unit).__name__]
    try:
        for member in units:
            parts.append(
                repr((member.rank, member.parallel, member.context, member.why_no_context))
            )
            parts += _context_parts(member, {} if digests is None else digests)
            for file in member.files:
                if file.path == STDIN:
                    return None
                parts += [repr((file.name, file.kind)), _content(file.path)]
    except OSError:
        return None
    return digest(*parts)


def _context_parts(unit: Unit, digests: dict[str, bytes]) -> list[str]:
    """What a context is like, or what it will be found from, apart from the unit's dumps."""
    if unit.known is not None:
        return [item.message for item in unit.known.contradictions]
    if unit.asked is None:
        return []
    given, evidence = unit.asked.given, unit.asked.evidence
    own = [file.path for file in unit.files]
    said = [(key, value, given.origins[key].source) for key, value in given.values.items()]
    seen = [(kind, own.index(path)) for kind, path in evidence.paths.items() if path in own]
    ranks = evidence.rank, evidence.taken_rank, evidence.ranks
    others: list[object] = []
    for rank, paths in evidence.others.items():
        for kind, path in paths.items():
            if path not in digests:
                digests[path] = digest(_content(path))
            others.append((rank, kind, digests[path]))
    return [repr((said, sorted(given.asked), seen, ranks, others))]


def placed_key(key: bytes, unit: Unit | RunUnit) -> bytes:
    """The key of a result that names files: what contradicts a context, and where it stands.

    Args:
        key: of the result apart from its files.
        unit: what was looked at.
    """
    asked = unit.asked if isinstance(unit, Unit) else None
    return digest(key, repr((unit.paths, asked and dict(asked.given.origins))))


def _content(path: str) -> bytes:
    if not file_facts.is_file(path):
        raise OSError(path)  # a named pipe can be read only once
    with open(path, "rb") as file:
        data = file.read()
    file_facts.note_content(path, data)
    return data


# -- one compilation ---------------------------------------------------------------------------


def lint_unit(unit: Unit | RunUnit, plan: Plan) -> Worked:
    """Lint the dumps of a compilation, or several ranks together.

    Args:
        unit: the compilation, or the ranks; an unreadable file becomes a finding.
        plan: which rules, under which settings.
    """
    _prepare(plan)
    rules = _rules(plan.rules)
    where = None
    if plan.where is not None:
        from irtool.syntax.query import query  # it imports Lark

        where = query(plan.where)
    if isinstance(unit, RunUnit):
        return _lint_ranks(unit, rules, plan, where)
    dumps, unreadable = _loaded(unit)
    if unit.known is None:
        unit = with_context(unit, plan.machine, {file.path: dump for file, dump in dumps})
    facts = _facts(unit, dumps, plan)
    linted = lint_compilation(facts, rules, where)
    if any(rule.code == UnreadableFile.code for rule in rules):
        linted.findings += unreadable
    return Worked(linted, len(dumps), unit.known)


def _lint_ranks(
    unit: RunUnit, rules: Sequence[Rule], plan: Plan, where: Callable[..., bool] | None
) -> Worked:
    ranks = {member.rank or 0: _facts_of_rank(member, plan) for member in unit.units}
    counts = {f.surroundings.parallel.devices for f in ranks.values() if f.surroundings.parallel}
    is_complete = len(counts) == 1 and len(ranks) == counts.pop()
    return Worked(lint_run(RunFacts(ranks, is_complete, unit.alike), rules, where), len(unit.paths))


def _facts_of_rank(unit: Unit, plan: Plan) -> CompilationFacts:
    """Facts whose dumps are read when a rule asks for them: there may be many ranks."""
    if not any(file.kind in ("end", "validate") for file in unit.files):
        return _facts(unit, _loaded(unit)[0], plan)
    surroundings = surroundings_of(unit, plan)
    made = [
        DumpFacts(
            partial(_read_of_rank, file),
            file.kind,
            file.label,
            file.name,
            partial(text_of, file.path),
        )
        for file in unit.files
    ]
    return CompilationFacts(made, surroundings)


def _read_of_rank(file: LintFile) -> Dump:
    try:
        return read_input(InputFile(file.path))
    except DumpError as error:
        raise Lacking("ranks", str(error)) from None


@lru_cache(maxsize=4)
def _rules(planned: tuple[PlannedRule, ...]) -> list[Rule]:
    made: list[Rule] = []
    for entry in planned:
        rule = all_rules()[entry.code].load()(dict(entry.values))
        rule.chosen_severity = entry.severity
        made.append(rule)
    return made


def _prepare(plan: Plan) -> None:
    """What the main process has done before, and a fresh one has not."""
    if plan.process != os.getpid() and not _prepared:
        load_custom_rules(plan.configuration)
        _prepared.add(os.getpid())


_prepared: set[int] = set()


def _loaded(unit: Unit) -> tuple[list[tuple[LintFile, Dump]], list[Finding]]:
    dumps: list[tuple[LintFile, Dump]] = []
    unreadable: list[Finding] = []
    for file in unit.files:
        try:
            dumps.append((file, read_input(InputFile(file.path))))
        except DumpError as error:
            unreadable.append(unreadable_finding(file, error.message, error.hint, unit))
        except MemoryError:
            message = "not enough memory to read it"
            unreadable.append(unreadable_finding(file, message, "try --jobs 1", unit))
    return dumps, unreadable


def unreadable_finding(file: LintFile, message: str, hint: str, unit: Unit) -> Finding:
    """The finding SYN000: a file cannot be read.

    Args:
        file: that cannot be read.
        message: why.
        hint: what to do about it.
        unit: that it belongs to, for its rank.
    """
    rule = UnreadableFile
    return Finding(
        rule.code,
        rule.severity,
        message,
        file.label,
        hint=hint,
        rank=unit.rank,
        ranks=() if unit.rank is None else (unit.rank,),
        key=message,
    )


def _facts(unit: Unit, dumps: Sequence[tuple[LintFile, Dump]], plan: Plan) -> CompilationFacts:
    kinds = _kinds(dumps)
    surroundings = surroundings_of(unit, plan)
    made = [
        DumpFacts(partial(_same, dump), kind, file.label, file.name)
        for (file, dump), kind in zip(dumps, kinds, strict=True)
    ]
    return CompilationFacts(made, surroundings)


def surroundings_of(unit: Unit, plan: Plan) -> Surroundings:
    """What is known beside the dumps of a unit.

    Args:
        unit: one compilation.
        plan: with the machine that was named.
    """
    contradictions = unit.known.contradictions if unit.known is not None else ()
    return Surroundings(
        unit.rank, unit.parallel, unit.context, plan.machine, unit.why_no_context, contradictions
    )


def _same(dump: Dump) -> Dump:
    return dump


def _kinds(dumps: Sequence[tuple[LintFile, Dump]]) -> list[DumpKind]:
    """Kinds by name; where no name says one, the last dump's by what is in it."""
    kinds: list[DumpKind] = [file.kind for file, _ in dumps]
    if dumps and not any(kind in _MAIN_KINDS for kind in kinds):
        kinds[-1] = kind_of_dump(dumps[-1][1])
    elif "end" not in kinds and "validate" not in kinds:
        for place in reversed(range(len(kinds))):
            if kinds[place] == "other":
                kind = kind_of_dump(dumps[place][1])
                kinds[place] = kind if kind in ("end", "validate") else "other"
                break
    return kinds


def text_of(path: str) -> str:
    """The text of a dump; its path where it cannot be read, which is like no other.

    Args:
        path: of the dump; bytes that are no UTF-8 become surrogates.
    """
    try:
        return read_content(path).data.decode("utf-8", "surrogateescape")
    except DumpError:
        return path


def gathered(
    silenced: Sequence[Silenced], total: int, totals: Mapping[str, int]
) -> tuple[Silenced, ...]:
    """How often each rule lacked what, out of so many compilations.

    ``totals`` are for rules over ranks, which look at the same compilation of all ranks at once.

    Args:
        silenced: one for each rule that could not look, and each compilation.
        total: compilations that were looked at.
        totals: by code, where it is another number.
    """
    counts: dict[tuple[str, str], list[Silenced]] = {}
    for rule in silenced:
        counts.setdefault((rule.code, rule.need), []).append(rule)
    made: list[Silenced] = []
    for (code, _), same in sorted(counts.items()):
        of = totals.get(code, total)
        made.append(replace(same[0], count=min(len(same), of), total=of))
    return tuple(made)
