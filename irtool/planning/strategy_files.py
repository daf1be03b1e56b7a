"""Plans in the forms that MindSpore and people take: its two JSON files, and lines of Python.

``operator_file`` is what ``set_op_strategy_config("LOAD", …)`` reads under sharding propagation: an
entry for every operator, keyed ``<scope>/<primitive>-op<N>``.  A begin dump does not print ``N``.
MindSpore counts operators of one scope and primitive as it comes across them, inputs before their
users; so where two of them have different strategies and neither depends on the other, their
numbers cannot be told, and the file is declined.  ``parameter_file`` is what
``strategy_ckpt_config`` reads: keyed by primitive and weight, it says nothing of operators without
weights.  Formats: files that MindSpore 2.7 saved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from irtool.ir.graph import GraphParameter
from irtool.ir.node import Node
from irtool.planning.plan import Plan
from irtool.sharding.network.care import primitive
from irtool.sharding.network.graphs import network_of
from irtool.sharding.operator import Strategy


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
    met = {id(port): at for at, port in enumerate(network_of(plan.dump).preorder)}
    for prefix, entries in groups.items():
        for number, entry in enumerate(_numbered(prefix, entries, met)):
            keyed[f"{prefix}-op{number}"] = entry
    if names is not None:
        _check_names(keyed, names)
    ins = {key: _item(entry.strategy) for key, entry in sorted(keyed.items())}
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


def _item(strategy: Strategy) -> dict[str, object]:
    return {"stage": 0, "parallel_strategy": [list(row) for row in strategy]}


def _check_names(keyed: Mapping[str, _Entry], names: Mapping[str, object]) -> None:
    saved = names.get("parallel_strategy_item")
    if not isinstance(saved, Mapping):
        raise NotExpressible("the file with names holds no parallel_strategy_item")
    known = {str(key) for key in saved}  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]  # JSON
    missing = sorted(known - set(keyed))
    if missing:
        raise NotExpressible(
            f"MindSpore asks for {missing[0]} (and {len(missing) - 1} more), of which this dump "
            "knows nothing: is the file of the same network?"
        )
    extra = sorted(set(keyed) - known)
    if extra:
        raise NotExpressible(
            f"the file does not know {extra[0]} (and {len(extra) - 1} more): is it of the same "
            "network?"
        )


def _numbered(prefix: str, entries: list[_Entry], met: Mapping[int, int]) -> list[_Entry]:
    """The operators of one scope and primitive in the order in which MindSpore counts them."""
    ordered = sorted(entries, key=lambda entry: met.get(id(entry.node), len(met)))
    among = {entry.node for entry in entries}
    if primitive(entries[0].node) == "Reshape":
        return ordered
    for at, first in enumerate(ordered):
        differ = [
            other
            for other in ordered[at + 1 :]
            if (other.strategy, other.out_strategy) != (first.strategy, first.out_strategy)
        ]
        before = _ancestors(first.node, among) if differ else set[Node]()
        for other in differ:
            if other.node not in before:
                raise NotExpressible(
                    f"{prefix} stands for {len(entries)} operators, of which those in lines "
                    f"{first.node.line} and {other.node.line} get different strategies, and which "
                    "of them MindSpore counts first is not sure: --pin one to the other's "
                    "strategy, or give them cells of their own"
                )
    return ordered


def _ancestors(node: Node, among: set[Node]) -> set[Node]:
    """Which of some nodes a node depends on, within its graph."""
    seen: set[Node] = {node}
    todo: list[Node] = [node]
    while todo:
        for source in todo.pop().inputs:
            if isinstance(source, Node) and source not in seen:
                seen.add(source)
                todo.append(source)
    return (seen & among) - {node}


# -- keyed by weights ----------------------------------------------------------------------------


def parameter_file(plan: Plan) -> tuple[dict[str, object], tuple[str, ...]]:
    """The parameter-keyed file, and what it leaves out.

    Raises:
        NotExpressible: operators of one kind share a weight and differ.
    """
    found: dict[str, Strategy] = {}
    left: list[str] = []
    for item in plan.operators:
        weight = _first_weight(item.node)
        if item.after is None:
            continue
        if weight is None:
            if item.changes:
                left.append(f"{item.node.op} in line {item.node.line} has no weight")
            continue
        if item.out_after is not None:
            left.append(f"out_strategy of {item.node.op} in line {item.node.line}")
        key = f"{primitive(item.node)}_{weight}"
        if found.setdefault(key, item.after) != item.after:
            raise NotExpressible(f"two operators share the key {key} and differ")
    file: dict[str, object] = {
        "current_stage": 0,
        "parallel_strategy_item": {key: _item(rows) for key, rows in sorted(found.items())},
        "parallel_layout_item": {},
    }
    return file, tuple(left)


def _first_weight(node: Node) -> str | None:
    """The first operand that is a weight, behind Load, Cast and Depend."""
    for source in node.inputs:
        while isinstance(source, Node) and primitive(source) in ("Load", "Cast", "Depend"):
            source = source.inputs[0]
        if (
            isinstance(source, GraphParameter)
            and source.declaration is not None
            and source.declaration.has_default
        ):
            return source.name
    return None


# -- Python --------------------------------------------------------------------------------------


def shard_lines(plan: Plan) -> Iterator[str]:
    """``.shard(...)`` calls for people to paste, by cell."""
    cells: dict[str, list[str]] = {}
    for item in plan.operators:
        if item.after is None or not item.changes:
            continue
        out = "" if item.out_after is None else f", out_strategy={_python(item.out_after)}"
        line = f"{primitive(item.node)}().shard(in_strategy={_python(item.after)}{out})"
        lines = cells.setdefault(item.node.scope or "", [])
        if line not in lines:
            lines.append(line)
    for scope, lines in cells.items():
        yield f"# {scope or 'without a scope'}"
        yield from lines
        yield ""


def _python(rows: Sequence[Sequence[int]]) -> str:
    return repr(tuple(tuple(row) for row in rows))
