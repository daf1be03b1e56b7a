"""What it costs to get to the candidates of operators: bytes to fetch, operators to compile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.operators.judgement import Judgement
from irtool.operators.layout import Shape
from irtool.planning.cost.holdings import Holdings
from irtool.planning.cost.kept import FIXED
from irtool.planning.cost.structure import Parameter
from irtool.planning.cost.weights import held_weight, judgement_of_weight
from irtool.planning.recovery.fetch import Boxes, Fetch
from irtool.planning.search.candidate_layouts import layouts_of
from irtool.planning.search.candidates import Candidates
from irtool.planning.search.exact import Floats
from irtool.planning.search.problem import Problem
from irtool.planning.search.tables import Given, Model
from irtool.sharding.network.report import OperatorReport
from irtool.sharding.network.sharded_nodes import primitive

COMPILE_SECONDS = 0.044
"""Of the compiler's front end for one operator (measured on a slow machine)."""


@dataclass(frozen=True, eq=False)
class Extra:
    """What the candidates of an operator cost to get to: bytes fetched, slices and form new."""

    fetched: Floats
    recompiled: Floats
    changed: Floats


class Extras:
    """Arrays of what candidates cost to get to; operators that are alike share theirs."""

    def __init__(
        self,
        problem: Problem,
        fitted: Mapping[Node, Given],
        model: Model,
        fetch: Fetch,
        old: Holdings,
    ) -> None:
        self.problem = problem
        self.fitted = fitted
        self.model = model
        self.fetch = fetch
        self.old = old.by_name()
        self._known: dict[object, Extra] = {}
        reports = problem.report.by_node if problem.report is not None else {}
        self._reports: dict[Node, OperatorReport] = {
            problem.twins[node]: item for node, item in reports.items() if node in problem.twins
        }
        self._owned: dict[Node, list[tuple[Parameter, Boxes]]] = {}
        for parameter in problem.structure.parameters:
            if parameter.owner is not None and parameter.owner.node is not None:
                held = fetch.held(self.old.get(parameter.name))
                self._owned.setdefault(parameter.owner.node, []).append((parameter, held))

    def all(self) -> tuple[Extra, ...]:
        """By variable of the model."""
        return tuple(self._of(variable) for variable in range(len(self.model.nodes)))

    def _of(self, variable: int) -> Extra:
        node, candidates = self.model.nodes[variable], self.model.candidates[variable]
        report = self._reports.get(node)
        slices = None
        if report is not None:
            slices = (report.judgement.input_slices, report.judgement.output_slices)
        owned = self._owned.get(node, [])
        fitted = self.fitted.get(node)
        shown = tuple(
            (p.owner.side, p.owner.index, p.element, p.states, p.weight.shape, held)
            for p, held in owned
            if p.owner is not None
        )
        key = (id(candidates), slices, fitted, shown)
        extra = self._known.get(key)
        if extra is None:
            extra = self._known[key] = Extra(
                self._fetched(owned, candidates),
                np.array([float(slices != _slices(each)) for each in candidates.sketches()]),
                np.array(
                    [
                        float(
                            primitive(node) not in FIXED
                            and fitted is not None
                            and (item.strategy, item.out_strategy) != fitted
                        )
                        for item in candidates.items
                    ]
                ),
            )
        return extra

    def _fetched(self, owned: Sequence[tuple[Parameter, Boxes]], candidates: Candidates) -> Floats:
        """Bytes that all devices fetch of some weights, by candidate of their operator."""
        total = np.zeros(len(candidates))
        for parameter, held in owned:
            which, judgements = self._lying(parameter, candidates)
            total += np.array([self._of_weight(parameter, held, one) for one in judgements])[which]
        return total

    def _lying(
        self, parameter: Parameter, candidates: Candidates
    ) -> tuple[npt.NDArray[np.int64], list[Judgement]]:
        """By candidate in which of some ways a weight lies, each once."""
        owner = parameter.owner
        assert owner is not None
        devices = self.problem.structure.operators.stage_size
        if not candidates.families or owner.side != "input":
            return np.arange(len(candidates)), [item.judgement for item in candidates.items]
        layouts = layouts_of(owner, candidates, devices)
        own = (self.problem.structure.operators.own_rank,)  # who sums its gradient is no matter
        judgements = [
            judgement_of_weight(owner.index, layouts.layout(number), own)
            for number in range(len(layouts))
        ]
        return layouts.which, judgements

    def _of_weight(self, parameter: Parameter, held: Boxes, judgement: Judgement) -> float:
        weight = held_weight(self.problem.structure, parameter, judgement)
        if weight.layout is None:
            return 0.0
        shared = len(weight.gather_ranks or (0,))
        elements = self.fetch.elements(weight.layout, shared, held)
        return float(elements * (parameter.element + parameter.states))


def _slices(judgement: Judgement) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
    return judgement.input_slices, judgement.output_slices


def paid(
    extras: Sequence[Extra],
    horizon: float,
    weights: tuple[int, int, int],
    count: int,
    bandwidth: float,
) -> list[Floats]:
    """Seconds a step that the way to each candidate costs; equal operators share an array.

    Args:
        extras: by variable.
        horizon: steps that pay it off.
        weights: of bytes fetched, operators compiled, operators changed.
        count: devices.
        bandwidth: bytes a second at which a device fetches.

    Returns:
        None for an endless horizon: then the way there costs nothing.
    """
    fetched, recompiled, changed = weights
    known: dict[int, Floats] = {}
    for extra in extras:
        if id(extra) not in known:
            seconds = fetched * extra.fetched / count / bandwidth + COMPILE_SECONDS * (
                recompiled * extra.recompiled + changed * extra.changed
            )
            known[id(extra)] = seconds / horizon
    return [known[id(extra)] for extra in extras]
