"""A pipeline of a network that has none: balanced stages, and a plan inside of each.

The network is cut into micro-batches (``micro_batch``) and planned on the devices of one stage.
Since costs add up operator by operator, and an edge belongs to the operator that reads it, this
plan is the best one inside of every stage, however the network is cut.  Then its cells, in the
order in which they run, are cut so that the slowest stage is as fast as can be (exact, by dynamic
programming).  Under the 1F1B schedule stage ``i`` of ``S`` holds results of ``min(S - i, M)`` of
``M`` micro-batches.  Under a memory limit stages that do not fit are planned anew, and the cut is
made again with what that costs; cuts that need no new plan, and those that are even in memory, are
tried beside, and the fastest step wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from irtool.cluster.machine import Machine
from irtool.cluster.pipeline_cut import Layer, best_cut
from irtool.cluster.schedule import StageTimes, ideal_bubble, one_forward_one_backward, play
from irtool.ir.display import Shown
from irtool.ir.dump import Dump
from irtool.ir.node import Node
from irtool.planning.cost_report import MemoryCost, StepCost, step_cost
from irtool.planning.cost_tables import CannotPlan
from irtool.planning.micro_batch import (
    batch_of,
    dataset_splits,
    default_micro_batches,
    micro_batch,
)
from irtool.planning.plan import Plan
from irtool.planning.plan_structure import Parameter, structure_of
from irtool.planning.problem import plain_dump, planned_context, problem_of
from irtool.planning.stage_cells import StageCells, stage_cells
from irtool.planning.stage_figures import (
    CellFigures,
    cell_figures,
    of_micro_batches,
    sent_by_flow,
)
from irtool.planning.stage_search import Chosen, StageSearch
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

_CUTS = 3
"""How often a cut is made anew after stages were planned to fit."""
_HALVINGS = 24
"""How often the bytes of the fullest stage are halved in on, for the cut that is even in memory."""

Parts = tuple[tuple[int, ...], ...]
"""Cells by stage."""


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """One stage.

    Attributes:
        layers: in order; parts of the network outside of layers have names of their own.
        seconds: of all micro-batches, nothing idle.
        static_bytes: weights, gradients and states on a device.
        activation_bytes: results of the micro-batches that it holds at once.
        sent_bytes: that a device hands to later stages in a step, forward; gradients come back.
        scopes: of the operators, each once.
        nodes: the operators, as they stand in the plan's dump.
        in_flight: micro-batches whose results it holds at once.
        loose_bytes: of the static ones, those of weights that other stages use, and no cell holds.
    """

    layers: tuple[str, ...]
    seconds: float
    static_bytes: int
    activation_bytes: int
    sent_bytes: int
    scopes: tuple[str, ...]
    nodes: frozenset[Node]
    in_flight: int
    loose_bytes: int = 0

    @property
    def bytes(self) -> int:
        """Of a device."""
        return self.static_bytes + self.activation_bytes


@dataclass(frozen=True, slots=True)
class Transfer:
    """What a device of one stage hands to one of another in a step.

    Attributes:
        source: number of the stage, ``target`` likewise.
        what: the operator, or the weight.
        size: bytes of one message.
        count: messages forward.
        returned: whether as many gradients come back.
    """

    source: int
    target: int
    what: str
    size: int
    count: int
    returned: bool


@dataclass(frozen=True, eq=False)
class StagedPlan(Shown):
    """A pipeline.

    Attributes:
        inner: the plan of one micro-batch on the devices of one stage; its cost is the work of a
            step on one device of every stage, its memory that of the fullest stage.
        devices: of all stages.
        stages: first to last.
        micro_batches: in a step.
        bubble: part of a step that a stage is idle for, if all take as long.
        seconds: of a step under 1F1B: stages as fast as they are, and what they hand on.
        transfers: between stages.
        unstaged: seconds of a step as the dump is, without stages; None: it has no plan for these
            devices.
        memory_limit: bytes of a device, if there is a limit.
        replanned: numbers of stages that were planned anew to fit into the memory.
    """

    inner: Plan
    devices: int
    stages: tuple[PlannedStage, ...]
    micro_batches: int
    bubble: float
    seconds: float
    transfers: tuple[Transfer, ...] = ()
    unstaged: float | None = None
    memory_limit: int | None = None
    replanned: tuple[int, ...] = ()

    @property
    def is_better(self) -> bool:
        """Whether a step is shorter than that of the dump as it is."""
        return self.unstaged is None or self.seconds < self.unstaged * (1 - 1e-9)

    @property
    def imbalance(self) -> float:
        """How much slower the slowest stage is than the mean."""
        times = [stage.seconds for stage in self.stages]
        return max(times) * len(times) / sum(times) - 1 if sum(times) else 0.0


def staged_plan(
    dump: Dump,
    context: ParallelContext,
    machine: Machine,
    stages: int,
    *,
    devices: int | None = None,
    micro_batches: int | None = None,
    memory_limit: int | None = None,
    decide_optimizer: bool = False,
    decide_recompute: bool = False,
) -> StagedPlan:
    """Cut a network into stages, and plan inside of each.

    Args:
        dump: a begin dump of the whole network and the whole batch, one stage.
        context: what it was compiled under.
        machine: what things cost.
        stages: how many.
        devices: of all stages; None: those of the context.
        micro_batches: in a step; None: four for each stage, or fewer where the batch asks for it.
        memory_limit: bytes of one device; a stage that needs more is planned anew under it.
        decide_optimizer: whether optimizer parallel is decided weight by weight.
        decide_recompute: whether recomputation is decided operator by operator.

    Raises:
        CannotPlan: it can't be cut like this; the message says what would have to change.
    """
    total = devices or context.devices
    _check_whole(dump, context)
    if stages > 1 and total % stages:
        legal = [count for count in range(1, total + 1) if total % count == 0]
        raise CannotPlan(
            f"{total} devices cannot be divided among {stages} stages: "
            f"{', '.join(map(str, legal))} would do"
        )
    try:
        target = planned_context(context, total // stages)
    except CannotPlan as error:
        raise CannotPlan(f"{stages} stages of {total // stages} devices each: {error}") from None
    micro = micro_batches or _default(dump, target, stages)
    _check_micro_batches(dump, target, stages, micro)
    if decide_optimizer:
        target = replace(target, parallel_optimizer=False)
    whole = plain_dump(dump)
    problem = problem_of(micro_batch(whole, micro), context, target)
    search = StageSearch.of(
        problem, machine, micro, optimizer=decide_optimizer, recompute=decide_recompute
    )
    maker = _Maker(search, machine, stages, micro, total)
    made = maker.best(memory_limit)
    return replace(
        made,
        unstaged=_unstaged(dump, context, machine, total),
        memory_limit=memory_limit,
        inner=replace(
            made.inner,
            before=None,
            memory_limit=memory_limit,
            notes=(*made.inner.notes, *maker.notes()),
        ),
    )


def _default(dump: Dump, target: ParallelContext, stages: int) -> int:
    if stages == 1:
        return 1
    return default_micro_batches(dump, stages, dataset_splits(target))


def _check_micro_batches(dump: Dump, target: ParallelContext, stages: int, micro: int) -> None:
    """Refuse numbers of micro-batches that MindSpore would refuse.

    Raises:
        CannotPlan: it is one.
    """
    if micro < stages:
        raise CannotPlan(
            f"MindSpore refuses fewer micro-batches than stages: {micro} for {stages} stages"
        )
    splits, batch = dataset_splits(target), batch_of(dump)
    if micro > 1 and batch % micro == 0 and batch // micro % splits:
        most = batch // splits
        advice = f"at most {most} micro-batches, " if most >= stages else ""
        raise CannotPlan(
            f"the dataset is split over the {splits} devices of a stage, and one of {micro} "
            f"micro-batches has {batch // micro} rows: {advice}a larger batch, or full_batch "
            "would do"
        )


def _check_whole(dump: Dump, context: ParallelContext) -> None:
    """Refuse what is a part of a pipeline.

    Raises:
        CannotPlan: it is.
    """
    advice = "give the begin dump of the whole network, compiled without stages and PipelineCell"
    if context.stages > 1:
        raise CannotPlan(f"this dump is of a pipeline of {context.stages} stages already: {advice}")
    for node in dump.nodes():
        if node.op in ("Send", "Receive"):
            one = f"this dump is of one stage of several (it holds {node.op})"
            raise CannotPlan(f"{one}: {advice}")
        if "-PipelineCell" in (node.scope or ""):
            raise CannotPlan(f"this network is cut into micro-batches already: {advice}")


def _unstaged(dump: Dump, context: ParallelContext, machine: Machine, devices: int) -> float | None:
    """Seconds of a step as the dump is; None where it has no complete plan for these devices."""
    if context.devices != devices or not context.is_parallel:
        return None
    report = check(dump, context)
    if report.accepted is not True:
        return None
    cost: StepCost = step_cost(structure_of(dump, context), report, machine)
    return None if cost.unknown else cost.seconds


@dataclass(eq=False, slots=True)
class _Made:
    """Strategies of all operators, with what cells take under them."""

    chosen: Chosen
    plan: Plan
    figures: list[CellFigures]
    sent: list[int]


@dataclass(eq=False)
class _Maker:
    """Makes pipelines of one network."""

    search: StageSearch
    machine: Machine
    stages: int
    micro: int
    devices: int

    def __post_init__(self) -> None:
        self.structure = self.search.problem.structure
        self.cells: StageCells = stage_cells(self.structure)
        trained: set[int] = set()
        for parameter in self.structure.parameters:
            users = [ref.node for ref in parameter.users if ref.node in self.cells.place]
            if parameter.trained and users:
                trained |= {self.cells.place[node] for node in users if node is not None}
        self.trained = trained
        self.loose = [
            (cell, _whole(parameter)) for parameter, cell in self.cells.loose if self.stages > 1
        ]
        count = len(self.cells.cells)
        if self.stages > 1 and not any(cell.is_cell for cell in self.cells.cells):
            raise CannotPlan(
                f"{self.stages} stages need as many layers that are cells of their own, whose "
                "pipeline_stage can be set, and this network has none: put its layers into cells"
            )
        if self.stages > max(count, 1):
            names = ", ".join(" + ".join(cell.names) for cell in self.cells.cells)
            raise CannotPlan(
                f"{self.stages} stages need as many layers that are cells of their own, whose "
                f"pipeline_stage can be set; here they can be at most {count}: {names}"
            )

    # -- cuts ----------------------------------------------------------------------------------

    def best(self, limit: int | None) -> StagedPlan:
        """The fastest pipeline that fits.

        Raises:
            CannotPlan: none does.
        """
        free = self.free = self._made(self.search.free())
        parts = self._cut(free, None)
        if parts is None:
            raise CannotPlan(
                f"there are no {self.stages} stages each of which has a weight that is trained: "
                "MindSpore refuses others"
            )
        if limit is None or self._fits(free, parts, limit):
            return self._pipeline(free, parts)
        found: list[StagedPlan] = []
        as_it_is = self._cut(free, limit)
        if as_it_is is not None:
            found.append(self._pipeline(free, as_it_is))
        problem: CannotPlan | None = None
        tried: set[Parts] = set()
        todo = [parts, self._even(free)]
        while todo and len(tried) < _CUTS:
            parts = todo.pop(0)
            if parts in tried:
                continue
            tried.add(parts)
            try:
                made = self._fitted(free, parts, limit)
            except CannotPlan as error:
                problem = error
                continue
            found.append(self._pipeline(made, parts))
            again = self._cut(made, limit)
            if again is not None and again not in tried:
                found.append(self._pipeline(made, again))
                todo.insert(0, again)
        if not found:
            assert problem is not None
            raise problem
        return min(found, key=lambda each: each.seconds)

    def _cut(self, made: _Made, limit: int | None) -> Parts | None:
        """The most even cut in time; with a limit, of those whose stages fit as they are."""
        layers = [Layer(str(at), each.seconds(self.micro)) for at, each in enumerate(made.figures)]

        def fits(stage: int, first: int, last: int) -> bool:
            places = tuple(range(first, last))
            if self.stages > 1 and not self.trained.intersection(places):
                return False
            return limit is None or self._bytes(made, stage, places) <= limit

        cut = best_cut(layers, self.stages, fits=fits)
        return None if cut is None else tuple(tuple(map(int, part)) for part in cut.stages)

    def _even(self, made: _Made) -> Parts:
        """The cut whose fullest stage has the fewest bytes, about."""
        low, high = 0, sum(self._bytes(made, 0, (at,)) for at in range(len(made.figures)))
        best = self._cut(made, None)
        assert best is not None
        for _ in range(_HALVINGS):
            middle = (low + high) // 2
            found = self._cut(made, middle)
            if found is None:
                low = middle
            else:
                best, high = found, middle
        return best

    def _fits(self, made: _Made, parts: Parts, limit: int) -> bool:
        return all(self._bytes(made, at, part) <= limit for at, part in enumerate(parts))

    def _in_flight(self, stage: int) -> int:
        return min(self.stages - stage, self.micro)

    def _bytes(self, made: _Made, stage: int, places: Sequence[int]) -> int:
        static, results = self._both(made, stage, places)
        return static + results

    def _both(self, made: _Made, stage: int, places: Sequence[int]) -> tuple[int, int]:
        """Bytes that a stage holds all the time, and of results."""
        own = [made.figures[at] for at in places]
        results = self._in_flight(stage) * sum(each.kept for each in own)
        results += max((each.again for each in own), default=0)
        static = sum(each.static for each in (*own, *self._loose(places)))
        return static, results

    def _loose(self, places: Sequence[int]) -> list[CellFigures]:
        """Weights of other stages that a stage has to keep."""
        return [each for cell, each in self.loose if cell not in places]

    # -- plans ---------------------------------------------------------------------------------

    def _made(self, chosen: Chosen) -> _Made:
        plan = self.search.told(chosen)
        figures = cell_figures(self.structure, self.cells, plan, self.search.sharded(chosen))
        return _Made(chosen, plan, figures, sent_by_flow(plan, self.structure, self.cells))

    def _fitted(self, free: _Made, parts: Parts, limit: int) -> _Made:
        """Stages that do not fit planned anew.

        Raises:
            CannotPlan: one can't be made to fit.
        """
        chosen = free.chosen
        for number, part in enumerate(parts):
            if self._bytes(free, number, part) <= limit:
                continue
            inside = {node for at in part for node in self.cells.cells[at].nodes}
            try:
                room = limit - sum(each.static for each in self._loose(part))
                if room <= 0:
                    raise CannotPlan(
                        f"{limit:,} bytes a device are less than weights take that are used "
                        f"outside of cells, which every stage keeps whole: {limit - room:,} bytes"
                    )
                chosen = self.search.fitted(chosen, inside, self._in_flight(number), room)
            except CannotPlan as error:
                names = [name for at in part for name in self.cells.cells[at].names]
                which = ", ".join(names) if len(names) < 4 else f"{names[0]} to {names[-1]}"
                raise CannotPlan(
                    f"in stage {number} ({which}), which holds results of "
                    f"{self._in_flight(number)} of {self.micro} micro-batches, {error} (it also "
                    "takes less with more stages, or with more micro-batches)"
                ) from None
        return self._made(chosen)

    def _anew(self, made: _Made, parts: Parts) -> tuple[int, ...]:
        """Numbers of stages that are not as they would be without a limit."""
        free, own = self.free.chosen, made.chosen
        same = zip(free.choices, own.choices, free.ways, own.ways, strict=True)
        others = {
            self.cells.place.get(node)
            for node, (a, b, c, d) in zip(self.search.model.nodes, same, strict=True)
            if a != b or c != d
        }
        return tuple(at for at, part in enumerate(parts) if others.intersection(part))

    # -- the answer ----------------------------------------------------------------------------

    def _pipeline(self, made: _Made, parts: Parts) -> StagedPlan:
        transfers = self._transfers(made, parts)
        pairs = zip(self.structure.dump.nodes(), made.plan.dump.nodes(), strict=True)
        twins = dict(pairs)
        found: list[PlannedStage] = []
        times: list[StageTimes] = []
        once: list[float] = []
        size = self.devices // self.stages
        for number, part in enumerate(parts):
            own = [made.figures[at] for at in part]
            cells = [self.cells.cells[at] for at in part]
            static, results = self._both(made, number, part)
            outgoing = [item for item in transfers if item.source == number]
            found.append(
                PlannedStage(
                    tuple(name for cell in cells for name in cell.names),
                    sum(each.seconds(self.micro) for each in own),
                    static,
                    results,
                    sum(item.size * item.count for item in outgoing),
                    tuple(dict.fromkeys(node.scope or "" for cell in cells for node in cell.nodes)),
                    frozenset(twins[node] for cell in cells for node in cell.nodes),
                    self._in_flight(number),
                    sum(each.static for each in self._loose(part)),
                )
            )
            ends = (size * number, size * (number + 1))
            send = [item.size for item in outgoing if item.count == self.micro]
            times.append(
                StageTimes(
                    sum(each.forward for each in own),
                    sum(each.backward for each in own),
                    sum(self.machine.seconds("Send", each, ends) for each in send),
                )
            )
            once.append(sum(each.once for each in own))
        after = of_micro_batches(made.plan.after, self.micro, self._fullest(made, parts))
        inner = replace(
            made.plan,
            after=after,
            lower_bound=min(self.micro * made.chosen.bound, after.seconds),
            seconds=self.search.seconds,
            rounds=self.search.rounds,
        )
        return StagedPlan(
            inner,
            self.devices,
            tuple(found),
            self.micro,
            ideal_bubble(self.stages, self.micro),
            _step(times, once, self.micro),
            transfers,
            replanned=self._anew(made, parts),
        )

    def _fullest(self, made: _Made, parts: Parts) -> MemoryCost:
        """What a device of the fullest stage holds."""
        number, part = max(enumerate(parts), key=lambda each: self._bytes(made, *each))
        own = [*(made.figures[at] for at in part), *self._loose(part)]
        return MemoryCost(
            sum(each.weights for each in own),
            sum(each.gradients for each in own),
            sum(each.states for each in own),
            self._both(made, number, part)[1],
        )

    def _transfers(self, made: _Made, parts: Parts) -> tuple[Transfer, ...]:
        """What goes from stage to stage: results once a micro-batch, shared weights once."""
        stage = {cell: number for number, part in enumerate(parts) for cell in part}
        found: list[Transfer] = []
        for flow, size in zip(self.cells.flows, made.sent, strict=True):
            source = stage[flow.source]
            found += (
                Transfer(source, target, flow.node.op, size, self.micro, flow.gradient)
                for target in sorted({stage[cell] for cell in flow.users})
                if target > source and size
            )
        slices = {item.name: item for item in made.plan.report.parameters}
        for parameter, users in self.cells.shared:
            numbers = sorted({stage[cell] for cell in users})
            piece = slices.get(parameter.name)
            size = prod((piece.slice if piece is not None else None) or ()) * parameter.element
            what = f"weight {parameter.name}"
            found += (
                Transfer(numbers[0], target, what, size, 1, parameter.trained)
                for target in numbers[1:]
            )
        return tuple(found)

    def notes(self) -> list[str]:
        """What the reader should know."""
        found = [
            f"weight {parameter.name} is used in several layers: MindSpore sends it from stage to "
            "stage where these are apart"
            for parameter, _ in self.cells.shared
            if parameter.trained
        ]
        if self.loose:
            names = ", ".join(parameter.name for parameter, _ in self.cells.loose)
            found.append(
                f"{names}: used outside of cells, so that MindSpore keeps them whole in every "
                "stage; in cells of their own, with a pipeline_stage, they would be in one"
            )
        if self.micro > 1:
            found.append(
                f"strategies are for one of {self.micro} micro-batches, and so is the dump that "
                "--format ir writes"
            )
        if self.structure.context.interleave:
            found.append("planned for the 1F1B schedule: interleaved stages are not planned")
        return found


def _whole(parameter: Parameter) -> CellFigures:
    """A weight that is not cut, with gradient and states."""
    count = prod(parameter.weight.shape)
    size = count * parameter.element
    return CellFigures(weights=size, gradients=size, states=count * parameter.states)


def _step(times: Sequence[StageTimes], once: Sequence[float], micro: int) -> float:
    """Seconds of a step: 1F1B against a clock, then what every stage does once."""
    count = len(times)
    schedules = [one_forward_one_backward(stage, count, micro) for stage in range(count)]
    played = play(schedules, times)
    return max(
        (stage[-1].end if stage else 0.0) + own
        for stage, own in zip(played.stages, once, strict=True)
    )
