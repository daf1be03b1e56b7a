"""Compare the predicted local shapes with those of the dump where shapes were inferred again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, cast

from irtool.ir.dump import Dump
from irtool.ir.graph import GraphParameter, Node
from irtool.sharding.network.report import CheckResult, OperatorReport


class Scores(Protocol):
    def add(self, name: str, right: bool, case: str, what: str = "") -> None: ...


def instance(node: Node) -> str:
    return node.instance_name or ""


def all_nodes(dump: Dump) -> Iterator[Node]:
    for graph in dump.graphs:
        yield from graph.nodes


def compare_shapes(score: Scores, case: str, report: CheckResult, validate: Dump) -> None:
    """Local shapes of operators that are still there when shapes were inferred again."""
    by_op: dict[str, list[Node]] = {}
    for node in all_nodes(validate):
        if node.signature is not None and not node.is_recomputed:
            by_op.setdefault(node.op, []).append(node)
    for operator in report.operators:
        if operator.verdict != "legal" or operator.call.call.is_dynamic or operator.op == "Reshape":
            continue
        nodes = candidates(operator, by_op.get(operator.op, []))
        # Where a result is a number by then (TensorToScalar), there is no shape to compare.
        nodes = [node for node in nodes if node.output_type and node.output_type.tensors]
        if not nodes:
            continue
        wanted = (operator.judgement.raw_inputs, operator.judgement.raw_outputs)
        actual = [local_shapes(node, operator.node) for node in nodes]
        what = f"{operator.node.id} {operator.op} {operator.strategy}: {wanted} is {actual[:3]}"
        score.add("local shapes", wanted in actual, case, what)


def candidates(operator: OperatorReport, nodes: list[Node]) -> list[Node]:
    """Nodes with the operator's name and the strategy that it bore, of its scope if there are.

    The copies of an operator that is computed in parts bear a number as their name instead.
    """
    if operator.judgement.parts > 1:
        return [
            node for node in nodes if instance(node).isdigit() and node.scope == operator.node.scope
        ]
    strategy = plain(operator.strategy)
    same = [node for node in nodes if node.strategy is not None and not node.is_backward]
    same = [
        node
        for node in same
        if plain(node.written_strategy()) == strategy or node.in_layout is not None
    ]
    near_by = [node for node in same if node.scope == operator.node.scope]
    return near_by or same


def plain(value: object) -> object:
    if isinstance(value, (tuple, list)):
        rows: list[object] = []
        for row in cast("Sequence[object]", value):
            items = cast("Sequence[object]", row) if isinstance(row, (tuple, list)) else ()
            if items and isinstance(items[0], (tuple, list)):
                rows.extend(tuple(cast("Sequence[object]", item)) for item in items)
            else:
                rows.append(tuple(items) if isinstance(row, (tuple, list)) else row)
        return tuple(rows)
    return value


def local_shapes(node: Node, before: Node) -> Any:
    """Shapes of the operands that the user gave (MindSpore may add a mask), and of the results."""
    inputs: list[tuple[int, ...]] = []
    given = [abstract is None or abstract.dtype != "None" for abstract in before.input_types]
    for index, (abstract, source) in enumerate(zip(node.input_types, node.inputs, strict=False)):
        if abstract is None or not (index >= len(given) or given[index]):
            continue
        if abstract.tensors:
            inputs.extend(shape for _, shape in abstract.tensors)
        elif isinstance(source, (Node, GraphParameter)) and "Monad" not in (abstract.dtype or ""):
            inputs.append(())
    output = node.output_type
    outputs = tuple(shape for _, shape in output.tensors) if output else ()
    return tuple(inputs), outputs
