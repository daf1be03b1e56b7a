"""Compare the prediction for one network with its dumps after the parallel pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from check_corpus_context import (
    FORWARD,
    PARAMETERS,
    REDISTRIBUTIONS,
    is_result_broadcast,
    not_recorded,
    takes_gradients_of_inputs_only,
)
from check_corpus_shapes import Scores, all_nodes, compare_shapes, instance

from irtool.ir.dump import Dump
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.group_names import decode
from irtool.ir.statement import GraphTarget
from irtool.sharding.against.edges import in_place_of_reshapes
from irtool.sharding.network.report import CheckResult, RedistributionReport

COLLECTIVES = ("AllReduce", "AllGather", "ReduceScatter", "AlltoAll", "NeighborExchangeV2")
CHAIN = (*COLLECTIVES, "Split", "Concat", "StridedSlice", "Reshape", "TupleGetItem", "MakeTuple")
TIES = ("TupleGetItem", "MakeTuple")
HANDS_ON = ("TupleGetItem", "Cast", "Load", "Depend")
UNRECORDED = "context not recorded"
UNTOLD = "gradients of inputs only"


def compare_end(
    score: Scores,
    case: str,
    report: CheckResult,
    begin: Dump,
    end: Dump,
    validate: Dump | None,
    context: Mapping[str, object],
) -> None:
    """Score parameters, dataset, collectives, redistributions and local shapes."""
    unrecorded = not_recorded(context, begin, end)
    parameters = Apart(score, UNRECORDED) if PARAMETERS in unrecorded else score
    edges = Apart(score, UNRECORDED) if REDISTRIBUTIONS in unrecorded else score
    compare_parameters(parameters, case, report, end)
    untold = parameters is score and takes_gradients_of_inputs_only(begin)
    mirrors = Apart(score, UNTOLD) if untold else parameters
    compare_mirrors(mirrors, parameters, case, report, end)
    compare_collectives(score, case, report, begin, end, FORWARD in unrecorded)
    compare_redistributions(edges, case, report, begin, end)
    compare_loss(score, case, report, end)
    if validate is not None:
        compare_shapes(score, case, report, validate)


class Apart:
    """Counts in classes of their own what can't be predicted from what is recorded."""

    def __init__(self, score: Scores, reason: str) -> None:
        self.score, self.reason = score, reason

    def add(self, name: str, right: bool, case: str, what: str = "") -> None:
        self.score.add(f"({name}: {self.reason})", right, case, what)


def ranks_of(node: Node, report: CheckResult) -> tuple[int, ...] | None:
    """The ranks of a collective, from what MindSpore prints of its group."""
    text = node.attribute("group_ranks")
    if not isinstance(text, str):
        group = node.attribute("group")
        known = [c.ranks for o in report.operators for c in o.collectives]
        return decode(group, report.devices, known) if isinstance(group, str) else None
    if "WORLD" in text:
        return tuple(range(report.devices))
    try:
        return tuple(int(rank) for rank in text.split("-"))
    except ValueError:
        return None


# -- parameters, mirrors, dataset ---------------------------------------------------------------


def compare_parameters(score: Scores, case: str, report: CheckResult, end: Dump) -> None:
    actual = {item.name: item.type.dimensions if item.type else None for item in end.parameters}
    for item in report.parameters:
        if item.name in actual:
            right = item.slice == actual[item.name]
            what = f"{item.name} predicted {item.slice} is {actual[item.name]} of {item.shape}"
            score.add("parameter slices", right, case, f"{what} {item.why}")
            if item.slice != item.shape:
                score.add("parameter slices (sliced ones)", right, case, what)
    for data in report.dataset:
        if data.input in actual:
            what = f"{data.input} predicted {data.slice} is {actual[data.input]}"
            score.add("dataset slices", data.slice == actual[data.input], case, what)


def compare_mirrors(
    score: Scores, gathering: Scores, case: str, report: CheckResult, end: Dump
) -> None:
    mirrors: dict[str, Any] = {}
    gathers: dict[str, Any] = {}
    for node in all_nodes(end):
        name = node.attribute("mirror_user_id")
        if not isinstance(name, str):
            continue
        if node.op in ("_MirrorOperator", "_MirrorMicroStepOperator"):
            mirrors.setdefault(name, ranks_of(node, report))
        elif instance(node).startswith("parallel_optimizer") and node.attribute("group"):
            gathers.setdefault(name, ranks_of(node, report))
    for item in report.parameters:
        what = f"{item.name} predicted {item.mirror_ranks} is {mirrors.get(item.name)}"
        if item.mirror_ranks is not None or item.name in mirrors:
            score.add("mirrors", item.mirror_ranks == mirrors.get(item.name), case, what)
        what = f"{item.name} predicted {item.gather_ranks} is {gathers.get(item.name)}"
        if item.gather_ranks is not None or item.name in gathers:
            same = item.gather_ranks == gathers.get(item.name)
            gathering.add("optimizer parallel gathers", same, case, what)


