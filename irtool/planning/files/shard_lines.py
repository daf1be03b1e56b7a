"""Plans as lines of Python: ``.shard(...)`` by cell, and ``shard(fn, ...)`` for a region.

A primitive has one strategy, wherever it is used: where its uses get different ones, that is said,
and no line can be pasted for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.held import ROOT, cell_path, held_by
from irtool.operators.call import Strategy
from irtool.planning.plans.decisions import Decisions
from irtool.planning.plans.plan import Plan, PlannedOperator
from irtool.sharding.network.sharded_nodes import primitive

PASSING = frozenset({"Load", "Depend", "TupleGetItem", "Cast"})
"""What only hands a tensor on."""


def shard_lines(plan: Plan) -> Iterator[str]:
    """Lines to paste behind the construction of the network, by cell.

    Args:
        plan: in a form that such lines can say.

    Yields:
        lines of Python without their ends; a comment for what no line can set.
    """
    cells: dict[str, dict[str, list[PlannedOperator]]] = {}
    for item in plan.operators:
        if item.after is None or primitive(item.node) == "Reshape":
            continue
        uses = cells.setdefault(item.node.scope or "", {})
        held = held_by(item.node)
        uses.setdefault(held[1] if held is not None else "", []).append(item)
    yield f"# {ROOT} is the cell that is compiled"
    for scope, uses in cells.items():
        yield f"# {scope or 'without a scope'}"
        for name, items in uses.items():
            calls = dict.fromkeys(_call(item) for item in items)
            path = cell_path(scope)
            if name and path and len(calls) == 1:
                yield f"{path}.{name}{next(iter(calls))}"
                continue
            why = "used with different strategies: give each use a primitive of its own"
            if not name or not path:
                why = "not held by an attribute: make it one in __init__"
            for item in items:
                yield f"# {_place(item.node)} {primitive(item.node)}(){_call(item)}  # {why}"
        yield ""


def decision_lines(decisions: Decisions) -> Iterator[str]:
    """Which weights optimizer parallel cuts, and which primitives run again, as Python.

    Args:
        decisions: of a plan.

    Yields:
        lines without their ends; none for what the plan does not decide.
    """
    if decisions.sharded:
        yield "# set_auto_parallel_context(enable_parallel_optimizer=True); what stays whole:"
        yield f"whole = {sorted(decisions.unsharded)!r}"
        yield f"for parameter in {ROOT}.get_parameters():"
        yield "    parameter.parallel_optimizer = parameter.name not in whole"
        yield ""
    if decisions.recomputed:
        yield "# what runs again instead of keeping its result, wherever the primitive is used"
        yield from dict.fromkeys(_again(node) for node in decisions.recomputed)
        yield ""


def _again(node: Node) -> str:
    path, name = cell_path(node.scope or ""), node.instance_name or ""
    if path and name.isidentifier():
        return f"{path}.{name}.recompute()"
    why = "not held by an attribute: make it one in __init__"
    return f"# {_place(node)} {primitive(node)}().recompute()  # {why}"


def _call(item: PlannedOperator) -> str:
    out = "" if item.out_after is None else f", out_strategy={_python(item.out_after)}"
    return f".shard(in_strategy={_python(item.after or ())}{out})"


def _place(node: Node) -> str:
    location = node.location
    if location is None:
        return f"{node.id} (line {node.line} of the dump):"
    return f"{location.path}:{location.line}:"


def _python(rows: Sequence[Sequence[int]]) -> str:
    return repr(tuple(tuple(row) for row in rows))


# -- a region ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShardedFunction:
    """A region as one function.

    Attributes:
        inputs: what comes in from outside, as texts; ``in_strategy`` how each is split there.
        outputs: operators whose results leave; ``out_strategy`` how those are split.
        weights: how parameters inside lie, by name.
    """

    inputs: tuple[str, ...]
    in_strategy: Strategy
    outputs: tuple[str, ...]
    out_strategy: Strategy
    weights: dict[str, tuple[int, ...]]


def sharded_function(plan: Plan, region: Set[Node]) -> ShardedFunction:
    """What goes into and comes out of a region of a plan.

    Args:
        plan: the plan.
        region: nodes of its dump.
    """
    inputs: dict[object, tuple[str, tuple[int, ...]]] = {}
    outputs: dict[Node, tuple[int, ...]] = {}
    weights: dict[str, tuple[int, ...]] = {}
    for item in plan.report.operators:
        if item.node not in region:
            continue
        slots = item.call.slots
        for position, source in enumerate(item.node.inputs):
            tensor = slots.tensor(position, 0)
            if tensor is None or tensor >= len(item.judgement.input_layouts):
                continue
            splits = item.judgement.input_layouts[tensor].splits
            behind = _behind(source, region)
            if isinstance(behind, GraphParameter):
                if behind.declaration is not None and behind.declaration.is_weight:
                    weights.setdefault(behind.name, splits)
                else:
                    inputs.setdefault(id(behind), (behind.name, splits))
            elif isinstance(behind, Node) and behind not in region:
                text = f"{behind.op} {behind.name or behind.id} (line {behind.line})"
                inputs.setdefault(behind, (text, splits))
        if any(_leaves(use, region) for use in item.node.users):
            outputs[item.node] = item.judgement.output_layouts[0].splits
    return ShardedFunction(
        tuple(text for text, _ in inputs.values()),
        tuple(splits for _, splits in inputs.values()),
        tuple(f"{node.op} {node.name or node.id} (line {node.line})" for node in outputs),
        tuple(outputs.values()),
        weights,
    )


def _behind(source: object, region: Set[Node]) -> object:
    """What an operand is, behind what only hands it on; a Cast of the region is an operator."""
    while isinstance(source, Node) and primitive(source) in PASSING:
        if source in region and primitive(source) == "Cast":
            break
        source = source.inputs[0]
    return source


def _leaves(user: Node, region: Set[Node]) -> bool:
    if user.is_return:
        return True
    if user in region:
        return False
    if primitive(user) in PASSING:
        return any(_leaves(reader, region) for reader in user.users)
    return primitive(user) != "UpdateState"


def function_lines(function: ShardedFunction) -> Iterator[str]:
    """``shard(fn, ...)`` for a person to paste.

    Args:
        function: the region as a function: its inputs, results and weights with their strategies.

    Yields:
        lines of Python without their ends.
    """
    yield "# the region as a function fn (or a cell); mindspore.shard needs auto_parallel with"
    yield "# search_mode sharding_propagation, and looks at positional arguments only"
    yield "# arguments of fn, in this order:"
    yield from (f"#   {text}" for text in function.inputs)
    yield "# its results:"
    yield from (f"#   {text}" for text in function.outputs)
    for name, splits in function.weights.items():
        yield f"# {name} lies as {splits}"
    yield "sharded = mindspore.shard("
    yield "    fn,"
    yield f"    in_strategy={_python(function.in_strategy)},"
    yield f"    out_strategy={_python(function.out_strategy)},"
    yield ")"
