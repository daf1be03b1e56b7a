"""Options that commands share, as annotated types: one meaning everywhere."""

from __future__ import annotations

from typing import Annotated

from irtool.cli import complete
from irtool.cli.answering import AnswerForm, DocumentForm, DrawnForm, FindingsForm, JudgedForm
from irtool.cli.help import CONTEXT, OUTPUT, READ
from irtool.cli.opening import Jobs as Jobs
from irtool.cli.parameters import Argument, Option
from irtool.ir.group_names import MOST_RANKS

Paths = Annotated[
    list[str],
    Argument(
        metavar="PATH",
        help="Dumps, folders, run folders, globs, or - for standard input; .gz, .xz as they are.",
        show_default=False,
    ),
]
OutputFile = Annotated[
    str | None,
    Option(
        "--output-file",
        "-o",
        metavar="FILE",
        help="Write there, not to the terminal.",
        group=OUTPUT,
    ),
]
Where = Annotated[
    str | None,
    Option(
        metavar="QUERY",
        help='Which nodes: \'op == "MatMul" and "layers.3" in scope\'.',
        complete=complete.query_words,
        group=READ,
    ),
]
Devices = Annotated[
    int | None,
    Option(
        least=1,
        most=MOST_RANKS,
        metavar="N",
        help="Devices that the dump was compiled for.",
        group=CONTEXT,
    ),
]
Stages = Annotated[
    int | None,
    Option(
        least=1,
        metavar="N",
        help="Pipeline stages that the dump was compiled for.",
        group=CONTEXT,
    ),
]
Rank = Annotated[
    int | None,
    Option(
        least=0,
        metavar="N",
        help="Whose dump it is; in a run folder, whose to read.",
        group=READ,
    ),
]
GraphNumber = Annotated[
    int | None,
    Option(
        "--graph",
        least=0,
        metavar="N",
        help="In a run folder, which compilation.",
        group=READ,
    ),
]
Context = Annotated[
    str | None,
    Option(metavar="FILE", help="The parallel context, JSON or TOML.", group=CONTEXT),
]
Config = Annotated[str | None, Option(metavar="FILE", help="Settings: irtool.toml.", group=READ)]
MachineName = Annotated[
    str | None,
    Option(
        "--machine",
        metavar="NAME|FILE",
        help="What bytes and operations cost: ascend_910b, gpu_a100, gpu_h100, or a TOML file.",
        show_default="from the target",
        complete=complete.machines,
    ),
]
Overlap = Annotated[
    str | None,
    Option(
        metavar="none|0..1",
        help="What part of the communication that computing can hide it does hide.",
        show_default="the machine's, none in those built in",
    ),
]
Bind = Annotated[
    list[str] | None,
    Option(metavar="NAME=SIZE", help="Size of an unknown dimension: s4=64."),
]
Limit = Annotated[
    int | None,
    Option(
        "--limit",
        "--rows",
        least=0,
        metavar="N",
        help="At most so many rows in a list; 0 shows all.",
        group=OUTPUT,
    ),
]
Rows = Annotated[
    int | None,
    Option(
        least=0,
        metavar="N",
        help="At most so many rows in a list; 0 shows all.",
        group=OUTPUT,
    ),
]
"""The same where ``--limit`` limits something else."""
AllowUnknown = Annotated[
    bool,
    Option("--allow-unknown", help="Exit 0 even if a part could not be judged."),
]
_FORM = Option("--format", "-f", help="table is for people, csv for spreadsheets.", group=OUTPUT)
AnswerFormat = Annotated[AnswerForm, _FORM]
DrawnFormat = Annotated[DrawnForm, _FORM]
JudgedFormat = Annotated[
    JudgedForm,
    Option(
        "--format",
        "-f",
        help="table is for people, csv for spreadsheets, sarif to junit for CI.",
        group=OUTPUT,
    ),
]
FindingsFormat = Annotated[
    FindingsForm,
    Option(
        "--format",
        "-f",
        help="text is for people, sarif to junit are for CI.",
        group=OUTPUT,
    ),
]
DocumentFormat = Annotated[DocumentForm, _FORM]
Assumptions = Annotated[
    bool,
    Option("--assumptions", help="List all that the answer takes for granted.", group=OUTPUT),
]
FailSeverity = Annotated[
    str | None,
    Option(
        metavar="SEVERITY",
        help="Exit 1 only from this severity on; or never.",
        show_default="warning",
    ),
]
"""``--fail-on`` of commands whose settings may say it too."""