def compare_loss(score: Scores, case: str, report: CheckResult, end: Dump) -> None:
    actual = {n.attribute("divisor") for n in all_nodes(end) if n.op == "_VirtualDiv"}
    predicted = {o.loss_divisor for o in report.operators if o.is_loss and o.loss_divisor > 1}
    if actual or predicted:
        score.add("loss divisors", actual == predicted, case, f"{predicted} is {actual}")


# -- collectives ---------------------------------------------------------------------------------


def compare_collectives(
    score: Scores, case: str, report: CheckResult, begin: Dump, end: Dump, unrecorded: bool
) -> None:
    """Forward collectives of the whole network, each with its ranks."""
    own = {
        (graph.name, node.name)
        for graph in begin.graphs
        for node in graph.nodes
        if node.op in COLLECTIVES
    }
    actual: Counter[Any] = Counter()
    for node in all_nodes(end):
        name = instance(node)
        if node.op not in COLLECTIVES or (node.graph and (node.graph.name, node.name) in own):
            continue
        if name.startswith(("redistribution", "parallel_optimizer")):
            continue
        if unrecorded and is_result_broadcast(node):
            Apart(score, UNRECORDED).add("forward collectives", False, case, str(node.id))
            continue
        ranks = None if node.op == "NeighborExchangeV2" else ranks_of(node, report)
        actual[node.op, str(node.attribute("op") or ""), ranks] += 1
    predicted: Counter[Any] = Counter(
        (item.op, item.reduce, item.ranks) for item in (*report.broadcasts, *report.norms)
    )
    for operator in report.operators:
        for item in operator.collectives:
            if item.op not in COLLECTIVES:
                continue  # a later pass makes those of ring attention: the whole graph shows them
            ranks = None if item.op == "NeighborExchangeV2" else item.ranks
            predicted[item.op, item.reduce, ranks] += item.count
    for key in sorted({*actual, *predicted}, key=str):
        both = min(actual[key], predicted[key])
        for _ in range(both):
            score.add("forward collectives", True, case)
        for _ in range(max(actual[key], predicted[key]) - both):
            what = f"{key} predicted {predicted[key]} is {actual[key]}"
            score.add("forward collectives", False, case, what)


# -- redistributions -----------------------------------------------------------------------------


def matched(begin: Dump, end: Dump) -> dict[Node, Node]:
    """Nodes of the first dump that are still there in the second: same graph, name and operator."""

    def by_key(dump: Dump) -> dict[Any, list[Node]]:
        found: dict[Any, list[Node]] = {}
        for graph in dump.graphs:
            for node in graph.nodes:
                found.setdefault((graph.name, node.name, node.op), []).append(node)
        return found

    later = by_key(end)
    pairs: dict[Node, Node] = {}
    for key, nodes in by_key(begin).items():
        others = later.get(key, [])
        if len(others) == len(nodes):
            pairs.update(zip(nodes, others, strict=True))
    return pairs


def is_inserted(node: Node) -> bool:
    # Operators with local attributes that replace the user's bear such names, too.
    return instance(node).startswith("redistribution") and node.op in CHAIN


def calls_of(dump: Dump) -> dict[str, list[Node]]:
    """The calls of each graph, by the graph's name."""
    found: dict[str, list[Node]] = {}
    for node in all_nodes(dump):
        if isinstance(node.target, GraphTarget):
            found.setdefault(node.target.graph, []).append(node)
    return found


def calls_between(
    source: object, producer: Node, dump: Dump, calls: Mapping[str, list[Node]]
) -> dict[str, Node] | None:
    """The calls, by the graph's name, through which a producer's result comes to an operand.

    None where it doesn't come there through calls and what hands on alone.
    """
    if source is producer:
        return {}
    if isinstance(source, Node):
        if isinstance(source.target, GraphTarget):
            graph = dump.graph(source.target.graph)
            result = graph.result if graph is not None else None
            inner = result.inputs[0] if result is not None and result.inputs else None
        else:
            inner = source.inputs[0] if source.op in HANDS_ON and source.inputs else None
        return None if inner is None else calls_between(inner, producer, dump, calls)
    if isinstance(source, GraphParameter):
        graph = dump.graph(source.graph)
        for call in calls.get(source.graph, ()) if graph is not None else ():
            index = graph.parameters.index(source) if graph is not None else 0
            if index < len(call.inputs):
                found = calls_between(call.inputs[index], producer, dump, calls)
                if found is not None:
                    return {source.graph: call, **found}
    return None


def outside(source: object, dump: Dump, calls: dict[str, Node]) -> object:
    """What stands behind a parameter of a graph whose call is known; else the source itself."""
    while isinstance(source, GraphParameter) and source.graph in calls:
        graph, call = dump.graph(source.graph), calls[source.graph]
        index = graph.parameters.index(source) if graph is not None else len(call.inputs)
        if index >= len(call.inputs):
            break
        source = call.inputs[index]
    return source


