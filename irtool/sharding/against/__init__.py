"""``check --against``: whether a later dump is what the strategies promise.

Every operator, edge and parameter of the begin dump is sought in the later one, and what was
predicted for it is compared with what stands there. Collectives that later passes make of the
predicted ones (gradients, recompute copies, ...) are explained, not reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from irtool.ir.collectives import is_collective
from irtool.ir.dump import Dump
from irtool.ir.graph import Node, Unresolved
from irtool.sharding.against.edges import compare_edges
from irtool.sharding.against.model import (
    Comparison,
    Difference,
    DifferenceKind,
    Explained,
    Unmatched,
)
from irtool.sharding.against.operators import (
    compare_collectives,
    other_slices,
    other_strategies,
)
from irtool.sharding.against.parameters import compare_mirrors, compare_slices
from irtool.sharding.network.report import CheckResult
from irtool.sharding.why import explain_in
from irtool.sharding.why.cause import Cause
from irtool.sharding.why.walk import Surroundings, hands_on, surroundings

__all__ = ["Comparison", "Difference", "DifferenceKind", "Explained", "Unmatched", "compare"]


def compare(report: CheckResult, begin: Dump, actual: Dump) -> Comparison:
    """Compare what ``check`` predicts for ``begin`` with a later dump of the same compilation.

    Args:
        report: the answer of ``check`` for ``begin``.
        begin: the dump before the parallel pass.
        actual: ``step_parallel_end`` or ``validate`` of the same compilation and rank.
    """
    around = surroundings(actual, begin)
    later: dict[Node, list[Node]] = {}
    for node, before in around.begin.items():
        if not node.is_backward and not node.is_recomputed:
            later.setdefault(before, []).append(node)
    causes = [explain_in(around, node) for node in actual.nodes(where=is_collective)]
    is_end = _is_end(begin, actual)
    is_excerpt = any(
        isinstance(source, Unresolved) for node in actual.nodes() for source in node.inputs
    )
    deviations: list[Difference | Unmatched] = []
    matched, total = 0, 0
    for operator in report.operators:
        total += 1
        nodes = later.get(operator.node, [])
        if operator.verdict != "legal" or not nodes:
            deviations.append(
                _not_compared(operator.node, operator.verdict, operator.op, is_excerpt)
            )
            continue
        matched += 1
        deviations += other_strategies(operator, nodes)
        if not is_end:
            deviations += other_slices(operator, nodes)
    deviations += compare_collectives(report, later, causes, is_end=is_end)
    edges = compare_edges(report, around, later, reshapes=is_end)
    deviations += [*edges.differences, *edges.unmatched]
    deviations += _unpredicted(causes, edges.seen, bool(edges.unmatched))
    deviations += _broadcasts(report, causes)
    deviations += compare_slices(report, actual)
    deviations += compare_mirrors(report, around, causes, virtual=is_end)
    if is_end:
        deviations += _loss_division(report, actual)
    differences = [item for item in deviations if isinstance(item, Difference)]
    return Comparison(
        tuple(_with_causes(differences, around)),
        tuple(item for item in deviations if isinstance(item, Unmatched)),
        tuple(_explained(causes)),
        matched,
        total,
    )


def _is_end(begin: Dump, actual: Dump) -> bool:
    """Whether a dump is from right after the parallel pass: shapes are still those of before."""
    for name, answer in (("step_parallel_end", True), ("validate", False)):
        if name in actual.path.replace("\\", "/").rpartition("/")[2]:
            return answer
    marks = ("_VirtualDataset", "_MirrorOperator", "_MirrorMicroStepOperator", "_VirtualDiv")
    if any(True for _ in actual.nodes(where=lambda node: node.op in marks)):
        return True
    names = {graph.name for graph in begin.graphs}
    if not any(graph.name in names for graph in actual.graphs):
        return False
    # What is inserted has no type yet.
    inserted = [node for node in actual.nodes() if node.attribute("forward_comm_node_unique_id")]
    return any(node.output_type is None or not node.output_type.tensors for node in inserted)


def _not_compared(node: Node, verdict: str, op: str, is_excerpt: bool) -> Unmatched:
    why = "it was not found in the later dump: a pass removed, merged or replaced it"
    if is_excerpt:
        why = "it is not in the later dump, which is an excerpt"
    if verdict != "legal":
        why = f"its strategy is {verdict}"
    return Unmatched(f"{op} {node.id}", why, node)


def _unpredicted(
    causes: Iterable[Cause], seen: frozenset[Node], is_partial: bool
) -> Iterable[Difference | Unmatched]:
    """Collectives of redistributions that stand on no edge that was compared."""
    for cause in causes:
        if cause.kind != "redistribution" or cause.is_gradient or cause.is_recomputed:
            continue
        if cause.node in seen:
            continue
        to_result = cause.consumer is None or cause.consumer.is_return
        producer = cause.operator.op if cause.operator is not None else ""
        is_received = producer == "Receive"
        if is_partial or to_result or producer in ("Receive", "call") or cause.begin is None:
            why = "it stands on no edge that could be compared"
            if is_received:
                why = "nothing tells how what another stage sends lies"
            yield Unmatched(f"{cause.op}: {cause.message}", why, cause.begin, cause.node)
            continue
        yield Difference(
            "extra collective",
            f"{cause.op} {cause.node.id} was not predicted: {cause.message}",
            "none",
            f"{cause.op} {cause.ranks}",
            "",
            cause.begin,
            cause.node,
            producer=cause.producer_begin,
        )


def _broadcasts(report: CheckResult, causes: Iterable[Cause]) -> Iterable[Difference]:
    """Results that the last stage hands to all others, or does not."""
    there = [cause for cause in causes if cause.kind == "result broadcast"]
    node = there[0].node if there else None
    wanted = [item.ranks for item in report.broadcasts]
    actual = [cause.ranks for cause in there]
    if len(wanted) != len(actual):
        kind = "missing collective" if len(wanted) > len(actual) else "extra collective"
        message = "results are handed to all stages another number of times"
        yield Difference(kind, message, str(len(wanted)), str(len(actual)), "", None, node)
    elif any(ranks is not None and ranks not in wanted for ranks in actual):
        message = "results are handed to other ranks"
        yield Difference("group", message, str(wanted[0]), str(actual[0]), "", None, node)


def _loss_division(report: CheckResult, actual: Dump) -> Iterable[Difference]:
    there = {node.attribute("divisor") for node in actual.nodes("_VirtualDiv")}
    losses = [item for item in report.operators if item.is_loss and item.loss_divisor > 1]
    predicted = {item.loss_divisor for item in losses}
    if there != predicted:
        node = losses[0].node if losses else None
        message = "the loss's gradient is divided by another number"
        yield Difference("loss division", message, _numbers(predicted), _numbers(there), "", node)


def _numbers(values: Iterable[object]) -> str:
    return ", ".join(sorted(map(str, values))) or "none"


# -- why they differ -------------------------------------------------------------------------------

_GUESSES: dict[DifferenceKind, str] = {
    "strategy": "the later dump was compiled with another strategy for it, or a search chose it",
    "dataset slice": "the later dump was compiled with another dataset strategy",
    "mirror": "the later dump was compiled with another context, or the weight is used elsewhere",
    "optimizer parallel": "other options of optimizer parallel, or parallel_optimizer=False on it",
}
_GUESS = "no strategy differs: the later dump was compiled with another context, or irtool errs"


def _with_causes(differences: list[Difference], around: Surroundings) -> Iterable[Difference]:
    """What follows from an operator's other strategy says so."""
    roots = {item.begin: item for item in differences if item.kind == "strategy" and item.begin}
    reach = _reach(list(roots), around)
    weights = {
        item.parameter: reach[item.begin]
        for item in differences
        if item.parameter is not None and item.begin in reach
    }
    for item in differences:
        root = reach.get(item.begin) if item.begin is not None else None
        if root is None and item.producer is not None:
            root = reach.get(item.producer)
        if root is None and item.parameter is not None:
            root = _of_state(item.parameter, weights)
        if item.kind != "strategy" and root is not None:
            bears = roots[root].actual
            text = f"follows from the other strategy of {root.op} {root.id} ({bears})"
            yield replace(item, cause=text, root=root)
        else:
            yield replace(item, cause=_GUESSES.get(item.kind, _GUESS))


