"""What ``irtool memory`` and ``irtool pipeline`` read: one dump for each class of equal ranks."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

from irtool.artefacts.damage import Damage
from irtool.artefacts.recorded import RecordedOrder, recorded_order
from irtool.artefacts.recorded_memory import RecordedMemory, recorded_memory
from irtool.cli.configuration import Configuration
from irtool.cli.context import ContextArguments, find, given_by
from irtool.cli.inputs.begin import evidence_for
from irtool.cli.inputs.dumps import STDIN_NAME, inputs_for, read_input
from irtool.cli.prefetch import prefetch_classes
from irtool.cli.report import Failure, note, report_problems
from irtool.cluster.context.evidence import Evidence, pass_of
from irtool.cluster.context.model import RunContext
from irtool.cluster.machine import Machine
from irtool.cluster.memory.binding import BindingError, bound, demanded, symbols
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.limits import bounded_int
from irtool.ir.run import InputFile
from irtool.ir.types import LARGEST_SIZE
from irtool.ir.units import ranks_text
from irtool.syntax import file_facts
from irtool.syntax.run import Compilation, Run, load_run
from irtool.syntax.run.expanding import STDIN
from irtool.syntax.run.folders import folder_rank_of
from irtool.syntax.source import DumpError

_SIZE = re.compile(r"(\d+)(\.\d+)?\s*([KMGT]?)(i?)B?\Z", re.IGNORECASE)


_BUILT = "graph_build_"
_SAME = "trace_code_graph_"
"""Of dumps that hold the same graph as the one beside them."""


def is_built(path: str) -> bool:
    """Whether a dump is what the backend built, by its name.

    Args:
        path: of the dump.
    """
    return os.path.basename(path).startswith((_BUILT, _SAME))


@dataclass(frozen=True, eq=False)
class RankDump:
    """One dump, and the ranks it speaks for (none where nothing says whose it is).

    ``run`` is the run folder that holds it, "" where none was named; ``built`` is what the backend
    made of it, where it left that; ``order`` what is known of the order of launches; ``recorded``
    the most memory that the rank recorded.
    """

    path: str
    rank: int | None
    ranks: tuple[int, ...]
    dump: Dump
    run: str = ""
    built: Dump | None = None
    order: LaunchSource | None = None
    recorded: RecordedMemory | None = None


@dataclass(frozen=True, slots=True)
class LaunchSource:
    """By what the order of launches is known.

    Attributes:
        source: a run's record, or else the dump that MindSpore's order is worked out from.
        path: of the record, or of the dump.
        names: full names in the order of the record.
        why: why no record is used.
    """

    source: Literal["recorded", "graph_build", "validate"]
    path: str
    names: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """Devices and pipeline stages, None where nothing tells, and the whole context."""

    devices: int | None
    stages: int | None
    known_ranks: tuple[int, ...] = ()
    context: RunContext = field(default_factory=lambda: RunContext(None))

    def stage_of(self, rank: int | None) -> int | None:
        """The stage of a rank."""
        if rank is None or self.devices is None or self.stages is None:
            return None
        return min(self.stages - 1, rank * self.stages // self.devices)


def read_ranks(
    sources: Sequence[str | Dump], rank: int | None, graph: int | None
) -> list[RankDump]:
    """Read the dumps that paths mean: of a run folder one a class of ranks with equal graphs.

    Args:
        sources: paths, or dumps that were read already.
        rank: whose dumps.
        graph: the number of a run's compilation.

    Raises:
        Failure: there is nothing to read, or it cannot be read.
    """
    dumps: list[RankDump] = []
    for path in sources:
        if isinstance(path, Dump):
            whose = rank if rank is not None else folder_rank_of(path.path)
            name = path.path if file_facts.is_file(path.path) else STDIN_NAME
            dumps.append(RankDump(name, whose, () if whose is None else (whose,), path))
        elif file_facts.is_folder(path):
            dumps += _of_run(path, rank, graph)
        else:
            dumps += _of_files(path, rank, graph)
    for one in dumps:
        report_problems(one.dump.problems)
        if not any(True for _ in one.dump.nodes()):
            raise Failure("there is no statement in this dump", one.path, code="SYN000")
    return dumps


def _of_run(path: str, rank: int | None, graph: int | None) -> list[RankDump]:
    try:
        run = load_run(path)
        if rank is not None:
            picked = run.compilation(graph, rank)
            _tell(picked)
            return [_read_compilation(run, picked, (rank,))]
        return _of_classes(run, graph)
    except DumpError as error:
        raise Failure(error.message, error.path, hint=error.hint, code="SYN000") from None
    except LookupError as error:
        raise Failure(str(error.args[0]).removeprefix(f"{path}: "), path) from None


def _of_classes(run: Run, graph: int | None) -> list[RankDump]:
    compilations = run.across_ranks(graph)
    _tell(run.compilation(graph))
    dumps: list[RankDump] = []
    validated = any(one.main.name == "validate" for one in compilations.values())
    classes = run.classes(graph)
    prefetch_classes(classes)
    for one in classes:
        if one.file is None:
            note(f"rank {ranks_text(one.ranks)}: no dump that can be read")
            continue
        if validated and compilations[one.representative].main.name != "validate":
            note(f"rank {ranks_text(one.ranks)}: no validate dump, left out")
            continue
        dumps.append(_read_compilation(run, compilations[one.representative], one.ranks))
    if not dumps:
        raise Failure("no dump here can be read", run.path, code="SYN000")
    return dumps


def _read_compilation(run: Run, picked: Compilation, ranks: tuple[int, ...]) -> RankDump:
    file = picked.main
    if file.name != "validate":
        note(f"reads {file.path}: there is no validate dump, so backward pass or updates may lack")
    damages: list[Damage] = []
    recorded = recorded_memory(run.rank(picked.rank), damages)
    for damage in damages:
        report_problems(damage.problems)
    dump = picked.read(file)
    entry = RankDump(file.path, ranks[0], ranks, dump, run.path, recorded=recorded)
    return _with_order(entry, run, picked) if file.name == "validate" else entry


def _with_order(entry: RankDump, run: Run, picked: Compilation) -> RankDump:
    """A dump with what the backend built of it, which is what ran, and the order of launches."""
    graphs = [graph for graph in picked.kernel_graphs if graph.base.startswith(_BUILT)]
    built = picked.read(graphs[0]) if len(graphs) == 1 else None
    order, problems = recorded_order(run.rank(picked.rank), picked)
    report_problems(problems)
    if isinstance(order, RecordedOrder):
        source = LaunchSource("recorded", order.path, order.names)
    else:
        why = order.why if order.path else ""
        path = entry.path if built is None else built.path
        source = LaunchSource("validate" if built is None else "graph_build", path, (), why)
    return replace(entry, built=built, order=source)


def _tell(picked: Compilation) -> None:
    if picked.chosen:
        note(picked.chosen)


def _of_files(path: str, rank: int | None, graph: int | None) -> list[RankDump]:
    files, problems = inputs_for([path], None, graph)
    if not files:
        report_problems(problems[1:])
        first = problems[0]
        raise Failure(first.message, first.file, hint=first.hint, code=first.code)
    if len(files) > 1 and rank is not None:
        files = [file for file in files if file.rank == rank]
        if not files:
            raise Failure(f"there is no dump of rank {rank}", path)
    return [_read_file(file, rank) for file in files]


def _read_file(file: InputFile, rank: int | None) -> RankDump:
    try:
        dump = read_input(file)
    except DumpError as error:
        raise Failure(error.message, error.path, hint=error.hint, code="SYN000") from None
    whose = rank if rank is not None else file.rank
    name = STDIN_NAME if file.path == STDIN else file.path
    return RankDump(name, whose, () if whose is None else (whose,), dump)


# -- devices and stages --------------------------------------------------------------------------


def layout_of(
    dumps: Sequence[RankDump],
    arguments: ContextArguments,
    configuration: Configuration,
    machine: Machine | None = None,
) -> Layout:
    """Devices and stages, with all else that is known of the run.

    Args:
        dumps: the dumps that were read, those of the first rank first.
        arguments: what the command line says.
        configuration: ``irtool.toml``.
        machine: the one that ``--machine`` names.

    Raises:
        Failure: a value makes no sense.
    """
    first = dumps[0]
    beside = None if first.path == STDIN_NAME else first.path
    given = given_by(arguments, configuration, beside, first.run)
    context = find(given, _evidence(dumps), machine, as_run=True)
    known = tuple(one.rank for one in dumps if one.rank is not None)
    devices = context.value("device_num")
    return Layout(devices if isinstance(devices, int) else None, context.stages, known, context)


def placed(dumps: Sequence[RankDump], layout: Layout) -> list[RankDump]:
    """The dumps, of which a single one that no folder names has the rank that its groups show.

    Args:
        dumps: that were read.
        layout: what is known of the run.
    """
    shown = layout.context.value("global_rank")
    if len(dumps) != 1 or not isinstance(shown, int) or shown == 0:
        return list(dumps)
    (only,) = dumps
    if folder_rank_of(only.path) is not None:
        return [only]
    return [replace(only, rank=shown, ranks=(shown,))]


def _evidence(dumps: Sequence[RankDump]) -> Evidence:
    """The dumps that were read, with what stands beside the first."""
    first = dumps[0]
    known = {one.path: one.dump for one in dumps}
    if first.path == STDIN_NAME:
        return Evidence({"validate": first.path}, first.rank, known)
    file = InputFile(first.path, first.rank, run=first.run)
    evidence = evidence_for(file, known, otherwise="validate")
    others = {one.rank: {pass_of(one.path): one.path} for one in dumps if one.rank is not None}
    others.pop(first.rank or 0, None)
    rank = first.rank if first.rank is not None and not first.run else evidence.rank
    return replace(evidence, rank=rank, others={**evidence.others, **others})


def target_of(context: RunContext) -> str:
    """The target that a run was compiled for, ``Ascend`` or ``GPU``; empty where nobody says.

    Args:
        context: of the run.
    """
    return str(context.value("device_target") or "")


# -- options of both commands ----------------------------------------------------------------------


def size_of(text: str, option: str) -> int:
    """Bytes: ``60GiB``, ``60G`` (the same), ``64GB`` (powers of ten), or a number.

    Args:
        text: as it was given.
        option: that it was given to, for the message.

    Raises:
        Failure: it is no size, or one that no memory has.
    """
    match = _SIZE.match(text.strip())
    if match is None:
        raise Failure(f"{text!r} is no size", option, hint="60GiB, 64GB, or a number of bytes")
    whole, part, unit, binary = match.groups()
    power = " KMGT".index(unit.upper()) if unit else 0
    decimal = text.strip().upper().endswith("B") and not binary and power > 0
    factor = (1000 if decimal else 1024) ** power
    size = bounded_int(whole) * factor + int(float(part or 0) * factor)
    if size > LARGEST_SIZE:
        raise Failure(f"{text!r} is more than any memory", option, hint="60GiB, 64GB, or none")
    return size


def sizes_of(bindings: Sequence[str]) -> Mapping[str, int]:
    """``--bind NAME=SIZE``: sizes by symbol or input dimension.

    Args:
        bindings: as they were given.

    Raises:
        Failure: one is not of this form.
    """
    by_name: dict[str, int] = {}
    for text in bindings:
        name, equals, size = text.rpartition("=")
        if (
            not equals
            or not name
            or not size.strip().isdecimal()
            or bounded_int(size.strip()) > LARGEST_SIZE
        ):
            hint = "--bind s4=64, or --bind 'inputs0[0]=64'"
            raise Failure(f"{text!r} binds nothing", "--bind", hint=hint)
        by_name[name] = bounded_int(size)
    return by_name


def with_sizes(one: RankDump, sizes: Mapping[str, int]) -> RankDump:
    """The dump with numbers for its unknown dimensions; says what is still wanted.

    Args:
        one: the dump, with what is known of its rank.
        sizes: by symbol or input dimension; none: only what is wanted is told.

    Raises:
        Failure: a name or size makes no sense here.
    """
    dump = sized(one.dump, one.path, sizes)
    if not sizes:
        return replace(one, dump=dump)
    # What the backend built has sizes of its own.
    return replace(one, dump=dump, built=None, order=None)


def sized(dump: Dump, path: str, sizes: Mapping[str, int]) -> Dump:
    """A dump with numbers for its unknown dimensions; says what is still wanted.

    Args:
        dump: of any pass.
        path: of the dump, for what is said.
        sizes: by symbol or input dimension; none: only what is wanted is told.

    Raises:
        Failure: a name or size makes no sense here.
    """
    if sizes:
        try:
            return bound(dump, sizes)
        except BindingError as error:
            raise Failure(str(error), "--bind") from None
    wanted = demanded(dump)
    if wanted:
        example = " ".join(f"--bind {symbol.name}={_example(symbol.divisor)}" for symbol in wanted)
        where = ", ".join(f"{symbol.name} ({', '.join(symbol.places)})" for symbol in wanted)
        note(f"{path}: sizes are not known: {where}; say them: {example}")
    elif symbols(dump):
        note(f"{path}: some sizes inside the network are not known")
    return dump


def _example(divisor: int) -> int:
    size = divisor
    while size < 32:
        size *= 2
    return size
