"""What the user, or a search before, asked for: strategies and layouts of a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from irtool.ir.dataclass import dataclass
from irtool.ir.graph import Node
from irtool.ir.values import Attributes
from irtool.operators.call import OperatorCall, Strategy
from irtool.operators.layout import MapEntry, UserLayout


class StrategyFormatError(Exception):
    """A strategy or layout that is not of the form it must have."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Strategies and layouts in effect; all None: MindSpore makes a strategy itself.

    ``by_attribute``: ``in_layout`` is what the primitive's attribute ``layout`` says.
    """

    strategy: Strategy | None = None
    out_strategy: Strategy | None = None
    in_layout: tuple[UserLayout, ...] | None = None
    out_layout: tuple[UserLayout, ...] | None = None
    by_attribute: bool = False

    @property
    def is_nothing(self) -> bool:
        """True if neither strategy nor layout is given."""
        return self.strategy is None and self.in_layout is None and self.out_layout is None


def wanted(node: Node, *, overridden: bool = False) -> Wanted:
    """What is asked of a node: the block behind the statement goes before its attributes.

    Args:
        node: the node.
        overridden: whether the block is that of a search which does not keep to what users say.

    Raises:
        StrategyFormatError: what is written there is neither strategy nor layout.
    """
    searched = strategy_of("in_strategy", _of(node.strategy, "in_strategy"))
    if searched is not None and overridden:
        return Wanted(searched, strategy_of("out_strategy", _of(node.strategy, "out_strategy")))
    # Layouts behind the statement are not the user's: MindSpore shows there what it made of all.
    in_layout = _layouts("in_layout", _of(node.primitive_attributes, "in_layout"))
    out_layout = _layouts("out_layout", _of(node.primitive_attributes, "out_layout"))
    if in_layout is None and out_layout is not None and searched is not None:
        # ``shard`` of a function gave its result a layout; the search made a strategy of the rest.
        return Wanted(searched, strategy_of("out_strategy", node.written_strategy("out_strategy")))
    if in_layout is not None or out_layout is not None:
        # A search prints them as strategies, but keeps to the layouts.
        return Wanted(in_layout=in_layout, out_layout=out_layout)
    configured = _configured(_of(node.primitive_attributes, "layout"))
    if configured is not None:
        return Wanted(in_layout=configured, by_attribute=True)
    if searched is not None:
        return Wanted(searched, strategy_of("out_strategy", node.written_strategy("out_strategy")))
    primal = node.primal_attributes
    for block in (primal, node.primitive_attributes):
        strategy = strategy_of("in_strategy", _of(block, "in_strategy"))
        if strategy is not None:
            return Wanted(strategy, strategy_of("out_strategy", _of(block, "out_strategy")))
    return Wanted()


def given_layouts(node: Node, key: str) -> tuple[UserLayout, ...]:
    """The layouts that the code gives a node's operands or results.

    Args:
        node: the node.
        key: ``in_layout`` or ``out_layout``.

    Returns:
        one for each operand or result; empty: the code gives none.

    Raises:
        StrategyFormatError: what is written there is no layout.
    """
    return _layouts(key, _of(node.primitive_attributes, key)) or ()


def padded(strategy: Strategy, call: OperatorCall) -> Strategy:
    """A nested strategy with whole rows in the places of inputs that were left out.

    Args:
        strategy: rows for the tensors that have dimensions, in order; a complete one is given back.
        call: whose tensors say how many rows, and how long.
    """
    tensors = call.tensors
    if len(strategy) >= len(tensors):
        return strategy
    rows: list[tuple[int, ...]] = []
    given = iter(strategy)
    for tensor in tensors:
        rank = len(tensor.shape or ())
        row = next(given, None) if rank else ()
        rows.append((1,) * rank if row is None else row)
    return tuple(rows)


def lies_flat(node: Node, call: OperatorCall) -> bool:
    """Whether the written strategy has a plain row where the operand is a tuple of tensors.

    Args:
        node: in whose attributes the strategy is written.
        call: the node's operands.
    """
    blocks = (node.primal_attributes, node.primitive_attributes)
    written = next((s for block in blocks if (s := _of(block, "in_strategy")) is not None), None)
    if not isinstance(written, (tuple, list)):
        return False
    operands = [operand for operand in call.inputs if any(True for _ in operand.tensors)]
    rows = cast("Sequence[object]", written)
    return any(
        bool(operand.items and row) and not _is_nested_row(row)
        for operand, row in zip(operands, rows, strict=False)
    )


def _is_nested_row(row: object) -> bool:
    items = cast("Sequence[object]", row) if isinstance(row, (tuple, list)) else ()
    return any(isinstance(item, (tuple, list)) for item in items)


def _of(block: Attributes | None, key: str) -> object:
    return block[key] if block is not None and key in block else None


def strategy_of(key: str, value: object) -> Strategy | None:
    """A strategy from the value of an attribute: rows of numbers, those of nested ones in line.

    Args:
        key: name of the attribute, for the message.
        value: nested tuples or lists as MindSpore writes them; None: not given.

    Returns:
        None where none is given; of an empty tuple an empty strategy.

    Raises:
        StrategyFormatError: the value is no tuple of tuples of numbers.
    """
    if value is None:
        return None
    if not isinstance(value, (tuple, list)):
        raise StrategyFormatError(f"{key} must be a tuple of tuples, but is {value!r}")
    rows: list[tuple[int, ...]] = []
    for row in cast("Sequence[object]", value):
        rows.extend(_rows(key, row))
    return tuple(rows)


def _rows(key: str, row: object) -> list[tuple[int, ...]]:
    if not isinstance(row, (tuple, list)):
        raise StrategyFormatError(f"{key} must be a tuple of tuples, but holds {row!r}")
    items = list(cast("Sequence[object]", row))
    if items and all(isinstance(item, (tuple, list)) for item in items):
        return [inner for item in items for inner in _rows(key, item)]
    if not all(isinstance(item, int) and not isinstance(item, bool) for item in items):
        raise StrategyFormatError(f"{key} must hold whole numbers, but holds {row!r}")
    return [tuple(cast("list[int]", items))]


CONFIGURED = ("dev_matrix", "input_tensor_map")
"""The keys of the attribute ``layout``."""


def _configured(value: object) -> tuple[UserLayout, ...] | None:
    """The attribute ``layout: {dev_matrix, input_tensor_map}``, which goes before a strategy."""
    if not isinstance(value, Mapping):
        return None
    table = cast("Mapping[str, Any]", value)
    odd = next((key for key in table if key not in CONFIGURED), "")
    if odd or "dev_matrix" not in table:
        what = f"holds {odd}" if odd else "lacks dev_matrix"
        raise StrategyFormatError(f"layout {what}: MindSpore takes {' and '.join(CONFIGURED)} only")
    try:
        matrix = tuple(int(size) for size in table["dev_matrix"])
        rows = [tuple(int(entry) for entry in row) for row in table.get("input_tensor_map", ())]
    except (TypeError, ValueError):
        raise StrategyFormatError(f"layout holds no layout: {dict(table)!r}") from None
    return tuple(UserLayout(matrix, row) for row in rows)


def _layouts(key: str, value: object) -> tuple[UserLayout, ...] | None:
    if value is None:
        return None
    layouts: list[UserLayout] = []
    todo: list[object] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, Mapping):
            layouts.append(_layout(key, cast("Mapping[str, Any]", item)))
        elif isinstance(item, (tuple, list)):
            todo.extend(reversed(list(cast("Sequence[object]", item))))
        else:
            raise StrategyFormatError(f"{key} must hold layouts, but holds {item!r}")
    return tuple(layouts)


def _layout(key: str, table: Mapping[str, Any]) -> UserLayout:
    try:
        matrix = tuple(int(size) for size in table["device_matrix"])
        entries = tuple(_entry(entry) for entry in table["tensor_map"])
    except (KeyError, TypeError, ValueError):
        raise StrategyFormatError(f"{key} holds no layout: {dict(table)!r}") from None
    return UserLayout(
        matrix,
        entries,
        bool(table.get("interleaved_parallel", False)),
        tuple(str(name) for name in table.get("alias_name", ())),
    )


def _entry(entry: object) -> MapEntry:
    if isinstance(entry, int):
        return entry
    axes = tuple(int(cast("int", axis)) for axis in cast("Sequence[object]", entry))
    return axes[0] if len(axes) == 1 else axes
