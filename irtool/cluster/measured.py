"""A step as it was measured, operator by operator, beside what the model says of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from irtool.artefacts.joining import Joined, join_names
from irtool.artefacts.profile import Profile
from irtool.cluster.flops_seconds import operator_seconds
from irtool.cluster.machine import Machine
from irtool.cluster.memory_layers import layer_of_scope
from irtool.ir.collectives import is_collective
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
    """

    node: Node
    seconds: float
    modelled: float | None
    phase: Phase | None
    layer: str


@dataclass(frozen=True, eq=False)
class MeasuredStep:
    """A profile joined with a dump.

    ``scale``: measured seconds for one modelled second, over all operators; single operators are
    compared with the model times this, as only its ratios mean something.
    """

    profile: Profile
    joined: Joined
    operators: tuple[MeasuredOperator, ...]
    machine: Machine

    @property
    def total(self) -> float:
        """Seconds of all joined operators, one after the other."""
        return sum(each.seconds for each in self.operators)

    @property
    def modelled(self) -> float:
        """The same as modelled, of those that are priced."""
        return sum(each.modelled or 0.0 for each in self.operators)

    @property
    def scale(self) -> float | None:
        """Measured seconds of those that are priced, for one modelled second."""
        priced = sum(each.seconds for each in self.operators if each.modelled is not None)
        return priced / self.modelled if self.modelled else None

    @property
    def furthest(self) -> tuple[MeasuredOperator, ...]:
        """Operators by how many seconds they are from the scaled model, the furthest first."""
        scale = self.scale
        if not scale:
            return ()
        found = [each for each in self.operators if each.modelled]
        return tuple(
            sorted(found, key=lambda each: -abs(each.seconds - (each.modelled or 0.0) * scale))
        )

    def ratio(self, each: MeasuredOperator) -> float | None:
        """Measured seconds for those of the scaled model; None where it has none."""
        scale = self.scale
        return each.seconds / (each.modelled * scale) if scale and each.modelled else None

    def by(self, kind: str) -> dict[str, tuple[float, float]]:
        """Measured and modelled seconds by operator, layer or phase, the dearest first."""
        found: dict[str, tuple[float, float]] = {}
        for each in self.operators:
            key = _key(each, kind)
            seconds, modelled = found.get(key, (0.0, 0.0))
            found[key] = (seconds + each.seconds, modelled + (each.modelled or 0.0))
        return dict(sorted(found.items(), key=lambda item: -item[1][0]))


def _key(each: MeasuredOperator, kind: str) -> str:
    if kind == "operator":
        return each.node.op
    return (each.layer or "-") if kind == "layer" else str(each.phase or "-")


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
    return MeasuredStep(profile, joined, operators, machine)


def _operators(
    seconds: Mapping[str, float],
    nodes: Mapping[str, Node],
    where: Mapping[Node, Phase],
    machine: Machine,
) -> Iterable[MeasuredOperator]:
    found = sorted(nodes.items(), key=lambda item: (-seconds[item[0]], item[0]))
    for name, node in found:
        modelled = None if is_collective(node) else operator_seconds(node, machine)
        layer = layer_of_scope(node.scope or "")
        yield MeasuredOperator(node, seconds[name], modelled, where.get(node), layer)
