"""How a command ends: its answer in the form that was asked for, and only that form is made."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

from irtool.cli.output import Output
from irtool.ir.dataclass import dataclass

if TYPE_CHECKING:
    from irtool.cluster.context.model import RunContext
    from irtool.ir.dump import Dump
    from irtool.ir.finding import Findings
    from irtool.report.answer import AnswerObject
    from irtool.report.model import Report


Result = TypeVar("Result", covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class Answered(Generic[Result]):
    """What came of a question, before anybody says in which form to tell it.

    Attributes:
        result: what the analysis found.
        answer: makes the answer for scripts.
        report: makes the answer for people; told whether it is for a page.
        context: of the run; None where the answer rests on none.
        assumptions: what the answer takes for granted beside the context.
        status: the exit status: 0 there is nothing to see, 1 there is.
        text: makes the text of a pipe, where that is no form of the report.
    """

    result: Result
    answer: Callable[[], AnswerObject]
    report: Callable[[bool], Report]
    context: RunContext | None = None
    assumptions: Sequence[str] = ()
    status: int = 0
    text: Callable[[], str] | None = None


class AnswerForm(str, Enum):
    """Output formats that every answer has."""

    table = "table"
    json = "json"
    csv = "csv"
    html = "html"


class DrawnForm(str, Enum):
    """Forms of an answer with a picture, which stands by itself as svg."""

    table = "table"
    json = "json"
    csv = "csv"
    svg = "svg"
    html = "html"


class DocumentForm(str, Enum):
    """Forms of an answer that documents take over."""

    table = "table"
    json = "json"
    csv = "csv"
    html = "html"
    markdown = "markdown"


class JudgedForm(str, Enum):
    """Forms of an answer that judges: those of all answers, and those of findings for CI."""

    table = "table"
    json = "json"
    csv = "csv"
    html = "html"
    sarif = "sarif"
    github = "github"
    gitlab = "gitlab"
    junit = "junit"

    @property
    def of_findings(self) -> FindingsForm | None:
        """The form of findings alone, where it is one."""
        return None if self.value in _OF_ANSWERS else FindingsForm(self.value)


class FindingsForm(str, Enum):
    """Forms of an answer that is a list of findings."""

    text = "text"
    concise = "concise"
    json = "json"
    sarif = "sarif"
    github = "github"
    gitlab = "gitlab"
    junit = "junit"
    html = "html"


_OF_ANSWERS = frozenset(form.value for form in AnswerForm)


def tell(
    answered: Answered[object],
    output: Output,
    form: AnswerForm | DrawnForm | DocumentForm | JudgedForm,
    all_assumptions: bool = False,
) -> int:
    """Write what came of a question, and close the output.

    Args:
        answered: what came of it.
        output: where to.
        form: how.
        all_assumptions: list what was assumed, instead of its number.

    Returns:
        The exit status.

    Raises:
        Failure: it can't be written.
    """
    write_answer(
        output,
        form,
        answer=answered.answer,
        report=answered.report,
        context=answered.context,
        assumptions=answered.assumptions,
        all_assumptions=all_assumptions,
    )
    return answered.status


def write_findings(
    output: Output,
    form: FindingsForm,
    findings: Findings,
    *,
    command: str,
    answer: Callable[[], AnswerObject] | None = None,
    dump: Callable[[], Dump | None] = lambda: None,
    files: Sequence[str] = (),
    limit: int | None = None,
    statistics: bool = False,
) -> None:
    """Write findings and close their output.

    Args:
        output: where to.
        form: how.
        findings: what was found.
        command: that found them.
        answer: makes the answer for scripts; None: it has another form for these, and for pages.
        dump: reads the dump whose graph a page shows beside the findings.
        files: that were looked at.
        limit: groups of equal findings that text tells; None: the usual number, 0: all.
        statistics: tell how often each rule spoke.

    Raises:
        Failure: it can't be written.
    """
    if answer is not None and form in (FindingsForm.json, FindingsForm.html):
        from irtool.report.findings.html import findings_page

        write_answer(
            output,
            AnswerForm(form.value),
            answer=answer,
            report=lambda _: findings_page(findings, dump(), command),
        )
        return
    from irtool.report.findings.formats import FORMATS, View
    from irtool.report.findings.text import TextStyle

    width = shutil.get_terminal_size((100, 25)).columns if output.terminal else 100
    style = TextStyle(max(width, 40), output.coloured, limit, statistics)
    for piece in FORMATS[form.value](findings, View(style, command, tuple(files))):
        output.write(piece)
    output.close()


def write_answer(
    output: Output,
    form: AnswerForm | DrawnForm | DocumentForm | JudgedForm,
    *,
    answer: Callable[[], AnswerObject],
    report: Callable[[bool], Report],
    context: RunContext | None = None,
    assumptions: Sequence[str] = (),
    all_assumptions: bool = False,
    markdown: Callable[[], str] | None = None,
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
        markdown: makes it for documents, where it has that form.

    Raises:
        Failure: it can't be written.
    """
    if form.value == "json":
        from irtool.report.answer import answer_pieces

        for piece in answer_pieces(answer()):
            output.write(piece)
    elif markdown is not None and form.value == "markdown":
        output.write(markdown())
    elif form.value == "csv":
        from irtool.report.csv import csv_pieces

        for piece in csv_pieces(report(False)):
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

    pictures = [element.svg for element in report.elements if isinstance(element, Picture)]
    return pictures[0] if pictures else nothing_to_draw()
