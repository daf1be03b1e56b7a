"""Compare predicted strategies, slices and collectives of operators with a later dump."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from typing import cast

from irtool.ir.collectives import collective, exchange_ranks
from irtool.ir.graph import GraphParameter, Node
from irtool.operators.layout import Shape
from irtool.sharding.against.model import Difference, DifferenceKind, Unmatched
from irtool.sharding.network.calls import computed
from irtool.sharding.network.report import CheckResult, OperatorReport
from irtool.sharding.why.cause import Cause

Key = tuple[str, str, tuple[int, ...] | None]
"""What two collectives must share: operator, reduction, ranks."""

Lost = list[tuple[Key, Cause]]
"""Collectives of the later dump, with what they must share."""


def other_strategies(operator: OperatorReport, nodes: list[Node]) -> Iterator[Difference]:
    """The strategy that an operator bears in the later dump, if it is not the predicted one.

    Args:
        operator: as ``check`` judged it; one that computes in parts is left out.
        nodes: what became of it in the later dump.

    Yields:
        One difference at most.
    """
    if operator.strategy is None or operator.judgement.parts > 1:
        return
    for node in nodes:
        if node.strategy is None or node.in_layout is not None:
            continue
        actual = plain(node.written_strategy())
        if actual in (None, ()) or _without_empty(actual) == _without_empty(operator.strategy):
            continue
        yield Difference(
            "strategy",
            f"{operator.op} {operator.node.id} bears another strategy",
            str(operator.strategy),
            str(actual),
            "",
            operator.node,
            node,
        )
        return


def _without_empty(strategy: object) -> object:
    """A strategy in line, without rows ``()`` at its end: MindSpore adds them for numbers."""
    rows = plain(strategy)
    kept = _items(rows)
    while kept and kept[-1] == ():
        kept.pop()
    return tuple(kept) if isinstance(rows, tuple) else rows


def plain(value: object) -> object:
    """A strategy as tuples, those of tuple inputs in line.

    Args:
        value: a strategy as it is written, with tuples or lists; anything else is given back.
    """
    if not isinstance(value, (tuple, list)):
        return value
    rows: list[object] = []
    for row in cast("Iterable[object]", value):
        parts = _items(row)
        if parts and all(isinstance(part, (tuple, list)) for part in parts):
            rows.extend(tuple(_items(part)) for part in parts)
        else:
            rows.append(tuple(parts) if isinstance(row, (tuple, list)) else row)
    return tuple(rows)


def _items(value: object) -> list[object]:
    return list(cast("Iterable[object]", value)) if isinstance(value, (tuple, list)) else []


# -- slices --------------------------------------------------------------------------------------


def other_slices(operator: OperatorReport, nodes: list[Node]) -> Iterator[Difference]:
    """Local shapes of an operator that are not the predicted ones.

    Args:
        operator: as ``check`` judged it; with dynamic shapes it is left out.
        nodes: what became of it, in a dump whose shapes are those of one device.

    Yields:
        One difference at most; none where one of the nodes has the shapes predicted.
    """
    call = operator.call.call
    if call.is_dynamic or operator.op in ("Reshape", "TensorToScalar") or not nodes:
        return
    if any(node.attribute("enable_ring_attention") is True for node in nodes):
        return  # it was replaced by one for each step of the ring
    judged = operator.judgement
    wanted = (judged.raw_inputs, judged.raw_outputs)
    actual = [local_shapes(node) for node in nodes if node.signature is not None]
    if not actual or wanted in actual:
        return
    yield Difference(
        "slice",
        f"{operator.op} {operator.node.id} has other slices",
        _shapes_text(*wanted),
        _shapes_text(*actual[0]),
        "",
        operator.node,
        nodes[0],
    )


def local_shapes(node: Node) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
    """Shapes of the tensors that go in, and of those that come out."""
    inputs: list[Shape] = []
    for abstract, source in zip(node.input_types, node.inputs, strict=False):
        if abstract is None:
            continue
        if abstract.tensors:
            inputs.extend(shape for _, shape in abstract.tensors)
        elif isinstance(source, (Node, GraphParameter)) and "Monad" not in (abstract.dtype or ""):
            inputs.append(computed(abstract.type, abstract.shape).shape or ())
    output = node.output_type
    return tuple(inputs), tuple(shape for _, shape in output.tensors) if output else ()


def _shapes_text(inputs: tuple[Shape, ...], outputs: tuple[Shape, ...]) -> str:
    """``(32, 784), (128, 784) -> (32, 128)``."""
    return f"{', '.join(map(str, inputs))} -> {', '.join(map(str, outputs))}"


# -- collectives ---------------------------------------------------------------------------------


def compare_collectives(
    report: CheckResult, later: dict[Node, list[Node]], causes: Iterable[Cause], *, is_end: bool
) -> Iterator[Difference | Unmatched]:
    """Collectives that operators bring with them, operator by operator.

    Those of operators that were not found are compared as a whole: equal ones cancel out.

    Args:
        report: what ``check`` predicts of the begin dump.
        later: by node of the begin dump, those of the later one that it became.
        causes: of each collective of the later dump, why it is there.
        is_end: the later dump is of right after the parallel pass.
    """
    by_operator: dict[Node, list[tuple[Key, Cause]]] = {}
    lost: list[tuple[Key, Cause]] = []
    for cause in causes:
        if cause.kind not in ("forward reduction", "operator"):
            continue
        if cause.is_gradient or cause.is_recomputed or not cause.op:
            continue
        key = _key(cause, report)
        if cause.begin is not None and report.operator(cause.begin) is not None:
            by_operator.setdefault(cause.begin, []).append((key, cause))
        else:
            lost.append((key, cause))
    searched: list[tuple[Key, OperatorReport]] = []
    for operator in report.operators:
        if operator.verdict != "legal":
            by_operator.pop(operator.node, None)
            continue
        there = by_operator.pop(operator.node, [])
        nodes = later.get(operator.node, [])
        wanted = _predicted(operator, max(len(nodes), 1), is_end=is_end)
        searched += yield from _of_operator(operator, wanted, there, len(nodes), lost)
    yield from _rest(searched, lost)


def _key(cause: Cause, report: CheckResult) -> Key:
    sent = collective(cause.node, report.devices)
    ranks = exchange_ranks(cause.node, report.context.rank)
    if ranks is None and sent is not None:
        ranks = sent.ranks
    return cause.op, (sent.reduction or "") if sent is not None else "", ranks


def _predicted(operator: OperatorReport, times: int, *, is_end: bool) -> Counter[Key]:
    """What an operator brings with it, to a dump of right after the parallel pass or later."""
    wanted: Counter[Key] = Counter()
    if not is_end:
        for launched in operator.collectives:
            wanted[launched.op, launched.reduce, launched.ranks] += launched.count * times
        return wanted
    judgement = operator.judgement
    for item in judgement.collectives:
        if not item.late:
            wanted[item.op, item.reduce, item.ranks] += judgement.parts * times
    return wanted


def _of_operator(
    operator: OperatorReport, wanted: Counter[Key], there: Lost, nodes: int, lost: Lost
) -> Generator[Difference, None, list[tuple[Key, OperatorReport]]]:
    """Differences of one operator; gives back what it misses without having been found."""
    actual = Counter(key for key, _ in there)
    missing, extra = wanted - actual, actual - wanted
    if nodes == 0 and not there:
        return [(key, operator) for key in missing.elements()]
    node = there[0][1].node if there else None
    for key in list(extra):
        twin = next((other for other in missing if other[:2] == key[:2]), None)
        if twin is not None:
            yield _difference("group", operator, twin, key, _node_of(there, key))
            missing[twin] -= 1
            extra[key] -= 1
    for key in (+missing).elements():
        # It may stand where its operator can't be told any more.
        match = next((index for index, (other, _) in enumerate(lost) if other == key), None)
        if match is not None:
            lost.pop(match)
        else:
            yield _difference("missing collective", operator, key, None, node)
    for key in (+extra).elements():
        yield _difference("extra collective", operator, None, key, _node_of(there, key))
    return []


def _node_of(there: list[tuple[Key, Cause]], key: Key) -> Node | None:
    return next((cause.node for other, cause in there if other == key), None)


_WHAT: dict[DifferenceKind, str] = {
    "group": "communicates with other ranks",
    "missing collective": "lacks a collective",
    "extra collective": "has a collective that its strategy does not need",
}


def _difference(
    kind: DifferenceKind,
    operator: OperatorReport,
    wanted: Key | None,
    actual: Key | None,
    node: Node | None,
) -> Difference:
    return Difference(
        kind,
        f"{operator.op} {operator.node.id} {_WHAT[kind]}",
        _key_text(wanted),
        _key_text(actual),
        "",
        operator.node,
        node,
    )


def _key_text(key: Key | None) -> str:
    """``AllReduce sum (0, 1)``; nothing: ``none``."""
    if key is None:
        return "none"
    op, reduction, ranks = key
    return " ".join(str(part) for part in (op, reduction, ranks) if part)


def _rest(
    searched: list[tuple[Key, OperatorReport]], lost: list[tuple[Key, Cause]]
) -> Iterator[Difference | Unmatched]:
    for key, operator in searched:
        match = next((index for index, (other, _) in enumerate(lost) if other == key), None)
        if match is not None:
            lost.pop(match)
            continue
        what = f"{_key_text(key)} of {operator.op} {operator.node.id}"
        yield Unmatched(what, "its operator was not found in the later dump", operator.node)
    for key, cause in lost:
        what = f"{_key_text(key)} ({cause.message})"
        yield Unmatched(what, "its operator has no counterpart before", None, cause.node)
