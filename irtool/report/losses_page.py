"""Two loss curves as pictures and as a page."""

from __future__ import annotations

import math

from irtool.compare.losses.comparison import LossComparison, side_values
from irtool.report.losses import NEXT, answer_text, deltas, figures
from irtool.report.model import Answer, Column, Facts, Picture, Report, Table
from irtool.report.page.charts import Mark, Series, line_chart


def losses_chart(found: LossComparison) -> str:
    """Both curves."""
    left = side_values(found.left, found.steps)
    right = side_values(found.right, found.steps, found.offset)
    curves = [
        Series(name, [(step, y) for step, y in zip(found.steps, values, strict=True)
                      if math.isfinite(y)])
        for name, values in (("left", left), ("right", right))
    ]  # fmt: skip
    return line_chart(curves, "step", "loss", marks=_marks(found))


def difference_chart(found: LossComparison) -> str:
    """The absolute difference."""
    points = [(step, abs(delta)) for step, delta in zip(found.steps, deltas(found), strict=True)]
    return line_chart([Series("difference", points)], "step", "difference", marks=_marks(found))


def _marks(found: LossComparison) -> list[Mark]:
    if found.change_step is None or found.change_step == found.steps[0]:
        return []
    return [Mark(found.change_step, f"step {found.change_step}")]


def losses_page(found: LossComparison) -> Report:
    """The answer, figures, both pictures, every step."""
    tone = "bad" if found.is_suspicious else "good"
    details = [f"next: {NEXT[found.verdict]}"] if found.verdict in NEXT else []
    left = side_values(found.left, found.steps)
    right = side_values(found.right, found.steps, found.offset)
    rows = [[step, a, b, b - a] for step, a, b in zip(found.steps, left, right, strict=True)]
    return Report(
        f"loss: {found.left.path} ↔ {found.right.path}",
        Answer(answer_text(found), tone, details),
        [
            Facts(figures(found)),
            Picture("Loss", losses_chart(found), "The loss of both runs by step."),
            Picture(
                "Difference", difference_chart(found), "The absolute difference by step."
            ),
            Table(
                "Steps",
                [Column("step", "number"), Column("left", "number"), Column("right", "number"),
                 Column("difference", "number")],
                rows,
            ),
        ],
    )  # fmt: skip
