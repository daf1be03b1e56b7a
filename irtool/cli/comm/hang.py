"""``irtool comm hang``: plays the communications of all ranks."""

from __future__ import annotations

from irtool.cli import options
from irtool.cli.answering import DrawnForm, write_answer
from irtool.cli.cluster_inputs import Asked, read_cluster, whole
from irtool.cli.output import Output
from irtool.cli.report import report_problems
from irtool.cluster.hang import play, unknown_parts


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
    view = HangView(read.path, report, limit)
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
