"""``irtool comm reuse``: extraction and reuse of communication subgraphs."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Annotated

from irtool.cli import options as shared
from irtool.cli.answering import Answered, DrawnForm, tell
from irtool.cli.comm.options import CommOptions
from irtool.cli.declared import with_options
from irtool.cli.inputs.cluster import Rank, Read, read_cluster, refuse_partial
from irtool.cli.output import Output
from irtool.cli.parameters import Option
from irtool.cli.report import Failure, note, report_problems
from irtool.cluster.reuse import ReuseReport, reuse_report
from irtool.cluster.reuse.graph import Target
from irtool.cluster.reuse.later_versions import later
from irtool.cluster.reuse.limit import FIRST_VERSION, LAST_VERSION, has_feature
from irtool.cluster.reuse.log import LogCheck, ReuseLog, check_log, read_log
from irtool.cluster.reuse.streams import LABEL_LIMIT, STREAM_LIMIT
from irtool.ir.dataclass import dataclass
from irtool.syntax import file_facts
from irtool.syntax.lines import text_lines

if TYPE_CHECKING:
    from irtool.report.comm.reuse import ReuseView
    from irtool.report.comm.reuse_later import LaterView


class ParallelGroups(str, Enum):
    """Values of ``communi_parallel_mode``: which groups have streams of their own."""

    all = "all_group_parallel"
    same_server = "same_server_group_parallel"
    none = "no_group_parallel"


@dataclass(frozen=True, slots=True)
class ReuseOptions(CommOptions):
    """What the command line asks of reuse, as it is typed."""

    format: shared.DrawnFormat = DrawnForm.table
    value: Annotated[
        str | None,
        Option(
            "--limit",
            metavar="TEXT",
            help="The raw value of MS_COMM_COMPILER_OPT.",
            show_default="unset",
        ),
    ] = None
    log: Annotated[
        str | None, Option(metavar="FILE", help="A log to hold against the prediction.")
    ] = None
    target_version: Annotated[
        str, Option(metavar="VERSION", help="MindSpore's version; 1.8 to 2.2 reuse.")
    ] = "2.2"
    stream_limit: Annotated[int, Option(least=1, metavar="N", help="Streams of the device.")] = (
        STREAM_LIMIT
    )
    task_optimisation: Annotated[
        bool, Option("--task-opt", help="HCCL's task optimisation is on.")
    ] = False
    parallel_mode: Annotated[
        ParallelGroups,
        Option("--communi-parallel-mode", help="Which groups have streams of their own."),
    ] = ParallelGroups.all
    rank: Rank = None
    rows: shared.Rows = None

    def target(self, version: tuple[int, int]) -> Target:
        """What the graph is compiled for, by this version of MindSpore."""
        return Target(version, self.stream_limit, self.task_optimisation, self.parallel_mode.value)


@with_options(ReuseOptions)
def command(paths: shared.Paths, options: ReuseOptions) -> int:
    """Reuse of communication subgraphs: streams and labels before and after, the best value.

    Of a run folder the rank with the most communications is taken, unless --rank says another.
    Exit status: 1 the value raises an exception, streams do not suffice, or a log disagrees.
    """
    version = _version(options.target_version)
    read = refuse_partial(read_cluster(options.asked(paths, options.rank)))
    report_problems(read.problems)
    answered = _reused(read, options, version) if has_feature(version) else _later(read, options)
    return tell(answered, Output(options.output_file), options.format, options.assumptions)


def _reused(read: Read, options: ReuseOptions, version: tuple[int, int]) -> Answered[ReuseView]:
    """What a version that reuses subgraphs makes of the busiest rank."""
    from irtool.report.comm.reuse import ReuseView, reuse_answer
    from irtool.report.comm.reuse import reuse_report as reuse_for_people

    chosen = _busiest(read)
    report = reuse_report(read.cluster, chosen, options.value, options.target(version))
    checks = check_log(report, _read_log(options.log)) if options.log is not None else ()
    dialect = read.cluster.ranks[chosen].program.dump.dialect
    view = ReuseView(
        read.path, report, checks, options.log or "", _later_dialect(dialect), options.rows
    )
    return Answered(
        view,
        lambda: reuse_answer(view, read.context),
        lambda is_page: reuse_for_people(view, is_page),
        read.context,
        status=_status(report, checks, read),
    )


def _later(read: Read, options: ReuseOptions) -> Answered[LaterView]:
    """What is left of it in versions that have no such feature any more."""
    from irtool.report.comm.reuse_later import LaterView, later_answer, later_report

    left = later(read.cluster.ranks[_busiest(read)])
    version = ".".join(map(str, _version(options.target_version)))
    view = LaterView(read.path, version, left, options.value, options.rows)
    return Answered(
        view,
        lambda: later_answer(view, read.context),
        lambda is_page: later_report(view, is_page),
        read.context,
        status=1 if read.problems or options.value else 0,
    )


def _status(report: ReuseReport, checks: tuple[LogCheck, ...], read: Read) -> int:
    disagrees = any(check.agrees is False for check in checks)
    over = report.after.streams > report.target.usable_streams
    labels = report.after.labels > LABEL_LIMIT
    wrong = report.limit.error or report.limit.warning
    return 1 if disagrees or over or labels or wrong or read.problems else 0


def _busiest(read: Read) -> int:
    """The rank with the most communications, the lowest of equal ones."""
    ranks = read.cluster.ranks
    chosen = max(ranks, key=lambda rank: (len(ranks[rank].parties), -rank))
    if len(ranks) > 1:
        note(f"rank {chosen}, which communicates most; --rank picks another")
    return chosen


def _version(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"r?(\d+)\.(\d+)(?:\.\w+)*", text.strip())
    if match is None:
        raise Failure(f"{text!r} is no version", "--target-version", hint="such as 2.0 or 2.7.1")
    version = int(match[1]), int(match[2])
    if version < FIRST_VERSION:
        first, last = (".".join(map(str, one)) for one in (FIRST_VERSION, LAST_VERSION))
        hint = f"{first} to {last} have it"
        raise Failure(
            f"MindSpore {text} does not reuse subgraphs yet", "--target-version", hint=hint
        )
    return version


def _later_dialect(dialect: str) -> str:
    """The dialect of a dump, where it is of a version without the feature."""
    match = re.match(r"(\d+)\.(\d+)", dialect)
    if match is None:
        return ""
    return dialect if (int(match[1]), int(match[2])) > LAST_VERSION else ""


def _read_log(path: str) -> ReuseLog:
    if file_facts.is_folder(path):
        raise Failure("this is a folder", path, hint="name the log of one rank")
    try:
        log = read_log(text_lines(path))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Failure(f"cannot read the log: {reason}", path) from None
    except ValueError as error:
        raise Failure(f"cannot read the log: {error}", path) from None
    if log.is_empty:
        hint = "the lines are INFO: GLOG_v=1"
        note(f"{path} says nothing of reuse ({hint})")
    return log
