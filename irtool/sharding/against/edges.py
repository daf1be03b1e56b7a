"""Compare predicted redistributions with the chains that stand on the edges of a later dump."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import cast

from irtool.ir.collectives import collective, is_collective
from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node, Unresolved
from irtool.ir.values import python_value
from irtool.ir.whole import WholeNode
from irtool.operators.table import operator_of
from irtool.sharding.against.model import Difference, Unmatched
from irtool.sharding.network.report import CheckResult, RedistributionReport
from irtool.sharding.redistribution import CONCAT, RESHAPE, SPLIT, STRIDED_SLICE
from irtool.sharding.why.walk import Surroundings, is_near_part, is_part, is_redistribution

Step = tuple[object, ...]
"""What is compared of one inserted operator: its name, and what decides its work."""

_TIES = ("TupleGetItem", "MakeTuple")
_THROUGH = ("_VirtualDiv", "Cast", "Depend", "Load")
_LAST_STEPS = 10_000


def _is_seen_through(op: str) -> bool:
    return op in _THROUGH or operator_of(op).is_("hands_on")


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """What came out: differences, edges that could not be compared, nodes that were seen."""

    differences: tuple[Difference, ...]
    unmatched: tuple[Unmatched, ...]
    seen: frozenset[Node]


def compare_edges(
    report: CheckResult, around: Surroundings, later: dict[Node, list[Node]], reshapes: bool
) -> Edges:
    """Compare every predicted edge whose consumer is still there.

    Args:
        report: what ``check`` predicts of the begin dump.
        around: the later dump, and what is known around its nodes.
        later: by node of the begin dump, those of the later one that it became.
        reshapes: whether Reshapes count, which later passes merge and drop.
    """
    differences: list[Difference] = []
    unmatched: list[Unmatched] = []
    seen: set[Node] = set()
    chains = {item.consumer: item for item in report.redistributions if item.replaces}
    for item in report.redistributions:
        if item.replaces or item.consumer.is_return:
            continue
        wanted = _wanted(item, chains)
        if any(_in_parts(report, node) for node in (item.producer, item.consumer)):
            wanted = None
        places = list(_places(item, around, later))
        if not places or wanted is None:
            if item.operators or item.operators is None:
                unmatched.append(_not_compared(item, places))
            continue
        for place, source in places:
            if _comes_through_form(place, source):
                why = "its operands come through its own sharded form"
                unmatched.append(Unmatched(_named(item), why, item.consumer, place.node))
                continue
            chain, beginning = chain_before(source, reshapes, around.begin)
            if isinstance(beginning, Unresolved):
                why = f"the later dump does not hold what {place.node.id} takes there"
                unmatched.append(Unmatched(_named(item), why, item.consumer, place.node))
                seen.update(node.node for node in chain)
                continue
            seen.update(node.node for node in chain)
            actual = [_shown(node.node, report) for node in chain if node.op not in _TIES]
            if not reshapes and item.producer not in later:
                # It is gone, and what stood before it comes first now.
                actual, wanted = _tail(actual, wanted)
            own = chains.get(item.consumer)
            further = list(_expected(own)) if own is not None and not reshapes else []
            # What is left of a Reshape may be any one of the chain that it was replaced by.
            ways = (wanted + further[:count] for count in range(len(further) + 1))
            if not any(same_chain(actual, expected, reshapes) for expected in ways):
                differences.append(_difference(item, place, wanted, actual))
                break
    return Edges(tuple(differences), tuple(unmatched), frozenset(seen))


def _difference(
    item: RedistributionReport, place: WholeNode, wanted: list[Step], actual: list[Step]
) -> Difference:
    edge = (
        f"{item.producer.op} {item.producer.id} to {item.consumer.op} {item.consumer.id} "
        f"(input {item.input})"
    )
    return Difference(
        "redistribution",
        f"other operators stand between {edge}",
        _chain_text(wanted),
        _chain_text(actual),
        "",
        item.consumer,
        place.node,
        producer=item.producer,
    )


def _in_parts(report: CheckResult, node: Node) -> bool:
    """Whether an operator computes in parts, in turn: each part has edges of its own."""
    operator = report.operator(node)
    return operator is not None and operator.judgement.parts > 1


def _not_compared(item: RedistributionReport, places: Sequence[object]) -> Unmatched:
    why = item.why or "what is inserted is not known"
    if not places and item.operators is not None:
        why = "the consumer was not found in the later dump"
    return Unmatched(_named(item), why, item.consumer)


def _named(item: RedistributionReport) -> str:
    ends = f"{item.producer.op} {item.producer.id} to {item.consumer.op} {item.consumer.id}"
    return f"redistribution from {ends}"


def _places(
    item: RedistributionReport, around: Surroundings, later: dict[Node, list[Node]]
) -> Iterator[tuple[WholeNode, object]]:
    """Where the edge is in the later dump: the consumer, and what comes in."""
    for node in later.get(item.consumer, ()):
        place = around.instance(node)
        if place is None or item.input >= len(place.inputs):
            continue
        source: object = place.inputs[item.input]
        if item.tie is not None:
            if not isinstance(source, WholeNode) or source.op not in ("MakeTuple", "MakeList"):
                continue
            if item.item >= len(source.inputs):
                continue
            source = source.inputs[item.item]
        yield place, source


# -- what stands on an edge ----------------------------------------------------------------------


def _tail(actual: list[Step], wanted: list[Step]) -> tuple[list[Step], list[Step]]:
    actual = [step for step in actual if step[0] != RESHAPE]
    wanted = [step for step in wanted if step[0] != RESHAPE]
    return (actual[-len(wanted) :] if wanted else []), wanted


def chain_before(
    source: object, reshapes: bool, known: Container[Node] = ()
) -> tuple[list[WholeNode], object]:
    """The inserted operators that end in a value, the first one first, and what comes before them.

    Where Reshapes don't count, those that later passes merged are part of the chain, and a Split
    that is no operator of the network: it lost its name.

    Args:
        source: what an operand of the consumer resolves to.
        reshapes: whether Reshapes count, which later passes merge and drop.
        known: nodes that are operators of the network themselves.

    Returns:
        The chain, empty where nothing was inserted, and the value in front of it.
    """
    chain: list[WholeNode] = []
    for _ in range(_LAST_STEPS):
        if not isinstance(source, WholeNode):
            break
        merged = not reshapes and source.op == RESHAPE and source.node.strategy is None
        if is_redistribution(source.node) or merged or (not reshapes and _cuts(source, known)):
            chain.append(source)
        elif _is_seen_through(source.op) and source.node.strategy is None:
            pass
        elif source.op == "TupleGetItem" and not reshapes and _cuts(source.inputs[0], known):
            source = source.inputs[0]
            continue
        elif (picked := _picked(source)) is not None:
            source = picked
            continue
        elif not chain or source.op not in _TIES or not _ties_inserted(source):
            break
        source = source.inputs[0] if source.inputs else None
    return list(reversed(chain)), source


def _picked(source: WholeNode) -> object | None:
    """The item that is taken of a tuple which a cell returns: behind a Depend or Load."""
    if source.op != "TupleGetItem" or len(source.inputs) < 2:
        return None
    index, inner = _constant(source.node, 1), source.inputs[0]
    while isinstance(inner, WholeNode) and inner.op in _THROUGH and inner.inputs:
        inner = inner.inputs[0]
    is_tuple = isinstance(inner, WholeNode) and inner.op == "MakeTuple"
    if not is_tuple or not isinstance(inner, WholeNode) or not isinstance(index, int):
        return None
    return inner.inputs[index] if index < len(inner.inputs) else None


def _cuts(source: object, known: Container[Node]) -> bool:
    """Whether a value is a Split that no operator of the network became."""
    if not isinstance(source, WholeNode) or source.op != SPLIT:
        return False
    return source.node.strategy is None and source.node not in known


def _ties_inserted(place: WholeNode) -> bool:
    """Whether a tuple operator ties inserted ones together."""
    inner: object = place
    while isinstance(inner, WholeNode) and inner.op in _TIES:
        inner = inner.inputs[0] if inner.inputs else None
    return isinstance(inner, WholeNode) and is_redistribution(inner.node) and inner.op == SPLIT


def _comes_through_form(place: WholeNode, source: object) -> bool:
    """Whether an operator that was replaced takes its input from the nodes that replaced it."""
    while isinstance(source, WholeNode) and (source.op in _TIES or _joins(source)):
        source = source.inputs[0] if source.inputs else None
    if not isinstance(source, WholeNode) or _is_seen_through(source.op):
        return False
    if is_part(source.node) and (source.node.strategy is None or is_collective(source.node)):
        return True
    return is_part(place.node) and is_near_part(source.node, place.node)


def _joins(source: WholeNode) -> bool:
    """Whether a Concat puts parts of an operator's own sharded form together, and has no name."""
    node = source.node
    return source.op == CONCAT and node.strategy is None and not is_redistribution(node)


