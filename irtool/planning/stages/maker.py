"""Pipelines of one network: where it is cut, what is planned anew to fit, and what a step takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from irtool.cluster.machine import Machine
from irtool.cluster.pipeline.cut import Layer, best_cut
from irtool.cluster.schedule import StageTimes, ideal_bubble, one_forward_one_backward, play
from irtool.ir.dataclass import dataclass
from irtool.ir.units import bytes_text
from irtool.planning.cost.structure import Parameter
from irtool.planning.plans.decisions import Decisions
from irtool.planning.plans.plan import Plan
from irtool.planning.plans.step.report import MemoryCost
from irtool.planning.search.tables import CannotPlan
from irtool.planning.stages.cells import StageCells, stage_cells
from irtool.planning.stages.figures import (
    CellFigures,
    cell_figures,
    of_micro_batches,
    sent_by_flow,
)
from irtool.planning.stages.results import PlannedStage, StagedPlan, Transfer
from irtool.planning.stages.search import Chosen, StageSearch

_CUTS = 3
"""How often a cut is made anew after stages were planned to fit."""
_HALVINGS = 24
"""How often the bytes of the fullest stage are halved in on, for the cut that is even in memory."""

Parts = tuple[tuple[int, ...], ...]
"""Cells by stage."""


@dataclass(eq=False, slots=True)
class MadeStages:
    """Strategies of all operators, with what cells take under them.

    Attributes:
        figures: by cell.
        sent: bytes by flow; ``shared``: by weight that several cells use.
    """

    chosen: Chosen
    plan: Plan
    figures: list[CellFigures]
    sent: list[int]
    shared: list[int]


@dataclass(eq=False)
class PipelineMaker:
    """Makes pipelines of one network: cuts, plans inside, and the answer."""

    search: StageSearch
    machine: Machine
    stages: int
    micro: int
    devices: int

    def __post_init__(self) -> None:
        self.read_cells()
        self._check_cells()

    def read_cells(self) -> None:
        """The cells that stages are cut between, and the weights that lie in none."""
        self.structure = self.search.problem.structure
        self.cells: StageCells = stage_cells(self.structure)
        trained: set[int] = set()
        for parameter in self.structure.parameters:
            users = [ref.node for ref in parameter.users if ref.node in self.cells.place]
            if parameter.trained and users:
                trained |= {self.cells.place[node] for node in users if node is not None}
        self.trained = trained
        self.loose = [
            (cell, whole_figures(parameter))
            for parameter, cell in self.cells.loose
            if self.stages > 1
        ]

    def _check_cells(self) -> None:
        """Refuse more stages than there are cells.

        Raises:
            CannotPlan: there are.
        """
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
        free = self.free = self.made(self.search.free())
        parts = self._cut(free, None)
        if parts is None:
            raise CannotPlan(
                f"there are no {self.stages} stages each of which has a weight that is trained: "
                "MindSpore refuses others"
            )
        if limit is None or self._fits(free, parts, limit):
            return self._pipeline(free, parts)
        pipelines: list[StagedPlan] = []
        as_it_is = self._cut(free, limit)
        if as_it_is is not None:
            pipelines.append(self._pipeline(free, as_it_is))
        problem: CannotPlan | None = None
        tried: set[Parts] = set()
        todo = [parts, self._even(free)]
        while todo and len(tried) < _CUTS:
            parts = todo.pop(0)
            if parts in tried:
                continue
            tried.add(parts)
            try:
                made = self.fitted(free, parts, limit)
            except CannotPlan as error:
                problem = error
                continue
            pipelines.append(self._pipeline(made, parts))
            again = self._cut(made, limit)
            if again is not None and again not in tried:
                pipelines.append(self._pipeline(made, again))
                todo.insert(0, again)
        if not pipelines:
            assert problem is not None
            raise problem
        return min(pipelines, key=lambda pipeline: pipeline.seconds)

    def _cut(self, made: MadeStages, limit: int | None) -> Parts | None:
        """The most even cut in time; with a limit, of those whose stages fit as they are."""
        layers = [
            Layer(str(number), cell.seconds(self.micro)) for number, cell in enumerate(made.figures)
        ]

        def fits(stage: int, first: int, last: int) -> bool:
            places = tuple(range(first, last))
            if self.stages > 1 and not self.trained.intersection(places):
                return False
            return limit is None or self._bytes(made, stage, places) <= limit

        cut = best_cut(layers, self.stages, fits=fits)
        return None if cut is None else tuple(tuple(map(int, part)) for part in cut.stages)

    def _even(self, made: MadeStages) -> Parts:
        """The cut whose fullest stage has the fewest bytes, about."""
        low, high = 0, sum(self._bytes(made, 0, (number,)) for number in range(len(made.figures)))
        best = self._cut(made, None)
        assert best is not None
        for _ in range(_HALVINGS):
            middle = (low + high) // 2
            cut = self._cut(made, middle)
            if cut is None:
                low = middle
            else:
                best, high = cut, middle
        return best

    def _fits(self, made: MadeStages, parts: Parts, limit: int) -> bool:
        return all(self._bytes(made, stage, part) <= limit for stage, part in enumerate(parts))

    def _in_flight(self, stage: int) -> int:
        return min(self.stages - stage, self.micro)

    def _bytes(self, made: MadeStages, stage: int, places: Sequence[int]) -> int:
        static, results = self._both(made, stage, places)
        return static + results

    def _both(self, made: MadeStages, stage: int, places: Sequence[int]) -> tuple[int, int]:
        """Bytes that a stage holds all the time, and of results."""
        own = [made.figures[place] for place in places]
        results = self._in_flight(stage) * sum(figures.kept for figures in own)
        results += max((figures.again for figures in own), default=0)
        static = sum(figures.static for figures in (*own, *self._loose(places)))
        return static + self._copies(made, places), results

    def _copies(self, made: MadeStages, places: Sequence[int]) -> int:
        """Bytes of weights that a stage gets from an earlier one."""
        return sum(
            size
            for (_, users), size in zip(self.cells.shared, made.shared, strict=True)
            if users[0] not in places and not set(users).isdisjoint(places)
        )

    def _loose(self, places: Sequence[int]) -> list[CellFigures]:
        """Weights of other stages that a stage has to keep."""
        return [figures for cell, figures in self.loose if cell not in places]

    # -- plans ---------------------------------------------------------------------------------

    def made(self, chosen: Chosen) -> MadeStages:
        """What cells take under strategies.

        Raises:
            CannotPlan: ``check`` refuses them.
        """
        plan = self.search.plan_of(chosen)
        figures = cell_figures(
            self.search.model.structure, self.cells, plan, self.search.sharded(chosen)
        )
        sent = sent_by_flow(plan, self.structure, self.cells)
        return MadeStages(chosen, plan, figures, sent, self.shared_bytes(plan))

    def shared_bytes(self, plan: Plan) -> list[int]:
        """Bytes that a device holds of each weight that several cells use."""
        slices = {item.name: item.slice for item in plan.report.parameters}
        return [
            prod(slices.get(parameter.name) or ()) * parameter.element
            for parameter, _ in self.cells.shared
        ]

    def fitted(self, free: MadeStages, parts: Parts, limit: int) -> MadeStages:
        """Stages that do not fit planned anew.

        Raises:
            CannotPlan: one can't be made to fit.
        """
        chosen = free.chosen
        for number, part in enumerate(parts):
            if self._bytes(free, number, part) <= limit:
                continue
            inside = {node for place in part for node in self.cells.cells[place].nodes}
            room = limit - sum(figures.static for figures in self._loose(part))
            room -= self._copies(free, part)
            try:
                if room <= 0:
                    raise CannotPlan(
                        f"{bytes_text(limit)} a device are less than weights of other stages "
                        f"take that this one keeps, too: {bytes_text(round(limit - room))}"
                    )
                chosen = self.search.fitted(chosen, inside, self._in_flight(number), room)
            except CannotPlan as error:
                names = [name for place in part for name in self.cells.cells[place].names]
                which = ", ".join(names) if len(names) < 4 else f"{names[0]} to {names[-1]}"
                raise CannotPlan(
                    f"in stage {number} ({which}), which holds results of "
                    f"{self._in_flight(number)} of {self.micro} micro-batches, {error}"
                    f"{self._of_others(limit, room)}; more micro-batches take less, too"
                ) from None
        return self.made(chosen)

    @staticmethod
    def _of_others(limit: int, room: float) -> str:
        """What weights of other stages take of a limit."""
        if not 0 < room < limit:
            return ""
        return (
            f" (of the {bytes_text(limit)}, weights of other stages that this one keeps, too, take "
            f"{bytes_text(round(limit - room))})"
        )

    def _anew(self, made: MadeStages, parts: Parts) -> tuple[int, ...]:
        """Numbers of stages that are not as they would be without a limit."""
        free, own = self.free.chosen, made.chosen
        same = zip(free.choices, own.choices, free.modes, own.modes, strict=True)
        others = {
            self.cells.place.get(node)
            for node, (a, b, c, d) in zip(self.search.model.nodes, same, strict=True)
            if a != b or c != d
        }
        return tuple(stage for stage, part in enumerate(parts) if others.intersection(part))

    # -- the answer ----------------------------------------------------------------------------

    def _pipeline(self, made: MadeStages, parts: Parts) -> StagedPlan:
        transfers = self._transfers(made, parts)
        pairs = zip(self.structure.dump.nodes(), made.plan.dump.nodes(), strict=True)
        twins = dict(pairs)
        stages: list[PlannedStage] = []
        times: list[StageTimes] = []
        once: list[float] = []
        size = self.devices // self.stages
        for number, part in enumerate(parts):
            own = [made.figures[place] for place in part]
            cells = [self.cells.cells[place] for place in part]
            static, results = self._both(made, number, part)
            outgoing = [item for item in transfers if item.source == number]
            stages.append(
                PlannedStage(
                    tuple(name for cell in cells for name in cell.names),
                    sum(figures.seconds(self.micro) for figures in own),
                    static,
                    results,
                    sum(item.size * item.count for item in outgoing),
                    tuple(dict.fromkeys(node.scope or "" for cell in cells for node in cell.nodes)),
                    frozenset(twins[node] for cell in cells for node in cell.nodes),
                    self._in_flight(number),
                    sum(figures.static for figures in self._loose(part)),
                )
            )
            ends = (size * number, size * (number + 1))
            send = [item.size for item in outgoing if item.count == self.micro]
            times.append(
                StageTimes(
                    sum(figures.forward for figures in own),
                    sum(figures.backward for figures in own),
                    sum(self.machine.seconds("Send", sent, ends) for sent in send),
                )
            )
            once.append(sum(figures.once for figures in own))
        after = of_micro_batches(made.plan.after, self.micro, self._fullest(made, parts))
        inner = replace(
            made.plan,
            after=after,
            lower_bound=self._bound(made, after.seconds),
            seconds=self.search.seconds,
            rounds=self.search.rounds,
            decisions=self._decisions(made, parts),
        )
        return StagedPlan(
            inner,
            self.devices,
            tuple(stages),
            self.micro,
            ideal_bubble(self.stages, self.micro),
            _step(times, once, self.micro),
            transfers,
            replanned=self._anew(made, parts),
        )

    def _fullest(self, made: MadeStages, parts: Parts) -> MemoryCost:
        """What a device of the fullest stage holds."""
        number, part = max(enumerate(parts), key=lambda pair: self._bytes(made, *pair))
        own = [*(made.figures[place] for place in part), *self._loose(part)]
        return MemoryCost(
            sum(figures.weights for figures in own) + self._copies(made, part),
            sum(figures.gradients for figures in own),
            sum(figures.states for figures in own),
            self._both(made, number, part)[1],
        )

    def _bound(self, made: MadeStages, planned: float) -> float | None:
        """Seconds that no plan in these stages is below; None where strategies were left out."""
        if self.search.model.left_out:
            return None
        return min(self.micro * made.chosen.bound, planned)

    def _decisions(self, made: MadeStages, parts: Parts) -> Decisions | None:
        """What was decided: seconds of a step, bytes of a device of the fullest stage."""
        decisions = made.plan.decisions
        if decisions is None:
            return None
        number, part = max(enumerate(parts), key=lambda pair: self._bytes(made, *pair))
        again = [made.figures[place].again for place in part]
        return replace(
            decisions,
            seconds=self.micro * decisions.seconds,
            saved=self._in_flight(number) * sum(again),
            held=max(again, default=0),
        )

    def _transfers(self, made: MadeStages, parts: Parts) -> tuple[Transfer, ...]:
        """What goes from stage to stage: results once a micro-batch, shared weights once."""
        stage = {cell: number for number, part in enumerate(parts) for cell in part}
        transfers: list[Transfer] = []
        for flow, size in zip(self.cells.flows, made.sent, strict=True):
            source = stage[flow.source]
            transfers += (
                Transfer(source, target, flow.node.op, size, self.micro, flow.gradient)
                for target in sorted({stage[cell] for cell in flow.users})
                if target > source and size
            )
        for (parameter, users), size in zip(self.cells.shared, made.shared, strict=True):
            numbers = sorted({stage[cell] for cell in users})
            what = f"weight {parameter.name}"
            transfers += (
                Transfer(numbers[0], target, what, size, 1, parameter.trained)
                for target in numbers[1:]
            )
        return tuple(transfers)

    def notes(self) -> list[str]:
        """What the reader should know."""
        notes = [
            f"weight {parameter.name} is used in several layers: MindSpore sends it from stage to "
            "stage where these are apart"
            for parameter, _ in self.cells.shared
            if parameter.trained
        ]
        if self.loose:
            names = ", ".join(parameter.name for parameter, _ in self.cells.loose)
            notes.append(
                f"{names}: used outside of cells, so that MindSpore keeps them whole in every "
                "stage; in cells of their own, with a pipeline_stage, they would be in one"
            )
        if self.micro > 1:
            notes.append(
                f"strategies are for one of {self.micro} micro-batches, and so is the dump that "
                "--format ir writes"
            )
        if self.structure.context.interleave:
            notes.append("planned for the 1F1B schedule: interleaved stages are not planned")
        return notes


def whole_figures(parameter: Parameter) -> CellFigures:
    """A weight that is not cut, with gradient and states.

    Args:
        parameter: the weight.

    Returns:
        bytes of one device; its seconds are not counted.
    """
    count = prod(parameter.weight.shape)
    size = count * parameter.element
    return CellFigures(weights=size, gradients=size, states=int(count * parameter.states))


def _step(times: Sequence[StageTimes], once: Sequence[float], micro: int) -> float:
    """Seconds of a step: 1F1B against a clock, then what every stage does once."""
    count = len(times)
    schedules = [one_forward_one_backward(stage, count, micro) for stage in range(count)]
    played = play(schedules, times)
    return max(
        (stage[-1].end if stage else 0.0) + own
        for stage, own in zip(played.stages, once, strict=True)
    )
