"""Everything that may be decided of a network that is not there yet, searched together and ranked.

Devices used, stages, micro-batches, optimizer parallel and recomputation are tried one with
another, and strategies of operators are planned inside of each.  What computes alone longer than
what is known already is left out.  Figures are those of a shallow network whose layers repeat
(:mod:`irtool.planning.scaling.folded`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown
from irtool.planning.plans.decisions import DecidedModes
from irtool.planning.scaling.folded import SHALLOW, FoldedMaker, LayersAreNoCells
from irtool.planning.scaling.layers import Repeated, repeated_layers
from irtool.planning.scaling.scaled import Scaled
from irtool.planning.search.effort import EffortName
from irtool.planning.search.operator_candidates import CannotPlan
from irtool.planning.search.problem import planned_context, problem_of
from irtool.planning.stages.micro_batch import batch_of, dataset_splits, micro_batch
from irtool.planning.stages.results import StagedPlan
from irtool.planning.stages.search import StageSearch
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.graphs import network_of

SHOWN = 10
"""Candidates that are told."""
_A_STAGE = (2, 4, 8)
"""Micro-batches for each stage that are tried."""
_MOST_STAGES = 64


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to run a network.

    Attributes:
        devices: that it uses, of all stages.
        stages, micro_batches: of a step.
        optimizer_parallel: whether weights may be cut over their replicas.
        recompute: whether operators may run again.
        seconds: a step.
        memory_bytes: of a device of the fullest stage: weights, gradients, states, kept results.
        lower_bound: seconds that no strategies undercut with as many devices, stages and
            micro-batches: the work of a stage where all do the same and none waits.
        fits: whether it keeps the limit.
    """

    devices: int
    stages: int
    micro_batches: int
    optimizer_parallel: bool
    recompute: bool
    seconds: float
    memory_bytes: int
    lower_bound: float | None
    fits: bool = True

    @property
    def is_plain(self) -> bool:
        """Whether it is one stage and one micro-batch, and nothing else decided."""
        alone = self.stages == self.micro_batches == 1
        return alone and not self.optimizer_parallel and not self.recompute


@dataclass(frozen=True, eq=False)
class Candidates(Shown):
    """The candidates of a network.

    Attributes:
        ranked: by seconds, the first ten; the plain one among them.
        limit: bytes of a device.
        tried: how many were planned.
        passed_over: how many compute alone longer than the tenth takes.
        chosen: the number of the one that was planned in full, from 0; None: none was.
    """

    ranked: tuple[Candidate, ...]
    limit: int
    tried: int
    passed_over: int
    chosen: int | None = None

    @property
    def best(self) -> int | None:
        """The number, from 0, of the fastest that fits; None: none does."""
        return next(
            (number for number, candidate in enumerate(self.ranked) if candidate.fits), None
        )


def candidates_of(
    network: Scaled,
    context: ParallelContext,
    machine: Machine,
    devices: int,
    limit: int | None,
    effort: EffortName = "default",
) -> Candidates:
    """Devices, stages and micro-batches searched together for a network of other sizes.

    Args:
        network: of other sizes.
        context: of the small one.
        machine: what things cost.
        devices: that there are.
        limit: bytes of one; None: as the machine has.
        effort: how many strategies of operators are looked at.

    Raises:
        CannotPlan: not even one device can be planned for.
    """
    ranking = _Ranking(network, context, replace(machine, overlap=0.0), devices,
                       limit or machine.memory_bytes, effort)  # fmt: skip
    return ranking.ranked()


