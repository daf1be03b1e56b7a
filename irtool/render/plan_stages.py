"""What ``irtool plan --to-stages`` shows: layers, time and memory of each stage."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.planning.shard_lines import cell_path
from irtool.planning.stages import StagedPlan
from irtool.render.cost import seconds_text
from irtool.render.tables import Table, number_column, text_column
from irtool.render.text import bytes_text


def stage_facts(found: StagedPlan) -> list[tuple[str, str]]:
    """Devices, the step, what is idle."""
    stages = len(found.stages)
    step = f"{seconds_text(found.seconds)} a step of {found.micro_batches} micro-batches"
    facts = [
        ("devices", f"{found.devices}: {stages} stages of {found.devices // stages}"),
        ("pipeline", step),
        ("bubble", f"{100 * found.bubble:.1f} % of the work, if all stages take as long"),
        ("balance", f"the slowest stage takes {100 * found.imbalance:.1f} % more than the mean"),
    ]
    if found.replanned:
        numbers = ", ".join(str(number) for number in found.replanned)
        facts.append(("fitted", f"planned anew, so that they fit into the memory: {numbers}"))
    return facts


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
                bytes_text(stage.activation_bytes),
                bytes_text(stage.bytes),
                bytes_text(stage.sent_bytes) if stage.sent_bytes else "",
            ]
        )
    columns = [
        number_column("stage"), text_column("layers"), number_column("works"),
        number_column("weights and states"), number_column("results"), number_column("all"),
        number_column("sends"),
    ]  # fmt: skip
    return Table("Stages (one device of each)", columns, rows)


def stages_object(found: StagedPlan) -> dict[str, object]:
    """The JSON object."""
    return {
        "devices": found.devices,
        "micro_batches": found.micro_batches,
        "seconds": found.seconds,
        "bubble": found.bubble,
        "imbalance": found.imbalance,
        "replanned": list(found.replanned),
        "stages": [
            {
                "layers": list(stage.layers),
                "seconds": stage.seconds,
                "static_bytes": stage.static_bytes,
                "activation_bytes": stage.activation_bytes,
                "sent_bytes": stage.sent_bytes,
                "scopes": list(stage.scopes),
            }
            for stage in found.stages
        ],
    }


def stage_lines(found: StagedPlan) -> Iterator[str]:
    """``pipeline_stage`` of each cell whose operators are all of one stage, the outermost only."""
    owner: dict[str, set[int]] = {}
    for number, stage in enumerate(found.stages):
        for scope in stage.scopes:
            parts = scope.split("/")
            for count in range(2, len(parts) + 1):
                owner.setdefault("/".join(parts[:count]), set()).add(number)
    yield f"# set_auto_parallel_context(pipeline_stages={len(found.stages)}), and the network in"
    yield f"# PipelineCell(net, {found.micro_batches})"
    done: list[str] = []
    for scope, numbers in owner.items():
        path = cell_path(scope)
        if len(numbers) > 1 or not path or any(scope.startswith(f"{each}/") for each in done):
            continue
        done.append(scope)
        yield f"{path}.pipeline_stage = {min(numbers)}"
    yield ""
