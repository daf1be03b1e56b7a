"""Pipelines of a deep network, from the figures of a shallow one whose layers are alike.

The middle layers of a network that repeats get the same strategies, so one of them stands for all:
it is planned once, and its seconds and bytes count as often as it is there.
"""

from __future__ import annotations

from dataclasses import replace

from irtool.ir.dataclass import dataclass
from irtool.ir.units import bytes_text
from irtool.planning.plans.plan import Plan
from irtool.planning.plans.step.shared import with_common_starts
from irtool.planning.scaling.layers import Repeated
from irtool.planning.search.operator_candidates import CannotPlan
from irtool.planning.stages.cells import Flow, StageCells, stage_cells
from irtool.planning.stages.figures import CellFigures, cell_figures, sent_by_flow
from irtool.planning.stages.maker import MadeStages, Parts, PipelineMaker, whole_figures
from irtool.planning.stages.search import Chosen

SHALLOW = 4
"""Layers of a network that stands for a deep one: its first, its last, and two between."""
_TRIES = 7
"""How often the bytes of the shallow network are halved in on, for a deep one that fits."""


class LayersAreNoCells(CannotPlan):
    """Layers that repeat are not what stages are cut between: none can stand for the others."""


@dataclass(eq=False)
class FoldedMaker(PipelineMaker):
    """Makes pipelines of a network in which one layer stands for several.

    Attributes:
        layers: that repeat, of the shallow network.
        more: how many layers its second one stands for, beside itself.
    """

    layers: Repeated | None = None
    more: int = 0

    def read_cells(self) -> None:
        """The cells of the deep network: one of the shallow one as often as it is there."""
        self.structure = self.search.problem.structure
        self.narrow: StageCells = stage_cells(self.structure)
        if self.more:
            self._check()
        self.middle = 1
        self.cells = self._deep()
        self.trained = {place for cell in self._trained() for place in self.places(cell)}
        self.loose = [
            (self.places(cell)[0], whole_figures(parameter))
            for parameter, cell in self.narrow.loose
            if self.stages > 1
        ]

    def _check(self) -> None:
        assert self.layers is not None
        numbers = [
            number for number, cell in enumerate(self.narrow.cells)
            if any(name.startswith(f"{self.layers.prefix}.") for name in cell.names)
        ]  # fmt: skip
        if numbers != list(range(self.layers.count)):
            raise LayersAreNoCells(
                f"stages are cut between cells, and the layers {self.layers.prefix} are not the "
                "cells of this network: plan it without stages"
            )

    def _trained(self) -> set[int]:
        trained: set[int] = set()
        for parameter in self.structure.parameters:
            if parameter.trained:
                nodes = [ref.node for ref in parameter.users if ref.node in self.narrow.place]
                trained |= {self.narrow.place[node] for node in nodes if node is not None}
        return trained

    def places(self, cell: int) -> list[int]:
        """Where a cell of the shallow network stands in the deep one."""
        if not self.more or cell < self.middle:
            return [cell]
        if cell == self.middle:
            return list(range(cell, cell + self.more + 1))
        return [cell + self.more]

    def _deep(self) -> StageCells:
        narrow = self.narrow
        cells = tuple(cell for number, cell in enumerate(narrow.cells) for _ in self.places(number))
        place = {node: self.places(number)[0] for node, number in narrow.place.items()}
        flows = tuple(made for flow in narrow.flows for made in self._flows(flow))
        shared = tuple(
            (parameter, tuple(deep for user in users for deep in self.places(user)))
            for parameter, users in narrow.shared
        )
        loose = tuple((parameter, self.places(number)[0]) for parameter, number in narrow.loose)
        return StageCells(cells, place, flows, shared, loose)

    def _flows(self, flow: Flow) -> list[Flow]:
        """A result that goes to the next layer does so in each; others go to all that read them."""
        sources = self.places(flow.source)
        if flow.users == (flow.source + 1,):
            following = self.places(flow.source + 1)[0]
            if len(sources) == 1:
                return [replace(flow, source=sources[0], users=(following,))]
            return [replace(flow, source=place, users=(place + 1,)) for place in sources]
        users = tuple(place for user in flow.users for place in self.places(user))
        return [replace(flow, source=sources[-1], users=tuple(u for u in users if u > sources[-1]))]

    def made(self, chosen: Chosen) -> MadeStages:
        """What cells of the deep network take."""
        plan = self._with_starts(self.search.plan_of(chosen))
        own = cell_figures(
            self.search.model.structure, self.narrow, plan, self.search.sharded(chosen)
        )
        figures: list[CellFigures] = [
            cell for number, cell in enumerate(own) for _ in self.places(number)
        ]
        sent = sent_by_flow(plan, self.structure, self.cells)
        return MadeStages(chosen, plan, figures, sent, self.shared_bytes(plan))

    def _with_starts(self, plan: Plan) -> Plan:
        """A plan of the shallow network whose fused collectives start as in the deep one.

        However many weights a bucket holds, it starts once: each pays less of that.
        """
        pairs = zip(plan.dump.nodes(), self.structure.dump.nodes(), strict=True)
        plain = dict(pairs)
        items = plan.after.items
        alike = [
            item for item in items
            if item.node is not None and self.narrow.place.get(plain[item.node]) == self.middle
        ] if self.more else []  # fmt: skip
        priced = with_common_starts((*items, *(alike * self.more)), self.machine)
        return replace(plan, after=replace(plan.after, items=priced[: len(items)]))

    def fitted(self, free: MadeStages, parts: Parts, limit: int) -> MadeStages:
        """All stages planned anew, so that the fullest fits; layers stay alike.

        Raises:
            CannotPlan: none fits.
        """
        inside = set(self.narrow.place)
        in_flight = min(self.stages, self.micro)
        high = sum(cell.static + in_flight * cell.kept + cell.again for cell in self._own(free))
        low, best = 0, None
        problem: CannotPlan | None = None
        for _ in range(_TRIES):
            middle = (low + high) // 2
            try:
                chosen = self.search.fitted(free.chosen, inside, in_flight, middle)
            except CannotPlan as error:
                problem, low = error, middle
                continue
            made = self.made(chosen)
            if self._fits(made, parts, limit) or self._cut(made, limit) is not None:
                best, low = made, middle
            else:
                high = middle
        if best is None:
            raise problem or CannotPlan(f"no stages were found that fit into {bytes_text(limit)}")
        return best

    def shallow_bytes(self, made: MadeStages) -> int:
        """Bytes of kept results of the shallow network, as tables count them."""
        return sum(cell.kept for cell in self._own(made))

    def _own(self, made: MadeStages) -> list[CellFigures]:
        """The figures of the shallow network's cells."""
        return [made.figures[self.places(number)[0]] for number in range(len(self.narrow.cells))]
