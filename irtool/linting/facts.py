"""Facts that rules share, each made when a rule first asks for it and kept for the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from irtool.cluster.context.model import Contradiction
from irtool.cluster.machine import Machine
from irtool.cluster.ranks import Cluster, cluster_of_classes, program
from irtool.ir.collectives import Collective, collectives
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.phases import Phase, phases
from irtool.ir.ties import Ties, ties, ties_between
from irtool.ir.whole import Whole
from irtool.linting.needs import DumpKind, Lacking
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import CheckResult
from irtool.syntax.printer import dumps

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known beside the dumps of a compilation.

    Attributes:
        rank: whose compilation it is; None where nobody says.
        parallel: the parallel context, None where the number of devices is not known.
        context: the keys of ``set_auto_parallel_context`` that somebody gave, by name; a key that
            is not here has MindSpore's default, or nobody told.
        machine: devices, links and rates, None where nobody says which machine it is.
        why_no_context: why ``parallel`` is None, if it is more than that nobody said it.
        contradictions: where what was given differs from what the dumps show.
    """

    rank: int | None = None
    parallel: ParallelContext | None = None
    context: Mapping[str, object] | None = None
    machine: Machine | None = None
    why_no_context: str = ""
    contradictions: tuple[Contradiction, ...] = ()


class CompilationFacts:
    """One compilation of one rank: its dumps by kind, and what follows from several of them."""

    def __init__(self, dumps: Sequence[DumpFacts], surroundings: Surroundings) -> None:
        self.dumps = tuple(dumps)
        self.surroundings = surroundings
        for dump in self.dumps:
            dump.compilation = self
        self._kept: dict[str, object] = {}

    def of_kind(self, kind: DumpKind) -> DumpFacts | None:
        """The last dump of a kind."""
        return next((dump for dump in reversed(self.dumps) if dump.kind == kind), None)

    def first_of(self, kinds: Sequence[DumpKind]) -> DumpFacts | None:
        """The dump of the first kind that there is one of."""
        dumps = (self.of_kind(kind) for kind in kinds)
        return next((dump for dump in dumps if dump is not None), None)

    @property
    def rank(self) -> int | None:
        """The rank whose compilation it is; None where nobody says."""
        return self.surroundings.rank

    @property
    def parallel(self) -> ParallelContext:
        """The parallel context: devices and options.

        Raises:
            Lacking: nobody says how many devices there are.
        """
        if self.surroundings.parallel is None:
            raise Lacking("devices", self.surroundings.why_no_context)
        return self.surroundings.parallel

    @property
    def machine(self) -> Machine:
        """The machine: devices, links and rates.

        Raises:
            Lacking: nobody says which machine it is.
        """
        if self.surroundings.machine is None:
            raise Lacking("machine")
        return self.surroundings.machine

    @property
    def begin(self) -> DumpFacts:
        """The dump ``step_parallel_begin``, from before the parallel pass.

        Raises:
            Lacking: there is no such dump.
        """
        dump = self.of_kind("begin")
        if dump is None:
            raise Lacking("begin")
        return dump

    @property
    def validate(self) -> DumpFacts:
        """The dump ``validate``, the last of the frontend's.

        Raises:
            Lacking: there is no such dump.
        """
        dump = self.of_kind("validate")
        if dump is None:
            raise Lacking("validate")
        return dump

    @property
    def report(self) -> CheckResult:
        """What ``irtool check`` says of the begin dump.

        Raises:
            Lacking: there is no begin dump, or nobody says how many devices there are.
        """
        begin, parallel = self.begin, self.parallel
        return self.kept("report", lambda: check(begin.dump, parallel))

    @property
    def ties(self) -> Ties:
        """Which nodes of ``validate`` stand for which of ``step_parallel_begin``.

        Raises:
            Lacking: one of the two dumps is not there.
        """
        begin, validate = self.begin, self.validate
        return self.kept("ties", lambda: ties_between(begin.dump, validate.dump))

    def kept(self, name: str, make: Callable[[], Answer]) -> Answer:
        """An answer that several rules need: made once, its failure included."""
        return _kept(self._kept, name, make)


