"""Options and output that the commands of ``irtool comm`` share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Annotated

import typer

from irtool.cli.output import Output
from irtool.cluster.context.model import RunContext
from irtool.report.context import context_blocks, context_pieces
from irtool.report.model import Document, Report
from irtool.report.page.write import render_page


class Format(str, Enum):
    """Output formats."""

    table = "table"
    json = "json"
    svg = "svg"
    html = "html"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="table is for people.")]
Rank = Annotated[
    int | None, typer.Option(min=0, metavar="N", help="Only this rank; of a single dump: whose.")
]
RowLimit = Annotated[
    int | None,
    typer.Option("--rows", min=0, metavar="N", help="At most so many rows in a list; 0: all."),
]


def write(
    output: Output,
    format: Format,
    document: Callable[[], Document],
    pieces: Callable[[], Iterable[str]],
    svg: Callable[[], str],
    page: Callable[[], Report],
    context: RunContext,
) -> None:
    """Write a result in the form that was asked for; only that form is made."""
    match format:
        case Format.json:
            for piece in context_pieces(pieces(), context):
                output.write(piece)
        case Format.svg:
            output.write(svg() + "\n")
        case Format.html:
            output.write(render_page(page()))
        case Format.table:
            made = document()
            made.add(*context_blocks(context))
            output.show(made)
    output.close()
