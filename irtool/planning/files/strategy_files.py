"""Plans in MindSpore's own forms: its two JSON files.

``operator_file`` is what ``set_op_strategy_config("LOAD", …)`` reads under sharding propagation: an
entry for every operator, keyed ``<scope>/<primitive>-op<N>``.  A begin dump does not print ``N``.
MindSpore counts operators of one scope and primitive as it comes across them, inputs before their
users; so where two of them have different strategies and neither depends on the other, their
numbers cannot be told, and the file is declined.  ``parameter_file`` is what
``strategy_ckpt_config`` reads: keyed by primitive and weight, it says nothing of operators without
weights; how each parameter then lies stands beside, for MindSpore's conversion of checkpoints.
Formats: files that MindSpore 2.7 saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from irtool.ir.graph import GraphParameter, Node
from irtool.operators.call import Strategy
from irtool.planning.cost.structure import structure_of
from irtool.planning.files.node_names import Naming, Unsure
from irtool.planning.files.parameter_layouts import layout_object, predicted_layouts
from irtool.planning.plans.plan import Plan
from irtool.sharding.network.care import primitive
from irtool.sharding.network.graphs import network_of


class NotExpressible(Exception):
    """A form cannot say what the plan says."""


@dataclass(frozen=True, slots=True)
class _Entry:
    node: Node
    strategy: Strategy
    out_strategy: Strategy | None


def operator_file(plan: Plan, names: Mapping[str, object] | None = None) -> dict[str, object]:
    """The node-keyed file.

    Args:
        plan: the plan.
        names: a file that MindSpore saved for this network: its keys must be the same.

    Raises:
        NotExpressible: which operator has which key cannot be told.
    """
    groups: dict[str, list[_Entry]] = {}
    for item in plan.report.operators:
        if item.node.scope is None:
            raise NotExpressible(
                f"{item.node.id} {item.op} (line {item.node.line}) has no scope in this dump"
            )
        strategy = item.strategy or ()
        if primitive(item.node) == "Reshape":
            # It must have an entry, but takes over the layouts of its neighbours.
            strategy = tuple((1,) * len(row) for row in strategy)
        entry = _Entry(item.node, strategy, item.out_strategy)
        groups.setdefault(f"{item.node.scope}/{primitive(item.node)}", []).append(entry)
    keyed: dict[str, _Entry] = {}
    dataset = _dataset(plan) if not any(key.endswith("/_VirtualDataset") for key in groups) else {}
    naming = Naming(network_of(plan.dump))
    for prefix, entries in groups.items():
        known = _saved_forms(prefix, len(entries), names)
        for number, entry in enumerate(_numbered(prefix, entries, naming, known)):
            keyed[f"{prefix}-op{number}"] = entry
    if names is not None:
        _check_names({*keyed, *dataset}, names)
    ins = {key: _item(entry.strategy) for key, entry in keyed.items()}
    ins = dict(sorted({**ins, **dataset}.items()))
    outs = {
        key: _item(entry.out_strategy)
        for key, entry in sorted(keyed.items())
        if entry.out_strategy is not None
    }
    return {
        "current_stage": 0,
        "parallel_strategy_item": ins,
        "parallel_out_strategy_item": outs,
    }


def _item(strategy: Strategy, stage: int = 0) -> dict[str, object]:
    return {"stage": stage, "parallel_strategy": [list(row) for row in strategy]}


def _dataset(plan: Plan) -> dict[str, dict[str, object]]:
    """The entry of the operator that MindSpore puts behind the inputs, where a dump has none yet.

    Raises:
        NotExpressible: the inputs come from a queue, or are of unknown shape.
    """
    entry = plan.dump.entry
    if entry is None or any(primitive(node) == "GetNext" for node in plan.dump.nodes()):
        raise NotExpressible(
            "this dump was taken before MindSpore split the dataset: give step_parallel_begin"
        )
    context = plan.context
    rows: list[Sequence[int]] = []
    for parameter in entry.parameters:
        if parameter.declaration is not None and parameter.declaration.is_weight:
            continue
        for dtype, shape in parameter.type.tensors if parameter.type is not None else ():
            if dtype is None or "Monad" in dtype:
                continue
            first = 1 if context.full_batch else context.stage_size
            rows.append([first, *[1] * (len(shape) - 1)] if shape else [])
    if isinstance(context.dataset, tuple):
        rows = [row if isinstance(row, tuple) else row.strategy for row in context.dataset]
    return {"Default/_VirtualDataset-op0": _item(tuple(tuple(row) for row in rows))}


def _saved_forms(
    prefix: str, count: int, names: Mapping[str, object] | None
) -> list[tuple[int, ...]]:
    """How many dimensions a saved file gives the operands of each ``<prefix>-op<N>``."""
    saved: Any = (names or {}).get("parallel_strategy_item")
    found: list[tuple[int, ...]] = []
    try:
        for number in range(count):
            rows = saved[f"{prefix}-op{number}"]["parallel_strategy"]
            found.append(tuple(len(row) for row in rows))
    except (LookupError, TypeError):
        return []
    return found


def _check_names(keyed: Set[str], names: Mapping[str, object]) -> None:
    saved = names.get("parallel_strategy_item")
    if not isinstance(saved, Mapping):
        raise NotExpressible("the file with names holds no parallel_strategy_item")
    known = {str(key) for key in saved}  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]  # JSON
    missing = sorted(known - keyed)
    if missing:
        raise NotExpressible(
            f"MindSpore asks for {missing[0]} (and {len(missing) - 1} more), of which this dump "
            "knows nothing: is the file of the same network?"
        )
    extra = sorted(keyed - known)
    if extra:
        raise NotExpressible(
            f"the file does not know {extra[0]} (and {len(extra) - 1} more): is it of the same "
            "network?"
        )


def _numbered(
    prefix: str, entries: list[_Entry], naming: Naming, known: list[tuple[int, ...]]
) -> list[_Entry]:
    """The operators of one scope and primitive in the order in which MindSpore counts them."""
    by_node = {entry.node: entry for entry in entries}
    order = naming.ordered(
        tuple(by_node),
        {node: (each.strategy, each.out_strategy) for node, each in by_node.items()},
        {node: tuple(map(len, each.strategy)) for node, each in by_node.items()},
        known,
    )
    if isinstance(order, Unsure):
        raise NotExpressible(
            f"{prefix} stands for {len(entries)} operators, of which those in lines "
            f"{order.first.line} and {order.second.line} get different strategies, and which of "
            "them MindSpore counts first cannot be told from this dump: --pin one to the other's "
            "strategy, or give them cells of their own"
        )
    return [by_node[node] for node in order]


# -- keyed by weights ----------------------------------------------------------------------------


def parameter_file(plan: Plan) -> tuple[dict[str, object], tuple[str, ...]]:
    """The parameter-keyed file, and what it leaves out.

    Raises:
        NotExpressible: operators of one kind share a weight and differ.
    """
    found: dict[str, Strategy] = {}
    left: list[str] = []
    weights = structure_of(plan.dump, plan.context).parameters
    # MindSpore looks for a weight that is trained; of a forward graph nobody knows which are.
    trained = {item.name for item in weights if item.trained} or {item.name for item in weights}
    for item in plan.operators:
        weight = first_weight(item.node, trained)
        if item.after is None:
            continue
        if weight is None:
            if item.changes:
                left.append(f"{item.node.op} in line {item.node.line} has no trained weight")
            continue
        if item.out_after is not None:
            left.append(f"out_strategy of {item.node.op} in line {item.node.line}")
        key = f"{primitive(item.node)}_{weight}"
        if found.setdefault(key, item.after) != item.after:
            raise NotExpressible(f"two operators share the key {key} and differ")
    layouts = predicted_layouts(plan.report)
    left += [f"how {name} lies: {why}" for name, why in layouts.unknown.items()]
    stage = plan.context.stage
    file: dict[str, object] = {
        "current_stage": 0,
        "parallel_strategy_item": {key: _item(rows, stage) for key, rows in sorted(found.items())},
        "parallel_layout_item": {
            name: layout_object(each) for name, each in sorted(layouts.layouts.items())
        },
    }
    return file, tuple(left)


def first_weight(node: Node, among: Set[str]) -> str | None:
    """The first operand that is one of some weights, behind Load, Cast and Depend."""
    for source in node.inputs:
        while isinstance(source, Node) and primitive(source) in ("Load", "Cast", "Depend"):
            source = source.inputs[0]
        if (
            isinstance(source, GraphParameter)
            and source.declaration is not None
            and source.declaration.has_default
            and source.name in among
        ):
            return source.name
    return None