def _of_state(name: str, weights: Mapping[str, Node]) -> Node | None:
    """The operator behind an optimizer's state of a weight, which lies as the weight does."""
    return next((root for weight, root in weights.items() if name.endswith(f".{weight}")), None)


def _reach(roots: list[Node], around: Surroundings) -> dict[Node, Node]:
    """Operators with another strategy, and Reshapes beside them, whose layouts follow from it."""
    reached = {root: root for root in roots}
    if around.before is None:
        return reached
    todo = [place for root in roots for place in around.before.instances(root)]
    seen = {place.index for place in todo}
    root_of = {place.index: place.node for place in todo}
    while todo:
        place = todo.pop()
        for near in (*place.producers, *place.users):
            if near.index in seen or not (hands_on(near.node) or near.op == "Reshape"):
                continue
            seen.add(near.index)
            root_of[near.index] = root_of[place.index]
            reached.setdefault(near.node, root_of[place.index])
            todo.append(near)
    return reached


# -- what later passes made ------------------------------------------------------------------------


def _explained(causes: Iterable[Cause]) -> Iterable[Explained]:
    groups: dict[str, list[Node]] = {}
    for cause in causes:
        text = _later_pass(cause)
        if text:
            groups.setdefault(text, []).append(cause.node)
    for text, nodes in groups.items():
        yield Explained(text, len(nodes), tuple(nodes))


_OTHER_CAUSES = {
    "mirror": "sums of gradients, from the mirrors of parameters",
    "optimizer parallel": "gathers of weights and scatters of gradients (optimizer parallel)",
    "pipeline": "transfers between pipeline stages",
    "optimizer": "the optimizer's own",
    "user code": "the network's own",
    "ring attention": "ring attention",
    "result broadcast": "the last stage's result for all stages",
}


def _later_pass(cause: Cause) -> str:
    if cause.is_recomputed:
        return "copies made by recomputation"
    if cause.kind in _OTHER_CAUSES:
        return _OTHER_CAUSES[cause.kind]
    return "gradients of predicted ones" if cause.is_gradient else ""
