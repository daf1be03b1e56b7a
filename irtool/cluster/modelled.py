"""A step of the kernel graph alone, by the roofline of a machine: for runs on a single device."""

from __future__ import annotations

from irtool.cluster.flops_seconds import operator_seconds
from irtool.cluster.launch_order import launch_order
from irtool.cluster.machine import Machine
from irtool.ir.collectives import is_collective
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.units import plural


@dataclass(frozen=True, eq=False)
class ModelledStep:
    """What each launched operator takes by the model, the dearest first.

    ``unknown``: what is not priced; ``launched``: the operators in the order of their launches.
    """

    dump: Dump
    operators: tuple[tuple[Node, float], ...]
    machine: Machine
    unknown: tuple[str, ...]
    launched: tuple[Node, ...]

    @property
    def path(self) -> str:
        """The file that the dump was read from."""
        return self.dump.path

    @property
    def total(self) -> float:
        """Seconds of a step, one operator after the other."""
        return sum(seconds for _, seconds in self.operators)


def modelled_step(dump: Dump, machine: Machine) -> ModelledStep:
    """What a step of a dump takes.

    Args:
        dump: ``graph_build``, else ``validate``.
        machine: what operations and bytes cost.
    """
    launched = launch_order(dump)
    communicating = sum(1 for node in launched if is_collective(node))
    priced = [
        (node, operator_seconds(node, machine)) for node in launched if not is_collective(node)
    ]
    order = tuple(node for node, _ in priced)
    priced.sort(key=lambda pair: (-pair[1], pair[0].line))
    unknown = [f"{plural(communicating, 'collective')}"] if communicating else []
    return ModelledStep(dump, tuple(priced), machine, tuple(unknown), order)
