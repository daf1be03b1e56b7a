"""The state of one check: the network, its context, and what was said of each operator so far."""

from __future__ import annotations

from dataclasses import field

from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Finding, Severity
from irtool.ir.graph import Graph, GraphParameter, Node, Source
from irtool.ir.parameter_roles import is_accumulated
from irtool.operators.judgement import Context, Judgement
from irtool.operators.layout import TensorLayout, UserLayout
from irtool.sharding.network.calls import NodeCall
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.graphs import Network, Port, search_order
from irtool.sharding.network.sharded_nodes import primitive
from irtool.sharding.network.stages import foreign_nodes
from irtool.sharding.network.strategies import Wanted

UNKNOWN = "unknown"
"""Code of a finding that says of what nothing is known."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A node with its call, what was asked of it, and the judgement."""

    node: Node
    call: NodeCall
    wanted: Wanted
    judgement: Judgement

    def input_layout(self, position: int, item: int = 0) -> TensorLayout | None:
        """The layout wanted of the operand at ``position`` (of one item, if it is a tuple)."""
        tensor = self.call.slots.tensor(position, item)
        layouts = self.judgement.input_layouts
        return layouts[tensor] if tensor is not None and tensor < len(layouts) else None

    def output_layout(self, index: int) -> TensorLayout | None:
        """The layout of an output."""
        layouts = self.judgement.output_layouts
        return layouts[index] if 0 <= index < len(layouts) else None

    @property
    def outgoing(self) -> tuple[UserLayout, ...]:
        """The user's layouts that results follow: those of the outputs, else of the inputs."""
        return self.wanted.out_layout or self.wanted.in_layout or ()


@dataclass(slots=True)
class Analysis:
    """What is known of a network.

    ``order``: nodes and parameters as MindSpore looks at them. ``trains``: it is compiled for
    training; ``differentiates``: it holds a gradient. ``accumulates``: gradients are summed over
    micro-batches. ``dynamic``: some size is not known. ``judgements``: those made so far, by what
    was asked. ``findings``: reasons, in MindSpore's order. ``foreign``: nodes of other pipeline
    stages, judged but cut away afterwards.
    """

    network: Network
    context: ParallelContext
    operators: Context
    order: list[Port]
    trains: bool
    differentiates: bool
    accumulates: bool
    dynamic: bool
    judged: dict[Node, Judged] = field(default_factory=dict[Node, Judged])
    judgements: dict[object, Judgement] = field(default_factory=dict[object, Judgement])
    foreign: set[Node] = field(default_factory=set[Node])
    findings: list[Finding] = field(default_factory=list[Finding])

    def refuse(self, code: str, message: str, check: str, node: Node | None, op: str = "") -> None:
        """Add a reason why MindSpore refuses the network; ``check``: the place that does."""
        self._add(code, "error", message, check, node, op)

    def doubt(self, message: str, node: Node | None, op: str = "") -> None:
        """Add something that is not known."""
        self._add(UNKNOWN, "warning", message, "", node, op)

    def note(self, message: str, node: Node | None, op: str = "") -> None:
        """Add something that is legal, but of which not everything is predicted."""
        self._add("not-predicted", "info", message, "", node, op)

    def _add(
        self, code: str, severity: Severity, message: str, check: str, node: Node | None, op: str
    ) -> None:
        path = self.network.dump.path
        self.findings.append(finding_about(node, path, code, severity, message, op, check))

    @property
    def is_refused(self) -> bool:
        """Whether MindSpore refuses the network, whatever else is unknown."""
        return any(finding.severity == "error" for finding in self.findings)

    @property
    def is_unknown(self) -> bool:
        """Whether of some part nothing can be said."""
        return any(finding.code == UNKNOWN for finding in self.findings)

    @property
    def splits_results(self) -> bool:
        """Whether MindSpore puts a ``_VirtualOutput`` behind each result (evaluation)."""
        context = self.context
        return (
            not self.trains
            and context.mode == "semi_auto_parallel"
            and context.dataset is None
            and context.stage == context.stages - 1
        )


def finding_about(
    node: Node | None,
    path: str,
    code: str,
    severity: Severity,
    message: str,
    op: str = "",
    check: str = "",
) -> Finding:
    """A finding of ``check``.

    Args:
        node: what it is about; None: the whole network.
        path: the dump.
        code: what it is; :data:`UNKNOWN` where nothing can be said.
        severity: error where MindSpore refuses the network for it.
        message: one sentence.
        op: the primitive that MindSpore names; "": that of the node.
        check: the place in MindSpore that refuses it.
    """
    if node is None:
        return Finding(code, severity, message, path, op=op, check=check)
    return Finding(
        code,
        severity,
        message,
        path,
        node.line,
        node.column,
        node.column,
        node=node.id,
        op=op or primitive(node),
        graph=node.graph.name if node.graph is not None else None,
        check=check,
        subject=node,
    )


