"""The answer to ``check --why``: plain data."""

from __future__ import annotations

from typing import Literal

from irtool.ir.comments import Location
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.operators.layout import TensorLayout

CauseKind = Literal[
    "forward reduction",
    "operator",
    "redistribution",
    "mirror",
    "optimizer parallel",
    "loss division",
    "micro-batch",
    "pipeline",
    "gradient accumulation",
    "dataset",
    "constant",
    "user code",
    "optimizer",
    "result broadcast",
    "ring attention",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Cause:
    """Why one node is there.

    Attributes:
        node: the node that was asked for.
        kind: what it is for; ``user code``: the network holds it itself.
        message: one sentence.
        is_gradient: it belongs to the gradient of ``forward`` (None: that one is not there).
        is_recomputed: it is the copy that recomputation made of ``forward``.
        forward: the node of the same dump that it repeats or is the gradient of.
        operator: the operator that it follows (redistribution: the producer), in the same dump.
        consumer: redistribution: the operator whose layout it makes, in the same dump.
        begin: the node of the begin dump behind it (``operator``, or a redistribution's consumer).
        producer_begin: redistribution: the producer in the begin dump.
        source: layout that the producer leaves, where a report says it; ``target``: the one that
            the consumer wants.
        parameter: name of the parameter whose value or gradient it is about.
        location: the user's own line of Python.
        micro: its micro-batch.
        op: the collective that runs, "" where it is none.
        ranks: the group's ranks; ``group``: its name.
        bytes: on one device each time; ``times``: how often it runs a step; None where unknown.
        remedy: the change of strategy that would remove it, "" where there is none.
        missing: what could not be known, and why.
    """

    node: Node
    kind: CauseKind
    message: str
    is_gradient: bool = False
    is_recomputed: bool = False
    forward: Node | None = None
    operator: Node | None = None
    consumer: Node | None = None
    begin: Node | None = None
    producer_begin: Node | None = None
    source: TensorLayout | None = None
    target: TensorLayout | None = None
    parameter: str | None = None
    location: Location | None = None
    micro: int | None = None
    op: str = ""
    ranks: tuple[int, ...] | None = None
    group: str | None = None
    bytes: int | None = None
    times: int | None = 1
    remedy: str = ""
    missing: tuple[str, ...] = ()

    @property
    def bytes_per_step(self) -> int | None:
        """Bytes on one device in a whole step."""
        if self.bytes is None or self.times is None:
            return None
        return self.bytes * self.times
