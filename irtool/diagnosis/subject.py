"""The run that is examined: what tasks ask for is read once, when the first one asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from functools import cached_property
from typing import Literal, TypeAlias

from irtool.cluster.context.evidence import evidence_of
from irtool.cluster.context.find import find_context
from irtool.cluster.context.given import ContextError, Given
from irtool.cluster.context.model import RunContext
from irtool.cluster.machine import Machine, default_machine
from irtool.cluster.memory import Memory, memory
from irtool.cluster.ranks import Cluster, cluster_of_classes
from irtool.cluster.sources import user_location
from irtool.diagnosis.diagnosis import CannotJudge
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding, SourceLine
from irtool.ir.graph import Node
from irtool.ir.run import PassFile
from irtool.ir.whole import Whole
from irtool.planning.cost.structure import Structure, structure_of
from irtool.planning.plans.step.report import StepCost, step_cost
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.graphs import Network, network_of
from irtool.sharding.network.report import CheckResult
from irtool.syntax.load import lost_part
from irtool.syntax.run import Compilation, Run
from irtool.syntax.source import DumpError, read_content

Reads: TypeAlias = Literal["logs", "begin", "validate", "texts", "others"]
"""What a task reads most of: logs, begin dumps, validate dumps, texts of all passes, other runs."""

BEGIN, END, VALIDATE = "step_parallel_begin", "step_parallel_end", "validate"

GivenFor: TypeAlias = Callable[[str], Given]
"""What options and files say of the context of a dump, by its path."""


@dataclass(frozen=True)
class Checked:
    """A begin dump with what ``check`` says of it."""

    dump: Dump
    context: ParallelContext
    report: CheckResult
    network: Network


@dataclass(frozen=True)
class Held:
    """What ranks with equal graphs hold."""

    ranks: tuple[int, ...]
    dump: Dump
    memory: Memory


@dataclass(eq=False)
class Subject:
    """A run folder under examination.

    Attributes:
        run: the folder.
        given: what options and files say of the context.
        named: the machine, where somebody named one.
        against: the other run, healthy or of another device.
        graph: the number of the compilation, where one was asked for.
        memory_limit: bytes of a device, where somebody said.
        damage: of dumps that were read and lack a part, by path: what tells it.
        unread: ranks whose validate dump can't be read, or lacks a part, and why.
        remembered: what tasks share, by a name that they agree on.
        dumps: that were read, by path.
        wholes: views of them with all calls inlined, by path.
    """

    run: Run
    given: GivenFor
    named: Machine | None = None
    against: Run | None = None
    graph: int | None = None
    memory_limit: int | None = None
    damage: dict[str, Finding] = field(default_factory=dict[str, Finding])
    unread: dict[int, str] = field(default_factory=dict[int, str])
    remembered: dict[str, object] = field(default_factory=dict[str, object])
    dumps: dict[str, Dump] = field(default_factory=dict[str, Dump])
    wholes: dict[str, Whole] = field(default_factory=dict[str, Whole])

    @property
    def path(self) -> str:
        """Path of the run folder."""
        return self.run.path

    def read(self, compilation: Compilation, file: PassFile) -> Dump:
        """A dump of the run, or what is left of it: ``damage`` keeps what shows that.

        Raises:
            CannotJudge: it can't be read, or there is nothing in it.
        """
        try:
            dump = compilation.read(file)
        except DumpError as error:
            raise CannotJudge(f"{error.path}: {error.message}") from None
        self.dumps[dump.path] = dump
        lost = lost_part(dump)
        if lost is not None:
            self.damage[dump.path] = lost
        if not any(True for _ in dump.nodes()):
            raise CannotJudge(f"{file.path}: there is no statement in this dump")
        return dump

    def read_whole(self, compilation: Compilation, file: PassFile) -> Dump:
        """A dump of the run that lacks nothing.

        Raises:
            CannotJudge: it can't be read, there is nothing in it, or a part is missing.
        """
        dump = self.read(compilation, file)
        lost = self.damage.get(dump.path)
        if lost is not None:
            raise CannotJudge(f"{dump.path} is damaged ({lost.code} in line {lost.line})")
        return dump

    def read_first(self, names: Iterable[str]) -> None:
        """Read dumps of the lowest rank before anything else: the context is then found in them.

        Args:
            names: of passes.
        """
        for name in names:
            with suppress(CannotJudge):  # whoever asks for the dump says why
                file = self.picked.file(name)
                if file is not None:
                    self.read(self.picked, file)

    @cached_property
    def picked(self) -> Compilation:
        """The compilation of the lowest rank that is examined."""
        try:
            return self.run.compilation(self.graph)
        except LookupError as error:
            raise CannotJudge(str(error.args[0]).removeprefix(f"{self.path}: ")) from None

    @cached_property
    def compilations(self) -> Mapping[int, Compilation]:
        """The examined compilation, as each rank has it, by rank."""
        _ = self.picked
        return self.run.across_ranks(self.graph)

    @cached_property
    def context(self) -> RunContext:
        """What is known of the parallel context.

        Raises:
            CannotJudge: what files of the run say of it makes no sense.
            ContextError: what was asked for makes none.
        """
        begin = self.picked.file(BEGIN) or self.picked.main
        given = self.given(begin.path)
        try:
            return find_context(
                given, evidence_of(self.run, self.picked, self.dumps, self.graph),
                self.named, as_run=True,
            )  # fmt: skip
        except ContextError as error:
            if not given.asked.isdisjoint(re.findall(r"\w+", error.message)):
                raise
            raise CannotJudge(
                f"{error.key}: {error.message}" if error.key else error.message
            ) from None

    @cached_property
    def parallel(self) -> ParallelContext:
        """Devices and options that the run was compiled with.

        Raises:
            CannotJudge: nobody says for how many devices, or what says it contradicts itself.
        """
        parallel = self.context.parallel
        if parallel is None:
            raise CannotJudge(
                "the number of devices is not known: pass --devices, or --context FILE"
            )
        return parallel

    @cached_property
    def machine(self) -> Machine:
        """The one that was named, else that of the target."""
        if self.named is not None:
            return self.named
        parallel = self.context.parallel
        return default_machine(parallel.target if parallel is not None else "Ascend")

    # -- before the parallel pass ----------------------------------------------------------------

    @cached_property
    def checked(self) -> Checked:
        """The begin dump of the lowest rank that has one, judged."""
        return self.checked_of(self.picked.rank)

    def checked_of(self, rank: int, *, partly: bool = False) -> Checked:
        """The begin dump of a rank, judged.

        Args:
            rank: whose.
            partly: whether what is left of a damaged one is judged too.

        Raises:
            CannotJudge: there is none, it is damaged, or nobody says how many devices there are.
        """
        compilation = self.compilations.get(rank)
        file = None if compilation is None else compilation.file(BEGIN)
        if compilation is None or file is None:
            raise CannotJudge(f"there is no dump {BEGIN} of rank {rank}")
        dump = (self.read if partly else self.read_whole)(compilation, file)
        parallel = self.parallel
        if rank != parallel.rank:
            parallel = replace(parallel, rank=rank)
        network = network_of(dump)
        return Checked(dump, parallel, check(dump, parallel, network=network), network)

    @cached_property
    def cost(self) -> StepCost:
        """The predicted step of the lowest rank's stage."""
        checked = self.checked
        if not checked.report.operators:
            raise CannotJudge("nothing in the begin dump has a strategy")
        return step_cost(self.structure, checked.report, self.machine)

    @cached_property
    def structure(self) -> Structure:
        """The network of that dump, taken apart."""
        checked = self.checked
        return structure_of(checked.dump, checked.context, network=checked.network)

    # -- the whole graph ---------------------------------------------------------------------------

    @cached_property
    def validated(self) -> Mapping[int, PassFile]:
        """The validate dumps, by rank."""
        dumps = {rank: one.file(VALIDATE) for rank, one in self.compilations.items()}
        files = {rank: file for rank, file in dumps.items() if file is not None}
        if not files:
            raise CannotJudge("there is no validate dump, which holds the whole graph")
        return files

    @cached_property
    def classes(self) -> tuple[tuple[tuple[int, ...], Dump], ...]:
        """Ranks with equal validate dumps that are whole, and the dump of the first of them."""
        files = self.validated
        classes: list[tuple[tuple[int, ...], Dump]] = []
        reasons: list[str] = []
        for item in self.run.classes(self.graph):
            ranks = tuple(rank for rank in item.ranks if rank in files)
            if not ranks:
                continue
            try:
                dump = self.read_whole(self.compilations[ranks[0]], files[ranks[0]])
                classes.append((ranks, dump))
            except CannotJudge as error:
                reasons.append(str(error))
                self.unread.update(dict.fromkeys(ranks, str(error)))
        if not classes:
            raise CannotJudge(reasons[0] if reasons else "no validate dump can be read")
        return tuple(classes)

    def whole_of(self, dump: Dump) -> Whole:
        """A dump with all calls inlined, made once."""
        inlined = self.wholes.get(dump.path)
        if inlined is None:
            inlined = self.wholes[dump.path] = dump.whole()
        return inlined

    @cached_property
    def cluster(self) -> Cluster:
        """What all ranks communicate whose dumps are whole.

        A dump that ends early lacks collectives that its rank does: it is as if there were none.
        """
        files = self.validated

        def text(rank: int) -> tuple[str, str]:
            path = files[rank].path
            return path, read_content(path).data.decode("utf-8", "surrogateescape")

        def load(rank: int) -> Dump:
            return self.read(self.compilations[rank], files[rank])

        devices = self.context.value("device_num")
        known = self.context.is_known("device_num")
        count = devices if isinstance(devices, int) and known else None
        return cluster_of_classes(self.classes, text, load, count, self.whole_of)

    @cached_property
    def memories(self) -> tuple[Held, ...]:
        """What each class of ranks holds, the one that needs most first."""
        counted = [
            Held(ranks, dump, memory(dump, whole=self.whole_of(dump)))
            for ranks, dump in self.classes
        ]
        return tuple(sorted(counted, key=lambda item: -item.memory.device_bytes.low))

    # -- commands --------------------------------------------------------------------------------

    def command(self, *words: str) -> tuple[str, ...]:
        """A command of irtool; ``RUN`` stands for the folder."""
        return ("irtool", *(self.path if word == "RUN" else word for word in words))

    def rank_of(self, path: str) -> int | None:
        """The rank whose dump a file is."""
        return next(
            (
                one.rank
                for one in self.run.compilations
                if any(file.path == path for file in one.passes)
            ),
            None,
        )


def source_of(node: Node | None) -> SourceLine | None:
    """The user's line of Python behind a node.

    Args:
        node: of a dump; None has no line.

    Returns:
        the innermost line outside MindSpore; None where the dump names none.
    """
    location = None if node is None else user_location(node)
    if location is None:
        return None
    text = (location.source or "").strip().strip("/").strip()
    return SourceLine(location.path, location.line, text=text)


def total_bytes(run: Run) -> int:
    """Bytes of all dumps that the tasks would read.

    Args:
        run: the folder; begin and validate dumps of all its compilations are counted, as they lie
            on disk.
    """
    return sum(
        file.size
        for one in run.compilations
        for file in (one.file(BEGIN), one.file(VALIDATE))
        if file is not None
    )
