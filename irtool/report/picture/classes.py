"""Classes of operators, each with a colour of its own that stays the same in every picture.

Colours are Paul Tol's "light" scheme (https://personal.sro.nl/~pault/data/colourschemes.pdf,
figure 5), made for labelled boxes: people with the common colour vision deficiencies tell them
apart, and black text is readable on all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from irtool.ir.dataclass import dataclass
from irtool.ir.operators import COMMUNICATION, OPTIMIZERS, PLUMBING, VIRTUAL
from irtool.operators.facts import Computation
from irtool.operators.table import akin, operator_of


@dataclass(frozen=True, slots=True)
class OperatorClass:
    """One class: key, what the legend says, fill colour."""

    key: str
    title: str
    colour: str


COMMUNICATES = OperatorClass("communication", "collective", "#EE8866")
REDISTRIBUTES = OperatorClass("redistribution", "redistribution", "#FFAABB")
PASSES_ON = OperatorClass("passing", "passes a value on", "#FFFFFF")
OTHER = OperatorClass("other", "any other operator", "#FFFFFF")

CLASSES: tuple[OperatorClass, ...] = (
    COMMUNICATES,
    REDISTRIBUTES,
    OperatorClass("optimizer", "updates a parameter", "#BBCC33"),
    OperatorClass("product", "matrix product, convolution, attention", "#77AADD"),
    OperatorClass("lookup", "looks up or writes rows", "#44BB99"),
    OperatorClass("norm", "normalisation, softmax, reduction, loss", "#99DDFF"),
    OperatorClass("shape", "moves or converts data", "#DDDDDD"),
    OperatorClass("elementwise", "element by element", "#EEDD88"),
    PASSES_ON,
    OTHER,
)
"""In the order in which legends show them."""

_OF_COMPUTATION: Mapping[Computation, str] = {
    "matmul": "product", "convolution": "product", "attention": "product",
    "lookup": "lookup", "scatter": "lookup",
    "norm": "norm", "softmax": "norm", "loss": "norm", "reduce": "norm", "bias gradient": "norm",
    "view": "shape", "cast": "shape",
    "elementwise": "elementwise", "sum": "elementwise", "product": "elementwise",
    "optimizer": "optimizer", "collective": "communication", "unknown": "other",
}  # fmt: skip

BY_KEY = {item.key: item for item in CLASSES}


@lru_cache(maxsize=4096)
def operator_class(op: str) -> OperatorClass:
    """The class of an operator: by what it is for, else by what the table says that it computes.

    Args:
        op: the primitive's name; one that the table lacks is taken for the one most like it.
    """
    if op in COMMUNICATION:
        return COMMUNICATES
    if op in PLUMBING:
        return PASSES_ON
    entry = operator_of(op)
    if OPTIMIZERS.match(op) or 0 in entry.updates:
        return BY_KEY["optimizer"]
    if op in VIRTUAL:
        return BY_KEY["shape"]
    return BY_KEY[_OF_COMPUTATION[(entry if entry.name else akin(op)).computes]]
