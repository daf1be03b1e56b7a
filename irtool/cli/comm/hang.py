"""``irtool comm hang``: plays the communications of all ranks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from irtool.cli import options
from irtool.cli.answering import DrawnForm, write_answer
from irtool.cli.cluster_inputs import Asked, Read, read_cluster, whole
from irtool.cli.output import Output
from irtool.cli.report import report_problems
from irtool.cluster.hang import HangReport, play, unknown_parts

if TYPE_CHECKING:
    from irtool.doctor.script_difference import ScriptDifference


def command(
    paths: options.Paths,
    format: options.DrawnFormat = DrawnForm.table,
    devices: options.Devices = None,
    graph: options.GraphNumber = None,
    limit: options.Limit = None,
    context: options.Context = None,
    config: options.Config = None,
    allow_unknown: options.AllowUnknown = False,
    assumptions: options.Assumptions = False,
    output_file: options.OutputFile = None,
) -> int:
    """Does the run hang? Plays the communications of all ranks in launch order.

    Exit status: 0 no hang; 1 it hangs, ranks do not agree, or dumps of ranks are missing.
    """
    from irtool.report.comm.hang import HangView, hang_answer, hang_report

    read = whole(read_cluster(Asked(paths, None, graph, devices, context, config)))
    report_problems(read.problems)
    report = play(read.cluster)
    view = HangView(read.path, report, limit, _difference(read, report, graph))
    write_answer(
        Output(output_file),
        format,
        answer=lambda: hang_answer(view, read.context),
        report=lambda is_page: hang_report(view, is_page),
        context=read.context,
        all_assumptions=assumptions,
    )
    if report.hangs or report.mismatches or read.problems:
        return 1
    return 1 if list(unknown_parts(report)) and not allow_unknown else 0


def _difference(read: Read, report: HangReport, graph: int | None) -> ScriptDifference | None:
    """How the odd rank's graph differs from another's, where a folder holds both."""
    if not report.left or not os.path.isdir(read.path):
        return None
    from irtool.doctor.script_difference import script_difference
    from irtool.syntax.run import load_run

    return script_difference(load_run(read.path), report.left[0], graph)
