"""What ``irtool memory`` and ``irtool pipeline`` read: one dump for each class of equal ranks."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from irtool.cli.configuration import Configuration
from irtool.cli.context import NO_DEVICES, ContextArguments, Resolved, resolve
from irtool.cli.inputs import STDIN_NAME, inputs_for, read_input
from irtool.cli.machines import machine_named
from irtool.cli.report import Failure, note, report_problems
from irtool.cluster.machine import Machine
from irtool.cluster.memory_binding import BindingError, bound, demanded, symbols
from irtool.cluster.pipeline_inference import seen_stages
from irtool.ir.dump import Dump
from irtool.ir.run import InputFile
from irtool.render.text import plural, ranks_text
from irtool.syntax.run import Compilation, Run, load_run
from irtool.syntax.run_expand import STDIN
from irtool.syntax.source import DumpError

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\Z", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class RankDump:
    """One dump, and the ranks it speaks for (none where nothing says whose it is).

    ``said`` is the context that the run folder holds.
    """

    path: str
    rank: int | None
    ranks: tuple[int, ...]
    dump: Dump
    said: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Layout:
    """Devices and pipeline stages, as far as anybody says; None where nobody does."""

    devices: int | None
    stages: int | None
    known_ranks: tuple[int, ...] = ()

    def stage_of(self, rank: int | None) -> int | None:
        """The stage of a rank."""
        if rank is None or self.devices is None or self.stages is None:
            return None
        return min(self.stages - 1, rank * self.stages // self.devices)


def read_ranks(paths: Sequence[str], rank: int | None, graph: int | None) -> list[RankDump]:
    """Read the dumps that paths mean: of a run folder one a class of ranks with equal graphs.

    Raises:
        Failure: there is nothing to read, or it cannot be read.
    """
    found: list[RankDump] = []
    for path in paths:
        if os.path.isdir(path):
            found += _of_run(path, rank, graph)
        else:
            found += _of_files(path, rank, graph)
    for one in found:
        report_problems(one.dump.problems)
        if not any(True for _ in one.dump.nodes()):
            raise Failure("there is no statement in this dump", one.path, code="SYN000")
    return found


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
    found: list[RankDump] = []
    validated = any(one.main.name == "validate" for one in compilations.values())
    for one in run.classes(graph):
        if one.file is None:
            note(f"rank {ranks_text(one.ranks)}: no dump that can be read")
            continue
        if validated and compilations[one.representative].main.name != "validate":
            note(f"rank {ranks_text(one.ranks)}: no validate dump, left out")
            continue
        found.append(_read_compilation(run, compilations[one.representative], one.ranks))
    if not found:
        raise Failure("no dump here can be read", run.path, code="SYN000")
    return found


def _read_compilation(run: Run, picked: Compilation, ranks: tuple[int, ...]) -> RankDump:
    file = picked.main
    if file.name != "validate":
        note(f"reads {file.path}: there is no validate dump, so backward pass or updates may lack")
    said = picked.context or run.context or {}
    return RankDump(file.path, ranks[0], ranks, picked.read(file), said)


def _tell(picked: Compilation) -> None:
    if picked.chosen:
        note(picked.chosen)


def _of_files(path: str, rank: int | None, graph: int | None) -> list[RankDump]:
    files, problems = inputs_for([path], None, graph)
    if not files:
        report_problems(problems[1:])
        first = problems[0]
        raise Failure(first.message, first.path, hint=first.hint, code=first.code)
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
    found: Sequence[RankDump], arguments: ContextArguments, configuration: Configuration
) -> Layout:
    """Devices and stages: as options, files and ``case.json`` say, else as the dumps show."""
    first = found[0]
    beside = None if first.path == STDIN_NAME else first.path
    try:
        resolved: Resolved | None = resolve(arguments, configuration, beside, first.rank)
    except Failure as failure:
        if failure.code != NO_DEVICES:
            raise
        resolved = None
    devices = stages = None
    if resolved is not None:
        devices = resolved.context.devices if "device_num" in resolved.origins else None
        stages = resolved.context.stages if "pipeline_stages" in resolved.origins else None
    devices = devices or _number(first.said.get("device_num"))
    stages = stages or _number(first.said.get("pipeline_stages"))
    seen = [seen_stages(one.dump, one.rank) for one in found]
    if devices is None:
        devices = max((one.devices for one in seen if one.devices is not None), default=None)
    if devices is None and any(one.devices_per_stage for one in seen):
        devices = max(one.least_devices for one in seen)
        note(f"{devices} devices at least, as Send and Receive show; --devices says how many")
    if stages is None:
        shown = {one.devices_per_stage for one in seen if one.devices_per_stage is not None}
        if len(shown) == 1 and devices is not None:
            stages = devices // shown.pop()
            each = plural(devices // stages, "device")
            note(f"{stages} stages of {each}, as Send and Receive show")
        elif not any(one.has_pipeline for one in seen):
            stages = 1
    return Layout(devices, stages, tuple(one.rank for one in found if one.rank is not None))


def _number(value: object) -> int | None:
    text = str(value)
    return int(text) if text.isdecimal() and int(text) > 0 else None


# -- options of both commands ----------------------------------------------------------------------


def size_of(text: str, option: str) -> int:
    """Bytes: ``60GiB``, ``60G`` (the same), ``64GB`` (powers of ten), or a number.

    Raises:
        Failure: it is no size.
    """
    match = _SIZE.match(text.strip())
    if match is None:
        raise Failure(f"{text!r} is no size", option, hint="60GiB, 64GB, or a number of bytes")
    number, unit, binary = match.groups()
    power = " KMGT".index(unit.upper()) if unit else 0
    decimal = text.strip().upper().endswith("B") and not binary and power > 0
    size = float(number) * (1000 if decimal else 1024) ** power
    return int(size)


def sizes_of(bindings: Sequence[str]) -> Mapping[str, int]:
    """``--bind NAME=SIZE``: sizes by symbol or input dimension.

    Raises:
        Failure: one is not of this form.
    """
    found: dict[str, int] = {}
    for text in bindings:
        name, equals, size = text.rpartition("=")
        if not equals or not name or not size.strip().isdecimal():
            hint = "--bind s4=64, or --bind 'inputs0[0]=64'"
            raise Failure(f"{text!r} binds nothing", "--bind", hint=hint)
        found[name.strip()] = int(size)
    return found


def with_sizes(one: RankDump, sizes: Mapping[str, int]) -> RankDump:
    """The dump with numbers for its unknown dimensions; says what is still wanted.

    Raises:
        Failure: a name or size makes no sense here.
    """
    return replace(one, dump=sized(one.dump, one.path, sizes))


def sized(dump: Dump, path: str, sizes: Mapping[str, int]) -> Dump:
    """A dump with numbers for its unknown dimensions; says what is still wanted.

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


def machine_of(name: str | None, arguments: ContextArguments) -> Machine:
    """The machine of ``--machine``: a built-in one's name or a file; else that of the target.

    Raises:
        Failure: there is no such machine, or the file makes no sense.
    """
    return machine_named(name, str(arguments.given.get("device_target") or ""))