def chain_before(source: object, dump: Dump, calls: dict[str, Node]) -> list[Node]:
    """The inserted operators that end in ``source``, first one first."""
    found: list[Node] = []
    source = outside(source, dump, calls)
    while isinstance(source, Node):
        if isinstance(source.target, GraphTarget) and not found:
            graph = dump.graph(source.target.graph)
            result = graph.result if graph is not None else None
            source = result.inputs[0] if result is not None and result.inputs else None
            continue
        if source.op in ("_VirtualDiv", "Cast", "Depend") and not found and not is_inserted(source):
            source = source.inputs[0]
            continue
        if is_inserted(source):
            found.append(source)
        elif not (source.op in ("TupleGetItem", "MakeTuple") and found and near(source)):
            break
        source = outside(source.inputs[0] if source.inputs else None, dump, calls)
    return list(reversed(found))


def near(node: Node) -> bool:
    """Whether a tuple operator ties inserted ones together."""
    inner = node.inputs[0] if node.inputs else None
    while isinstance(inner, Node) and inner.op in ("TupleGetItem", "MakeTuple"):
        inner = inner.inputs[0] if inner.inputs else None
    return isinstance(inner, Node) and is_inserted(inner) and inner.op == "Split"


def numbers(value: object) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)  # type: ignore[arg-type]  # numbers, as measured


def constant(node: Node, index: int) -> object:
    from irtool.ir.values import python_value

    return python_value(node.operands[index])


def shown(node: Node, report: CheckResult) -> tuple[object, ...]:
    """What is compared of one inserted operator."""
    if node.op == "AllGather":
        return ("AllGather", ranks_of(node, report))
    if node.op == "StridedSlice":
        return ("StridedSlice", constant(node, 1), constant(node, 2))
    if node.op == "Split":
        return ("Split", constant(node, 1), constant(node, 2))
    if node.op == "Concat":
        return ("Concat", constant(node, 1))
    if node.op == "Reshape":
        return ("Reshape", constant(node, 1))
    if node.op == "AlltoAll":
        split, concat = node.attribute("split_dim"), node.attribute("concat_dim")
        return ("AlltoAll", split, concat, ranks_of(node, report))
    return (node.op,)


def expected(item: RedistributionReport) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for step in item.operators or ():
        if step.op == "AllGather":
            found.append(("AllGather", step.ranks))
        elif step.op == "StridedSlice":
            found.append(("StridedSlice", step.begin, step.end))
        elif step.op == "Split":
            found.append(("Split", step.axis, step.count))
        elif step.op == "Concat":
            found.append(("Concat", step.axis))
        elif step.op == "Reshape":
            found.append(("Reshape", step.output_shape))
        elif step.op == "AlltoAll":
            found.append(("AlltoAll", step.axis, step.concat_axis, step.ranks))
        elif step.op != "TupleGetItem":
            found.append((step.op,))
    return found


def compare_redistributions(
    score: Scores, case: str, report: CheckResult, begin: Dump, end: Dump
) -> None:
    pairs = matched(begin, end)
    before, after = calls_of(begin), calls_of(end)
    once = {name: calls[0] for name, calls in after.items() if len(calls) == 1}
    chains = {item.consumer: item for item in report.redistributions if item.replaces}
    for item in report.redistributions:
        if item.replaces or item.consumer.is_return:
            continue
        holder = item.tie or item.consumer
        position = item.item if item.tie is not None else item.input
        later = pairs.get(holder)
        if later is None or position >= len(later.inputs):
            continue
        between = calls_between(holder.inputs[position], item.producer, begin, before) or {}
        through = {name: pairs[call] for name, call in between.items() if call in pairs}
        chain = chain_before(later.inputs[position], end, {**once, **through})
        actual = [shown(node, report) for node in chain if node.op not in TIES]
        reshapes = in_place_of_reshapes(item.producer, chains)
        wanted = (
            None
            if reshapes is None
            else [step for edge in (*reshapes, item) for step in expected(edge)]
        )
        what = (
            f"{item.producer.id} {item.producer.op} -> {item.consumer.id} {item.consumer.op} "
            f"({item.input}, {item.item}) predicted {wanted} is {actual} {item.why}"
        )
        dynamic = item.source is not None and -1 in item.source.tensor_shape
        name = "redistributions of unknown sizes" if dynamic else "redistributions"
        known = item.operators is not None and wanted is not None
        if not actual and known and not wanted:
            score.add("edges without redistribution", True, case)
        else:
            score.add(name, known and same_chain(actual, wanted or []), case, what)


def same_chain(actual: list[Any], wanted: list[Any]) -> bool:
    """Equal chains; a Reshape keeps a -1 that the user wrote."""

    def fits(left: Any, right: Any) -> bool:
        if left[0] != "Reshape" or right[0] != "Reshape":
            return left == right
        if not isinstance(left[1], tuple):
            return -1 in right[1]  # a computed shape
        if len(left[1]) != len(right[1]):
            return False
        return all(a in (b, -1) for a, b in zip(left[1], right[1], strict=True))

    return len(actual) == len(wanted) and all(map(fits, actual, wanted))
