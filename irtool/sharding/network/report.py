"""The answer to ``check``: plain data, of which a renderer makes tables and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown
from irtool.ir.finding import Finding
from irtool.ir.graph import GraphParameter, Node
from irtool.operators.call import Strategy
from irtool.operators.judgement import Judgement, Verdict
from irtool.operators.layout import DeviceMatrix, Shape, TensorLayout, TensorMap
from irtool.sharding.network.calls import NodeCall
from irtool.sharding.network.communications import Owner, StepCommunication
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.recomputation import Recomputed
from irtool.sharding.network.states import ParameterReport
from irtool.sharding.redistribution import RedistributionStep


@dataclass(frozen=True, slots=True)
class CollectiveReport:
    """A collective that an operator brings with it.

    ``bytes``: what one device puts in, of the element type of the output; None if not known.
    ``count``: how often it stands there (interleaved layouts compute in parts, in turn).
    """

    op: str
    ranks: tuple[int, ...]
    group: str
    bytes: int | None
    why: str
    reduce: str = ""
    output: int | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class OperatorReport:
    """What is said of one operator; keyed by its node in the dump that was checked."""

    node: Node
    op: str
    verdict: Verdict
    strategy: Strategy | None
    out_strategy: Strategy | None
    judgement: Judgement
    call: NodeCall
    collectives: tuple[CollectiveReport, ...]
    is_loss: bool = False

    @property
    def graph(self) -> str:
        """Name of the graph that holds the node."""
        return self.node.graph.name if self.node.graph is not None else ""

    @property
    def device_matrix(self) -> DeviceMatrix:
        return self.judgement.device_matrix

    @property
    def input_maps(self) -> tuple[TensorMap, ...]:
        return self.judgement.input_maps

    @property
    def output_maps(self) -> tuple[TensorMap, ...]:
        return self.judgement.output_maps

    @property
    def input_slices(self) -> tuple[Shape, ...]:
        return self.judgement.input_slices

    @property
    def output_slices(self) -> tuple[Shape, ...]:
        return self.judgement.output_slices

    @property
    def loss_divisor(self) -> int:
        """By what the gradient is divided here; 1 for operators that are no loss."""
        return self.judgement.loss_divisor if self.is_loss else 1


@dataclass(frozen=True, slots=True)
class RedistributionReport:
    """What is inserted on one edge.

    ``input`` is the consumer's operand, ``item`` which of its items if that is a tuple (``tie`` is
    the MakeTuple that holds it). ``operators`` is None where it is not known; ``why`` says why.
    ``replaces``: the chain stands in the place of the consumer, a Reshape.
    """

    producer: Node
    consumer: Node
    input: int
    item: int
    tie: Node | None
    source: TensorLayout | None
    target: TensorLayout | None
    operators: tuple[RedistributionStep, ...] | None
    why: str = ""
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """What the rank reads of one dataset input: shape, and where it begins in the whole."""

    input: str
    parameter: GraphParameter | None
    shape: Shape
    slice: Shape
    offset: Shape


@dataclass(frozen=True, slots=True)
class CheckResult(Shown):
    """What MindSpore would say of a network, and what it would make of it.

    ``accepted`` is None where a part is unknown; then ``findings`` say which.
    ``findings``: reasons in MindSpore's order; the subject of each is its node. A ``warning`` with
    code ``unknown`` is a part of which nothing can be said. ``broadcasts``: what
    hands an inference's results to all pipeline stages. ``norms``: what clipping by the global norm
    of the gradients adds up.
    ``communications``: all of a step of the rank's stage, forward and backward.
    ``communications_unknown``: sentences that say which others there may be;
    ``communications_owned``: the same ones by what brings them. ``again``: what of the
    forward pass runs again in the backward pass. ``merged``: the operator that is left of each that
    the compiler merges away, by the identity of that. ``elsewhere``: operators of other pipeline
    stages, where the dump holds these, too.
    """

    accepted: bool | None
    context: ParallelContext
    findings: tuple[Finding, ...]
    operators: tuple[OperatorReport, ...] = ()
    redistributions: tuple[RedistributionReport, ...] = ()
    parameters: tuple[ParameterReport, ...] = ()
    dataset: tuple[DatasetReport, ...] = ()
    broadcasts: tuple[CollectiveReport, ...] = ()
    norms: tuple[CollectiveReport, ...] = ()
    communications: tuple[StepCommunication, ...] = ()
    communications_unknown: tuple[str, ...] = ()
    communications_owned: Mapping[Owner, tuple[StepCommunication, ...]] = field(
        default_factory=dict[Owner, tuple[StepCommunication, ...]], repr=False, compare=False
    )
    again: Recomputed = field(default_factory=Recomputed, repr=False, compare=False)
    merged: Mapping[int, Node] = field(default_factory=dict[int, Node], repr=False, compare=False)
    by_node: dict[Node, OperatorReport] = field(
        default_factory=dict[Node, OperatorReport], repr=False, compare=False
    )
    elsewhere: dict[Node, OperatorReport] = field(
        default_factory=dict[Node, OperatorReport], repr=False, compare=False
    )

    @property
    def devices(self) -> int:
        """Number of devices of the whole run."""
        return self.context.devices

    def operator(self, node: Node) -> OperatorReport | None:
        """What is said of one node of the dump, or None: it has no strategy of its own."""
        return self.by_node.get(node)
