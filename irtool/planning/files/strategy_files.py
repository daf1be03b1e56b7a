"""Plans in MindSpore's own forms: its two JSON files.

``operator_file`` is what ``set_op_strategy_config("LOAD", …)`` reads under sharding propagation: an
entry for every operator, keyed ``<scope>/<primitive>-op<N>``.  A begin dump does not print ``N``:
:mod:`irtool.planning.files.node_names` replays it.  What it leaves open is no hindrance where the
operators in question have one strategy; else they are told, so that a plan can be made in which
they have (:mod:`irtool.planning.files.handing_over`).  ``parameter_file`` is what
``strategy_ckpt_config`` reads: keyed by primitive and weight, it says nothing of operators without
weights.  How each parameter then lies stands in both, for MindSpore's conversion of checkpoints.
Formats: files that MindSpore 2.7 saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from irtool.artefacts.strategies.json import LAYOUT_VALUES, OUT_LAYOUT_VALUES
from irtool.ir.comments import Location
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.operators.call import Strategy
from irtool.operators.layout import UserLayout
from irtool.planning.cost.structure import structure_of
from irtool.planning.files.node_names import Naming, first_weight
from irtool.planning.files.parameter_layouts import layout_object, predicted_layouts
from irtool.planning.files.removed_operators import RemovedOperators
from irtool.planning.plans.plan import Plan
from irtool.sharding.network.graphs import network_of
from irtool.sharding.network.report import CheckResult
from irtool.sharding.network.sharded_nodes import primitive
from irtool.sharding.network.strategies import given_layouts


class NotExpressible(Exception):
    """A form cannot say what the plan says.

    ``tied``: sets of operators (of the plan's dump) that a plan which it can say gives one strategy
    each; empty: that would not help.
    """

    def __init__(self, message: str, tied: tuple[tuple[Node, ...], ...] = ()) -> None:
        super().__init__(message)
        self.tied = tied


class OtherNetwork(NotExpressible):
    """The file with names is of another network."""


@dataclass(frozen=True, slots=True)
class _Entry:
    node: Node
    strategy: Strategy
    out_strategy: Strategy | None
    in_layout: tuple[UserLayout, ...] = ()
    out_layout: tuple[UserLayout, ...] = ()

    @property
    def said(self) -> tuple[object, ...]:
        """What the file says of the operator."""
        return self.strategy, self.out_strategy, self.in_layout, self.out_layout


def operator_file(
    plan: Plan, names: Mapping[str, object] | None = None, *, exact: bool = False
) -> dict[str, object]:
    """The strategy file keyed by operators, as a JSON object.

    Args:
        plan: the plan.
        names: a file that MindSpore saved for this network: its keys must be the same.
        exact: no entries at numbers that only may be in use.

    Raises:
        NotExpressible: which operator has which key cannot be told.
    """
    groups: dict[str, list[_Entry]] = {}
    copied = _copied_graphs(plan.dump)
    for item in plan.report.operators:
        if item.node.scope is None:
            raise NotExpressible(
                f"{item.node.id} {item.op} (line {item.node.line}) has no scope in this dump"
            )
        if item.node.graph is not None and item.node.graph.name in copied:
            raise NotExpressible(
                f"{item.node.scope} is compiled once for all of its uses (lazy_inline), and which "
                "numbers MindSpore gives its operators this dump does not tell"
            )
        strategy = item.strategy or ()
        if primitive(item.node) == "Reshape":
            # It must have an entry, but takes over the layouts of its neighbours.
            strategy = tuple((1,) * len(row) for row in strategy)
        layouts = (given_layouts(item.node, key) for key in ("in_layout", "out_layout"))
        entry = _Entry(item.node, strategy, item.out_strategy, *layouts)
        groups.setdefault(f"{item.node.scope}/{primitive(item.node)}", []).append(entry)
    dataset = _dataset(plan) if not any(key.endswith("/_VirtualDataset") for key in groups) else {}
    keyed = _keyed(groups, Naming(network_of(plan.dump)), names)
    spare: dict[str, _Entry] = {}
    if names is None:
        nodes = [item.node for item in plan.report.operators]
        spare = _spare(groups, RemovedOperators(plan.dump, nodes), exact=exact)
    if names is not None:
        _check_names({*keyed, *dataset}, names)
    keyed = {**spare, **keyed}
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
        "parallel_layout_item": layout_items(plan.report),
        **_layouts_of_code(keyed),
    }


def _layouts_of_code(keyed: Mapping[str, _Entry]) -> dict[str, object]:
    """The tables of layouts that the code gives operators, as MindSpore 2.7 saves them.

    Without its layout an operator lies as its strategy says, on other devices than the code wants.
    """
    tables: dict[str, dict[str, object]] = {}
    for key, entry in sorted(keyed.items()):
        both = (LAYOUT_VALUES, entry.in_layout), (OUT_LAYOUT_VALUES, entry.out_layout)
        for name, layouts in both:
            if layouts:
                rows = {str(number): _layout_value(one) for number, one in enumerate(layouts)}
                tables.setdefault(name, {})[key] = rows
    return dict(tables)


def _layout_value(layout: UserLayout) -> dict[str, object]:
    return {
        "alias_name": list(layout.alias_name),
        "dev_matrix": list(layout.device_matrix),
        "interleaved_parallel": layout.interleaved,
        "tensor_map": [
            list(entry) if isinstance(entry, tuple) else [entry] for entry in layout.tensor_map
        ],
    }


def layout_items(report: CheckResult) -> dict[str, object]:
    """How parameters lie, as strategy files say it: MindSpore's conversion of checkpoints reads it.

    MindSpore loads either file with it, and converts by either (tried with 2.7.0 and 2.10.0).

    Args:
        report: what ``check`` says of the planned network.

    Returns:
        a JSON object for each parameter whose layout is known, by name.
    """
    layouts = predicted_layouts(report).layouts
    return {name: layout_object(layout) for name, layout in sorted(layouts.items())}


def _copied_graphs(dump: Dump) -> Set[str]:
    """Names of graphs that are compiled once, however often they are used, and of those in them.

    MindSpore counts operators of the copies that it made before, too: the numbers of those that are
    left begin anywhere (seen in files that 2.7 saved).
    """
    copied = {graph.name for graph in dump.graphs if "cell_reuse" in graph.attributes}
    parents = {graph.name: graph.parent for graph in dump.graphs}
    while more := {name for name, parent in parents.items() if parent in copied} - copied:
        copied |= more
    return copied


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


def _spare(
    groups: Mapping[str, list[_Entry]], removed: RemovedOperators, *, exact: bool
) -> dict[str, _Entry]:
    """Entries at further numbers, where MindSpore counted operators that it then removed.

    Where all that is left of a scope and primitive gets one strategy, an entry at each number that
    may be in use says it. MindSpore passes over keys that name no operator (tried with 2.7.0).

    Raises:
        NotExpressible: what is left gets several strategies, or keys must be exact.
    """
    spare: dict[str, _Entry] = {}
    apart: list[tuple[Node, ...]] = []
    first: tuple[str, Location] | None = None
    for prefix, entries in groups.items():
        nodes = tuple(entry.node for entry in entries)
        line = removed.line_of(nodes)
        is_one = len({(entry.strategy, entry.out_strategy) for entry in entries}) == 1
        if is_one and not exact and (line is not None or removed.is_merged(nodes)):
            numbers = range(len(entries), 2 * len(entries) + _SPARE)
            spare.update((f"{prefix}-op{number}", entries[0]) for number in numbers)
        elif line is not None:
            first = first or (prefix, line)
            # Operators of other ranks can have no common strategy.
            apart += [nodes] * (len({tuple(map(len, entry.strategy)) for entry in entries}) == 1)
    if first is not None:
        prefix, line = first
        raise NotExpressible(
            f"{line.path}:{line.line} calls an operator {prefix} that this dump no longer "
            "holds, and which number MindSpore gave it cannot be told; --names SAVED.json with "
            "a file that MindSpore saved tells the numbers of the others",
            tuple(apart),
        )
    return spare


_SPARE = 8
"""Numbers beside one more for each operator that get an entry where some were removed."""


def _numbers(prefix: str, count: int, names: Mapping[str, object] | None) -> Sequence[int]:
    """The numbers of operators of one scope and primitive: those of a saved file, where it fits.

    Without one they are taken to begin with 0, and to have no gaps.
    """
    saved = (names or {}).get("parallel_strategy_item")
    if isinstance(saved, Mapping):
        keys = [str(key).rpartition("-op") for key in saved]  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]  # JSON
        numbers = sorted(int(key[2]) for key in keys if key[0] == prefix and key[2].isdecimal())
        if len(numbers) == count:
            return numbers
    return range(count)


def _saved_forms(
    prefix: str, numbers: Sequence[int], names: Mapping[str, object] | None
) -> list[tuple[int, ...]]:
    """How many dimensions a saved file gives the operands of each ``<prefix>-op<N>``."""
    saved: Any = (names or {}).get("parallel_strategy_item")
    forms: list[tuple[int, ...]] = []
    try:
        for number in numbers:
            rows = saved[f"{prefix}-op{number}"]["parallel_strategy"]
            forms.append(tuple(len(row) for row in rows))
    except (LookupError, TypeError):
        return []
    return forms


def _check_names(keyed: Set[str], names: Mapping[str, object]) -> None:
    saved = names.get("parallel_strategy_item")
    if not isinstance(saved, Mapping):
        raise OtherNetwork("the file with names holds no parallel_strategy_item")
    known = {str(key) for key in saved}  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]  # JSON
    missing = sorted(known - keyed)
    if missing:
        raise OtherNetwork(
            f"MindSpore asks for {missing[0]} (and {len(missing) - 1} more), of which this dump "
            "knows nothing: is the file of the same network?"
        )
    extra = sorted(keyed - known)
    if extra:
        raise OtherNetwork(
            f"the file does not know {extra[0]} (and {len(extra) - 1} more): is it of the same "
            "network?"
        )


def _keyed(
    groups: Mapping[str, list[_Entry]], naming: Naming, names: Mapping[str, object] | None
) -> dict[str, _Entry]:
    """What stands for each key.

    Raises:
        NotExpressible: operators that may bear one number want different entries.
    """
    keyed: dict[str, _Entry] = {}
    apart: dict[tuple[Node, ...], str] = {}
    for prefix, entries in groups.items():
        by_node = {entry.node: entry for entry in entries}
        forms = {node: tuple(map(len, entry.strategy)) for node, entry in by_node.items()}
        numbers = _numbers(prefix, len(entries), names)
        known = _saved_forms(prefix, numbers, names)
        try:
            ranked = naming.ranked(tuple(by_node), forms, known)
        except ValueError:
            raise OtherNetwork(
                f"the file with names has other operators {prefix} than this dump: is it of the "
                "same network?"
            ) from None
        for number, nodes in zip(numbers, ranked, strict=True):
            own = [by_node[node] for node in nodes]
            keyed[f"{prefix}-op{number}"] = own[0]
            if len({entry.said for entry in own}) > 1:
                apart[nodes] = prefix
    if apart:
        raise _unsure(apart, {entry.node: entry for own in groups.values() for entry in own})
    return keyed


def _unsure(
    apart: Mapping[tuple[Node, ...], str], entries: Mapping[Node, _Entry]
) -> NotExpressible:
    """Why numbers that are not known hinder the file, and whether equal strategies would help."""
    for nodes, prefix in apart.items():
        if len({tuple(map(len, entries[node].strategy)) for node in nodes}) > 1:
            lines = ", ".join(str(node.line) for node in nodes)
            return NotExpressible(
                f"{prefix} stands for {len(nodes)} operators whose operands differ in rank (lines "
                f"{lines}), and which of them MindSpore counts first cannot be told from this dump"
            )
    (nodes, prefix), count = next(iter(apart.items())), len(apart)
    more = f" (and {count - 1} more like that)" if count > 1 else ""
    return NotExpressible(
        f"{prefix} stands for operators in lines {nodes[0].line} and {nodes[-1].line}{more}, and "
        "which of them MindSpore counts first cannot be told from this dump",
        tuple(apart),
    )


# -- keyed by weights ----------------------------------------------------------------------------


def parameter_keys(plan: Plan) -> dict[Node, str]:
    """The key of each operator that has one: its primitive, and its first trained weight.

    Args:
        plan: of a network.

    Returns:
        ``MatMul_fc.weight`` by node; operators without a strategy or a weight are not among them.
    """
    weights = structure_of(plan.dump, plan.context).parameters
    # MindSpore looks for a weight that is trained; of a forward graph nobody knows which are.
    trained = {item.name for item in weights if item.trained} or {item.name for item in weights}
    keys: dict[Node, str] = {}
    for item in plan.operators:
        weight = first_weight(item.node, trained)
        if item.after is not None and weight is not None:
            keys[item.node] = f"{primitive(item.node)}_{weight}"
    return keys


def parameter_file(plan: Plan) -> tuple[dict[str, object], tuple[str, ...]]:
    """The parameter-keyed file, and what it leaves out.

    Args:
        plan: to write.

    Returns:
        the file as a JSON object, and a sentence for each strategy or layout that is not in it.

    Raises:
        NotExpressible: operators of one kind share a weight and differ.
    """
    strategies: dict[str, Strategy] = {}
    left: list[str] = []
    keys = parameter_keys(plan)
    for item in plan.operators:
        key = keys.get(item.node)
        if item.after is None:
            continue
        if key is None:
            if item.changes:
                left.append(f"{item.node.op} in line {item.node.line} has no trained weight")
            continue
        if item.out_after is not None:
            left.append(f"out_strategy of {item.node.op} in line {item.node.line}")
        if strategies.setdefault(key, item.after) != item.after:
            raise NotExpressible(f"two operators share the key {key} and differ")
    unknown = predicted_layouts(plan.report).unknown
    left += [f"how {name} lies: {why}" for name, why in unknown.items()]
    stage = plan.context.stage
    file: dict[str, object] = {
        "current_stage": 0,
        "parallel_strategy_item": {
            key: _item(rows, stage) for key, rows in sorted(strategies.items())
        },
        "parallel_layout_item": layout_items(plan.report),
    }
    return file, tuple(left)
