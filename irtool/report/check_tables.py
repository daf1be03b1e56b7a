"""Tables of ``irtool check``: operators, redistributions, parameters, collectives, a line each."""

from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.units import bytes_text, ranks_text, tuple_text
from irtool.report.check_counts import (
    CollectiveRow,
    is_group,
    parameter_bytes,
    step_bytes,
)
from irtool.report.model import Column, Table, number_column, text_column
from irtool.sharding.network.report import (
    OperatorReport,
    ParameterReport,
    RedistributionReport,
)
from irtool.sharding.redistribution import RedistributionStep

MOST_ROWS = 100
MOST_COLLECTIVES = 20


def shown(total: int, limit: int | None, usual: int) -> int:
    """How many rows of a list are shown: ``--limit``, where 0 means all, else the usual number."""
    most = usual if limit is None else (limit or total)
    return min(total, most)


def operators_table(operators: Sequence[OperatorReport], limit: int | None) -> Table:
    """One line an operator."""
    count = shown(len(operators), limit, MOST_ROWS)
    columns = (
        number_column("line"),
        Column("node"),
        Column("operator"),
        text_column("strategy"),
        text_column("devices"),
        text_column("slices"),
        text_column("what follows"),
    )
    rows = [
        (
            item.node.line,
            item.node.id,
            item.op,
            strategy_text(item),
            tuple_text(item.device_matrix),
            slices_text(item),
            consequences_text(item),
        )
        for item in operators[:count]
    ]
    return Table("Operators", columns, rows, len(operators) - count, "operator")


def strategy_text(item: OperatorReport) -> str:
    """``((4, 1), (1, 2)) → ((4, 2))``, with a word where MindSpore made it."""
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
            for finding in judgement.findings
        )
        return f"{item.verdict}: {reasons}"
    parts = [
        f"{each.op} {ranks_text(each.ranks)}, {bytes_text(each.bytes)}: {each.why}"
        for each in item.collectives
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
    """One line an edge on which something is inserted."""
    count = shown(len(edges), limit, MOST_ROWS)
    columns = (
        number_column("line"),
        Column("from"),
        Column("to"),
        number_column("input"),
        text_column("layouts"),
        text_column("operators"),
        number_column("bytes"),
    )
    rows = [
        (
            edge.consumer.line,
            f"{edge.producer.id} {edge.producer.op}",
            "in its place" if edge.replaces else f"{edge.consumer.id} {edge.consumer.op}",
            edge.input,
            layouts_text(edge),
            f"not known: {edge.why}" if edge.operators is None else chain_text(edge.operators),
            _edge_bytes(edge),
        )
        for edge in edges[:count]
    ]
    return Table("Redistributions", columns, rows, len(edges) - count, "edge")


def layouts_text(edge: RedistributionReport) -> str:
    """How the tensor is split before and after: ``(2, 1) → (4, 2)``."""
    if edge.source is None or edge.target is None:
        return ""
    return f"{tuple_text(edge.source.splits)} → {tuple_text(edge.target.splits)}"


def chain_text(steps: Sequence[RedistributionStep]) -> str:
    """``AllGather(0) 0-3, Split(0), Concat(1)``; a number is the axis."""
    return ", ".join(
        step.op
        + (f"({step.axis})" if step.axis is not None else "")
        + (f" {ranks_text(step.ranks)}" if step.ranks else "")
        for step in steps
    )


def _edge_bytes(edge: RedistributionReport) -> str:
    sizes = [step_bytes(edge, step) for step in edge.operators or () if step.is_collective]
    if not sizes:
        return ""
    return bytes_text(None if None in sizes else sum(size or 0 for size in sizes))


def parameters_table(parameters: Sequence[ParameterReport], limit: int | None) -> Table:
    """One line a parameter."""
    count = shown(len(parameters), limit, MOST_ROWS)
    columns = (
        text_column("parameter"),
        Column("whole"),
        Column("slice"),
        number_column("bytes"),
        text_column("gradient"),
        text_column("optimizer parallel"),
    )
    rows = [
        (
            item.name,
            tuple_text(item.shape),
            f"not known: {item.why}" if item.slice is None else tuple_text(item.slice),
            bytes_text(parameter_bytes(item)[1]),
            gradient_text(item),
            f"AllGather {ranks_text(item.gather_ranks)}" if is_group(item.gather_ranks) else "",
        )
        for item in parameters[:count]
    ]
    return Table("Parameters", columns, rows, len(parameters) - count, "parameter")


def gradient_text(item: ParameterReport) -> str:
    """How the gradient is summed: ``AllReduce 0-3``."""
    parts: list[str] = []
    if is_group(item.scatter_ranks):
        parts.append(f"ReduceScatter {ranks_text(item.scatter_ranks)}")
    if is_group(item.mirror_ranks):
        parts.append(f"AllReduce {ranks_text(item.mirror_ranks)}")
    return ", ".join(parts)


def collectives_table(rows: Sequence[CollectiveRow], limit: int | None) -> Table:
    """One line an operator, group and reason."""
    count = shown(len(rows), limit, MOST_COLLECTIVES)
    columns = (
        Column("collective"),
        number_column("count"),
        number_column("bytes"),
        text_column("ranks"),
        text_column("group"),
        text_column("why"),
    )
    cells = [
        (row.op, row.count, _bytes(row), ranks_text(row.ranks), row.group, row.why)
        for row in rows[:count]
    ]
    title = "Collectives of a step, by group (bytes that one device puts in)"
    return Table(title, columns, cells, len(rows) - count, "row")


def _bytes(row: CollectiveRow) -> str:
    if not row.unknown:
        return bytes_text(row.bytes)
    return f"{bytes_text(row.bytes)} + {row.unknown} unknown" if row.bytes else "unknown"
