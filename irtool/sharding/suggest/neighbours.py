"""How the operators around one that is refused split what they share with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.operators.judgement import Judgement
from irtool.operators.layout import Shape
from irtool.sharding.network.analysis import SEEN_THROUGH, item_of
from irtool.sharding.network.graphs import Network, Port, Use
from irtool.sharding.network.report import CheckResult, OperatorReport
from irtool.sharding.network.sharded_nodes import primitive


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What legal neighbours of an operator hand it, and what they take of it.

    Attributes:
        inputs: by tensor input the splits that its producer leaves.
        outputs: splits that consumers want of the first result, one each.
    """

    inputs: Mapping[int, Shape]
    outputs: tuple[Shape, ...] = ()

    def differing(self, judgement: Judgement) -> int:
        """How many edges a judgement would put a redistribution on."""
        layouts, results = judgement.input_layouts, judgement.output_layouts
        before = sum(
            layouts[tensor].splits != splits
            for tensor, splits in self.inputs.items()
            if tensor < len(layouts)
        )
        return before + sum(results[0].splits != splits for splits in self.outputs if results)


def neighbours_of(network: Network, report: CheckResult, operator: OperatorReport) -> Neighbours:
    """The legal neighbours of an operator, behind what only hands a value on.

    Args:
        network: that resolves operands and users.
        report: of ``check``, which says who is legal, and how their results lie.
        operator: in the middle.
    """
    inputs: dict[int, Shape] = {}
    for position, source in enumerate(network.inputs.get(operator.node, ())):
        tensor = operator.call.slots.tensor(position, 0)
        item = 0
        while isinstance(source, Node) and network.inputs.get(source):
            if primitive(source) == "TupleGetItem":
                item = max(item_of(source), 0)
            elif primitive(source) not in SEEN_THROUGH or source in report.by_node:
                break
            source = network.inputs[source][0]
        producer = report.by_node.get(source) if isinstance(source, Node) else None
        if producer is not None and tensor is not None and producer.verdict == "legal":
            results = producer.judgement.output_layouts
            if item < len(results):
                inputs[tensor] = results[item].splits
    return Neighbours(inputs, tuple(_wanted(network, report, operator)))


def _wanted(network: Network, report: CheckResult, operator: OperatorReport) -> Iterator[Shape]:
    for use in _uses(network, report, operator.node):
        consumer = report.by_node.get(use.node)
        if consumer is not None and consumer.verdict == "legal":
            tensor = consumer.call.slots.tensor(use.position, use.item)
            layouts = consumer.judgement.input_layouts
            if tensor is not None and tensor < len(layouts):
                yield layouts[tensor].splits


def _uses(network: Network, report: CheckResult, port: Port) -> Iterator[Use]:
    """Uses of a first result."""
    for use in network.users_of(port):
        name = primitive(use.node)
        if use.node not in report.by_node and use.position == 0 and name in SEEN_THROUGH:
            yield from _uses(network, report, use.node)
        elif name == "TupleGetItem":
            if item_of(use.node) == 0:
                yield from _uses(network, report, use.node)
        else:
            yield use
