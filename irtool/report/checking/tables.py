"""Tables of ``irtool check``: operators, redistributions, parameters, collectives, a line each."""

from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.graph import Node
from irtool.ir.units import UNKNOWN, bytes_text, ranks_text, tuple_text
from irtool.report.model import (
    Amount,
    Cell,
    Column,
    Link,
    Table,
    number_column,
    rows_shown,
    text_column,
)
from irtool.report.page.keys import node_key
from irtool.report.redistributions import chain_text, layouts_text
from irtool.sharding.network.context import ParallelContext
from irtool.sharding.network.report import (
    DatasetReport,
    OperatorReport,
    ParameterReport,
    RedistributionReport,
)
from irtool.sharding.network.totals import (
    CollectiveRow,
    is_group,
    parameter_bytes,
    step_bytes,
)

MOST_ROWS = 100
MOST_COLLECTIVES = 20


def operators_table(operators: Sequence[OperatorReport], limit: int | None) -> Table:
    """One line an operator.

    Args:
        operators: as ``check`` judged them, in the order of the dump.
        limit: rows that text shows: None the usual number, 0 all.
    """
    columns = (
        number_column("line"), Column("node"), Column("operator"), Column("verdict", rank=3),
        text_column("strategy"), text_column("devices", 3), text_column("slices", 1),
        text_column("what follows", 1), text_column("scope", 4),
    )  # fmt: skip
    rows = [
        (
            item.node.line,
            Link(item.node.id, node_key(item.node)),
            item.op,
            item.verdict,
            strategy_text(item),
            tuple_text(item.device_matrix) if item.verdict == "legal" else "",
            slices_text(item),
            consequences_text(item),
            item.node.scope,
        )
        for item in operators
    ]
    most = rows_shown(limit, MOST_ROWS)
    return Table("Operators", columns, rows, noun="operator", most=most)


def strategy_text(item: OperatorReport) -> str:
    """``((4, 1), (1, 2)) → ((4, 2))``, with a word where MindSpore made it.

    Args:
        item: an operator as ``check`` judged it; what stands behind the arrow is its output
            strategy, where one is written.
    """
    text = tuple_text(item.strategy)
    if item.out_strategy is not None:
        text += f" → {tuple_text(item.out_strategy)}"
    if item.judgement.generated and item.strategy:
        text += " (MindSpore's)"
    return text


def slices_text(item: OperatorReport) -> str:
    """``(64, 392), (512, 392) → (64, 512)``."""
    if item.verdict != "legal":
        return ""
    inputs = ", ".join(map(tuple_text, item.input_slices))
    outputs = ", ".join(map(tuple_text, item.output_slices))
    return f"{inputs} → {outputs}"


def consequences_text(item: OperatorReport) -> str:
    """Collectives, repeats and whatever else the strategy brings; or why it is not legal."""
    judgement = item.judgement
    if item.verdict != "legal":
        reasons = ", ".join(
            finding.code if item.verdict == "illegal" else finding.message
            for finding in judgement.reasons
        )
        return f"{item.verdict}: {reasons}"
    parts = [
        f"{collective.op} {ranks_text(collective.ranks)}, {bytes_text(collective.bytes)}: "
        f"{collective.why}"
        for collective in item.collectives
    ]
    if judgement.repeats > 1:
        parts.append(f"repeated over {judgement.repeats}")
    if item.loss_divisor > 1:
        parts.append(f"gradient divided by {item.loss_divisor}")
    if judgement.kind != "rule":
        parts.append(f"MindSpore has no rule: {judgement.kind}")
    if judgement.replaced:
        parts.append(f"becomes {judgement.replaced}")
    if judgement.unsure:
        parts.append(judgement.unsure)
    return "; ".join(parts)


def redistributions_table(edges: Sequence[RedistributionReport], limit: int | None) -> Table:
    """One line an edge on which something is inserted.

    Args:
        edges: with the operators that are inserted, or why these are not known.
        limit: rows that text shows: None the usual number, 0 all.
    """
    columns = (
        number_column("line"), Column("from"), Column("to"), number_column("input", rank=2),
        text_column("layouts", 1), text_column("operators"), number_column("bytes", "bytes"),
    )  # fmt: skip
    rows = [
        (
            edge.consumer.line,
            _node_link(edge.producer),
            "replaces it" if edge.replaces else _node_link(edge.consumer),
            edge.input,
            layouts_text(edge),
            f"not known: {edge.why}" if edge.operators is None else chain_text(edge.operators),
            _edge_bytes(edge),
        )
        for edge in edges
    ]
    most = rows_shown(limit, MOST_ROWS)
    return Table("Redistributions", columns, rows, noun="edge", most=most)


