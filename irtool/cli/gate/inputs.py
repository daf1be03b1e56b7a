"""What ``irtool gate`` compares: two dumps, or those of all ranks of two run folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from irtool.cli.configuration import Configuration
from irtool.cli.inputs.begin import context_of_any
from irtool.cli.inputs.dumps import inputs_for, pass_name, read_statements
from irtool.cli.lint.work import text_of
from irtool.cli.report import Failure, note, report_problems
from irtool.cluster.context.model import RunContext
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.run import InputFile
from irtool.ir.units import ranks_text
from irtool.linting.kinds import kind_of_dump, kind_of_name
from irtool.linting.rule import DumpKind
from irtool.syntax.run import Run, load_run
from irtool.syntax.run.classes import Fingerprints
from irtool.syntax.source import DumpError

_TELLING = ("begin", "end", "validate")


@dataclass(frozen=True, slots=True)
class Pair:
    """A golden dump (None where only budgets count) and the one that is judged.

    ``ranks`` are all that they speak for.
    """

    old: InputFile | None
    new: InputFile
    ranks: tuple[int, ...] = ()


def pairs_for(old: str, new: str, rank: int | None, graph: int | None) -> list[Pair]:
    """The dumps to compare: one pair a rank of two run folders, ranks with equal dumps once.

    Args:
        old: the golden dump or run folder.
        new: the one that is judged.
        rank: only this one; None: all ranks that both run folders have.
        graph: number of the compilation in a run folder; None: the largest training one.

    Raises:
        Failure: there is nothing to compare.
    """
    runs = [load_run(path) if os.path.isdir(path) else None for path in (old, new)]
    left, right = runs
    if rank is None and left is not None and right is not None:
        both = [number for number in _ranks(left) if number in _ranks(right)]
        alone = sorted({*_ranks(left)} ^ {*_ranks(right)})
        if len(both) > 1:
            if alone:
                note(f"left out ranks {ranks_text(alone)}: in one of the runs only")
            return _folded([_pair(left, right, number, graph) for number in both])
    files = [
        _of_run(run, rank, graph) if run is not None else _file(path, rank, graph)
        for path, run in zip((old, new), runs, strict=True)
    ]
    for run, file in zip(runs, files, strict=True):
        if run is not None:
            note(f"compares {file.path}{_of_ranks(run, rank)}")
    return [Pair(files[0], files[1], () if rank is None else (rank,))]


def alone_for(new: str, rank: int | None, graph: int | None) -> list[Pair]:
    """The dumps of one build that is held against a budget: one a rank, or one a class of ranks.

    Args:
        new: the dump or run folder that is judged.
        rank: only this one; None: all ranks of a run folder.
        graph: number of the compilation in a run folder; None: the largest training one.

    Raises:
        Failure: there is none.
    """
    run = load_run(new) if os.path.isdir(new) else None
    if run is None:
        file = _file(new, rank, graph)
        return [Pair(None, file, () if rank is None else (rank,))]
    ranks = _ranks(run)
    if rank is not None or len(ranks) < 2:
        file = _of_run(run, rank, graph)
        return [Pair(None, file, () if rank is None else (rank,))]
    return _folded([Pair(None, _of_run(run, number, graph), (number,)) for number in ranks])


def without_golden(
    pairs: Sequence[Pair], new: str, rank: int | None, graph: int | None
) -> list[Pair]:
    """The dumps of ranks that only the run that is judged has: budgets are for them, too.

    Args:
        pairs: the dumps that are compared.
        new: the dump or run folder that is judged.
        rank: the only one that was asked for; there are no others then.
        graph: number of the compilation in a run folder; None: the largest training one.
    """
    if rank is not None or not os.path.isdir(new):
        return []
    covered = {number for pair in pairs for number in pair.ranks or (pair.new.rank,)}
    run = load_run(new)
    others = [number for number in _ranks(run) if number not in covered]
    if len(_ranks(run)) < 2:
        return []
    return _folded([Pair(None, _of_run(run, number, graph), (number,)) for number in others])


def contexts_of(
    pairs: Sequence[Pair], configuration: Configuration
) -> list[tuple[list[str], RunContext]]:
    """The context of each dump with its path, those that are judged before their golden ones.

    Args:
        pairs: the dumps that are compared, or judged alone.
        configuration: ``irtool.toml``.

    Returns:
        For each dump its path, alone in a list, and its context.

    Raises:
        Failure: a value of it makes no sense.
    """
    sides = [side for pair in pairs for side in (pair.new, pair.old) if side is not None]
    return [([side.path], context_of_any(side, configuration)) for side in sides]


def _ranks(run: Run) -> list[int]:
    """Ranks that have dumps."""
    return [rank for rank in run.ranks if run.rank(rank).compilations]


def _of_ranks(run: Run, rank: int | None) -> str:
    count = len(_ranks(run))
    return f", one of {count} ranks" if count > 1 and rank is None else ""


def _pair(old: Run, new: Run, rank: int, graph: int | None) -> Pair:
    return Pair(_of_run(old, rank, graph), _of_run(new, rank, graph), (rank,))


def _of_run(run: Run, rank: int | None, graph: int | None) -> InputFile:
    """The dump of a run folder that tells most."""
    try:
        main = run.compilation(graph, rank).main
    except DumpError as error:
        raise Failure(error.message, run.path, hint=error.hint) from None
    except LookupError as error:
        text = str(error.args[0]).removeprefix(f"{run.path}: ")
        raise Failure(text, run.path) from None
    return InputFile(main.path, main.rank, None, main.name)


def _folded(pairs: Sequence[Pair]) -> list[Pair]:
    """Ranks whose two dumps are equal up to what depends on the rank are compared once."""
    fingerprints = Fingerprints()
    classes: dict[object, list[Pair]] = {}
    for pair in pairs:
        key = tuple(
            fingerprints.of(text_of(file.path), pair.ranks[0])
            for file in (pair.old, pair.new)
            if file is not None
        )
        classes.setdefault(key, []).append(pair)
    return [
        replace(same[0], ranks=tuple(pair.ranks[0] for pair in same)) for same in classes.values()
    ]


def _file(path: str, rank: int | None, graph: int | None) -> InputFile:
    files, problems = inputs_for([path], rank, graph)
    if not files:
        problem = problems[0]
        raise Failure(problem.message, problem.file, hint=problem.hint, code=problem.code)
    if len(files) > 1:
        raise Failure(f"{len(files)} files match, and one is compared", path)
    return files[0]


def read_pair(pair: Pair) -> tuple[Dump, Dump]:
    """The two dumps of a pair, of one pass.

    Args:
        pair: whose golden dump must be there.

    Returns:
        The golden dump, then the one that is judged.

    Raises:
        Failure: one holds nothing, or they are of different kinds.
    """
    if pair.old is None:
        raise Failure("there is no golden dump", pair.new.path)
    old, new = read_pair_side(pair.old), read_pair_side(pair.new)
    kinds = _kind(pair.old, old), _kind(pair.new, new)
    if kinds[0] != kinds[1] and all(kind in _TELLING for kind in kinds):
        names = pass_name(pair.old) or kinds[0], pass_name(pair.new) or kinds[1]
        raise Failure(
            f"{names[0]} cannot be compared with {names[1]}: what passes do in between would count",
            new.path,
            hint="give dumps of the same pass, best validate",
        )
    return old, new


def _kind(file: InputFile, dump: Dump) -> DumpKind:
    kind = kind_of_name(pass_name(file) or "")
    return kind if kind != "other" else kind_of_dump(dump)


def read_pair_side(file: InputFile) -> Dump:
    """One dump; what of it cannot be read is told on stderr.

    Args:
        file: the dump.

    Raises:
        Failure: it cannot be read, or there is no statement in it.
    """
    dump = read_statements(file)
    report_problems(dump.problems)
    return dump


def of_ranks(findings: Iterable[Finding], ranks: tuple[int, ...]) -> list[Finding]:
    """Findings with the ranks that they hold for.

    Args:
        findings: of one pair of dumps.
        ranks: that the pair speaks for; none: they are returned as they are.
    """
    if not ranks:
        return list(findings)
    return [replace(finding, rank=ranks[0], ranks=ranks) for finding in findings]
