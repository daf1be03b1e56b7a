"""Where values come from once loads, monads and tuples are out of the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from irtool.ir.graph import GraphParameter, Node
from irtool.ir.operators import PLUMBING
from irtool.ir.values import Scalar
from irtool.ir.whole import WholeNode, WholeSource

Origin: TypeAlias = WholeNode | GraphParameter
"""What stands at the tail of a link: a statement that is drawn, or a parameter."""

_SHOWN_PLUMBING = frozenset(("Return", "call", "Partial", "Switch", "SwitchLayer"))
HIDDEN = (PLUMBING - _SHOWN_PLUMBING) | {"make_tuple", "tuple_getitem", "Identity"}
"""Operators that are hidden unless asked for: they pass values on, or only order."""

_GATHERS = frozenset(("MakeTuple", "MakeList", "MakeDict", "make_dict", "make_tuple", "EnvironAdd"))
_TAKES = frozenset(("TupleGetItem", "ListGetItem", "tuple_getitem"))
_NOTHING = frozenset(("UpdateState", "RefToEmbed", "EnvironCreate", "J"))
_MOST = 256
"""Values that a hidden tuple hands on at most; more would be a line to everything."""

_Values: TypeAlias = tuple[Origin, ...]


class Flow:
    """Resolves operands through hidden statements, which must be added in topological order."""

    def __init__(self, hidden: Callable[[Node], bool]) -> None:
        self._hidden = hidden
        self._values: dict[WholeNode, _Values] = {}
        self._items: dict[WholeNode, tuple[_Values, ...]] = {}

    def add(self, item: WholeNode) -> None:
        """Take note of a statement."""
        if not self._hidden(item.node):
            self._values[item] = (item,)
            return
        op = item.op
        if op in _NOTHING:
            self._values[item] = ()
        elif op in _GATHERS:
            self._items[item] = parts = tuple(self.values(source) for source in item.inputs)
            joined = dict.fromkeys(value for part in parts for value in part)
            self._values[item] = tuple(joined)[:_MOST]
        elif op in _TAKES:
            self._values[item] = self._taken(item)
        elif op == "EnvironSet" and item.inputs:
            self._values[item] = (*self.values(item.inputs[0]), *self.values(item.inputs[-1]))
        else:
            self._values[item] = self.values(item.inputs[0]) if item.inputs else ()
            if item.inputs and isinstance(first := item.inputs[0], WholeNode):
                items = self._items.get(first)
                if items is not None:
                    self._items[item] = items

    def values(self, source: WholeSource | None) -> _Values:
        """What is drawn at the other end of an operand."""
        if isinstance(source, WholeNode):
            return self._values.get(source, ())
        if isinstance(source, GraphParameter):
            return (source,)
        if isinstance(source, tuple):
            values = dict.fromkeys(value for item in source for value in self.values(item))
            return tuple(values)[:_MOST]
        return ()

    def _taken(self, item: WholeNode) -> _Values:
        source = item.inputs[0] if item.inputs else None
        items = self._items.get(source) if isinstance(source, WholeNode) else None
        index = item.inputs[1] if len(item.inputs) > 1 else None
        if items is not None and isinstance(index, Scalar) and isinstance(index.value, int):
            return items[index.value] if -len(items) <= index.value < len(items) else ()
        return self.values(source)
