"""Weights that several operators read: whose strategy counts for the others.

Source: strategies of tied embeddings in dumps after the search, in training and in inference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irtool.operators.call import Strategy
from irtool.operators.layout import Shape
from irtool.planning.recursive.fitting import Devices, fitted
from irtool.planning.recursive.kinds import Kind
from irtool.planning.recursive.operators import Operator
from irtool.planning.recursive.spreading import Spread
from irtool.planning.recursive.tensors import pieces


def follow_shared_tables(spread: Spread, users: Sequence[Sequence[int]], devices: Devices) -> None:
    """A Gather takes its table as a product, a Cast or a Mul has the same weight.

    The last of these counts; what devices are left go to the first dimension of the indices.

    Args:
        spread: strategies so far; those of such Gathers are replaced.
        users: places of the operators that use a weight, one list a weight.
        devices: of all stages, and of one.
    """
    operators = spread.operators
    for places in users:
        for place in places:
            if operators[place].kind is not Kind.GATHER:
                continue
            for other in places:
                operand = _table_operand(operators[other])
                if other == place or operand is None:
                    continue
                row = spread.strategies[other][operand]
                left = devices.stage // pieces(row)
                indices = operators[place].inputs[1]
                spread.strategies[place] = (row, (left, *(1 for _ in indices[1:])))


def agree_on_weights(
    spread: Spread, weights: Mapping[str, Sequence[int]], devices: Devices
) -> None:
    """Every user of a weight takes it as the one that splits it most (inference).

    Args:
        spread: strategies so far; those of such users are replaced.
        weights: places of the operators that use a weight, by its name.
        devices: of all stages, and of one.
    """
    for places in weights.values():
        wanted = _most_split(spread, places)
        if not wanted:
            continue
        for place in places:
            operator = spread.operators[place]
            rows = spread.strategies.get(place, ())
            operand = _weight_operand(operator)
            if operand < len(rows) and rows[operand] == wanted:
                continue
            spread.strategies[place] = _with_weight(operator, rows, wanted, devices)


def _table_operand(operator: Operator) -> int | None:
    """Which operand of another user of a table the table is, if that one counts."""
    if operator.kind is Kind.MATMUL:
        return 1
    return 0 if operator.kind is Kind.CAST or operator.op == "Mul" else None


def _weight_operand(operator: Operator) -> int:
    return 1 if operator.kind in (Kind.MATMUL, Kind.BATCH_MATMUL) else 0


def _most_split(spread: Spread, places: Sequence[int]) -> Shape:
    best: Shape = ()
    most, least = 1, 2**31 - 1
    for place in places:
        operator = spread.operators[place]
        operand = _weight_operand(operator)
        rows = spread.strategies.get(place, ())
        if operand >= len(rows) or not rows[operand]:
            continue
        row = rows[operand]
        sizes = sum(
            size // split for size, split in zip(operator.inputs[operand], row, strict=False)
        )
        if pieces(row) >= most and sizes < least:
            most, least, best = pieces(row), sizes, row
    return best


def _with_weight(operator: Operator, rows: Strategy, wanted: Shape, devices: Devices) -> Strategy:
    if operator.kind is Kind.GATHER:
        value = operator.value("axis", 0)
        axis = value if isinstance(value, int) else 0
        left = devices.stage // pieces(wanted) if wanted[axis] == 1 else 1
        return (wanted, (left, *(1 for _ in operator.inputs[1][1:])))
    if operator.kind is Kind.MATMUL:
        return _product_with_weight(operator, rows, wanted, devices)
    return fitted(operator, wanted, devices)


def _product_with_weight(
    operator: Operator, rows: Strategy, wanted: Shape, devices: Devices
) -> Strategy:
    """MindSpore turns the weight's row where the product takes it transposed."""
    cut = wanted[0]
    first = list(rows[0])
    if operator.flag("transpose_a"):
        first[0] = cut
        first[1] = min(first[1], devices.stage // cut)
    else:
        first[1] = cut
        first[0] = min(first[1], devices.stage // cut)
    weight = wanted[::-1] if operator.flag("transpose_b") else wanted
    return (tuple(first), weight)