def analysis_of(network: Network, context: ParallelContext) -> Analysis:
    """Look at a network as a whole; no operator is judged yet.

    Args:
        network: whose operators are to be judged.
        context: under which it is compiled.

    Returns:
        A new state of a check: order of search, nodes of other stages, and whether it trains;
        without findings.
    """
    trains = any(graph.attributes.get("training") == "1" for graph in network.dump.graphs)
    entry = network.entry
    differentiates = entry is not None and any(primitive(node) == "J" for node in entry.nodes)
    accumulates = context.stages > 1 or accumulation_step(network, context) > 1
    dynamic = any(_is_dynamic(graph) for graph in network.forward_graphs)
    analysis = Analysis(
        network=network,
        context=context,
        operators=context.for_operators(dynamic=dynamic),
        order=[],
        trains=trains,
        differentiates=differentiates,
        accumulates=accumulates,
        dynamic=dynamic,
    )
    if context.stages > 1:
        analysis.foreign = foreign_nodes(network, context.stage)
    analysis.order = search_order(network, scoped=not analysis.splits_results)
    return analysis


def inserted_node(network: Network) -> Node | None:
    """A node that only the parallel pass inserts: where there is one, the dump was taken after it.

    Args:
        network: of the dump in question.

    Returns:
        The first such node in the dump's order; None: the dump was taken before the parallel pass.
    """
    for node in network.inputs:
        if node.instance_name is not None and node.instance_name.startswith(INSERTED):
            return node
    return None


def accumulation_step(network: Network, context: ParallelContext) -> int:
    """Over how many micro-batches gradients are summed: as given, else what the dump shows.

    Args:
        network: of the dump, which shows it by sums of gradients (2 is taken then, which stands for
            any number), or by the micro-batch marks of its nodes.
        context: whose ``accumulation_step`` wins unless it is 0.

    Returns:
        A number of micro-batches; 1 where nothing tells of any.
    """
    if context.accumulation_step:
        return context.accumulation_step
    if any(is_accumulated(item.name) for item in network.dump.parameters):
        return 2
    said = (node.attribute(MICRO_BATCHES) for node in network.inputs)
    return max((number for number in said if isinstance(number, int)), default=1)


def _is_dynamic(graph: Graph) -> bool:
    for node in graph.nodes:
        abstract = node.output_type
        if abstract is not None and any(-1 in shape for _, shape in abstract.tensors):
            return True
    return False


MICRO_BATCHES = "grad_accu_num"
"""Attribute of what cuts a batch up for gradient accumulation in one stage."""

INSERTED = ("forward_op_", "redistribution_op", "_Mirror", "grad_mirror", "parallel_optimizer_")
"""What instance names begin with that the parallel pass gives to what it inserts."""

SEEN_THROUGH = frozenset({
    "Depend", "Load", "Cast", "_VirtualDiv", "Receive", "_MicroStepAllGather", "Send",
    "InsertGradientOf", "DumpGradient",
})  # fmt: skip
"""Operators that hand their first operand on, for one who looks for where a value comes from."""


def real_source(
    analysis: Analysis, source: Source, item: int = -1, *, through_items: bool = True
) -> tuple[Source, int]:
    """Where a value really comes from, and which item of it.

    Looks through operators that hand on, tuples, calls and the second branch of a Switch.

    Args:
        analysis: of the network that the value stands in.
        source: the operand to follow.
        item: which item of the value is asked for; -1: all of it.
        through_items: whether to follow a TupleGetItem to the tuple that it reads.

    Returns:
        The node, parameter or constant behind it, and the item of that; -1: all of it.
    """
    network = analysis.network
    for _ in range(100_000):
        if not isinstance(source, Node):
            return source, item
        name, inputs = primitive(source), network.inputs[source]
        if name in SEEN_THROUGH and inputs:
            source = inputs[0]
            continue
        if name == "TupleGetItem" and through_items and len(inputs) > 1:
            item = item_of(source)
            source = inputs[0]
            continue
        if name == "MakeTuple" and 0 <= item < len(inputs):
            source, item = inputs[item], -1
            continue
        graph = network.called(source) or _second_branch(network, source)
        if graph is None:
            return source, item
        result = network.returned(graph)
        if result is None:
            return source, item
        if isinstance(result, GraphParameter):
            result = _argument_of(network, result) or result
            if isinstance(result, GraphParameter):
                return result, item
        source = result
    return source, item


def _second_branch(network: Network, node: Node) -> Graph | None:
    callee = network.callee.get(node)
    if isinstance(callee, Node) and primitive(callee) == "Switch":
        branches = network.inputs[callee]
        if len(branches) > 2 and isinstance(branches[2], Graph):
            return branches[2]
    return None


def _argument_of(network: Network, parameter: GraphParameter) -> Source | None:
    """What the first call of its graph gives for a parameter."""
    place = network.index_of(parameter)
    if place is None:
        return None
    graph, index = place
    calls = network.calls.get(graph.name, ())
    return network.argument(calls[0], index) if calls else None


def item_of(node: Node) -> int:
    """The index of a TupleGetItem; -1 if it is no constant.

    Args:
        node: of which the second operand is the index.
    """
    if len(node.operands) < 2:
        return -1
    value = getattr(node.operands[1], "value", None)
    return value if isinstance(value, int) else -1
