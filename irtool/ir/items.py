"""Items: what a dump's lines are, apart from nodes and their comments."""

from __future__ import annotations

from irtool.ir.comments import Comments
from irtool.ir.dataclass import dataclass
from irtool.ir.types import Abstract
from irtool.ir.values import ParameterReference


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the entry graph, as the ``# Params:`` section declares it.

    ``symbolic`` is the symbolic shape as printed, ``kernel`` the tail of kernel graphs;
    ``spelling`` is the punctuation, which changed with versions.
    """

    number: int | None
    name: str
    type: Abstract | None
    line: int = 0
    symbolic: str | None = None
    has_default: bool = False
    kernel: str | None = None
    spelling: tuple[str, str] = ("_", ": ")

    @property
    def id(self) -> str:
        """How operands refer to the parameter: ``%para3``."""
        return f"%para{'' if self.number is None else self.number}"

    @property
    def size(self) -> int | None:
        """Bytes; None where a dimension or the type is unknown."""
        return self.type.size if self.type else None

    @property
    def is_weight(self) -> bool:
        """Whether it has a value of its own rather than being a network input."""
        return self.has_default or bool(self.type and self.type.ref_key)


@dataclass(frozen=True, slots=True)
class Property:
    """A line of the form key, separator, value: ``# Total params: 2``, ``less_bn: 0``."""

    key: str
    separator: str
    value: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Text:
    """A line that carries no fact for the model (blank, banner, order list), kept as it is."""

    text: str
    kind: str = "blank"
    line: int = 0


@dataclass(frozen=True, slots=True)
class Opaque:
    """Text that could not be read; a problem of the dump says why."""

    text: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Marker:
    """``#------------------------> 1``: the next node is a call on the evaluation stack."""

    depth: str
    lead: str = "#------------------------> "
    line: int = 0


@dataclass(frozen=True, slots=True)
class CommentBlock:
    """Comment lines that stand before a graph: where its source is."""

    comments: Comments
    line: int = 0


@dataclass(frozen=True, slots=True)
class ParameterList:
    """``# Parameters: 2, (<Tensor[…]>, …)``: types of a graph's parameters."""

    types: tuple[Abstract | None, ...]
    lead: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Head:
    """``subgraph @G parent: [subgraph @P](%para3_x, %para4_y) {``."""

    name: str
    parent: str | None
    parameters: tuple[ParameterReference | Parameter, ...]
    spelling: tuple[str, str, str] = ("(", ", ", ") {")
    line: int = 0
