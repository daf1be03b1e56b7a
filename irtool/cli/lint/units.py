"""What ``irtool lint`` looks at: files by compilation, with what is known beside them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace

from irtool.cli.configuration import CONTEXT_KEYS, Configuration
from irtool.cli.context import ContextArguments, find, given_by
from irtool.cli.inputs.begin import RunFolders, evidence_for
from irtool.cli.inputs.dumps import STDIN_NAME, pass_name
from irtool.cli.report import Failure
from irtool.cluster.context.evidence import Evidence
from irtool.cluster.context.given import Given
from irtool.cluster.context.model import RunContext
from irtool.cluster.context.shown import Pass
from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.run import InputFile
from irtool.linting.kinds import kind_of_name
from irtool.linting.rule import DumpKind
from irtool.sharding.network.context import ParallelContext
from irtool.syntax.run.classes import Fingerprints
from irtool.syntax.run.expanding import STDIN
from irtool.syntax.run.folders import folder_rank_of, natural
from irtool.syntax.run.names import parse_name

_RANK = re.compile(r"\brank[_.]?\d+\b")


@dataclass(frozen=True, slots=True)
class LintFile:
    """One dump: ``kind`` by its name, ``place`` what fingerprints know of where it stands."""

    path: str
    name: str
    kind: DumpKind
    place: str

    @property
    def label(self) -> str:
        """What findings call it."""
        return STDIN_NAME if self.path == STDIN else self.path


@dataclass(frozen=True, slots=True)
class ContextQuestion:
    """What a context is found from, before any dump is read: what is said, and which files."""

    given: Given
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Unit:
    """The dumps of one compilation of one rank.

    ``family`` is the same for all ranks of one compilation; ``ranks`` are those that it speaks
    for, as their graphs are equal.  ``parallel`` is None where the context is not known.
    ``run`` is the run folder that holds it, "" where there is none; ``known`` is the context with
    where each value was found.
    """

    files: tuple[LintFile, ...]
    rank: int | None
    family: str
    ranks: tuple[int, ...] = ()
    parallel: ParallelContext | None = None
    context: Mapping[str, object] | None = None
    why_no_context: str = ""
    run: str = ""
    known: RunContext | None = field(default=None, compare=False, repr=False)
    asked: ContextQuestion | None = field(default=None, compare=False, repr=False)

    @property
    def paths(self) -> tuple[str, ...]:
        """What findings call its files."""
        return tuple(file.label for file in self.files)


def units_of(files: Sequence[InputFile], all_passes: bool) -> tuple[list[Unit], int]:
    """Compilations, and how many dumps of folders were left out.

    Of a folder, those dumps are taken that rules look at: before and after the parallel pass, and
    ``validate``; where there is neither of the last two, the last dump there is.  What is named
    itself is always taken.

    Args:
        files: what the paths on the command line stand for.
        all_passes: every dump of a folder is taken.
    """
    groups: dict[tuple[object, ...], list[InputFile]] = {}
    for file in files:
        folder = os.path.dirname(file.path)
        key = (file.run, file.rank, file.compilation) if file.run else ("", file.rank, folder)
        groups.setdefault(key, []).append(file)
    units: list[Unit] = []
    counts: dict[str, int] = {}
    left_out = 0
    for members in groups.values():
        parts = [members] if members[0].run else _split(members)
        for part in parts:
            chosen = part if all_passes or not part[0].run else _telling(part)
            left_out += len(part) - len(chosen)
            units.append(_unit(chosen, counts))
    return units, left_out


def _split(files: Sequence[InputFile]) -> list[list[InputFile]]:
    """Files named one by one: a new compilation begins where a kind of dump comes again."""
    parts: list[list[InputFile]] = []
    seen: set[DumpKind] = set()
    for file in sorted(files, key=lambda file: _order(file.path)):
        kind = _kind(file)
        if not parts or (kind != "other" and kind in seen):
            parts.append([])
            seen = set()
        seen.add(kind)
        parts[-1].append(file)
    return parts


def _order(path: str) -> tuple[int, object]:
    number = parse_name(os.path.basename(path)).number
    return (number if number is not None else 1 << 40, natural(path))


def _telling(files: Sequence[InputFile]) -> list[InputFile]:
    chosen = [file for file in files if _kind(file) != "other"]
    if not any(_kind(file) in ("end", "validate") for file in files):
        last = [file for file in files if _kind(file) == "other"][-1:]
        chosen = [file for file in files if file in chosen or file in last]
    return chosen


def _kind(file: InputFile) -> DumpKind:
    return kind_of_name(pass_name(file) or "")


def _unit(files: Sequence[InputFile], counts: dict[str, int]) -> Unit:
    first = files[0]
    folder = os.path.dirname(first.path)
    family = f"{first.run}\0{_RANK.sub('rank', folder)}"
    rank_family = f"{family}\0{first.rank}"
    ordinal = counts[rank_family] = counts.get(rank_family, -1) + 1
    made = tuple(_file(file) for file in files)
    return Unit(made, first.rank, f"{family}\0{ordinal}", run=first.run or "")


def _file(file: InputFile) -> LintFile:
    name = pass_name(file) or ""
    folder = os.path.relpath(os.path.dirname(file.path) or ".", file.run) if file.run else ""
    plain = folder.replace(os.sep, "/") if folder not in ("", ".") else ""
    return LintFile(file.path, name, _kind(file), f"{plain}/{name}" if plain else name)


# -- context -----------------------------------------------------------------------------------


def asking(
    unit: Unit,
    arguments: ContextArguments,
    configuration: Configuration,
    folders: RunFolders | None = None,
) -> Unit:
    """The unit with what its context is found from; nothing is read.

    Args:
        unit: the compilation.
        arguments: what the command line says.
        configuration: ``irtool.toml``.
        folders: run folders that were walked already.
    """
    first = unit.files[0].path
    try:
        if first == STDIN:
            question = ContextQuestion(given_by(arguments, configuration, None), Evidence())
        else:
            given = given_by(arguments, configuration, first, unit.run)
            question = ContextQuestion(given, _evidence(unit, folders))
    except Failure as failure:
        return replace(unit, why_no_context=_reason(failure))
    return replace(unit, asked=question)


def with_context(
    unit: Unit, machine: Machine | None = None, dumps: Mapping[str, Dump] | None = None
) -> Unit:
    """The unit with its parallel context, as it is given, and as its dumps and folder show it.

    Args:
        unit: the compilation, with what its context is found from.
        machine: the one that ``--machine`` names.
        dumps: those of the unit, by path, if they are read; else excerpts are, which show the same.
    """
    if unit.asked is None:
        return unit
    given = unit.asked.given
    try:
        known = find(given, replace(unit.asked.evidence, parts=dumps or {}), machine, quiet=True)
    except Failure as failure:
        return replace(unit, why_no_context=_reason(failure), asked=None)
    shown = {
        key: entry.value
        for key, entry in known.entries.items()
        if key in CONTEXT_KEYS and entry.origin.source in ("dump", "logs")
    }
    context = {**shown, **known.given}
    return replace(unit, parallel=known.parallel, context=context, known=known, asked=None)


def can_wait(unit: Unit) -> bool:
    """Whether whoever reads the unit's dumps to judge them can find its context on the way.

    Then nobody reads them twice. What logs say is looked for once for all units.

    Args:
        unit: whose context may still have to be found.
    """
    if unit.asked is None:
        return False
    evidence = unit.asked.evidence
    own = {file.path for file in unit.files}
    return not evidence.logs and own.issuperset(evidence.paths.values())


def _evidence(unit: Unit, folders: RunFolders | None) -> Evidence:
    """The dumps of a unit, and of a run folder those of other ranks."""
    named: dict[Pass, str] = {}
    for file in unit.files:
        if file.kind == "begin" or file.kind == "end" or file.kind == "validate":
            named[file.kind] = file.path
    path = next(iter(named.values()), unit.files[-1].path)
    file = InputFile(path, unit.rank, run=unit.run)
    evidence = evidence_for(file, {}, otherwise="validate", folders=folders)
    # Dumps in no folder of a rank count as those of rank 0, which is no evidence of it.
    rank = evidence.rank if unit.run and folder_rank_of(path) is None else unit.rank
    return replace(evidence, paths=named or evidence.paths, rank=rank)


def _reason(failure: Failure) -> str:
    """Why there is no context, where it is more than that nobody said anything."""
    return f"{failure.place}: {failure.message}" if failure.code == "CTX002" else ""


# -- equal ranks -------------------------------------------------------------------------------


def folded(units: Sequence[Unit], read: Callable[[str], str]) -> list[Unit]:
    """One unit for all ranks whose dumps are equal up to what depends on the rank.

    Args:
        units: each of one rank.
        read: gives the text of a dump by its path.
    """
    families: dict[str, list[Unit]] = {}
    for unit in units:
        families.setdefault(unit.family, []).append(unit)
    made: list[Unit] = []
    for members in families.values():
        ranks = {unit.rank for unit in members}
        if len(members) < 2 or len(ranks) < len(members) or None in ranks:
            made += members
            continue
        made += _classes(members, read)
    return made


def _classes(members: Sequence[Unit], read: Callable[[str], str]) -> list[Unit]:
    fingerprints = Fingerprints()
    classes: dict[object, list[Unit]] = {}
    for unit in sorted(members, key=lambda member: member.rank or 0):
        parallel = unit.parallel
        # Stages differ in their networks; within one, the rank only says whose slices are seen.
        context = replace(parallel, rank=parallel.stage_ranks[0]) if parallel is not None else None
        texts = tuple(
            (file.name, fingerprints.of(read(file.path), unit.rank or 0)) for file in unit.files
        )
        classes.setdefault((context, texts), []).append(unit)
    return [
        replace(same[0], ranks=tuple(unit.rank for unit in same if unit.rank is not None))
        for same in classes.values()
    ]


@dataclass(frozen=True, slots=True)
class RunUnit:
    """One compilation as several ranks have it, for rules that compare ranks.

    ``alike``: ranks with equal graphs.
    """

    units: tuple[Unit, ...] = field(default=())
    alike: tuple[tuple[int, ...], ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """What findings call its files."""
        return tuple(path for unit in self.units for path in unit.paths)


def run_units(units: Sequence[Unit], folded: Iterable[Unit] = ()) -> list[RunUnit]:
    """Compilations of which several ranks were given.

    Args:
        units: of single ranks.
        folded: the same, one for all ranks with equal graphs.
    """
    alike: dict[str, list[tuple[int, ...]]] = {}
    for unit in folded:
        if len(unit.ranks) > 1:
            alike.setdefault(unit.family, []).append(unit.ranks)
    families: dict[str, list[Unit]] = {}
    for unit in units:
        families.setdefault(unit.family, []).append(unit)
    runs: list[RunUnit] = []
    for members in families.values():
        ranks = {unit.rank for unit in members}
        if len(ranks) > 1 and len(ranks) == len(members) and None not in ranks:
            ordered = tuple(sorted(members, key=lambda member: member.rank or 0))
            runs.append(RunUnit(ordered, tuple(alike.get(members[0].family, ()))))
    return runs
