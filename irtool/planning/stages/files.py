"""A pipeline in the form that MindSpore takes: stages of cells, and its node-keyed strategy file.

``cell.pipeline_stage`` says the stage of a cell, ``PipelineCell(net, M)`` how many micro-batches
there are.  With both, MindSpore keys its operators anew: ``PipelineCell`` stands in every scope; a
cell with a stage is compiled once, however many micro-batches run through it, and everything
outside of such cells once for each; the slices that cut the inputs, and the sums of the losses, are
operators, too.  Seen in strategy files that MindSpore 2.7 saved of networks with stages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irtool.ir.held import cell_path
from irtool.planning.files.strategy_files import NotExpressible, operator_file
from irtool.planning.stages.stages import StagedPlan
from irtool.sharding.network.sharded_nodes import primitive

_ITEMS = "parallel_strategy_item"
_OUTS = "parallel_out_strategy_item"
_LISTS = ("-CellList", "-CellDict")
"""Scopes of what only lists cells, and is never called itself."""

Rows = list[list[int]]


def staged_cells(plan: StagedPlan) -> dict[str, int]:
    """Scopes of the cells whose ``pipeline_stage`` is set: the outermost of one stage each.

    Args:
        plan: of a pipeline.

    Returns:
        the stage by scope; empty for one stage.
    """
    owner: dict[str, set[int]] = {}
    for number, stage in enumerate(plan.stages):
        for scope in stage.scopes:
            parts = scope.split("/")
            for count in range(2, len(parts) + 1):
                owner.setdefault("/".join(parts[:count]), set()).add(number)
    done: dict[str, int] = {}
    for scope, numbers in owner.items():
        if len(numbers) > 1 or scope.endswith(_LISTS) or not cell_path(scope):
            continue
        if not any(scope.startswith(f"{outer}/") for outer in done):
            done[scope] = min(numbers)
    return done if len(plan.stages) > 1 else {}


def unsaid_scopes(plan: StagedPlan) -> list[str]:
    """Scopes of operators that stand in no cell with a stage of its own.

    Args:
        plan: of a pipeline.
    """
    cells = staged_cells(plan)
    scopes = dict.fromkeys(scope for stage in plan.stages for scope in stage.scopes)
    return [scope for scope in scopes if not _inside(scope, cells) and scope.count("/")]


def staged_operator_file(
    plan: StagedPlan, names: Mapping[str, object] | None = None
) -> dict[str, object]:
    """The node-keyed file of the network in ``PipelineCell``, its stages set.

    Args:
        plan: the pipeline.
        names: a file that MindSpore saved of that network: its keys must be the same.

    Raises:
        NotExpressible: which operator has which key cannot be told.
    """
    plain: dict[str, Any] = operator_file(plan.inner, exact=names is not None)
    cells = staged_cells(plan)
    saved = _saved(names)
    ins: dict[str, Rows] = {}
    groups: dict[str, list[str]] = {}
    for key in plain[_ITEMS]:
        groups.setdefault(key.rpartition("-op")[0], []).append(key)
    outs: dict[str, Rows] = {}
    for prefix, keys in groups.items():
        scope, _, operator = prefix.rpartition("/")
        values = [
            (plain[_ITEMS][key]["parallel_strategy"],
             plain[_OUTS].get(key, {}).get("parallel_strategy"))
            for key in sorted(keys, key=lambda key: int(key.rpartition("-op")[2]))
        ]  # fmt: skip
        staged = f"{_staged_scope(scope)}/{operator}"
        once = _inside(scope, cells) or operator == "_VirtualDataset"
        if not once:
            values = _copies(staged, values, plan.micro_batches, saved)
        for number, (rows, out) in enumerate(values):
            ins[f"{staged}-op{number}"] = rows
            if out is not None:
                outs[f"{staged}-op{number}"] = out
    ins |= _micro_batches(plan, saved)
    if saved is not None:
        _check(ins, saved)
    return {
        "current_stage": 0,
        _ITEMS: {key: _item(rows) for key, rows in sorted(ins.items())},
        _OUTS: {key: _item(rows) for key, rows in sorted(outs.items())},
    }


def _item(rows: Rows) -> dict[str, object]:
    return {"stage": 0, "parallel_strategy": rows}


def _inside(scope: str, cells: Mapping[str, int]) -> bool:
    return any(scope == cell or scope.startswith(f"{cell}/") for cell in cells)


def _staged_scope(scope: str) -> str:
    """The scope of an operator once the network stands in a ``PipelineCell``."""
    root, _, rest = scope.partition("/")
    if not rest:
        return scope
    first, slash, others = rest.partition("/")
    attribute, dash, cell = first.partition("-")
    if not dash:
        raise NotExpressible(f"{scope}: the cell that holds the network is not in this scope")
    return f"{root}/{attribute}-PipelineCell/network-{cell}{slash}{others}"


def _copies(
    prefix: str,
    values: list[tuple[Rows, Rows | None]],
    count: int,
    saved: Mapping[str, Rows] | None,
) -> list[tuple[Rows, Rows | None]]:
    """Strategies of operators that are there once a micro-batch, in the order of their numbers.

    Raises:
        NotExpressible: different ones stand in one scope, and no saved file tells them apart.
    """
    if all(value == values[0] for value in values):
        return values * count
    forms = {tuple(map(len, rows)): (rows, out) for rows, out in values}
    own = [tuple(map(len, rows)) for rows, _ in values]
    if all(forms[form] == value for form, value in zip(own, values, strict=True)):
        known = [(saved or {}).get(f"{prefix}-op{n}") for n in range(count * len(values))]
        shown = [tuple(map(len, rows)) for rows in known if rows is not None]
        if sorted(shown) == sorted(own * count):
            return [forms[form] for form in shown]
    raise NotExpressible(
        f"{prefix} stands for {len(values)} operators outside of cells with a stage, with "
        "different strategies, and which number each has in a pipeline cannot be told: --names "
        "with the file that MindSpore saved of the network in PipelineCell, or give them cells of "
        "their own"
    )


def _micro_batches(plan: StagedPlan, saved: Mapping[str, Rows] | None) -> dict[str, Rows]:
    """What ``PipelineCell`` itself adds: slices of the inputs, and sums of the losses."""
    dump = plan.inner.dump
    scopes = [scope for stage in plan.stages for scope in stage.scopes if "/" in scope]
    if not scopes:
        return {}
    pipeline = _staged_scope(scopes[0]).rpartition("/network-")[0]
    pipeline = "/".join(pipeline.split("/")[:2])
    context = plan.inner.context
    first = 1 if context.full_batch else context.stage_size
    rows: dict[str, Rows] = {}
    dataset = next((node for node in dump.nodes() if primitive(node) == "_VirtualDataset"), None)
    inputs = dataset.output_type.tensors if dataset is not None and dataset.output_type else ()
    ranks = [len(shape) for _, shape in inputs if shape]
    if len(set(ranks)) > 1 and saved is None:
        raise NotExpressible(
            "inputs have different numbers of dimensions, and which of them PipelineCell cuts "
            "first cannot be told: --names with the file that MindSpore saved of the network in it"
        )
    for micro in range(plan.micro_batches):
        for number, rank in enumerate(ranks):
            key = f"{pipeline}/micro_inputs-CellList/{micro}-_MicroBatch/StridedSlice-op{number}"
            rows[key] = (saved or {}).get(key) or [[first, *[1] * (rank - 1)]]
    loss = _loss_rank(plan)
    for number in range(plan.micro_batches - 1):
        rows[f"{pipeline}/Add-op{number}"] = [[1] * loss, [1] * loss]
    return rows


def _loss_rank(plan: StagedPlan) -> int:
    """Dimensions of what the network gives back."""
    last = [item for item in plan.inner.operators if item.after is not None][-1:]
    for item in last:
        shape = item.node.output_type.dimensions if item.node.output_type is not None else None
        return len(shape or ())
    return 0


def _saved(names: Mapping[str, object] | None) -> dict[str, Rows] | None:
    """Strategies by key of a file that MindSpore saved."""
    if names is None:
        return None
    items: Any = names.get(_ITEMS)
    try:
        return {str(key): [list(row) for row in item["parallel_strategy"]]
                for key, item in items.items()}  # fmt: skip
    except (AttributeError, LookupError, TypeError):
        raise NotExpressible(f"the file with names holds no {_ITEMS}") from None


def _check(keyed: Mapping[str, Rows], saved: Mapping[str, Rows]) -> None:
    missing, extra = sorted(saved.keys() - keyed.keys()), sorted(keyed.keys() - saved.keys())
    if missing:
        raise NotExpressible(
            f"MindSpore asks for {missing[0]} (and {len(missing) - 1} more), of which this plan "
            "knows nothing: was the file saved of the network in PipelineCell, with the "
            "pipeline_stage of each cell as --format shard writes it?"
        )
    if extra:
        raise NotExpressible(
            f"the file does not know {extra[0]} (and {len(extra) - 1} more): was it saved of the "
            "network in PipelineCell, with the pipeline_stage of each cell as --format shard "
            "writes it?"
        )
