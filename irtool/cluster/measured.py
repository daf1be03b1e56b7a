"""A step as it was measured, operator by operator, beside what the model says of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from irtool.artefacts.joining import Joined, JoinedShapes, join_names, join_shapes
from irtool.artefacts.profile import Profile
from irtool.cluster.axes import Axis, axes
from irtool.cluster.flops_seconds import operator_seconds
from irtool.cluster.machine import Machine
from irtool.cluster.memory.layers import layer_of_scope
from irtool.ir.collectives import collective
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.phases import Phase, phases


@dataclass(frozen=True, slots=True)
class MeasuredOperator:
    """An operator that ran.

    Attributes:
        node: of the dump that the profile was joined with.
        seconds: of a step, as measured.
        modelled: by the machine's roofline; None of communication, which it does not price.
        phase: of the step.
        layer: empty where its scope shows none.
        cause: why a communication is there; ``compute`` and ``optimizer`` are the rest.
        axis: of parallelism that a communication serves; None of what computes.
    """

    node: Node
    seconds: float
    modelled: float | None
    phase: Phase | None
    layer: str
    cause: str = "compute"
    axis: Axis | None = None


@dataclass(frozen=True, slots=True)
class SlowOperator:
    """An operator that took longer in one step than it usually does; seconds."""

    name: str
    node: Node | None
    seconds: float
    usual: float


@dataclass(frozen=True, eq=False)
class MeasuredStep:
    """A profile joined with a dump.

    ``dump``: what it was joined with; ``shapes``: likewise, where shapes were recorded and all
    names have a node.  ``scale``: measured seconds for one modelled second, over all operators;
    single operators are compared with the model times this, as only its ratios mean something.
    """

    profile: Profile
    joined: Joined
    operators: tuple[MeasuredOperator, ...]
    machine: Machine
    dump: Dump
    shapes: JoinedShapes

    @property
    def slowest(self) -> int | None:
        """The step that took longest of those that count; None where fewer than two do."""
        steps = self.profile.steps
        first = 1 if len(steps) > 2 else 0
        if len(steps) - first < 2:
            return None
        return max(range(first, len(steps)), key=lambda place: steps[place].wall)

    def slower_in(self, place: int) -> tuple[SlowOperator, ...]:
        """What took longer in a step than it usually does, by seconds, the most first."""
        count = len(self.profile.steps)
        slower = [
            SlowOperator(name, self.joined.nodes.get(name), times[place] / 1e6, usual)
            for name, times in self.profile.by_step.items()
            if len(times) == count and times[place] / 1e6 > (usual := self.profile.seconds[name])
        ]
        return tuple(sorted(slower, key=lambda one: (one.usual - one.seconds, one.name)))

    @property
    def total(self) -> float:
        """Seconds of all joined operators, one after the other."""
        return sum(operator.seconds for operator in self.operators)

    @property
    def modelled(self) -> float:
        """Seconds by the model of those joined operators that it prices, one after the other."""
        return sum(operator.modelled or 0.0 for operator in self.operators)

    @property
    def scale(self) -> float | None:
        """Measured seconds of those that are priced, for one modelled second."""
        priced = sum(
            operator.seconds for operator in self.operators if operator.modelled is not None
        )
        return priced / self.modelled if self.modelled else None

    @property
    def furthest(self) -> tuple[MeasuredOperator, ...]:
        """Operators by how many seconds they are from the scaled model, the furthest first."""
        scale = self.scale
        if not scale:
            return ()
        priced = [operator for operator in self.operators if operator.modelled]
        return tuple(
            sorted(
                priced,
                key=lambda operator: -abs(operator.seconds - (operator.modelled or 0.0) * scale),
            )
        )

    def ratio(self, operator: MeasuredOperator) -> float | None:
        """Measured seconds for those of the scaled model; None where it has none."""
        scale = self.scale
        return (
            operator.seconds / (operator.modelled * scale) if scale and operator.modelled else None
        )

    def by(self, kind: str) -> dict[str, tuple[float, float | None]]:
        """Measured and modelled seconds, the dearest first; None where nothing of it is priced.

        Args:
            kind: operator, layer, phase, cause, or axis, of which communications alone have one.
        """
        sums: dict[str, tuple[float, float | None]] = {}
        for operator in self.operators:
            if kind == "axis" and operator.axis is None:
                continue
            key = _key(operator, kind)
            seconds, modelled = sums.get(key, (0.0, None))
            if operator.modelled is not None:
                modelled = (modelled or 0.0) + operator.modelled
            sums[key] = (seconds + operator.seconds, modelled)
        return dict(sorted(sums.items(), key=lambda item: -item[1][0]))


def _key(operator: MeasuredOperator, kind: str) -> str:
    if kind == "operator":
        return operator.node.op
    if kind in ("cause", "axis"):
        return operator.cause if kind == "cause" else str(operator.axis)
    return (operator.layer or "-") if kind == "layer" else str(operator.phase or "-")


def measured_step(profile: Profile, dump: Dump, machine: Machine) -> MeasuredStep:
    """Join a profile with the dump of what ran.

    Args:
        profile: what was measured.
        dump: ``graph_build`` where it is there, else ``validate``.
        machine: what operations and bytes cost.
    """
    joined = join_names(profile.seconds, dump)
    where = phases(dump)
    operators = tuple(_operators(profile.seconds, joined.nodes, where, machine))
    # What the backend expanded has names without a scope in common with other nodes.
    shapes = join_shapes(() if joined.missing else profile.launched, dump)
    return MeasuredStep(profile, joined, operators, machine, dump, shapes)


def _operators(
    seconds: Mapping[str, float],
    nodes: Mapping[str, Node],
    where: Mapping[Node, Phase],
    machine: Machine,
) -> Iterable[MeasuredOperator]:
    communications = {
        node: communication
        for node in nodes.values()
        if (communication := collective(node)) is not None
    }
    served = axes(list(communications.values()))
    ordered = sorted(nodes.items(), key=lambda item: (-seconds[item[0]], item[0]))
    for name, node in ordered:
        item = communications.get(node)
        phase = where.get(node)
        cause = "optimizer" if phase == "optimizer" else "compute"
        yield MeasuredOperator(
            node,
            seconds[name],
            None if item is not None else operator_seconds(node, machine),
            phase,
            layer_of_scope(node.scope or ""),
            cause if item is None else item.origin,
            None if item is None else served.get(node, "unknown"),
        )
