"""A planned pipeline: its stages, and what goes from one to another."""

from __future__ import annotations

from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown
from irtool.ir.graph import Node
from irtool.planning.plans.plan import Plan


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """One stage of a planned pipeline: its layers, and what a device of it takes.

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
        """Bytes that a device of the stage holds."""
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
    """A pipeline that was planned: its stages, what is planned inside of them, and a step.

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
        unstaged_plan: seconds of a step as it is planned without stages; None: nothing fits.
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
    unstaged_plan: float | None = None
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
