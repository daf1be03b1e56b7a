"""What a statement applies, and how it is written: operators, graphs, computed functions, style."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias, cast

from irtool.ir.dataclass import dataclass
from irtool.ir.values import (
    Attributes,
    GraphReference,
    Reference,
    Value,
)


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
        names: list[str] = []
        for member in self.members:
            names += [member.name] if isinstance(member, GraphReference) else member.graphs
        return tuple(names)


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
    """A primitive's name as printed, without the prefixes that say how it was made.

    Args:
        name: ``PrimFunc_Add``, ``S_Prim_MatMul``; ``return`` becomes ``Return``.
    """
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


def nested_references(value: Value) -> Iterator[Reference]:
    """Every reference inside an operand.

    Args:
        value: an operand; of a reference that one alone, else those in its items and entries.
    """
    if isinstance(value, Reference.__args__):  # type: ignore[attr-defined]  # the members of the union
        yield cast("Reference", value)
    else:
        for item in getattr(value, "items", ()) or ():
            yield from nested_references(item)
        for _, item in getattr(value, "entries", ()) or ():
            yield from nested_references(item)
