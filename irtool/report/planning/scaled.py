"""What ``irtool plan --scale`` shows: which sizes play which role, and what they become."""

from __future__ import annotations

from irtool.planning.scaling.roles import MEANINGS
from irtool.planning.scaling.scaled import Scaled
from irtool.report.model import Cell, Table, text_column


def roles_table(found: Scaled) -> Table:
    """One row a role."""
    rows: list[list[Cell]] = [
        [name, before, after, MEANINGS[name]] for name, (before, after) in found.sizes.items()
    ]
    rows += [
        [name, " or ".join(map(str, sizes)), None, f"{MEANINGS[name]}: not told apart"]
        for name, sizes in found.roles.open.items()
    ]
    columns = [
        text_column("size"), text_column("in the dump"), text_column("planned"),
        text_column("what it is", 2),
    ]  # fmt: skip
    shown = [[cell if cell is None else str(cell) for cell in row] for row in rows]
    return Table("Sizes (found from what operators do with them)", columns, shown)