def _shown(node: Node, report: CheckResult) -> Step:
    sent = collective(node, report.devices)
    if node.op == "AllGather" and sent is not None:
        return "AllGather", sent.ranks
    if node.op == "AlltoAll" and sent is not None:
        return "AlltoAll", node.attribute("split_dim"), node.attribute("concat_dim"), sent.ranks
    if node.op in (STRIDED_SLICE, SPLIT):
        return node.op, _constant(node, 1), _constant(node, 2)
    if node.op in (CONCAT, RESHAPE):
        return node.op, _constant(node, 1)
    return (node.op,)


def _constant(node: Node, index: int) -> object:
    return python_value(node.operands[index]) if index < len(node.operands) else None


# -- what is predicted -----------------------------------------------------------------------------


def _wanted(
    item: RedistributionReport, chains: dict[Node, RedistributionReport]
) -> list[Step] | None:
    reshapes = in_place_of_reshapes(item.producer, chains)
    if reshapes is None or item.operators is None:
        return None
    return [step for edge in (*reshapes, item) for step in _expected(edge)]


def in_place_of_reshapes(
    node: Node, chains: Mapping[Node, RedistributionReport]
) -> list[RedistributionReport] | None:
    """The redistributions that stand in the place of a Reshape and of those right before it.

    Args:
        node: what may be such a Reshape.
        chains: by Reshape the redistribution that replaces it.

    Returns:
        In the order in which they run; None where ``check`` does not know one of them.
    """
    edges: list[RedistributionReport] = []
    while (edge := chains.get(node)) is not None:
        if edge.operators is None:
            return None
        if not edge.operators:
            break
        edges.append(edge)
        source = node.inputs[0]
        if not isinstance(source, Node):
            break
        node = source
    return edges[::-1]


