"""Which old device plays which new rank, so that the least has to be moved.

The assignment problem, solved by the Hungarian method (Kuhn 1955; potentials and shortest
augmenting paths): ``O(n^3)`` for ``n`` devices, exact.
"""

from __future__ import annotations

from collections.abc import Sequence


def best_assignment(costs: Sequence[Sequence[float]]) -> list[int]:
    """The column of each row, so that the sum of costs is least.

    Args:
        costs: one row a task, at least as many columns as rows.
    """
    rows = len(costs)
    columns = len(costs[0]) if rows else 0
    if columns < rows:
        raise ValueError(f"{rows} rows cannot be given different ones of {columns} columns")
    infinity = float("inf")
    row_price = [0.0] * (rows + 1)
    column_price = [0.0] * (columns + 1)
    row_of = [0] * (columns + 1)  # 0: nobody; rows and columns count from 1
    for row in range(1, rows + 1):
        row_of[0] = row
        column = 0
        least = [infinity] * (columns + 1)
        came_from = [0] * (columns + 1)
        done = [False] * (columns + 1)
        while True:
            done[column] = True
            current = row_of[column]
            step, following = infinity, 0
            for other in range(1, columns + 1):
                if done[other]:
                    continue
                price = costs[current - 1][other - 1] - row_price[current] - column_price[other]
                if price < least[other]:
                    least[other], came_from[other] = price, column
                if least[other] < step:
                    step, following = least[other], other
            for other in range(columns + 1):
                if done[other]:
                    row_price[row_of[other]] += step
                    column_price[other] -= step
                else:
                    least[other] -= step
            column = following
            if row_of[column] == 0:
                break
        while column:
            before = came_from[column]
            row_of[column] = row_of[before]
            column = before
    found = [0] * rows
    for column in range(1, columns + 1):
        if row_of[column]:
            found[row_of[column] - 1] = column - 1
    return found