def _node_link(node: Node) -> Link:
    return Link(f"{node.id} {node.op}", node_key(node))


def _edge_bytes(edge: RedistributionReport) -> Cell:
    sizes = [step_bytes(edge, step) for step in edge.operators or () if step.is_collective]
    if not sizes:
        return None
    return UNKNOWN if None in sizes else sum(size or 0 for size in sizes)


def parameters_table(
    parameters: Sequence[ParameterReport], limit: int | None, context: ParallelContext
) -> Table:
    """One line a parameter.

    Args:
        parameters: with the shape of the whole and of the slice that this rank holds.
        limit: rows that text shows: None the usual number, 0 all.
        context: tells whether the optimizer is parallel, and from which size on.
    """
    columns = (
        text_column("parameter"), Column("whole", rank=2), Column("slice"),
        number_column("bytes", "bytes"), text_column("gradient", 1),
        text_column("optimizer parallel", 1), text_column("first used by", 3),
    )  # fmt: skip
    rows = [
        (
            item.name,
            tuple_text(item.shape),
            f"not known: {item.why}" if item.slice is None else tuple_text(item.slice),
            _or_unknown(parameter_bytes(item)[1]),
            gradient_text(item),
            _sharing_text(item, context),
            _node_link(item.user) if item.user is not None else None,
        )
        for item in parameters
    ]
    title = "Parameters, as this rank holds them"
    most = rows_shown(limit, MOST_ROWS)
    return Table(title, columns, rows, noun="parameter", most=most)


def _sharing_text(item: ParameterReport, context: ParallelContext) -> str:
    """Who gathers a weight that optimizer parallel cuts, or that it was kept out of that."""
    if context.keeps_out(item.name):
        return "kept out (parallel_optimizer=False)"
    return f"AllGather {ranks_text(item.gather_ranks)}" if is_group(item.gather_ranks) else ""


def _or_unknown(size: int | None) -> Cell:
    return UNKNOWN if size is None else size


def dataset_table(dataset: Sequence[DatasetReport]) -> Table:
    """What the rank reads of each input.

    Args:
        dataset: shape of the whole batch, shape of the slice and where it begins, in elements.
    """
    columns = [Column("input"), Column("whole"), Column("slice"), Column("from")]
    rows = [
        [item.input, *(tuple_text(part) for part in (item.shape, item.slice, item.offset))]
        for item in dataset
    ]
    return Table("Dataset: what this rank reads", columns, rows)


def gradient_text(item: ParameterReport) -> str:
    """How the gradient is summed: ``AllReduce 0-3``."""
    parts: list[str] = []
    if is_group(item.scatter_ranks):
        parts.append(f"ReduceScatter {ranks_text(item.scatter_ranks)}")
    if is_group(item.mirror_ranks):
        parts.append(f"AllReduce {ranks_text(item.mirror_ranks)}")
    return ", ".join(parts)


def collectives_table(rows: Sequence[CollectiveRow], limit: int | None) -> Table:
    """One line an operator, group and reason.

    Args:
        rows: collectives of a step of this rank; bytes are those that one device puts in.
        limit: rows that text shows: None the usual number, 0 all.
    """
    columns = (
        Column("collective"), number_column("count"), number_column("bytes", "bytes"),
        text_column("ranks"), text_column("group", 1), text_column("why"),
    )  # fmt: skip
    cells = [
        (row.op, row.count, _bytes(row), ranks_text(row.ranks), row.group, row.why) for row in rows
    ]
    note = "Bytes that one device puts in, in one step."
    title = "Collectives of a step, by group"
    return Table(title, columns, cells, note=note, most=rows_shown(limit, MOST_COLLECTIVES))


def _bytes(row: CollectiveRow) -> Cell:
    if not row.unknown:
        return row.bytes
    text = f"{bytes_text(row.bytes)} + {row.unknown} unknown" if row.bytes else "unknown"
    return Amount(row.bytes, "bytes", text)
