"""What ``irtool cost`` reads of a profile, and the dump of what ran."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from irtool.artefacts.cpu_profile import memory_samples
from irtool.artefacts.damage import Damage
from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.legacy import legacy_profile
from irtool.artefacts.profile import Profile, cpu_profile, kernel_profile
from irtool.cli.report import Failure, note, report_problems
from irtool.ir.dump import Dump
from irtool.ir.run import ArtefactKind, PassFile
from irtool.syntax import file_facts
from irtool.syntax.run import Compilation, RankRun, load_run
from irtool.syntax.run.folders import artefact_kind
from irtool.syntax.source import DumpError

if TYPE_CHECKING:
    from irtool.cluster.measured import MeasuredStep
    from irtool.report.measured import MeasuredMemory

CODE = "ART001"
"""Of an artefact that can't be used."""
_BUILT = "graph_build_"


def _trace_profile(path: str, damage: Damage) -> Profile:
    """Few profiles are traces, and numpy, which reads these, takes long to import."""
    from irtool.artefacts.trace_profile import trace_profile

    return trace_profile(path, damage)


_READERS: Mapping[ArtefactKind, Callable[[str, Damage], Profile]] = {
    "kernels": kernel_profile,
    "cpu launches": cpu_profile,
    "trace": _trace_profile,
    "legacy kernels": legacy_profile,
}
"""Files that name operators, the one that says most first."""
_HINT = "kernel_details.csv, cpu_op_execute_timestamp_0.txt of a CPU, or trace_view.json"


def profile_at(path: str, given: str | None, rank: int | None) -> Profile | None:
    """The profile that an option names, else the one in a run folder; None where there is none.

    Args:
        path: what the command reads; a profile is looked for where it is a run folder.
        given: the profile, or a folder that holds one; None: no option names it.
        rank: whose profile; None: the first rank's that has one.

    Raises:
        Failure: what is named is no profile.
    """
    if given is not None and not file_facts.is_folder(given):
        return _read(given)
    folder = given or path
    if not file_facts.is_folder(folder):
        return None
    try:
        run = load_run(folder)
    except DumpError as error:
        raise Failure(error.message, folder, hint=error.hint) from None
    ranks = [rank] if rank is not None else list(run.ranks)
    for number in ranks:
        file = _profile_of(run.by_rank.get(number))
        if file is not None:
            return _read(file)
    if given is not None:
        raise Failure("holds no profile that names operators", given, hint=_HINT, code=CODE)
    return None


def _profile_of(rank: RankRun | None) -> str | None:
    if rank is None:
        return None
    return next((path for kind in _READERS if (path := rank.artefact(kind)) is not None), None)


def _read(path: str) -> Profile:
    damage = Damage(path)
    try:
        read = _READERS[artefact_kind(os.path.basename(path))]
    except LookupError:
        raise Failure("is no profile that names operators", path, hint=_HINT, code=CODE) from None
    try:
        profile = read(path, damage)
    except ArtefactError as error:
        raise Failure(error.message, error.place, hint=error.hint, code=CODE) from None
    report_problems(damage.problems)
    if not profile.seconds:
        raise Failure("names no operator that ran", path, code=CODE)
    return profile


def graph_that_ran(path: str, rank: int | None, graph: int | None) -> Dump | None:
    """What the backend built of a run, else its validate dump; None where neither is there.

    Args:
        path: a run folder, or a dump in one.
        rank: whose dump; None: the lowest with dumps.
        graph: number of the compilation; None: the largest training one.
    """
    folder = path if file_facts.is_folder(path) else os.path.dirname(path) or os.curdir
    try:
        picked = load_run(folder).compilation(graph, rank)
        file = _file_that_ran(picked)
        return None if file is None else picked.read(file)
    except (DumpError, LookupError):
        return None


def measured_memory(step: MeasuredStep, path: str, rank: int | None) -> MeasuredMemory:
    """Memory of what ran, and the pool of a CPU as the run's profiler recorded it.

    Args:
        step: what was measured.
        path: the run folder; of anything else nothing is recorded.
        rank: whose record.
    """
    from irtool.cluster.memory import memory
    from irtool.report.measured import MeasuredMemory

    held = memory(step.dump)
    file = None
    if file_facts.is_folder(path):
        by_rank = load_run(path).by_rank
        own = by_rank.get(next(iter(by_rank), 0) if rank is None else rank)
        file = None if own is None else own.artefact("cpu memory")
    try:
        samples = () if file is None else tuple(memory_samples(file, Damage(file)))
    except ArtefactError:
        samples = ()
    return MeasuredMemory(held, samples)


def _file_that_ran(picked: Compilation) -> PassFile | None:
    built = [graph for graph in picked.kernel_graphs if graph.base.startswith(_BUILT)]
    return built[0] if len(built) == 1 else picked.file("validate")


def has_begin(path: str, rank: int | None, graph: int | None) -> bool:
    """Whether a path may be priced by its begin dump: all but folders that have none.

    Args:
        path: a dump or a run folder.
        rank: whose compilations count; None: those of all ranks.
        graph: number of the compilation.
    """
    if not file_facts.is_folder(path):
        return True
    try:
        run = load_run(path)
    except DumpError:
        return True
    compilations = [
        compilation for compilation in run.compilations if rank is None or compilation.rank == rank
    ]
    begins = any(
        compilation.file("step_parallel_begin") is not None for compilation in compilations
    )
    if not begins and compilations:
        note("there is no dump step_parallel_begin here: prices the kernel graph of one device")
    return begins or not compilations
