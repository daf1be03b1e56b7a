"""Which dump a command about strategies reads, which later ones lie beside it, and its context."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from irtool.cli.configuration import Configuration
from irtool.cli.context import ContextArguments, find, given_by
from irtool.cli.inputs.dumps import inputs_for, read_statements
from irtool.cli.report import Failure, note, report_problems
from irtool.cluster.context.evidence import (
    PASSES,
    Evidence,
    RunEvidence,
    evidence_beside,
    pass_of,
    sibling,
)
from irtool.cluster.context.model import RunContext
from irtool.cluster.context.shown import Pass
from irtool.cluster.machine import Machine
from irtool.ir.dump import Dump
from irtool.ir.run import InputFile
from irtool.sharding.own_code import own_code_of
from irtool.syntax import file_facts
from irtool.syntax.load import load
from irtool.syntax.run import Compilation, load_run
from irtool.syntax.run.expanding import STDIN
from irtool.syntax.run.folders import folder_rank_of
from irtool.syntax.run.names import is_dump, parse_name
from irtool.syntax.source import DumpError

BEGIN = "step_parallel_begin"
"""The dump that strategies are checked in."""
LATER = ("validate", "step_parallel_end")
"""Dumps that hold what became of them, the one that tells more first."""


def find_begin(path: str, rank: int | None, graph: int | None) -> InputFile:
    """The dump to check: the file itself, or the begin dump that a run folder holds.

    Args:
        path: a dump, a run folder, or ``-``.
        rank: whose dump, in a run folder; None: the lowest with dumps.
        graph: number of the compilation there; None: the largest training one.

    Raises:
        Failure: there is no such dump.
    """
    if file_facts.is_folder(path):
        return _begin_of_run(path, rank, graph)
    files, problems = inputs_for([path], None, graph)
    if not files:
        report_problems(problems[1:])
        problem = problems[0]
        raise Failure(problem.message, problem.file, hint=problem.hint, code=problem.code)
    if len(files) > 1:
        raise Failure(f"{len(files)} files match, and one is read at a time", path)
    _check_pass(files[0].path)
    return files[0]


def begin_of(source: str | Dump, rank: int | None, graph: int | None) -> tuple[InputFile, Dump]:
    """The dump that a command about strategies reads, and where it is from.

    Args:
        source: a path, or a dump that was read already.
        rank: whose dump, in a run folder.
        graph: the number of its compilation there.

    Raises:
        Failure: there is no such dump, or nothing is in it.
    """
    if isinstance(source, Dump):
        return InputFile(source.path if file_facts.is_file(source.path) else STDIN), source
    file = find_begin(source, rank, graph)
    return file, read_statements(file)


def _begin_of_run(path: str, rank: int | None, graph: int | None) -> InputFile:
    try:
        run = load_run(path)
        picked = run.compilation(graph, _nearest_rank(run.ranks, rank))
    except DumpError as error:
        raise Failure(error.message, path, hint=error.hint) from None
    except LookupError as error:
        raise Failure(str(error.args[0]).removeprefix(f"{path}: "), path) from None
    begin = picked.file(BEGIN)
    if begin is None and graph is None:
        others = [
            compilation for compilation in run.compilations if compilation.rank == picked.rank
        ]
        picked = max(others, key=_size, default=picked)
        begin = picked.file(BEGIN)
    if begin is None:
        later = next((file for name in LATER if (file := picked.file(name))), None)
        _fail_if_own_code(later.path if later is not None else None, path)
        hint = f"MindSpore writes {BEGIN}_*.ir with MS_DEV_SAVE_GRAPHS=1 or more"
        raise Failure(f"there is no dump {BEGIN} in this folder", path, hint=hint)
    note(f"reads {begin.path}" + (f", {picked.chosen}" if picked.chosen else ""))
    return InputFile(begin.path, picked.rank, picked.index, begin.name, path)


def _nearest_rank(ranks: Sequence[int], rank: int | None) -> int | None:
    """The rank whose dumps to read: the one that was asked for, or the last one before it."""
    if rank is None or rank in ranks:
        return rank
    return max((candidate for candidate in ranks if candidate < rank), default=None)


def _size(compilation: Compilation) -> int:
    begin = compilation.file(BEGIN)
    return begin.size if begin is not None else -1


def _check_pass(path: str) -> None:
    """Refuse dumps that were taken too late, by their names."""
    name = parse_name(os.path.basename(path)).name
    if name == "step_auto_parallel_begin":
        note(f"{path} was taken before the search: its strategies are not those of the end")
    if not is_later(path):
        return
    begin = _beside(path, (BEGIN,))
    if begin is None:
        _fail_if_own_code(path, path)
    message = f"taken after {name}, when everything is sliced: what is needed is {BEGIN}"
    raise Failure(message, path, hint=f"give {begin}" if begin else "")


def _fail_if_own_code(dump: str | None, asked: str) -> None:
    """Say of a program that shards in its own code that there is nothing to check.

    Raises:
        Failure: it is one, as its later ``dump`` shows.
    """
    if dump is None:
        return
    try:
        own = own_code_of(load(dump))
    except DumpError:
        return
    if own is not None:
        raise Failure(own.message, asked, hint="irtool comm groups shows who communicates in it")


# -- later dumps -------------------------------------------------------------------------------


def is_later(path: str) -> bool:
    """Whether a file's name says that it was taken after the parallel pass.

    Args:
        path: a file, or a folder, which is none.
    """
    return not file_facts.is_folder(path) and parse_name(os.path.basename(path)).name in LATER


def later_dump(path: str, begin: str) -> str:
    """The later dump that a path means: the file itself, or that of a run folder.

    Args:
        path: a dump or a run folder.
        begin: the begin dump that it belongs to.

    Raises:
        Failure: there is none.
    """
    if not file_facts.is_folder(path):
        return path
    inside = file_facts.real_path(begin).startswith(file_facts.real_path(path) + os.sep)
    place = begin if inside else os.path.join(path, os.path.basename(begin))
    later = _beside(place, LATER)
    if later is None:
        raise Failure("there is no validate dump in this folder", path)
    return later


def dumps_for_why(
    path: str, against: str | None, rank: int | None, graph: int | None
) -> tuple[str, InputFile | None]:
    """The later dump that holds the nodes in question, and the begin dump before it.

    Args:
        path: a dump of either pass, or a run folder.
        against: where the later dump is; None: beside the begin dump.
        rank: whose dump, in a run folder; None: the lowest with dumps.
        graph: number of the compilation there; None: the largest training one.

    Returns:
        The path of the later dump, and the begin dump, None where no such lies beside.

    Raises:
        Failure: there is no later dump.
    """
    if is_later(path):
        begin = _beside(path, (BEGIN,))
        if begin is not None:
            note(f"layouts are those of {begin}")
        return path, find_begin(begin, rank, None) if begin is not None else None
    file = find_begin(path, rank, graph)
    if against is not None:
        return later_dump(against, file.path), file
    later = _beside(file.path, LATER) if file.path != STDIN else None
    if later is None:
        hint = "--against 20_validate_0080.ir"
        raise Failure(
            "which dump holds the node? There is no validate dump beside", path, hint=hint
        )
    note(f"nodes are those of {later}")
    return later, file


def _beside(path: str, names: Sequence[str]) -> str | None:
    """The dump of the same compilation in the same folder, else the nearest by its number."""
    for kind, name in PASSES.items():
        if name in names[:1] and file_facts.exists(path) and (same := sibling(path, kind)):
            return same
    folder = os.path.dirname(path)
    number = parse_name(os.path.basename(path)).number or 0
    for name in names:
        candidates = [
            (abs((parsed.number or 0) - number), file)
            for file in file_facts.names_in(folder or os.curdir)
            if is_dump(file) and (parsed := parse_name(file)).name == name
        ]
        if candidates:
            return os.path.join(folder, min(candidates)[1])
    return None


# -- the context of a dump ---------------------------------------------------------------------


def context_of(
    file: InputFile,
    dump: Dump | None,
    arguments: ContextArguments,
    configuration: Configuration,
    machine: Machine | None = None,
    *,
    as_run: bool = False,
    later: str | None = None,
) -> RunContext:
    """The context of an input, from all that is given and from the dumps beside it.

    Args:
        file: the input.
        dump: what was read of it.
        arguments: what the command line says.
        configuration: ``irtool.toml``.
        machine: the one that ``--machine`` names.
        as_run: what dumps show goes before whatever is given.
        later: a later dump of the same compilation, wherever it stands and whatever its name.

    Raises:
        Failure: a value makes no sense.
    """
    known = {} if dump is None else {file.path: dump}
    if file.path == STDIN:
        evidence = _with_later(Evidence({"begin": STDIN}, dumps=known), later)
        return find(given_by(arguments, configuration, None), evidence, machine, as_run=as_run)
    evidence = _with_later(evidence_for(file, known), later)
    rank = folder_rank_of(file.path)
    given = given_by(arguments, configuration, file.path, file.run)
    context = find(given, evidence, machine, as_run=as_run)
    parallel = context.parallel
    if parallel is not None and rank is not None and rank // parallel.stage_size != parallel.stage:
        stage = rank // parallel.stage_size
        note(f"this dump is of rank {rank} in stage {stage}: seen from rank {parallel.rank}")
    return context


def context_of_any(
    file: InputFile, configuration: Configuration, dump: Dump | None = None
) -> RunContext:
    """The context that any dump was compiled with, as far as it is known; nothing is told of it.

    Args:
        file: the dump, of whatever pass.
        configuration: ``irtool.toml``.
        dump: what was read of it.

    Raises:
        Failure: a value makes no sense.
    """
    known = {} if dump is None else {file.path: dump}
    if file.path == STDIN or not file_facts.exists(file.path):
        given = given_by(ContextArguments(), configuration, None)
        return find(given, Evidence({"validate": file.path}, dumps=known), quiet=True)
    given = given_by(ContextArguments(), configuration, file.path, file.run or "")
    return find(given, evidence_for(file, known, otherwise="validate"), quiet=True)


def _with_later(evidence: Evidence, later: str | None) -> Evidence:
    """Evidence with a later dump that was named: it goes before one that stands beside."""
    if later is None:
        return evidence
    return replace(evidence, paths={**evidence.paths, pass_of(later, "validate"): later})


class RunFolders:
    """Run folders and the compilations of their dumps; each folder is walked once."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[RunEvidence, dict[str, Compilation]] | None] = {}

    def compilation_of(self, file: InputFile) -> tuple[RunEvidence, Compilation] | None:
        """The run and compilation of a dump; None where it stands in no run folder."""
        if file.run not in self._runs:
            self._runs[file.run] = _by_path(file.run)
        known = self._runs[file.run]
        compilation = known[1].get(file.path) if known is not None else None
        return None if known is None or compilation is None else (known[0], compilation)


def _by_path(folder: str) -> tuple[RunEvidence, dict[str, Compilation]] | None:
    if not folder or not file_facts.is_folder(folder):
        return None
    try:
        run = load_run(folder)
    except DumpError:
        return None
    by_path = {file.path: one for one in reversed(run.compilations) for file in one.passes}
    return RunEvidence(run), by_path


def evidence_for(
    file: InputFile,
    known: Mapping[str, Dump],
    otherwise: Pass = "begin",
    folders: RunFolders | None = None,
) -> Evidence:
    """The dumps of the same compilation, and in a run folder those of other ranks.

    Args:
        file: one of them.
        known: what was read already, by path.
        otherwise: which dump the file is where its name does not say it.
        folders: those that were walked already, where the evidence of many files is wanted.
    """
    found = (folders or RunFolders()).compilation_of(file)
    if found is None:
        return evidence_beside(file.path, None, known, otherwise)
    of_run, compilation = found
    evidence = of_run.of(compilation, known)
    if file.path in evidence.paths.values():
        return evidence
    # Its name is none that MindSpore gives; it is what the command reads all the same.
    return replace(evidence, paths={**evidence.paths, pass_of(file.path, otherwise): file.path})
