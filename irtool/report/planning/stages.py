"""What ``irtool plan --to-stages`` shows: layers, time and memory of each stage."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.held import cell_path
from irtool.ir.units import plural, seconds_text, share_text
from irtool.planning.stages.files import staged_cells, unsaid_scopes
from irtool.planning.stages.stages import StagedPlan
from irtool.report.model import Cell, Table, number_column, text_column


def stage_facts(plan: StagedPlan) -> list[tuple[str, str]]:
    """Devices, the step, what is idle.

    Args:
        plan: of a pipeline.
    """
    stages = len(plan.stages)
    count = plan.micro_batches
    parts = "1 micro-batch" if count == 1 else f"{count:,} micro-batches"
    step = f"{seconds_text(plan.seconds)} a step of {parts}"
    facts = [
        ("devices", f"{plan.devices}: {plural(stages, 'stage')} of {plan.devices // stages}"),
        ("pipeline", step),
    ]
    without = {"as the dump is": plan.unstaged, "as planned": plan.unstaged_plan}
    texts = [f"{seconds_text(own)} a step {how}" for how, own in without.items() if own is not None]
    if texts:
        facts.append(("without stages", ", ".join(texts)))
    facts += [
        ("bubble", f"{share_text(plan.bubble)} of the work, if all stages take as long"),
        ("balance", f"the slowest stage takes {share_text(plan.imbalance)} more than the mean"),
    ]
    if plan.replanned:
        numbers = ", ".join(str(number) for number in plan.replanned)
        facts.append(("fitted", f"planned anew, so that they fit into the memory: {numbers}"))
    return facts


def stages_table(plan: StagedPlan) -> Table:
    """One row a stage.

    Args:
        plan: of a pipeline; bytes are those of one device of each stage.
    """
    rows: list[list[Cell]] = []
    for number, stage in enumerate(plan.stages):
        names = stage.layers
        text = ", ".join(names) if len(names) < 4 else f"{names[0]} to {names[-1]} ({len(names)})"
        rows.append(
            [
                number,
                text,
                stage.seconds,
                stage.static_bytes,
                stage.in_flight,
                stage.activation_bytes,
                stage.bytes,
                stage.sent_bytes or None,
            ]
        )
    columns = [
        number_column("stage"), text_column("layers", 2), number_column("works", "seconds"),
        number_column("weights and states", "bytes", 1), number_column("in flight", rank=1),
        number_column("results", "bytes", 1), number_column("all", "bytes"),
        number_column("sends", "bytes", 1),
    ]  # fmt: skip
    return Table("Stages (one device of each)", columns, rows)


def stage_lines(plan: StagedPlan) -> Iterator[str]:
    """``pipeline_stage`` of each cell whose operators are all of one stage, the outermost only.

    Args:
        plan: of a pipeline.

    Yields:
        lines of Python without their ends; none where no cell is of one stage.
    """
    cells = staged_cells(plan)
    if not cells:
        return
    yield f"# set_auto_parallel_context(pipeline_stages={len(plan.stages)}), and the network in"
    yield f"# PipelineCell(net.network, {plan.micro_batches}): it is called with one micro-batch"
    for scope, number in cells.items():
        yield f"{cell_path(scope)}.pipeline_stage = {number}"
    for scope in unsaid_scopes(plan):
        yield f"# {scope}: operators here go with the stage of what they compute from"
    yield ""
