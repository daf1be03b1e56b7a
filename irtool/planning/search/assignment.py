"""Which old device plays which new rank, so that the least has to be moved.

The assignment problem, solved by the Hungarian method (Kuhn 1955; potentials and shortest
augmenting paths): ``O(n^3)`` for ``n`` devices at worst, exact.  Prices of rows and columns come
with it, so that among the best assignments one can be chosen that is also good for something else.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from irtool.ir.dataclass import dataclass

Costs = npt.NDArray[np.float64]
"""One row a task, at least as many columns as rows; finite."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The column of each row, and prices: no cost is below the sum of its row's and column's."""

    columns: tuple[int, ...]
    row_prices: Costs
    column_prices: Costs

    def tight(self, costs: Costs) -> npt.NDArray[np.bool_]:
        """Pairs that some best assignment may have: those that cost no more than their prices.

        Costs that are whole numbers below 2**53 are added exactly.
        """
        return costs <= self.row_prices[:, None] + self.column_prices[None, :]


def best_assignment(costs: Costs) -> Assignment:
    """The assignment with the least sum of costs.

    Raises:
        ValueError: there are more rows than columns.
    """
    rows, columns = costs.shape
    if columns < rows:
        raise ValueError(f"{rows} rows cannot be given different ones of {columns} columns")
    row_prices = costs.min(axis=1, initial=np.inf)
    column_prices = np.zeros(columns)
    row_of = np.full(columns, -1)
    for row in _contested(costs, row_prices, row_of):
        _augment(row, costs, row_prices, column_prices, row_of)
    column_of = [0] * rows
    for column in np.flatnonzero(row_of >= 0):
        column_of[int(row_of[column])] = int(column)
    return Assignment(tuple(column_of), row_prices, column_prices)


def _contested(costs: Costs, cheapest: Costs, row_of: npt.NDArray[np.int_]) -> list[int]:
    """Give rows a column that is cheapest for them, while one is free; the rows left without.

    The prices of these rows and columns are right as they are, so the method goes on from there;
    where one device of many is replaced nearly nothing is left to do.
    """
    contested: list[int] = []
    for row, price in enumerate(cheapest):
        free = (costs[row] == price) & (row_of < 0)
        column = int(free.argmax())
        if free[column]:
            row_of[column] = row
        else:
            contested.append(row)
    return contested


def _augment(
    row: int,
    costs: Costs,
    row_prices: Costs,
    column_prices: Costs,
    row_of: npt.NDArray[np.int_],
) -> None:
    """Give a row a column, along the shortest path of columns that change hands."""
    columns = len(column_prices)
    distance = np.full(columns, np.inf)
    came_from = np.full(columns, -1)
    done = np.zeros(columns, dtype=bool)
    current, column, so_far = row, -1, 0.0
    while True:
        through = so_far + costs[current] - row_prices[current] - column_prices
        shorter = ~done & (through < distance)
        distance[shorter] = through[shorter]
        came_from[shorter] = column
        open_ = np.where(done, np.inf, distance)
        column = int(open_.argmin())
        so_far = float(open_[column])
        done[column] = True
        current = int(row_of[column])
        if current < 0:
            break
    for reached in np.flatnonzero(done):
        slack = so_far - distance[reached]
        column_prices[reached] -= slack
        if row_of[reached] >= 0:
            row_prices[row_of[reached]] += slack
    row_prices[row] += so_far
    while column >= 0:
        before = int(came_from[column])
        row_of[column] = row if before < 0 else row_of[before]
        column = before


def preferred(costs: Costs, second: Costs) -> tuple[int, ...]:
    """Among the assignments with the least sum of costs, one with the least sum of others.

    Args:
        costs: of each row in each column; there are no more rows than columns.
        second: the others, of the same shape.

    Returns:
        The column of each row.
    """
    rows, columns = costs.shape
    idle = np.zeros((columns - rows, columns))  # tasks for the columns that are left over
    costs, second = np.vstack([costs, idle]), np.vstack([second, idle])
    first = best_assignment(costs)
    barred = (float(np.ptp(second)) + 1.0) * (columns + 1) if second.size else 0.0
    best = best_assignment(np.where(first.tight(costs), second, second + barred))
    return best.columns[:rows]
