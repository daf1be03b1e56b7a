"""The options of ``irtool diff``: declared once, and passed whole."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Annotated

from irtool.cli import options as shared
from irtool.cli.answering import DrawnForm
from irtool.cli.failing import FailLevel, FailOn, fails
from irtool.cli.opening import SchedulerAddress
from irtool.cli.parameters import Option
from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Finding, Severity

if TYPE_CHECKING:
    from irtool.syntax.query import Predicate

ASKED = "Other questions"
TENSORS = "Tensors"
"""Groups of options."""


class DiffForm(str, Enum):
    """Output formats of ``irtool diff``."""

    table = "table"
    json = "json"
    csv = "csv"
    html = "html"
    svg = "svg"
    model_explorer = "model-explorer"
    msprobe_csv = "msprobe-csv"


_OWN_FORMS = (DiffForm.model_explorer, DiffForm.msprobe_csv)


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """What the command line asks of a comparison, as it is typed."""

    format: Annotated[
        DiffForm,
        Option("--format", "-f", help="table is for people, msprobe-csv has msprobe's columns."),
    ] = DiffForm.table
    passes: Annotated[
        bool,
        Option("--passes", help="What each pass of one compilation changed.", group=ASKED),
    ] = False
    ranks: Annotated[
        bool,
        Option("--ranks", help="How the graphs of a run's ranks differ.", group=ASKED),
    ] = False
    loss: Annotated[
        bool,
        Option(
            "--loss",
            help="The loss curves of two runs: logs, tables, folders.",
            group=ASKED,
        ),
    ] = False
    repeat: Annotated[
        list[str] | None,
        Option(
            metavar="RUN",
            help="Another healthy run of the left side: what differs between them is noise.",
            group=ASKED,
        ),
    ] = None
    strict: Annotated[
        bool,
        Option(
            "--strict",
            help="Status 1 for a single bit, and for anything that both do not have.",
            group=TENSORS,
        ),
    ] = False
    map_file: Annotated[
        str | None,
        Option(
            "--map",
            metavar="FILE",
            help="Names of the left tensors = names on the right; or JSON.",
            group=TENSORS,
        ),
    ] = None
    layout: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="How the ranks of both runs are cut (JSON or TOML): they are put together.",
            group=TENSORS,
        ),
    ] = None
    write_layout: Annotated[
        bool,
        Option(
            "--write-layout",
            help="Propose a --layout file from shapes and names, to -o.",
            group=ASKED,
        ),
    ] = False
    step: Annotated[
        int | None,
        Option(least=0, metavar="N", help="Only the tensors of this step.", group=TENSORS),
    ] = None
    digest: Annotated[
        bool,
        Option(
            "--digest",
            help="Write a run's statistics to -o, to be compared later.",
            group=ASKED,
        ),
    ] = False
    scheduler: SchedulerAddress = None
    left_strategy: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="Of checkpoints that ranks share: the strategy file of the left one.",
            group=TENSORS,
        ),
    ] = None
    right_strategy: Annotated[
        str | None,
        Option(metavar="FILE", help="The same of the right one.", group=TENSORS),
    ] = None
    jobs: shared.Jobs = None
    where: shared.Where = None
    limit: shared.Limit = None
    rank: shared.Rank = None
    graph: shared.GraphNumber = None
    fail_on: FailOn = FailLevel.info
    output_file: shared.OutputFile = None

    @property
    def form(self) -> DrawnForm | None:
        """The form of an answer; None: that of another program, which has no answer."""
        return None if self.format in _OWN_FORMS else DrawnForm(self.format.value)

    @property
    def answer_form(self) -> DrawnForm:
        """The form of an answer that Model Explorer cannot show."""
        return self.form or DrawnForm.table

    @property
    def wanted(self) -> Predicate | None:
        """The nodes that ``--where`` chooses; None: all.

        Raises:
            Failure: ``--where`` is no query.
        """
        if self.where is None:
            return None
        from irtool.cli.where import read_query

        return read_query("--where", self.where)

    def status(self, differs: bool, problems: Iterable[Finding] = ()) -> int:
        """The exit status: where something differs (a warning), or could not be read whole."""
        severity: Severity | None = "warning" if differs else None
        return fails(self.fail_on, severity, those=(problem.severity for problem in problems))
