"""A node: one statement of a dump, with its type line and comments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, cast

from irtool.ir.comments import NO_COMMENTS, Comments, Location
from irtool.ir.types import Abstract, Signature, TextSignature
from irtool.ir.values import (
    Attributes,
    GraphReference,
    ParameterReference,
    Reference,
    Value,
    python_value,
)

if TYPE_CHECKING:
    from irtool.ir.graph import Graph, Source


@dataclass(frozen=True, slots=True)
class PrimitiveTarget:
    """An operator by name: ``MatMul``, ``PrimFunc_MatMul``, ``S_Prim_Add``.

    ``kind`` is the class printed before it (``DoSignaturePrimitive::``) and ``arguments`` the
    attributes in brackets that some dumps of failed compilations put behind the name.
    """

    name: str
    arguments: Attributes | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True)
class GraphTarget:
    """``call @G``: a call of a subgraph."""

    graph: str


@dataclass(frozen=True, slots=True)
class ClosureSet:
    """Which graphs a closure may be: ``@G``, ``Partial(@G)``, ``FuncUnion(@G, @H)``."""

    kind: str
    members: tuple[ClosureSet | GraphReference, ...]

    @property
    def graphs(self) -> tuple[str, ...]:
        """Names of all graphs in it."""
        found: list[str] = []
        for member in self.members:
            found += [member.name] if isinstance(member, GraphReference) else member.graphs
        return tuple(found)


@dataclass(frozen=True, slots=True)
class ClosureTarget:
    """A call of a computed function: ``%8[@@G]``, ``$(@P:x)``, or a parameter by bare label.

    ``at`` is the mark before the annotation (1.7 to 1.10 print none).
    """

    callee: Reference | str
    closure: ClosureSet | None = None
    at: str = "@"


@dataclass(frozen=True, slots=True)
class ValueTarget:
    """Any other value in call position: ``HyperMap_hyper_map{…}``, ``ClassType[…]``."""

    value: Value


Target: TypeAlias = PrimitiveTarget | GraphTarget | ClosureTarget | ValueTarget

_PREFIXES = ("PrimFunc_", "S_Prim_", "S-Prim-")


@lru_cache(maxsize=4096)
def operator_name(name: str) -> str:
    """A primitive's name as printed, without the prefixes that say how it was made."""
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name[len(prefix) :].partition("{")[0]
    return "Return" if name == "return" else name


@dataclass(frozen=True, slots=True)
class StatementStyle:
    """Spelling of a statement that carries no meaning but is needed to print it back."""

    indent: str = "  "
    trailing: str = ""
    strategy_on_type_line: bool = False
    return_word: str = "Return"