class DumpFacts:
    """One dump: read when first needed."""

    compilation: CompilationFacts

    def __init__(
        self,
        load: Callable[[], Dump],
        kind: DumpKind,
        path: str,
        name: str = "",
        text: Callable[[], str] | None = None,
    ) -> None:
        self._load = load
        self._text = text
        self.kind: DumpKind = kind
        self.path = path
        self.name = name
        self._kept: dict[str, object] = {}

    @cached_property
    def dump(self) -> Dump:
        """The model of the dump, read when it is first asked for."""
        return self._load()

    @property
    def text(self) -> str:
        """What the model is read from."""
        return dumps(self.dump) if self._text is None else self._text()

    @property
    def rank(self) -> int | None:
        """The rank whose dump it is; None where nobody says."""
        return self.compilation.rank

    @property
    def parallel(self) -> ParallelContext:
        """Devices and options; see :attr:`CompilationFacts.parallel`."""
        return self.compilation.parallel

    @property
    def report(self) -> CheckResult:
        """What ``irtool check`` says of the begin dump; see :attr:`CompilationFacts.report`."""
        return self.compilation.report

    @property
    def device_num(self) -> int | None:
        """Devices of the run, where anybody says so."""
        parallel = self.compilation.surroundings.parallel
        return parallel.devices if parallel is not None else None

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        """Every collective, in printed order."""
        return collectives(self.dump, self.device_num)

    @cached_property
    def collective_by_node(self) -> dict[Node, Collective]:
        """The collective that a node is."""
        return {collective.node: collective for collective in self.collectives}

    @cached_property
    def phases(self) -> Mapping[Node, Phase]:
        """Forward, backward, recompute, optimizer or other, by node."""
        return phases(self.dump)

    @cached_property
    def ties(self) -> Ties:
        """Forward to backward nodes, originals to recompute copies, parameters to updates."""
        return ties(self.dump)

    @cached_property
    def whole(self) -> Whole:
        """The dump with calls and closures inlined."""
        return self.dump.whole()

    def kept(self, name: str, make: Callable[[], Answer]) -> Answer:
        """An answer that several rules need: made once, its failure included."""
        return _kept(self._kept, name, make)


class RunFacts:
    """Several ranks of one run: for each the compilation that is compared.

    Args:
        ranks: their compilations.
        is_complete: whether all ranks of the run are here, as far as the number of devices is
            known.
        alike: ranks with equal graphs; those that stand in none are like no other.
    """

    def __init__(
        self,
        ranks: Mapping[int, CompilationFacts],
        is_complete: bool,
        alike: Iterable[tuple[int, ...]] = (),
    ) -> None:
        self.ranks = dict(sorted(ranks.items()))
        self.is_complete = is_complete
        self._first_of = {rank: members[0] for members in alike for rank in members}
        self._kept: dict[str, object] = {}

    def dump(self, rank: int) -> DumpFacts | None:
        """The dump of a rank that holds all it communicates: validate, else the sliced one."""
        return self.ranks[rank].first_of(("validate", "end"))

    @cached_property
    def dumps(self) -> dict[int, DumpFacts]:
        """Those of all ranks that have one."""
        dumps = {rank: self.dump(rank) for rank in self.ranks}
        return {rank: dump for rank, dump in dumps.items() if dump is not None}

    @cached_property
    def cluster(self) -> Cluster:
        """What all ranks communicate; of ranks that are alike only the first one's dump is parsed.

        Nodes of the others are those of the first (:meth:`own_node`).
        """
        classes: dict[int, list[int]] = {}
        for rank in self.dumps:
            first = self._first_of.get(rank, rank)
            classes.setdefault(first if first in self.dumps else rank, []).append(rank)
        devices = max((facts.device_num or 0 for facts in self.dumps.values()), default=0)
        return cluster_of_classes(
            ((tuple(ranks), self.dumps[first].dump) for first, ranks in classes.items()),
            lambda rank: (self.dumps[rank].path, self.dumps[rank].text),
            lambda rank: self.dumps[rank].dump,
            devices or None,
        )

    def own_node(self, rank: int, node: Node) -> Node:
        """The collective of a rank's own dump that one in the dump of a rank alike stands for."""
        parsed = self.cluster.ranks[rank].program
        own = self.dumps[rank].dump
        if parsed.dump is own:
            return node
        return list(program(own).nodes)[parsed.nodes[node]]

    def kept(self, name: str, make: Callable[[], Answer]) -> Answer:
        """An answer that several rules need: made once, its failure included."""
        return _kept(self._kept, name, make)


def _kept(answers: dict[str, object], name: str, make: Callable[[], Answer]) -> Answer:
    if name not in answers:
        try:
            answers[name] = make()
        except Exception as error:
            answers[name] = _Failed(error)
    answer = answers[name]
    if isinstance(answer, _Failed):
        raise answer.error
    return answer  # type: ignore[return-value]  # under one name there is one kind of answer


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception
