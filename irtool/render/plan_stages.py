"""What ``irtool plan --to-stages`` shows: layers, time and memory of each stage."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.planning.cost.costs import ASSUMPTIONS
from irtool.planning.files.shard_lines import cell_path
from irtool.planning.stages.files import staged_cells, unsaid_scopes
from irtool.planning.stages.stages import StagedPlan
from irtool.render.cost import seconds_text
from irtool.render.tables import Table, number_column, text_column
from irtool.render.text import bytes_text, plural


def stage_facts(found: StagedPlan) -> list[tuple[str, str]]:
    """Devices, the step, what is idle."""
    stages = len(found.stages)
    count = found.micro_batches
    parts = "1 micro-batch" if count == 1 else f"{count:,} micro-batches"
    step = f"{seconds_text(found.seconds)} a step of {parts}"
    facts = [
        ("devices", f"{found.devices}: {plural(stages, 'stage')} of {found.devices // stages}"),
        ("pipeline", step),
    ]
    if found.unstaged is not None:
        facts.append(("without stages", f"{seconds_text(found.unstaged)} a step, as the dump is"))
    facts += [
        ("bubble", f"{100 * found.bubble:.1f} % of the work, if all stages take as long"),
        ("balance", f"the slowest stage takes {100 * found.imbalance:.1f} % more than the mean"),
    ]
    if found.replanned:
        numbers = ", ".join(str(number) for number in found.replanned)
        facts.append(("fitted", f"planned anew, so that they fit into the memory: {numbers}"))
    return facts


def stage_assumptions() -> list[str]:
    """What the model takes for granted of a pipeline."""
    own = "stages run one forward, one backward (1F1B); what they hand on is not hidden"
    return [own if text.startswith("one micro-batch") else text for text in ASSUMPTIONS]


def stages_table(found: StagedPlan) -> Table:
    """One row a stage."""
    rows: list[list[str | int | None]] = []
    for number, stage in enumerate(found.stages):
        names = stage.layers
        text = ", ".join(names) if len(names) < 4 else f"{names[0]} to {names[-1]} ({len(names)})"
        rows.append(
            [
                number,
                text,
                seconds_text(stage.seconds),
                bytes_text(stage.static_bytes),
                stage.in_flight,
                bytes_text(stage.activation_bytes),
                bytes_text(stage.bytes),
                bytes_text(stage.sent_bytes) if stage.sent_bytes else "",
            ]
        )
    columns = [
        number_column("stage"), text_column("layers"), number_column("works"),
        number_column("weights and states"), number_column("in flight"),
        number_column("results"), number_column("all"), number_column("sends"),
    ]  # fmt: skip
    return Table("Stages (one device of each)", columns, rows)


def stages_object(found: StagedPlan) -> dict[str, object]:
    """The JSON object."""
    return {
        "devices": found.devices,
        "micro_batches": found.micro_batches,
        "seconds": found.seconds,
        "unstaged_seconds": found.unstaged,
        "bubble": found.bubble,
        "imbalance": found.imbalance,
        "replanned": list(found.replanned),
        "stages": [
            {
                "layers": list(stage.layers),
                "seconds": stage.seconds,
                "static_bytes": stage.static_bytes,
                "activation_bytes": stage.activation_bytes,
                "in_flight": stage.in_flight,
                "loose_bytes": stage.loose_bytes,
                "sent_bytes": stage.sent_bytes,
                "scopes": list(stage.scopes),
            }
            for stage in found.stages
        ],
        "transfers": [
            {
                "from": item.source,
                "to": item.target,
                "what": item.what,
                "bytes": item.size,
                "count": item.count,
                "returned": item.returned,
            }
            for item in found.transfers
        ],
    }


def stage_lines(found: StagedPlan) -> Iterator[str]:
    """``pipeline_stage`` of each cell whose operators are all of one stage, the outermost only."""
    cells = staged_cells(found)
    if not cells:
        return
    yield f"# set_auto_parallel_context(pipeline_stages={len(found.stages)}), and the network in"
    yield f"# PipelineCell(net.network, {found.micro_batches}): it is called with one micro-batch"
    for scope, number in cells.items():
        yield f"{cell_path(scope)}.pipeline_stage = {number}"
    for scope in unsaid_scopes(found):
        yield f"# {scope}: operators here go with the stage of what they compute from"
    yield ""
