"""What each cell of a plan takes: seconds of a micro-batch, and bytes of a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.planning.cost.costs import BACKWARD_WORK, item_bytes
from irtool.planning.cost.structure import Structure
from irtool.planning.plans.plan import Plan
from irtool.planning.plans.step.items import CostItem, run
from irtool.planning.plans.step.report import MemoryCost, StepCost
from irtool.planning.search.own_costs import kept_bytes
from irtool.planning.stages.cells import Flow, StageCells


@dataclass(slots=True)
class CellFigures:
    """A cell under a plan.

    Attributes:
        forward: seconds of one micro-batch; ``backward`` likewise, with what is computed again.
        once: seconds of a step that the number of micro-batches does not change.
        weights: bytes of weights; ``gradients`` and ``states`` likewise.
        kept: bytes of results that one micro-batch holds.
        again: bytes of results that are made anew in the backward pass.
    """

    forward: float = 0.0
    backward: float = 0.0
    once: float = 0.0
    weights: int = 0
    gradients: int = 0
    states: int = 0
    kept: int = 0
    again: int = 0

    @property
    def static(self) -> int:
        """Bytes that are held all the time."""
        return self.weights + self.gradients + self.states

    def seconds(self, micro_batches: int) -> float:
        """Seconds of a step of so many micro-batches."""
        return micro_batches * (self.forward + self.backward) + self.once


def cell_figures(
    structure: Structure, cells: StageCells, made: Plan, sharded: Mapping[str, tuple[int, ...]]
) -> list[CellFigures]:
    """The figures of all cells, in order.

    Args:
        structure: of the dump without strategies.
        cells: of that dump.
        made: a plan of it, with what was decided.
        sharded: bytes of weights, gradients and states of the weights that optimizer parallel cuts
            by decision, by name.
    """
    figures = [CellFigures() for _ in cells.cells]
    pairs = zip(made.dump.nodes(), structure.dump.nodes(), strict=True)
    plain = dict(pairs)
    again = set(made.decisions.recomputed or ()) if made.decisions is not None else set[Node]()
    for item in made.after.items:
        node = plain.get(item.node) if item.node is not None else None
        place = cells.place.get(node, 0) if node is not None else 0
        if item.kind in ("weight", "other"):
            figures[place].once += item.total
            continue
        forward = _forward(item, node in structure.with_gradient)
        figures[place].forward += forward
        figures[place].backward += item.total - forward
    for node, report in made.report.by_node.items():
        old = plain[node]
        if old in structure.with_gradient and old in structure.calls:
            size = int(kept_bytes(structure, old, report.judgement))
            own = figures[cells.place[old]]
            if old in again:
                own.again += size
            else:
                own.kept += size
    known = {parameter.name: parameter for parameter in structure.parameters}
    for weight in made.report.parameters:
        parameter = known.get(weight.name)
        if parameter is None or weight.slice is None:
            continue
        user = plain.get(weight.user) if weight.user is not None else None
        own = figures[cells.place.get(user, 0) if user is not None else 0]
        count = prod(weight.slice)
        stored = count * parameter.element
        sizes = (stored, stored if parameter.trained else 0, int(count * parameter.states))
        sizes = sharded.get(weight.name, sizes)
        own.weights, own.gradients, own.states = (
            own.weights + sizes[0], own.gradients + sizes[1], own.states + sizes[2],
        )  # fmt: skip
    return figures


def _forward(item: CostItem, gradient: bool) -> float:
    """Seconds of an operator or edge in the forward pass."""
    if item.kind == "recompute":
        return 0.0
    compute = item.seconds.get("compute", 0.0) / (1 + BACKWARD_WORK if gradient else 1)
    by_phase = {"forward": 0.0, "backward": 0.0}
    for communication in item.communications:
        by_phase[communication.phase] += communication.seconds
    both = sum(by_phase.values())
    rest = item.total - item.seconds.get("compute", 0.0)
    if not both:
        # Slices and copies of a redistribution, and those of its gradient.
        return compute + rest / (2 if gradient and rest else 1)
    return compute + rest * by_phase["forward"] / both


def sent_by_flow(made: Plan, structure: Structure, cells: StageCells) -> list[int]:
    """Bytes that one device hands on of each result, for one micro-batch.

    Args:
        made: a plan of the network.
        structure: of the dump without strategies.
        cells: of that dump.

    Returns:
        one number for each of ``cells.flows``.
    """
    pairs = zip(structure.dump.nodes(), made.dump.nodes(), strict=True)
    twins = dict(pairs)
    return [_sent(made, twins, flow) for flow in cells.flows]


def _sent(made: Plan, twins: Mapping[Node, Node], flow: Flow) -> int:
    node: object = twins[flow.node]
    abstract = flow.node.output_type
    tensors = abstract.tensors if abstract is not None else ()
    dtype = tensors[flow.output][0] if flow.output < len(tensors) else None
    while isinstance(node, Node):
        report = made.report.by_node.get(node)
        slices = report.judgement.output_slices if report is not None else ()
        if flow.output < len(slices):
            return prod(slices[flow.output]) * item_bytes(dtype)
        node = node.inputs[0] if node.inputs else None  # a Cast: what it casts
    return 0


def of_micro_batches(cost: StepCost, count: int, memory: MemoryCost) -> StepCost:
    """The work of a step of so many micro-batches; weights count once.

    Args:
        cost: of one micro-batch.
        count: micro-batches.
        memory: of a device in such a step.
    """
    items = tuple(
        item if item.kind in ("weight", "other") else run(item, count) for item in cost.items
    )
    return replace(cost, items=items, memory=memory)
