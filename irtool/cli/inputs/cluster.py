"""What ``irtool comm`` and ``recover`` read: all ranks of a run, or the dumps that were named."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Annotated

from irtool.cli.configuration import Configuration, read_configuration
from irtool.cli.context import ContextArguments, find, given_by
from irtool.cli.inputs.begin import evidence_for
from irtool.cli.inputs.dumps import STDIN_NAME, inputs_for, read_statements
from irtool.cli.machines import machine_named
from irtool.cli.parameters import Option
from irtool.cli.prefetch import prefetch
from irtool.cli.report import Failure, note, report_problems
from irtool.cluster.context.evidence import Evidence
from irtool.cluster.context.model import RunContext
from irtool.cluster.machine import Machine
from irtool.cluster.ranks import Cluster, cluster_of, cluster_of_classes
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.group_names import WORLD_GROUPS
from irtool.ir.operators import VIRTUAL
from irtool.ir.run import InputFile, PassFile
from irtool.ir.units import ranks_text
from irtool.syntax import file_facts
from irtool.syntax.run import Compilation, load_run
from irtool.syntax.run.expanding import STDIN
from irtool.syntax.run.folders import folder_rank_of
from irtool.syntax.run.names import parse_name
from irtool.syntax.source import DumpError, read_content

Rank = Annotated[
    int | None, Option(least=0, metavar="N", help="Only this rank; of a single dump: whose.")
]

VALIDATE = "validate"
"""The dump that holds all communications of a rank."""
_EARLIER = ("optimize", "step_parallel_end", "step_parallel_begin")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be read, and what is said of it.

    Attributes:
        paths: a run folder, or dumps.
        rank: only this one; of a single dump, whose it is.
        graph: the number of a run's compilation.
        devices: of the run.
        context: a file of settings.
        config: ``irtool.toml``.
        dumps: by rank, where they were read already and no paths are given.
        given: more settings, by key.
        configuration: in place of the file that ``config`` names, or that lies there.
    """

    paths: Sequence[str]
    rank: int | None = None
    graph: int | None = None
    devices: int | None = None
    context: str | None = None
    config: str | None = None
    dumps: Mapping[int, Dump] = field(default_factory=dict[int, Dump])
    given: Mapping[str, object] = field(default_factory=dict[str, object])
    configuration: Configuration | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """All ranks that were read, what was wrong with their dumps, and what they are called.

    ``context`` is what is known of the run.
    """

    cluster: Cluster
    path: str
    problems: tuple[Finding, ...]
    context: RunContext = field(default_factory=lambda: RunContext(None))


def read_cluster(asked: Asked) -> Read:
    """Reads the ranks that a command line means.

    Args:
        asked: a run folder, dumps of different ranks, or dumps that were read already.

    Raises:
        Failure: nothing can be read, or nobody can say whose dumps these are.
    """
    if asked.dumps:
        return _of_dumps(asked)
    if len(asked.paths) == 1 and file_facts.is_folder(asked.paths[0]):
        return _of_run(asked, asked.paths[0])
    return _of_files(asked)


def _of_dumps(asked: Asked) -> Read:
    """Dumps that were read already."""
    files = {
        rank: InputFile(dump.path if file_facts.is_file(dump.path) else STDIN, rank)
        for rank, dump in asked.dumps.items()
    }
    first = min(files)
    known = {file.path: asked.dumps[rank] for rank, file in files.items()}
    context = _context(asked, files[first], known, rank=first)
    early = [_early_pass(files[rank], dump) for rank, dump in asked.dumps.items()]
    cluster = replace(cluster_of(dict(asked.dumps), _exact(context)), partial=max(early))
    problems = [problem for dump in asked.dumps.values() for problem in dump.problems]
    return Read(cluster, asked.dumps[first].path or "dump", tuple(problems), context)


