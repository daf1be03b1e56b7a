"""``irtool comm hang``: plays the communications of all ranks."""

from __future__ import annotations

from irtool.cli import options
from irtool.cli.comm_inputs import Asked, read_cluster, whole
from irtool.cli.comm_options import Format, FormatOption, write
from irtool.cli.output import Output
from irtool.cli.report import report_problems
from irtool.cluster.hang import play, unknown_parts
from irtool.report.comm_hang import HangView, hang_document, hang_page, hang_pieces, hang_svg


def command(
    paths: options.Paths,
    format: FormatOption = Format.table,
    devices: options.Devices = None,
    graph: options.GraphNumber = None,
    limit: options.Limit = None,
    context: options.Context = None,
    config: options.Config = None,
    allow_unknown: options.AllowUnknown = False,
    output_file: options.OutputFile = None,
) -> int:
    """Does the run hang? Plays the communications of all ranks in launch order.

    Exit status: 0 all get done; 1 it hangs, ranks do not agree, or dumps of ranks are missing.
    """
    read = whole(read_cluster(Asked(paths, None, graph, devices, context, config)))
    report_problems(read.problems)
    report = play(read.cluster)
    view = HangView(read.path, report, limit)
    write(
        Output(output_file),
        format,
        lambda: hang_document(view),
        lambda: hang_pieces(view),
        lambda: hang_svg(report),
        lambda: hang_page(view),
        read.context,
    )
    if report.hangs or report.mismatches or read.problems:
        return 1
    return 1 if list(unknown_parts(report)) and not allow_unknown else 0
