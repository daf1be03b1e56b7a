"""``irtool comm hang``: plays the communications of all ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from irtool.cli import options as shared
from irtool.cli.answering import Answered, DrawnForm, tell
from irtool.cli.comm.options import CommOptions
from irtool.cli.declared import with_options
from irtool.cli.failing import FailLevel, FailOn, fails
from irtool.cli.inputs.cluster import Asked, Read, read_cluster, refuse_partial
from irtool.cli.inputs.recorded import (
    nodes_of_launches,
    recorded_collectives,
    recorded_orders,
)
from irtool.cli.output import Output
from irtool.cli.report import Failure, note, report_problems
from irtool.cluster.hang import HangReport, play, unknown_parts
from irtool.ir.dataclass import dataclass
from irtool.syntax import file_facts
from irtool.syntax.load import TRUNCATED
from irtool.syntax.source import DumpError

if TYPE_CHECKING:
    from irtool.diagnosis.script_difference import ScriptDifference
    from irtool.report.comm.hang import HangView, PlayedOrder


@dataclass(frozen=True, slots=True)
class HangOptions(CommOptions):
    """What the command line asks of a hang, as it is typed."""

    format: shared.DrawnFormat = DrawnForm.table
    limit: shared.Limit = None
    allow_unknown: shared.AllowUnknown = False
    fail_on: FailOn = FailLevel.info


@with_options(HangOptions)
def command(paths: shared.Paths, options: HangOptions) -> int:
    """Does the run hang? Plays the communications of all ranks in launch order.

    Exit status: 0 no hang; 1 it hangs, ranks do not agree, or dumps of ranks are missing.
    """
    answered = hang_answered(options.asked(paths), options)
    return tell(answered, Output(options.output_file), options.format, options.assumptions)


def hang_answered(asked: Asked, options: HangOptions) -> Answered[HangView]:
    """Whether a run hangs, and which ranks diverge.

    Args:
        asked: what to read.
        options: how much is shown, and what sets the exit status.

    Raises:
        Failure: nothing can be read, or the dumps don't hold all communications.
    """
    from irtool.cluster.identity import compiled_as_another
    from irtool.report.comm.hang import HangView, hang_answer, hang_report

    read, report, order = _as_recorded(asked)
    report_problems(read.problems)
    for item in compiled_as_another(read.cluster):
        note(f"{item.text}; a reported hang may be only this")
    # Where records were played, graphs may be equal, or not be there at all.
    difference = _difference(read, report, asked.graph) if order is None else None
    view = HangView(read.path, report, options.limit, difference, order)
    wrong = read.problems or (order and order.notes)
    unknown = bool(list(unknown_parts(report))) and not options.allow_unknown
    return Answered(
        view,
        lambda: hang_answer(view, read.context),
        lambda is_page: hang_report(view, is_page),
        read.context,
        status=fails(
            options.fail_on,
            "error" if report.hangs or report.mismatches else None,
            "warning" if wrong else None,
            "info" if unknown else None,
        ),
    )


def _as_recorded(asked: Asked) -> tuple[Read, HangReport, PlayedOrder | None]:
    """The ranks, played as a run folder recorded it where all of them did."""
    from irtool.cluster.recorded_scripts import play_recorded, reordered
    from irtool.report.comm.hang import PlayedOrder
    from irtool.syntax.run import load_run

    path = asked.paths[0] if len(asked.paths) == 1 else ""
    if not file_facts.is_folder(path):
        read = _of_whole_dumps(refuse_partial(read_cluster(asked)))
        return read, play(read.cluster), None
    try:
        run = load_run(path)
    except DumpError as error:
        raise Failure(error.message, path, hint=error.hint) from None
    issued, problems = recorded_collectives(run)
    if issued:
        cluster, report = play_recorded(issued, nodes_of_launches(run, asked.graph))
        paths = tuple(record.path for record in issued.values())
        note(f"plays the collectives that {len(issued)} ranks recorded, not those of dumps")
        return Read(cluster, path, problems), report, PlayedOrder("recorded", paths)
    read = _of_whole_dumps(refuse_partial(read_cluster(asked)))
    orders, more = recorded_orders(run, read.cluster, asked.graph)
    if not orders:
        return replace(read, problems=(*read.problems, *more)), play(read.cluster), None
    cluster, notes = reordered(read.cluster, orders)
    paths = tuple(record.path for record in orders.values())
    order = PlayedOrder("dumps" if cluster is read.cluster else "recorded", paths, notes)
    read = replace(read, cluster=cluster, problems=(*read.problems, *more))
    return read, play(cluster), order


def _of_whole_dumps(read: Read) -> Read:
    """Without ranks whose dump ends early: what they do after that nobody knows."""
    cut = {problem.file for problem in read.problems if problem.code == TRUNCATED}
    left = read.cluster.without_dumps(cut)
    if not left.ranks:
        raise Failure("every dump is cut off: nobody knows what its end communicates", read.path)
    return read if left is read.cluster else replace(read, cluster=left)


def _difference(read: Read, report: HangReport, graph: int | None) -> ScriptDifference | None:
    """How the odd rank's graph differs from another's, where a folder holds both."""
    if not report.left or not file_facts.is_folder(read.path):
        return None
    from irtool.diagnosis.script_difference import script_difference
    from irtool.syntax.run import load_run

    return script_difference(load_run(read.path), report.left[0], graph)