def _of_run(asked: Asked, path: str) -> Read:
    try:
        run = load_run(path)
        picked = run.compilation(asked.graph, asked.rank)
        compilations = run.across_ranks(asked.graph)
        if asked.rank is not None:
            compilations = {asked.rank: picked}
    except DumpError as error:
        raise Failure(error.message, path, hint=error.hint) from None
    except LookupError as error:
        raise Failure(str(error.args[0]).removeprefix(f"{path}: "), path) from None
    if picked.chosen:
        note(picked.chosen)
    files, partial = _same_pass(compilations)
    compilations = {rank: compilations[rank] for rank in files}
    dumps: dict[int, Dump] = {}

    def load(rank: int) -> Dump:
        one = compilations[rank]
        dumps[rank] = one.read(files[rank])
        return dumps[rank]

    def text(rank: int) -> tuple[str, str]:
        file = files[rank]
        return file.path, read_content(file.path).data.decode("utf-8", "surrogateescape")

    if asked.rank is not None or partial:
        classes: list[tuple[int, ...]] = [(rank,) for rank in compilations]
    else:
        alike = (item.ranks for item in run.classes(asked.graph))
        classes = [kept for ranks in alike if (kept := tuple(r for r in ranks if r in files))]
    prefetch(files[ranks[0]].path for ranks in classes)
    unread: list[Finding] = []
    readable: list[tuple[tuple[int, ...], Dump]] = []
    for ranks in classes:
        try:
            readable.append((ranks, load(ranks[0])))
        except DumpError as error:
            unread.append(Finding("SYN000", "error", error.message, error.path, 1, hint=error.hint))
    if not readable:
        report_problems(unread)
        raise Failure("no dump here can be read", path, code="SYN000")
    first = readable[0][0][0]
    file = InputFile(files[first].path, first, run=path)
    context = _context(asked, file, {dump.path: dump for dump in dumps.values()})
    devices = _exact(context)
    if asked.rank is None and len(compilations) == 1 and folder_rank_of(file.path) is None:
        dump = readable[0][1]
        cluster = replace(cluster_of(_named(dump, devices, context), devices), partial=partial)
    else:
        cluster = replace(cluster_of_classes(readable, text, load, devices), partial=partial)
    problems = [problem for dump in dumps.values() for problem in dump.problems]
    return Read(cluster, path, (*run.problems, *unread, *problems), context)


def _same_pass(compilations: Mapping[int, Compilation]) -> tuple[dict[int, PassFile], str]:
    """The dump of each rank, all of one pass, and that pass if it is not ``validate``.

    Ranks without a validate dump are left out where others have one; where none has, the latest
    pass that all have is taken.
    """
    for name in (VALIDATE, *_EARLIER):
        by_rank = {rank: one.file(name) for rank, one in compilations.items()}
        files = {rank: file for rank, file in by_rank.items() if file is not None}
        if files and (name == VALIDATE or len(files) == len(compilations)):
            without = sorted(compilations.keys() - files.keys())
            if without:
                note(f"rank {ranks_text(without)}: no {name} dump, left out")
            if name != VALIDATE:
                note(f"no validate dump: reads {name}, which does not hold all communications yet")
            return files, "" if name == VALIDATE else name
    files = {rank: one.main for rank, one in compilations.items()}
    passes = ", ".join(sorted({file.name for file in files.values()}))
    note(f"no validate dump: reads {passes}")
    return files, passes


def _of_files(asked: Asked) -> Read:
    files, problems = inputs_for(asked.paths, None, asked.graph)
    if not files:
        report_problems(problems[1:])
        first = problems[0]
        raise Failure(first.message, first.file, hint=first.hint, code=first.code)
    anonymous = len(files) == 1 and asked.rank is None and files[0].rank is None
    if len(files) == 1 and (asked.rank is not None or files[0].rank is None):
        files = [InputFile(files[0].path, asked.rank or 0, None, files[0].name)]
    elif asked.rank is not None:
        files = [file for file in files if file.rank == asked.rank]
    dumps: dict[int, Dump] = {}
    prefetch(file.path for file in files)
    for file in files:
        if file.rank is None:
            hint = "put each dump into a folder rank_N, or give one and --rank"
            raise Failure("whose dump is this?", file.path, hint=hint)
        if file.rank in dumps:
            hint = "give one dump a rank, or the run folder"
            raise Failure(f"a second dump of rank {file.rank}", file.path, hint=hint)
        dumps[file.rank] = read_statements(file)
    if not dumps:
        raise Failure(f"there is no rank {asked.rank}")
    known = {file.path: dump for file, dump in zip(files, dumps.values(), strict=True)}
    context = _context(asked, files[0], known, rank=None if anonymous else files[0].rank)
    devices = _exact(context)
    if anonymous:
        dumps = _named(dumps[0], devices, context)
    in_dumps = [problem for dump in dumps.values() for problem in dump.problems]
    path = files[0].path if len(files) == 1 else " ".join(asked.paths)
    named = STDIN_NAME if path == STDIN else path
    early = [_early_pass(*pair) for pair in zip(files, dumps.values(), strict=True)]
    cluster = replace(cluster_of(dumps, devices), partial=max(early))
    return Read(cluster, named, (*problems, *in_dumps), context)