@dataclass(eq=False)
class _Ranking:
    network: Scaled
    context: ParallelContext
    machine: Machine
    devices: int
    limit: int
    effort: EffortName
    candidates: list[Candidate] = field(default_factory=list[Candidate])
    searches: dict[tuple[int, int, bool], StageSearch | CannotPlan] = field(
        default_factory=dict[tuple[int, int, bool], "StageSearch | CannotPlan"]
    )
    problem: CannotPlan | None = None
    work: float = 0.0
    passed_over: int = 0

    def __post_init__(self) -> None:
        deep = self.network.layers
        own = self.network.roles.layers
        count = max(SHALLOW, own.count) if own is not None else 0
        self.layers: Repeated | None = None
        if own is None or deep <= count:
            self.dump, self.more = self.network.dump, 0
        else:
            self.dump, self.more = self.network.of_depth(count), deep - count
            shallow = repeated_layers(network_of(self.dump), count)
            self.layers = shallow if isinstance(shallow, Repeated) else None
        self.batch = batch_of(self.dump)

    def _try_all(self) -> None:
        for devices in self._devices():
            plain = self._tried(devices, 1, 1, optimizer=False, recompute=False)
            if plain is None:
                continue
            for stages, micro in self._cuts(devices):
                self._tried_with_decisions(devices, stages, micro)

    def _unfold(self) -> None:
        """Plan all layers, where none can stand for the others."""
        self.dump, self.more, self.layers = self.network.of_depth(self.network.layers), 0, None
        self.batch = batch_of(self.dump)
        self.searches.clear()
        self.problem = None

    def ranked(self) -> Candidates:
        """All that is worth a look."""
        self._try_all()
        if not self.candidates and isinstance(self.problem, LayersAreNoCells):
            self._unfold()
            self._try_all()
        if not self.candidates:
            raise self.problem or CannotPlan("nothing here can be planned")
        self._with_optimizer()
        order = sorted(
            self.candidates, key=lambda candidate: (candidate.seconds, candidate.devices)
        )
        fitting = [candidate for candidate in order if candidate.fits]
        shown = fitting[:SHOWN]
        plain = max(
            (candidate for candidate in order if candidate.is_plain),
            key=lambda candidate: candidate.devices,
        )
        if plain not in shown:
            shown = [*shown[: SHOWN - 1], plain]
        shown.sort(key=lambda candidate: (candidate.seconds, candidate.devices))
        return Candidates(tuple(shown), self.limit, len(self.candidates), self.passed_over)

    def _devices(self) -> Iterator[int]:
        """All devices, and halves of them, as long as less could be faster."""
        devices = self.devices
        while devices:
            if not self.candidates or self.work / devices < self._tenth():
                yield devices
            else:
                self.passed_over += 1
            if devices % 2:
                return
            devices //= 2

    def _tenth(self) -> float:
        """Seconds that a candidate has to be below to be told."""
        fitting = sorted(candidate.seconds for candidate in self.candidates if candidate.fits)
        return fitting[SHOWN - 1] if len(fitting) >= SHOWN else float("inf")

    def _cuts(self, devices: int) -> Iterator[tuple[int, int]]:
        """Stages and micro-batches, but for those that wait longer than the tenth takes."""
        stages = 1
        while stages <= min(devices, _MOST_STAGES, max(self.network.layers, 1)):
            if devices % stages:
                return
            splits = dataset_splits(replace(self.context, devices=devices, stages=stages, rank=0))
            rows = self.batch // splits
            counts = [stages * part for part in _A_STAGE if rows and rows % (stages * part) == 0]
            for micro in counts or ([stages] if rows and rows % stages == 0 else []):
                idle = (stages - 1) / micro
                if micro > 1 and self.work / devices * (1 + idle) < self._tenth():
                    yield stages, micro
                elif micro > 1:
                    self.passed_over += 1
            stages *= 2

    def _tried_with_decisions(self, devices: int, stages: int, micro: int) -> None:
        """One cut as it is; where that does not fit, with what makes it smaller."""
        made = self._tried(devices, stages, micro, optimizer=False, recompute=False)
        if made is None or not made.fits:
            self._tried(devices, stages, micro, optimizer=True, recompute=False)
            self._tried(devices, stages, micro, optimizer=True, recompute=True)

    def _with_optimizer(self) -> None:
        """The fastest with optimizer parallel, too, and with recomputation where they are full."""
        fitting = sorted(
            (candidate for candidate in self.candidates if candidate.fits),
            key=lambda candidate: candidate.seconds,
        )
        plain = [candidate for candidate in self.candidates if candidate.is_plain][:1]
        done = {_cut_of(candidate) for candidate in self.candidates if candidate.optimizer_parallel}
        for candidate in dict.fromkeys((*fitting[: SHOWN // 2], *plain)):
            if _cut_of(candidate) in done:
                continue
            done.add(_cut_of(candidate))
            self._tried(*_cut_of(candidate), optimizer=True, recompute=False)
            if not candidate.fits:
                self._tried(*_cut_of(candidate), optimizer=True, recompute=True)

    # -- one of them -------------------------------------------------------------------------------

    def _tried(
        self, devices: int, stages: int, micro: int, *, optimizer: bool, recompute: bool
    ) -> Candidate | None:
        """A candidate; None where there is no such plan."""
        try:
            alone = stages == micro == 1 and not recompute
            search = self._search(devices // stages, micro, optimizer, recompute, alone)
            maker = FoldedMaker(
                search, self.machine, stages, micro, devices, self.layers, self.more
            )
            fits = True
            try:
                made = maker.best(self.limit)
            except CannotPlan:
                if stages > 1 or micro > 1 or optimizer or recompute:
                    raise
                made, fits = maker.best(None), False
        except CannotPlan as error:
            self.problem = self.problem or error
            return None
        candidate = Candidate(
            devices, stages, micro, optimizer, recompute, made.seconds,
            self._alone(maker, made) if alone else max(stage.bytes for stage in made.stages),
            self._bound(made), fits,
        )  # fmt: skip
        if not self.work:
            compute = made.inner.after.shares.get("compute", 0.0)
            deep = sum(stage.seconds for stage in made.stages)
            shallow = made.inner.after.seconds
            self.work = devices * compute * (deep / shallow if shallow else 1.0)
        self.candidates.append(candidate)
        return candidate

    def _alone(self, maker: FoldedMaker, made: StagedPlan) -> int:
        """Bytes of a device without stages and micro-batches, by the account that plans keep.

        What tables count for kept results is less: layers keep as much more as they do of these.
        Of cut weights as much more stays gathered as weights are stored.
        """
        memory = maker.free.plan.after.memory
        own = memory.weights + memory.gradients + memory.states
        (stage,) = made.stages
        counted = maker.shallow_bytes(maker.free)
        kept = memory.activations * stage.activation_bytes / counted if counted else 0.0
        gathered = memory.gathered * stage.static_bytes / own if own else 0.0
        rest = memory.total - own - memory.activations - memory.gathered
        return int(stage.static_bytes + kept + gathered + rest)

    def _bound(self, made: StagedPlan) -> float | None:
        """Seconds that no strategies undercut in this cut."""
        gap = made.inner.gap
        if gap is None:
            return None
        work = sum(stage.seconds for stage in made.stages)
        return min(made.seconds, work / (1 + gap) / len(made.stages))

    def _search(
        self, devices: int, micro: int, optimizer: bool, recompute: bool, alone: bool
    ) -> StageSearch:
        key = devices, micro, alone
        if key not in self.searches:
            try:
                self.searches[key] = self._tables(*key)
            except CannotPlan as error:
                self.searches[key] = error
        search = self.searches[key]
        if isinstance(search, CannotPlan):
            raise search
        if not optimizer and not recompute:
            return search
        decided = DecidedModes(search.model, optimizer=optimizer, recompute=recompute)
        return StageSearch(search.problem, search.model, decided, optimizer, recompute)

    def _tables(self, devices: int, micro: int, alone: bool) -> StageSearch:
        base = replace(self.context, parallel_optimizer=False)
        target = planned_context(base, devices)
        problem = problem_of(micro_batch(self.dump, micro), base, target, counts_all=not alone)
        return StageSearch.of(
            problem, self.machine, micro, optimizer=False, recompute=False, effort=self.effort
        )


def _cut_of(candidate: Candidate) -> tuple[int, int, int]:
    return candidate.devices, candidate.stages, candidate.micro_batches
