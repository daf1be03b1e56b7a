"""How a command ends: its answer in the form that was asked for, and only that form is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from irtool.cli.output import Output
from irtool.cluster.context.model import RunContext

if TYPE_CHECKING:
    from irtool.report.answer import AnswerObject
    from irtool.report.model import Report


class AnswerForm(str, Enum):
    """Forms that every answer has."""

    table = "table"
    json = "json"
    html = "html"


class DrawnForm(str, Enum):
    """Forms of an answer with a picture, which stands by itself as svg."""

    table = "table"
    json = "json"
    svg = "svg"
    html = "html"


def write_answer(
    output: Output,
    form: AnswerForm | DrawnForm,
    *,
    answer: Callable[[], AnswerObject],
    report: Callable[[bool], Report],
    context: RunContext | None = None,
    assumptions: Sequence[str] = (),
    all_assumptions: bool = False,
) -> None:
    """Write an answer and close its output.

    Args:
        output: where to.
        form: how.
        answer: makes it for scripts.
        report: makes it for people; told whether it is for a page, which shows pictures too.
        context: of the run: what of it was assumed and decides the answer is told below it;
            None where the answer rests on none.
        assumptions: what the answer takes for granted beside the context.
        all_assumptions: list them all, instead of their number.

    Raises:
        Failure: it can't be written.
    """
    if form.value == "json":
        from irtool.report.answer import answer_pieces

        for piece in answer_pieces(answer()):
            output.write(piece)
    elif form.value == "svg":
        output.write(f"{_picture(report(True)).rstrip()}\n")
    else:
        from irtool.report.context import with_context
        from irtool.report.page.write import render_page

        is_page = form.value == "html"
        made = report(is_page)
        if context is not None:
            made = with_context(made, context, assumptions, is_page or all_assumptions)
        if is_page:
            output.write(render_page(made))
        else:
            output.show(made)
    output.close()


def _picture(report: Report) -> str:
    """The first picture of a page."""
    from irtool.report.model import Picture
    from irtool.report.page.charts import nothing_to_draw

    pictures = [each.svg for each in report.elements if isinstance(each, Picture)]
    return pictures[0] if pictures else nothing_to_draw()
