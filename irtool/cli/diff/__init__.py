"""``irtool diff``: two dumps or two runs: what differs, where does it begin, and why?"""

from __future__ import annotations

import os
from enum import Enum
from typing import Annotated

from irtool.cli import options as shared_options
from irtool.cli.answering import DrawnForm
from irtool.cli.failing import FailLevel, FailOn
from irtool.cli.opening import SchedulerAddress
from irtool.cli.output import Output
from irtool.cli.parameters import Argument, Option
from irtool.cli.report import Failure

ASKED = "Other questions"
TENSORS = "Tensors"


class Format(str, Enum):
    """Output formats."""

    table = "table"
    json = "json"
    html = "html"
    svg = "svg"
    model_explorer = "model-explorer"
    msprobe_csv = "msprobe-csv"


_OWN_FORMS = (Format.model_explorer, Format.msprobe_csv)


def command(
    paths: Annotated[
        list[str],
        Argument(
            metavar="LEFT RIGHT",
            help="Two dumps, run folders, checkpoints, tensor dumps or digests; with --passes, "
            "--ranks or --digest one run folder.",
            show_default=False,
        ),
    ],
    format: Annotated[
        Format,
        Option("--format", "-f", help="table is for people, msprobe-csv has msprobe's columns."),
    ] = Format.table,
    passes: Annotated[
        bool,
        Option("--passes", help="What each pass of one compilation changed.", group=ASKED),
    ] = False,
    ranks: Annotated[
        bool,
        Option("--ranks", help="How the graphs of a run's ranks differ.", group=ASKED),
    ] = False,
    loss: Annotated[
        bool,
        Option(
            "--loss",
            help="The loss curves of two runs: logs, tables, folders.",
            group=ASKED,
        ),
    ] = False,
    repeat: Annotated[
        list[str] | None,
        Option(
            metavar="RUN",
            help="Another healthy run of the left side: what differs between them is noise.",
            group=ASKED,
        ),
    ] = None,
    strict: Annotated[
        bool,
        Option(
            "--strict",
            help="Status 1 for a single bit, and for anything that both do not have.",
            group=TENSORS,
        ),
    ] = False,
    map_file: Annotated[
        str | None,
        Option(
            "--map",
            metavar="FILE",
            help="Names of the left tensors = names on the right; or JSON.",
            group=TENSORS,
        ),
    ] = None,
    layout: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="How the ranks of both runs are cut (JSON or TOML): they are put together.",
            group=TENSORS,
        ),
    ] = None,
    write_layout: Annotated[
        bool,
        Option(
            "--write-layout",
            help="Propose a --layout file from shapes and names, to -o.",
            group=ASKED,
        ),
    ] = False,
    step: Annotated[
        int | None,
        Option(least=0, metavar="N", help="Only the tensors of this step.", group=TENSORS),
    ] = None,
    digest: Annotated[
        bool,
        Option(
            "--digest",
            help="Write a run's statistics to -o, to be compared later.",
            group=ASKED,
        ),
    ] = False,
    scheduler: SchedulerAddress = None,
    left_strategy: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="Of checkpoints that ranks share: the strategy file of the left one.",
            group=TENSORS,
        ),
    ] = None,
    right_strategy: Annotated[
        str | None,
        Option(metavar="FILE", help="The same of the right one.", group=TENSORS),
    ] = None,
    jobs: shared_options.Jobs = None,
    where: shared_options.Where = None,
    limit: shared_options.Limit = None,
    rank: shared_options.Rank = None,
    graph: shared_options.GraphNumber = None,
    fail_on: FailOn = FailLevel.info,
    output_file: shared_options.OutputFile = None,
) -> int:
    """Two dumps or two runs: what differs, where does it begin, and why?

    Numbers, addresses, hashes and source lines make no difference.  Exit status: 0 identical,
    1 different, 2 could not compare.  Of runs with tensors: 1 if an operator introduces error,
    settings or losses differ; tensors that only carry error are none of these.  Of checkpoints: 1
    if a parameter differs by more than its type explains, or only one has it.
    """
    from irtool.cli.diff.options import DiffOptions
    from irtool.cli.where import read_query

    asked = DiffOptions(
        None if format in _OWN_FORMS else DrawnForm(format.value),
        Output(output_file),
        output_file,
        read_query("--where", where) if where is not None else None,
        limit,
        rank,
        graph,
        step,
        map_file,
        jobs,
        scheduler,
        fail_on,
        (left_strategy, right_strategy),
        tuple(repeat or ()),
        strict,
        layout,
    )
    # Each question has modules of its own: only those of the one that is asked are imported.
    if digest:
        if len(paths) != 1 or passes or ranks or loss:
            raise Failure("--digest takes one run", hint="irtool diff --digest RUN -o FILE")
        from irtool.cli.diff.digest import write_digest

        return write_digest(paths[0], asked)
    _check_paths(paths, passes, ranks, loss)
    if format is Format.model_explorer and (passes or ranks or loss):
        raise Failure("model-explorer shows two graphs", hint="irtool diff left.ir right.ir")
    if write_layout:
        from irtool.cli.diff.proposed_layout import write_layout as write

        return write(paths, asked)
    if loss:
        from irtool.cli.diff.losses import tell_losses

        return tell_losses(paths[0], paths[1], repeat or (), asked)
    if format is Format.svg:
        raise Failure("svg goes with --loss", hint="irtool viz draws graphs")
    if not (passes or ranks or where or format is Format.model_explorer):
        from irtool.cli.diff.checkpoints import is_for_checkpoints, tell_checkpoints
        from irtool.cli.diff.runs import is_for_runs, tell_runs

        if any(asked.strategies) or is_for_checkpoints(paths):
            _refuse_noise(repeat, strict)
            return tell_checkpoints(paths, asked)
        if is_for_runs(paths):
            if format is Format.msprobe_csv:
                from irtool.cli.diff.msprobe_csv import tell_msprobe_csv

                return tell_msprobe_csv(paths, asked)
            return tell_runs(paths, asked)
    if format is Format.msprobe_csv:
        raise Failure("msprobe-csv is of tensors", hint="irtool diff RUN_A RUN_B")
    _refuse_noise(repeat, strict)
    from irtool.cli.diff.graphs import tell_dumps, tell_passes, tell_ranks

    if passes:
        return tell_passes(paths[0], asked)
    if ranks:
        return tell_ranks(paths[0], asked)
    return tell_dumps(paths, asked)


def _refuse_noise(repeat: list[str] | None, strict: bool) -> None:
    """Say that two graphs, or two checkpoints, are compared to the bit anyway."""
    if repeat or strict:
        option = "--repeat" if repeat else "--strict"
        raise Failure("goes with two runs or tensor dumps", option, hint="irtool diff RUN_A RUN_B")


def _check_paths(paths: list[str], passes: bool, ranks: bool, loss: bool) -> None:
    if passes + ranks + loss > 1:
        message = "--passes, --ranks and --loss are different questions"
        raise Failure(message, hint="ask one at a time")
    if passes or ranks:
        if len(paths) != 1 or not os.path.isdir(paths[0]):
            option = "--passes" if passes else "--ranks"
            raise Failure(f"{option} takes one run folder", hint=f"irtool diff {option} graphs/")
        return
    if len(paths) != 2:
        hint = "irtool diff left.ir right.ir"
        raise Failure(
            f"two paths are compared, and {len(paths)} {'is' if len(paths) == 1 else 'are'} given",
            hint=hint,
        )
    if paths[0] == paths[1] == "-":
        raise Failure("standard input can be one side only")
