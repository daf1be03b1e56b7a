"""``irtool diff RUN_A RUN_B --format msprobe-csv``: a row a tensor, under msprobe's columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from irtool.cli.diff.options import DiffOptions
from irtool.cli.diff.runs import runs_answered
from irtool.cli.output import Output
from irtool.report.rows import harmless

if TYPE_CHECKING:
    from irtool.compare.runs.units import UnitResult


def tell_msprobe_csv(paths: Sequence[str], asked: DiffOptions, output: Output) -> int:
    """Compare two runs, and write the table of all their tensors.

    Several steps or ranks stand below each other, with a last column that names them.

    Args:
        paths: run folders, tensor dumps or digests.
        asked: what the command line asks for.
        output: where the answer goes.

    Returns:
        The exit status.

    Raises:
        Failure: a side can't be read, or the sides have nothing in common.
    """
    answered = runs_answered(paths, asked, keeps_all=True)
    units = answered.result.comparison.units
    for line in _lines(units):
        output.write(line)
    output.close()
    return answered.status


def _lines(units: Sequence[UnitResult]) -> Iterator[str]:
    from irtool.compare.tensors.msprobe_rows import header, is_of_values, rows

    kept = [(unit.name, unit.comparison) for unit in units if unit.comparison is not None]
    if not kept:
        return
    has_values = is_of_values(kept[0][1])
    several = len(kept) > 1
    yield _line([*header(has_values), *(["Unit"] if several else [])])
    for name, comparison in kept:
        for row in rows(comparison, has_values):
            yield _line([*row, *([name] if several else [])])


def _line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(map(cell_text, cells))
    return text.getvalue()


def cell_text(text: str) -> str:
    """A text as other tables have it; a number, with or without a percent sign, as it is.

    Args:
        text: of a cell.
    """
    try:
        float(text.rstrip("%"))
    except ValueError:
        return harmless(text)
    return text
