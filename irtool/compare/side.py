"""One side of a comparison: the operators of a dump, as they run, and what leads into them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import field
from typing import TypeAlias, Union

from irtool.compare.attributes import attributes, frozen
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Graph, GraphParameter, Node, Unresolved
from irtool.ir.phases import Phase, phases
from irtool.ir.types import Abstract
from irtool.ir.values import python_value
from irtool.ir.whole import CallSite, Whole, WholeNode, WholeSource

TRANSPARENT = frozenset(
    ("Load", "Depend", "UpdateState", "MakeTuple", "MakeList", "TupleGetItem", "ListGetItem")
)
"""Nodes that only hand on values or order: they are looked through, not compared one by one."""


@dataclass(frozen=True, slots=True)
class From:
    """An operand that an operator makes: which operator, and which element of its tuple."""

    operator: int
    element: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Named:
    """An operand that is a parameter of the network (or a free parameter of a kept graph)."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """An operand that is a constant, or anything else that no operator makes."""

    value: Hashable


Operand: TypeAlias = Union[From, Named, Constant, "tuple[Operand, ...]"]


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """One operator as it runs.

    ``operands`` has one entry an operand, looked through loads, depends and tuples; ``index``
    is its place in an order that respects every producer.
    """

    index: int
    whole: WholeNode
    operands: tuple[Operand, ...]
    attributes: dict[str, object]
    phase: Phase

    @property
    def node(self) -> Node:
        """The statement of the dump."""
        return self.whole.node

    @property
    def op(self) -> str:
        """The name of the operator, as the dump has it."""
        return self.whole.node.op

    def producers(self) -> Iterator[tuple[tuple[int, ...], From]]:
        """Operands that operators make, with their places."""
        yield from _froms(self.operands, ())

    def names(self) -> tuple[str, ...]:
        """Parameters that it reads directly."""
        return tuple(_names(self.operands))

    def own(self) -> Hashable:
        """The operands that no operator makes, with their places."""
        return tuple(_own(operand) for operand in self.operands)


@dataclass(slots=True)
class Side:
    """The operators of one dump.

    Attributes:
        dump: the dump.
        whole: its statements with calls inlined.
        operators: in an order that respects every producer.
        readers: by operator, who takes its result at which place.
        types: result type of each operator, as text.
        passing: how many nodes only hand on values or order, by operator name.
        by_node: the operators that a node of the dump runs as.
    """

    dump: Dump
    whole: Whole
    operators: list[Operator] = field(default_factory=list["Operator"])
    readers: list[list[tuple[int, tuple[int, ...]]]] = field(
        default_factory=list[list[tuple[int, tuple[int, ...]]]]
    )
    types: list[str] = field(default_factory=list[str])
    passing: dict[str, int] = field(default_factory=dict[str, int])
    by_node: dict[Node, list[int]] = field(default_factory=dict[Node, list[int]])


def side_of(dump: Dump) -> Side:
    """The operators of a dump as they run, with its calls inlined.

    Args:
        dump: of any pass.
    """
    inlined = dump.whole()
    side = Side(dump, inlined)
    stages = phases(dump)
    known: dict[Node, dict[str, object]] = {}
    type_texts: dict[int, str] = {}
    values: list[Operand] = []
    repeated = _repeated(inlined)
    for item in inlined.nodes:
        operands = tuple(_operand(source, values) for source in item.inputs)
        if item.op in TRANSPARENT:
            if item.index not in repeated:
                side.passing[item.op] = side.passing.get(item.op, 0) + 1
            values.append(_passed(item, operands))
            continue
        if item.index in repeated:
            values.append(Constant("repeated"))
            continue
        cleaned = known.get(item.node)
        if cleaned is None:
            cleaned = known[item.node] = attributes(item.node)
        index = len(side.operators)
        operator = Operator(index, item, operands, cleaned, stages[item.node])
        side.operators.append(operator)
        side.by_node.setdefault(item.node, []).append(index)
        side.readers.append([])
        for place, made in operator.producers():
            side.readers[made.operator].append((index, place))
        side.types.append(_type_text(item.node.output_type, type_texts))
        values.append(From(index))
    return side


def content(side: Side, index: int) -> Hashable:
    """What an operator is, by itself: name, meaningful attributes, result type, own operands.

    Args:
        side: of a comparison.
        index: of the operator on that side.
    """
    operator = side.operators[index]
    return (
        operator.op,
        tuple(sorted(operator.attributes.items(), key=lambda item: item[0])),
        side.types[index],
        operator.own(),
        operator.node.callees and len(operator.node.callees),
    )


def _repeated(inlined: Whole) -> set[int]:
    """Nodes of graphs that are called to be differentiated, and called as they are as well.

    Before differentiation ``J(@G)`` and ``call @G`` run the same forward graph twice; only the
    plain call's copy is compared.
    """
    gradients = {call.node.node for call in inlined.kept_calls if call.reason == "gradient"}
    if not gradients:
        return set()
    under: dict[CallSite, bool] = {}
    return {
        item.index
        for item in inlined.nodes
        if _is_under(item.site, gradients, under)
        and any(
            not _is_under(other.site, gradients, under) for other in inlined.instances(item.node)
        )
    }


def _is_under(site: CallSite | None, calls: set[Node], known: dict[CallSite, bool]) -> bool:
    """Whether a path of calls leads through one of some calls."""
    path: list[CallSite] = []
    while site is not None and site not in known:
        path.append(site)
        site = site.outer
    is_under = site is not None and known[site]
    for place in reversed(path):
        is_under = is_under or place.node in calls
        known[place] = is_under
    return is_under


# -- operands ------------------------------------------------------------------------------------


def _operand(source: WholeSource, values: list[Operand]) -> Operand:
    match source:
        case WholeNode():
            return values[source.index]
        case tuple():
            return tuple(_operand(item, values) for item in source)
        case GraphParameter():
            # A label of a kept graph's own parameter is a counter; its place in the list is not.
            reference = source.type.ref_key if source.type else None
            name = source.declaration.name if source.declaration else reference
            return Named(name or f"#{source.number}")
        case Graph():
            return Constant("graph")
        case Unresolved():
            return Constant(("unresolved",))
        case _:
            value = frozen(python_value(source))
            return Constant(value if isinstance(value, Hashable) else repr(value))


def _passed(item: WholeNode, operands: tuple[Operand, ...]) -> Operand:
    """What a transparent node hands on."""
    if item.op in ("MakeTuple", "MakeList"):
        return operands
    if item.op == "UpdateState" or len(operands) == 0:
        return Constant("monad")
    if item.op not in ("TupleGetItem", "ListGetItem"):
        return operands[0]
    place = operands[1] if len(operands) > 1 else None
    number = place.value if isinstance(place, Constant) else None
    made = operands[0]
    if not isinstance(number, int) or isinstance(number, bool):
        return made
    if isinstance(made, tuple):
        return made[number] if -len(made) <= number < len(made) else Constant(("element", number))
    return From(made.operator, (*made.element, number)) if isinstance(made, From) else made


def _froms(
    operands: tuple[Operand, ...], place: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], From]]:
    for position, operand in enumerate(operands):
        if isinstance(operand, From):
            yield (*place, position), operand
        elif isinstance(operand, tuple):
            yield from _froms(operand, (*place, position))


def _names(operands: tuple[Operand, ...]) -> Iterator[str]:
    for operand in operands:
        if isinstance(operand, Named):
            yield operand.name
        elif isinstance(operand, tuple):
            yield from _names(operand)


def _own(operand: Operand) -> Hashable:
    if isinstance(operand, From):
        return ("from", operand.element)
    if isinstance(operand, tuple):
        return tuple(_own(item) for item in operand)
    return operand


def _type_text(abstract: Abstract | None, known: dict[int, str]) -> str:
    if abstract is None:
        return ""
    text = known.get(id(abstract))
    if text is None:
        text = known[id(abstract)] = abstract.short()
    return text
