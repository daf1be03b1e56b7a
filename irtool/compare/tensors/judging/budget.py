"""The error that an operator may have: what its inputs bring, and what rounding adds.

The inputs' error is magnified as the operator magnifies.  A sum of ``k`` terms adds ``sqrt(k)``
roundings (Higham and Mary 2019; measured constant 0.01 to 0.40, so 1 leaves room), and storing the
result one more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from irtool.compare.tensors.dtypes import FLOATS, coarsest
from irtool.compare.tensors.judging.verdict import Measured
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Columns, Op, Places, Shape
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.semantics import Family, family, jumps, reduction_length

_MEAN = frozenset(("mean", "reducemean", "meanext"))
_SINGLE = 2.0**-24
_DOUBLE = 2.0**-53
LEAST_UNITS = 4.0
"""Units that every operator may round: of a sum of four terms two, and two of storing it."""
_HALF = 2.0**-20
"""Unit roundoff from which a type counts as half precision."""
_ADDED = 0.4
"""Of the law of sums, the largest constant that was measured."""


class Account(NamedTuple):
    """One output of an operator pair, and all that it was computed from.

    Attributes:
        pair: the operators.
        left, right: columns of their dumps.
        places: the output.
        out: its measure.
        inputs: what both sides read.
        hidden: of a gradient, the tensors of the forward call.
        parts: largest error of the parts of a module that have been judged already; else 0.
        scalars: largest error of arguments that other operators computed.
        before: largest error before; figures may hide it from one tensor and show it in the next.
    """

    pair: OpPair
    left: Columns
    right: Columns
    places: Places
    out: Measure
    inputs: Sequence[Measured]
    hidden: Sequence[Measured]
    parts: float = 0.0
    scalars: float = 0.0
    before: float = 0.0


def budget(account: Account) -> tuple[float, float]:
    """The relative error that is explained, and the norm below which a result is residue.

    Args:
        account: one output of an operator pair, and all that it was computed from.

    Returns:
        The error relative to the larger norm of the output; the norm in the output's own unit, 0
        where none is known.
    """
    pair, left, right, places, out, given, forward, *others = account
    parts, scalars, before = others
    op, ours, theirs = pair.left, left.dtypes, right.dtypes
    inputs = [item for item in given if item[1].error >= 0 and ours[item[0][0]] in FLOATS]
    hidden = [(p, m) for p, m in forward if not math.isnan(m.error)] if forward else ()
    used = [p for p, _ in (*inputs, *hidden)]
    gradient, output = is_gradient(op), left.shapes[places[0]]
    kind, unit, length, jumping = _form(
        op.type,
        "backward" if gradient else "forward",
        op.is_opaque,
        (ours[places[0]], theirs[places[1]], *(ours[a] for a, _ in used)),
        (*[theirs[b] for _, b in used], *part_dtypes(op, left), *part_dtypes(pair.right, right)),
        tuple([left.shapes[a] for a, _ in used]),
        output,
    )
    accumulate = _DOUBLE if unit < 2.0**-40 else _SINGLE
    norm = max(out.left, out.right)
    terms = _Terms(kind, op, gradient, left, inputs, hidden, length, norm, output)
    chi, terms_norm = _magnification(terms)
    carried = max(_carried(terms, chi), scalars * chi)
    jumping = jumping or (op.is_module and gradient)
    if jumping or any(jumps(part.type, op.phase) for part in (*op.parts, *pair.right.parts)):
        errors = (m.error for _, m in (*inputs, *hidden))
        carried = max(carried, math.sqrt(max(errors, default=0.0)))
    if op.is_opaque:
        carried = max(carried, 4.0 * parts)
    if not out.exact and (given or forward or scalars):
        carried = max(carried, chi * before)
    stored = chi if kind in ("sum", "reduce", "matmul", "softmax", "norm") else 1.0
    lossy = 4.0 if op.is_opaque else 1.0
    rounding = chi * math.sqrt(length) * accumulate + 2 * unit * min(stored, 1e3)
    if gradient and len(output) == 1 and unit > _HALF:  # kernels add rows up in what they store
        rounding += _ADDED * math.sqrt(length) * unit
    explained = 1.42 * carried + lossy * rounding + max(left.resolution, right.resolution)
    floor = 3.0 * math.sqrt(length) * accumulate * terms_norm if terms_norm else 0.0
    return explained, floor


@lru_cache(maxsize=8192)  # layers are alike
def _form(
    type_: str,
    phase: str,
    is_opaque: bool,
    dtypes: tuple[str, ...],
    others: tuple[str, ...],
    shapes: tuple[Shape, ...],
    output: Shape,
) -> tuple[Family, float, float, bool]:
    """What does not depend on numbers: family, unit roundoff, terms that are added, jumps."""
    kind = family(type_)
    unit = max(coarsest([*dtypes, *others]), _DOUBLE)
    length = reduction_length(kind, phase, shapes, output, is_opaque or kind == "unknown")
    return kind, unit, length, jumps(type_, phase)


def part_dtypes(op: Op, columns: Columns) -> list[str]:
    """Types of all tensors of the calls that stand as one operator, sorted: the coarsest counts.

    Args:
        op: which may be made of several calls; none where it is one.
        columns: of its dump.
    """
    return sorted({columns.dtypes[place] for part in op.parts for place in part.tensors})


def is_gradient(op: Op) -> bool:
    """Whether an operator is the gradient of a call as a whole.

    In MindSpore's graphs most operators of the backward pass are ordinary ones.

    Args:
        op: of a tensor dump.
    """
    if op.phase != "backward":
        return False
    return bool(op.call) or op.is_module or "grad" in op.type.lower()


def _carried(terms: _Terms, chi: float) -> float:
    """The relative error of a result that the errors of the inputs explain."""
    op, inputs, norm = terms.op, terms.inputs, terms.norm
    if terms.kind == "sum" and not terms.gradient and norm:
        return sum(m.distance for _, m in inputs) / norm * _factor(op)
    errors = [m.error for _, m in inputs]
    if terms.gradient or op.is_opaque:
        return math.sqrt(sum(e * e for e in [*errors, *(m.error for _, m in terms.hidden)])) * chi
    return max(errors, default=0.0) * chi


def _factor(op: Op) -> float:
    """Of additions with a factor (addcmul, lerp) the terms are smaller than they look."""
    return 1.0 if op.type.lower() not in ("lerp_", "lerp") else 2.0


class _Terms(NamedTuple):
    """What is added up, by the norms alone, which every dump has."""

    kind: Family
    op: Op
    gradient: bool
    columns: Columns
    inputs: Sequence[Measured]
    hidden: Sequence[Measured]
    length: float
    norm: float
    output: Shape


def _magnification(terms: _Terms) -> tuple[float, float]:
    """How much larger relative errors leave than they came, and the norm of all terms."""
    kind, op, gradient, _, inputs, hidden, length, norm, output = terms
    used = (*inputs, *hidden) if hidden else inputs
    norms = [max(m.left, m.right) for _, m in used]
    norms = [value for value in norms if value == value]  # not NaN
    if not norm or not norms or math.isnan(norm):
        return 1.0, 0.0
    if op.type.lower() in _MEAN:
        norm *= length
    if kind == "matmul" and not gradient and len(norms) >= 2:
        random = norms[0] * norms[1] / math.sqrt(length)
        return max(1.0, random / norm), norms[0] * norms[1] * 0.8
    if kind in ("matmul", "convolution") and gradient and len(output) == 1 and inputs:
        return max(1.0, norms[0] / norm), norms[0] * math.sqrt(length)  # of a bias: adds rows up
    if kind == "matmul":
        return 2.0, 0.0
    if kind in ("reduce", "bias gradient", "scatter"):
        return max(1.0, norms[0] / norm), norms[0] * math.sqrt(length)
    if kind == "sum" and not gradient:
        return max(1.0, sum(norms) / norm), sum(norms)
    if kind == "norm":
        if gradient and len(output) == 1:
            return max(2.0, norms[0] / norm), norms[0] * math.sqrt(length)
        return (4.0 if gradient else _centred(terms)), 0.0
    if kind in ("softmax", "attention", "loss"):
        rms = norms[0] / math.sqrt(max(1, _elements(terms)))
        if not math.isfinite(rms):  # masked with infinity, which figures do not leave out
            most = abs(terms.columns.most[inputs[0][0][0]]) if inputs else math.nan
            rms = most if math.isfinite(most) else 1.0
        if kind == "loss":
            return max(2.0, 2 * rms * math.sqrt(max(1, math.prod(output))) / norm), 0.0
        return max(2.0, 2.0 * rms), 0.0
    if op.is_opaque or kind == "unknown":
        return 3.0, 0.0
    least = 2.0 if kind in ("elementwise", "optimizer") else 1.0
    if gradient and inputs and math.prod(output) < _elements(terms) and hidden:
        return max(least, _broadcast(terms, norms)), 0.0
    return least, 0.0


def _broadcast(terms: _Terms, norms: Sequence[float]) -> float:
    """Of the gradient of what was broadcast, a sum of products: how far these cancel.

    Terms that have nothing to do with each other add up to |gradient| · rms(the other factor).
    """
    columns, hidden = terms.columns, terms.hidden
    others = [
        max(m.left, m.right) / math.sqrt(max(1, math.prod(columns.shapes[p[0]])))
        for p, m in hidden
        if math.prod(columns.shapes[p[0]]) == _elements(terms)
    ]
    rms = max((value for value in others if math.isfinite(value)), default=0.0)
    return norms[0] * rms / terms.norm


def _elements(terms: _Terms) -> int:
    inputs = terms.inputs
    return math.prod(terms.columns.shapes[inputs[0][0][0]]) if inputs else 1


def _centred(terms: _Terms) -> float:
    """A norm takes the mean away: what is left over may be small."""
    (a, _), measure = terms.inputs[0]
    mean = terms.columns.mean[a]
    size = _elements(terms)
    square = (measure.left**2) / size if size else 0.0
    if math.isnan(mean) or square <= mean * mean or not square:
        return 1.5
    return max(1.5, math.sqrt(square / (square - mean * mean)))