def _expected(item: RedistributionReport) -> Iterator[Step]:
    for step in item.operators or ():
        if step.op == "AllGather":
            yield "AllGather", step.ranks
        elif step.op == STRIDED_SLICE:
            yield STRIDED_SLICE, step.begin, step.end
        elif step.op == SPLIT:
            yield SPLIT, step.axis, step.count
        elif step.op == CONCAT:
            yield CONCAT, step.axis
        elif step.op == RESHAPE:
            yield RESHAPE, step.output_shape
        elif step.op == "AlltoAll":
            yield "AlltoAll", step.axis, step.concat_axis, step.ranks
        elif step.op != "TupleGetItem":
            yield (step.op,)


def same_chain(actual: list[Step], wanted: list[Step], reshapes: bool) -> bool:
    """Whether two chains do the same; a Reshape keeps a -1 that the user wrote."""
    if not reshapes:
        actual = [step for step in actual if step[0] != RESHAPE]
        wanted = [step for step in wanted if step[0] != RESHAPE]
    return len(actual) == len(wanted) and all(map(_fits, actual, wanted))


def _fits(actual: Step, wanted: Step) -> bool:
    if actual[0] != RESHAPE or wanted[0] != RESHAPE:
        return actual == wanted
    if not isinstance(actual[1], tuple) or not isinstance(wanted[1], tuple):
        return not isinstance(actual[1], tuple)  # a computed shape
    left = cast("tuple[object, ...]", actual[1])
    right = cast("tuple[object, ...]", wanted[1])
    if len(left) != len(right):
        return False
    return all(one in (other, -1) for one, other in zip(left, right, strict=True))


def _chain_text(steps: list[Step]) -> str:
    """``AllGather (0, 1), Concat 2``; nothing: ``none``."""
    return ", ".join(" ".join(map(str, step)) for step in steps) or "none"
