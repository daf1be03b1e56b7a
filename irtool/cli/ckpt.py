"""``irtool ckpt``: which slices of old checkpoints does each rank need under another layout?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from irtool.cli import options
from irtool.cli.answering import AnswerForm, write_answer
from irtool.cli.failing import FailLevel, FailOn, fails
from irtool.cli.inputs.strategies import layouts_at, network_at
from irtool.cli.output import Output
from irtool.cli.parameters import Argument, Option
from irtool.cli.report import Failure, note
from irtool.cluster.context.model import RunContext

if TYPE_CHECKING:
    from irtool.artefacts.strategies.model import StrategyFile
    from irtool.planning.checkpoints.conversion import KnownParameter

_LAYOUT_HELP = (
    "A strategy file, a folder of stage files, a run folder, a begin dump, or 'whole' for a "
    "checkpoint that no devices share."
)


def command(
    old: Annotated[str, Argument(metavar="OLD", help=_LAYOUT_HELP, show_default=False)],
    new: Annotated[
        str, Argument(metavar="NEW", help="The layout to come, likewise.", show_default=False)
    ],
    format: options.AnswerFormat = AnswerForm.table,
    network: Annotated[
        str | None,
        Option(metavar="BEGIN", help="A begin dump or run folder that says shapes and types."),
    ] = None,
    rank: Annotated[
        list[int] | None,
        Option(least=0, metavar="N", help="Only this rank of the new layout; repeat for more."),
    ] = None,
    limit: options.Limit = None,
    fail_on: FailOn = FailLevel.info,
    output_file: options.OutputFile = None,
) -> int:
    """Which slices of old checkpoints does each rank need under another layout?

    For every rank of the new layout: the old ranks that MindSpore's rank_list_for_transform names,
    the slices that are really needed and who has them, how much comes from other ranks, and the
    lines that call MindSpore's own conversion.

    Exit status: 0; 1 a parameter is in no old checkpoint, or MindSpore's conversion would fail or
    misplace one; 2 a file is no strategy file, or of one later pipeline stage alone.
    """
    from irtool.artefacts.cuts import Refused
    from irtool.planning.checkpoints.conversion import convert
    from irtool.report.ckpt import CkptView, ckpt_answer, ckpt_report

    files = layouts_at(old), layouts_at(new)
    if files == (None, None):
        raise Failure("whole checkpoints stay whole", "OLD NEW", hint="give a strategy file")
    devices = 1 if files[1] is None else files[1].devices
    beyond = next((number for number in rank or () if number >= devices), None)
    if beyond is not None:
        raise Failure(f"the new layout has ranks 0 to {devices - 1}, not {beyond}", "--rank")
    known = None if network is None else _known(network)
    try:
        conversion = convert(*files, known, sorted(set(rank)) if rank else None)
    except Refused as error:
        raise Failure(str(error), f"{old} {new}") from None
    view = CkptView(conversion, limit, _notes(files))
    write_answer(
        Output(output_file),
        format,
        answer=lambda: ckpt_answer(view),
        report=lambda is_page: ckpt_report(view),
        context=RunContext(None),
    )
    return fails(fail_on, those=conversion.severities)


def _known(path: str) -> Mapping[str, KnownParameter]:
    """Shapes and element sizes of a network's parameters."""
    from irtool.planning.checkpoints.conversion import known_parameters

    parameters = known_parameters(network_at(path))
    if not parameters:
        raise Failure("no parameter of a known shape is declared here", path)
    note(f"{path} says the shapes of {len(parameters)} parameters")
    return parameters


def _notes(files: tuple[StrategyFile | None, StrategyFile | None]) -> tuple[str, ...]:
    notes = (
        f"{file.path} names no stages: taken for a run without pipeline stages"
        for file in files
        if file is not None and not file.is_merged and not file.is_predicted
    )
    return tuple(dict.fromkeys(notes))
