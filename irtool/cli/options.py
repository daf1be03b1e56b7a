"""Options that commands share, as annotated types: one meaning everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

from irtool.cli import complete
from irtool.cli.answering import AnswerForm, DocumentForm, DrawnForm, FindingsForm, JudgedForm
from irtool.cli.help import CONTEXT, OUTPUT, READ
from irtool.cli.opening import Jobs as Jobs
from irtool.ir.group_names import MOST_RANKS

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Dumps, folders, run folders, globs, or - for standard input; .gz, .xz as they are.",
        show_default=False,
    ),
]
OutputFile = Annotated[
    str | None,
    typer.Option(
        "--output-file",
        "-o",
        metavar="FILE",
        help="Write there, not to the terminal.",
        rich_help_panel=OUTPUT,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="QUERY",
        help='Which nodes: \'op == "MatMul" and "layers.3" in scope\'.',
        autocompletion=complete.query_words,
        rich_help_panel=READ,
    ),
]
Devices = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_RANKS,
        metavar="N",
        help="Devices that the dump was compiled for.",
        rich_help_panel=CONTEXT,
    ),
]
Stages = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Pipeline stages that the dump was compiled for.",
        rich_help_panel=CONTEXT,
    ),
]
Rank = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Whose dump it is; in a run folder, whose to read.",
        rich_help_panel=READ,
    ),
]
GraphNumber = Annotated[
    int | None,
    typer.Option(
        "--graph",
        min=0,
        metavar="N",
        help="In a run folder, which compilation.",
        rich_help_panel=READ,
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="The parallel context, JSON or TOML.", rich_help_panel=CONTEXT
    ),
]
Config = Annotated[
    str | None, typer.Option(metavar="FILE", help="Settings: irtool.toml.", rich_help_panel=READ)
]
MachineName = Annotated[
    str | None,
    typer.Option(
        "--machine",
        metavar="NAME|FILE",
        help="What bytes and operations cost: ascend_910b, gpu_a100, gpu_h100, or a TOML file.",
        show_default="that of the target",
        autocompletion=complete.machines,
    ),
]
Overlap = Annotated[
    str | None,
    typer.Option(
        metavar="none|0..1",
        help="What part of the communication that computing can hide it does hide.",
        show_default="the machine's, none in those built in",
    ),
]
Bind = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=SIZE", help="Size of an unknown dimension: s4=64."),
]
Rows = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="Rows of a list; 0 shows all.", rich_help_panel=OUTPUT),
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="At most so many rows in a list; 0 shows all.",
        rich_help_panel=OUTPUT,
    ),
]
AllowUnknown = Annotated[
    bool,
    typer.Option("--allow-unknown", help="Exit 0 even if a part could not be judged."),
]
AnswerFormat = Annotated[
    AnswerForm, typer.Option("--format", "-f", help="table is for people.", rich_help_panel=OUTPUT)
]
DrawnFormat = Annotated[
    DrawnForm, typer.Option("--format", "-f", help="table is for people.", rich_help_panel=OUTPUT)
]
JudgedFormat = Annotated[
    JudgedForm,
    typer.Option(
        "--format",
        "-f",
        help="table is for people, sarif to junit are for CI.",
        rich_help_panel=OUTPUT,
    ),
]
FindingsFormat = Annotated[
    FindingsForm,
    typer.Option(
        "--format",
        "-f",
        help="text is for people, sarif to junit are for CI.",
        rich_help_panel=OUTPUT,
    ),
]
DocumentFormat = Annotated[
    DocumentForm,
    typer.Option("--format", "-f", help="table is for people.", rich_help_panel=OUTPUT),
]
Assumptions = Annotated[
    bool,
    typer.Option(
        "--assumptions", help="List all that the answer takes for granted.", rich_help_panel=OUTPUT
    ),
]