def _named(dump: Dump, devices: int | None, context: RunContext) -> dict[int, Dump]:
    """A dump that no folder says the rank of: the context's, else the lowest allowed."""
    rank = context.value("global_rank")
    if isinstance(rank, int) and context.is_known("global_rank"):
        return {rank: dump}
    cluster = cluster_of({0: dump}, devices)
    parties = cluster.ranks[0].parties
    able = set(range(cluster.devices))
    for party in parties:
        if party.peer is not None:
            able.discard(party.peer)
        elif party.ranks:
            able &= set(party.ranks)
    rank = min(able, default=0)
    if rank:
        note(f"taken for rank {rank}, the first that its groups allow; --rank says another")
    return {rank: dump}


def _early_pass(file: InputFile, dump: Dump) -> str:
    """The pass of a dump that comes before all communications are there; empty if none."""
    name = parse_name(os.path.basename(file.path)).name
    if name == VALIDATE:
        return ""
    if name in _EARLIER:
        return name
    return "a pass before validate" if any(node.op in VIRTUAL for node in dump.nodes()) else ""


def refuse_partial(read: Read) -> Read:
    """Hand on what was read of a run, if it holds all communications.

    Every answer that needs all of them asks this first.

    Args:
        read: the ranks of the run.

    Raises:
        Failure: the dumps are of a pass that does not hold all of them yet.
    """
    if read.cluster.partial:
        hint = "MindSpore writes it with MS_DEV_SAVE_GRAPHS=1 or more"
        raise Failure(
            "there is no validate dump, which holds all communications", read.path, hint=hint
        )
    return read


def _context(
    asked: Asked, file: InputFile | None, known: Mapping[str, Dump], *, rank: int | None = None
) -> RunContext:
    """The context of what is read, as far as anybody says it or anything shows it."""
    options = {"device_num": asked.devices, "global_rank": asked.rank}
    given = {key: value for key, value in options.items() if value is not None}
    given = {**asked.given, **given}
    arguments = ContextArguments(given, asked.context)
    configuration = asked.configuration or read_configuration(asked.config)
    if file is None or file.path == STDIN:
        dump = next(iter(known.values()), None)
        evidence = (
            Evidence() if dump is None else Evidence({"validate": STDIN}, rank, {STDIN: dump})
        )
        return find(given_by(arguments, configuration, None), evidence, as_run=True)
    evidence = evidence_for(file, known, otherwise="validate")
    if rank is not None and evidence.rank is None:
        evidence = replace(evidence, rank=rank)
    return find(given_by(arguments, configuration, file.path, file.run), evidence, as_run=True)


def _exact(context: RunContext) -> int | None:
    """How many devices there are, where that is more than a guess."""
    devices = context.value("device_num")
    return devices if isinstance(devices, int) and context.is_known("device_num") else None


def machine_for(name: str | None, cluster: Cluster) -> Machine:
    """The machine of ``--machine``: a built-in one's name or a file; else that of the target.

    Args:
        name: as it was given; None: it was not.
        cluster: whose groups tell the target.

    Raises:
        Failure: there is no such machine, or the file makes no sense.
    """
    gpu = any(
        (party.group or "").startswith(WORLD_GROUPS[1])
        for one in cluster.ranks.values()
        for party in one.parties
    )
    return machine_named(name, "GPU" if gpu else "Ascend")