STANDARD_STYLE = StatementStyle()


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One statement.

    ``number`` and ``name`` are None for Return.  ``strategy`` is the block at the end of the
    statement: the strategy in effect once MindSpore has made the operator's sharding object; what
    the user asked for stands in ``primitive_attributes``.  ``graph`` is set by the graph that the
    node is put into.
    """

    number: int | None
    name: str | None
    target: Target
    operands: tuple[Value, ...]
    instance_name: str | None = None
    primitive_attributes: Attributes | None = None
    node_attributes: Attributes | None = None
    primal_attributes: Attributes | None = None
    strategy: Attributes | None = None
    signature: Signature | None = None
    text_signatures: tuple[TextSignature, ...] = ()
    comments: Comments = NO_COMMENTS
    prototype: str | None = None
    line: int = 0
    style: StatementStyle = STANDARD_STYLE
    graph: Graph | None = field(default=None, repr=False, compare=False)

    # -- what it is ------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """``%4``, or ``Return``."""
        return "Return" if self.number is None else f"%{self.number}"

    @property
    def column(self) -> int:
        """Column of the statement, from 1."""
        return len(self.style.indent) + 1

    @property
    def op(self) -> str:
        """The operator: the primitive's name without ``PrimFunc_``; ``call`` for any call."""
        target = self.target
        if isinstance(target, PrimitiveTarget):
            return operator_name(target.name)
        if isinstance(target, ValueTarget):
            value = target.value
            return str(getattr(value, "tag", None) or getattr(value, "text", "call"))
        return "call"

    @property
    def is_return(self) -> bool:
        """Whether this is the graph's Return."""
        return self.number is None

    @property
    def callees(self) -> tuple[str, ...]:
        """Names of the graphs that this node may call; empty for operators."""
        if isinstance(self.target, GraphTarget):
            return (self.target.graph,)
        if isinstance(self.target, ClosureTarget) and self.target.closure:
            return self.target.closure.graphs
        return ()

    # -- types -----------------------------------------------------------------------------

    @property
    def input_types(self) -> tuple[Abstract | None, ...]:
        """One entry an operand, None where unknown; empty where the dump has no type line."""
        return self.signature.inputs if self.signature else ()

    @property
    def output_type(self) -> Abstract | None:
        """Type of the result; of a Return, the type of what is returned."""
        if self.signature is None:
            return None
        outputs = self.signature.outputs
        if outputs is None:
            outputs = self.signature.inputs
        return outputs[0] if outputs else None

    @property
    def output_bytes(self) -> int | None:
        """Bytes of the result's tensors; None where unknown."""
        output = self.output_type
        return output.size if output else None

    # -- attributes ------------------------------------------------------------------------

    def attribute(self, key: str) -> object:
        """Value of an attribute of the node, its primal or its primitive; None if absent."""
        for block in (self.node_attributes, self.primal_attributes, self.primitive_attributes):
            if block is not None and key in block:
                return block[key]
        return None

    @property
    def user_strategy(self) -> object:
        """``in_strategy`` that the user (or an earlier search) set on the primitive, or None."""
        return _value(self.primitive_attributes, "in_strategy")

    @property
    def in_strategy(self) -> object:
        """The strategy in effect, one tuple a tensor input; None if there is none."""
        if self.strategy is not None:
            for key in ("in_strategy", "strategy"):
                if key in self.strategy:
                    return self.strategy[key]
        return self.user_strategy

    @property
    def out_strategy(self) -> object:
        """The output strategy in effect, or None."""
        found = _value(self.strategy, "out_strategy")
        return found if found is not None else _value(self.primitive_attributes, "out_strategy")

    @property
    def in_layout(self) -> object:
        """Input layouts (device matrix and tensor map each), or None."""
        found = _value(self.strategy, "in_layout")
        return found if found is not None else _value(self.primitive_attributes, "in_layout")

    @property
    def out_layout(self) -> object:
        """Output layouts, or None."""
        found = _value(self.strategy, "out_layout")
        return found if found is not None else _value(self.primitive_attributes, "out_layout")

    # -- where it comes from -----------------------------------------------------------------

    @property
    def full_name(self) -> str | None:
        """``Default/net/MatMul-op0``, in dumps that print full names."""
        line = self.comments.scope
        return line.name if line and line.is_full_name else None

    @property
    def scope(self) -> str | None:
        """``Default/net``: the scope without the node's own name."""
        line = self.comments.scope
        if line is None:
            return None
        return line.name.rpartition("/")[0] if line.is_full_name else line.name

    @property
    def location(self) -> Location | None:
        """The innermost line of source code outside MindSpore's own package, if there is one."""
        locations = self.comments.locations or self.comments.forward_locations
        for location in reversed(locations):
            if "site-packages/mindspore/" not in location.path:
                return location
        return locations[-1] if locations else None

    @property
    def unique_id(self) -> str | None:
        """Identity that differentiation gave this forward node."""
        return _identity(_value(self.primal_attributes, "unique_id"))

    @property
    def forward_unique_id(self) -> str | None:
        """Of a gradient node: the ``unique_id`` of the forward node that it belongs to."""
        return _identity(_value(self.primal_attributes, "forward_unique_id"))

    @property
    def is_recomputed(self) -> bool:
        """Whether this is the second copy of a forward node, made for recomputation."""
        return bool(_value(self.node_attributes, "duplicated"))

    @property
    def is_backward(self) -> bool:
        """Whether this node computes a gradient, by what the node itself says."""
        if self.primal_attributes is not None:
            if self.forward_unique_id is not None:
                return True
            if self.unique_id is not None:
                return False  # a forward collective may be called grad… as well
        if self.instance_name and self.instance_name.startswith("grad"):
            return True
        scope = self.comments.scope
        if scope is not None and scope.name.startswith("Gradients/"):
            return True
        return self.comments.is_backward

    @property
    def micro(self) -> int | None:
        """Micro-batch index in a pipeline."""
        found = _value(self.primal_attributes, "micro")
        return found if isinstance(found, int) else None

    @property
    def stage(self) -> int | None:
        """Pipeline stage, where the node says so."""
        found = self.attribute("stage")
        return found if isinstance(found, int) else None

    # -- neighbours --------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[Source, ...]:
        """What each operand stands for: a node, parameter, graph or constant."""
        source = self._graph().source
        types = self.input_types
        if len(types) != len(self.operands):
            return tuple(source(operand) for operand in self.operands)
        return tuple(source(*pair) for pair in zip(self.operands, types, strict=True))

    @property
    def users(self) -> tuple[Node, ...]:
        """Nodes of any graph that use this node's result."""
        return self._graph().users(self)

    def references(self) -> Iterator[Reference]:
        """Every reference in the operands and target, nested ones included."""
        for operand in self.operands:
            yield from nested_references(operand)
        if isinstance(self.target, ClosureTarget) and not isinstance(self.target.callee, str):
            yield self.target.callee
        if isinstance(self.target, GraphTarget):
            yield GraphReference(self.target.graph)

    def _graph(self) -> Graph:
        if self.graph is None:
            raise LookupError(f"{self.id} is in no graph, so its neighbours are unknown")
        return self.graph

    def __repr__(self) -> str:
        place = f" in @{self.graph.name}" if self.graph is not None else ""
        return f"<Node {self}{place}, line {self.line}>"

    def __str__(self) -> str:
        return f"{self.id}({self.name}) = {self.op}" if self.name is not None else self.op


def nested_references(value: Value) -> Iterator[Reference]:
    """Every reference inside an operand."""
    if isinstance(value, Reference.__args__):  # type: ignore[attr-defined]  # the members of the union
        yield cast("Reference", value)
    else:
        for item in getattr(value, "items", ()) or ():
            yield from nested_references(item)
        for _, item in getattr(value, "entries", ()) or ():
            yield from nested_references(item)


def _identity(value: object) -> str | None:
    """An identity that an attribute holds: a text, or a number as one."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _value(block: Attributes | None, key: str) -> object:
    if block is None:
        return None
    for name, value in block.entries:
        if name == key:
            return python_value(value)
    return None


__all__ = [
    "STANDARD_STYLE",
    "ClosureSet",
    "ClosureTarget",
    "GraphTarget",
    "Node",
    "ParameterReference",
    "PrimitiveTarget",
    "StatementStyle",
    "Target",
    "ValueTarget",
]
