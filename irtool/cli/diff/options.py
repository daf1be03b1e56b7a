"""What the command line asks of a comparison."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from irtool.cli.answering import DrawnForm
from irtool.cli.failing import FailLevel, fails
from irtool.cli.output import Output
from irtool.ir.finding import Finding, Severity
from irtool.syntax.query import Predicate


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """What the command line asks for.

    Attributes:
        form: of the answer; model-explorer's files are None.
        output: where the answer goes.
        file: that of -o.
        wanted: chooses nodes.
        limit: rows of each table that text shows; None is the usual number, 0 is all.
        rank, graph, step: what of a run is compared.
        map_file: names of left tensors and what they are called on the right.
        jobs: processes that measure tensors.
        scheduler: address of the Dask cluster that does.
        repeats: more healthy runs of the left side.
        is_strict: whether what differs in a bit is something to see.
        strategies: files that say how the parameters of each checkpoint lie.
        layout: file that says how the ranks of both runs are cut.
        fail_on: from which severity on the status is 1; what differs is a warning.
    """

    form: DrawnForm | None = DrawnForm.table
    output: Output = field(default_factory=lambda: Output(None))
    file: str | None = None
    wanted: Predicate | None = None
    limit: int | None = None
    rank: int | None = None
    graph: int | None = None
    step: int | None = None
    map_file: str | None = None
    jobs: int | None = None
    scheduler: str | None = None
    fail_on: FailLevel = FailLevel.info
    strategies: tuple[str | None, str | None] = (None, None)
    repeats: tuple[str, ...] = ()
    is_strict: bool = False
    layout: str | None = None

    def status(self, differs: bool, problems: Iterable[Finding] = ()) -> int:
        """The exit status: where something differs, or could not be read whole."""
        severity: Severity | None = "warning" if differs else None
        return fails(self.fail_on, severity, those=(problem.severity for problem in problems))

    @property
    def answer_form(self) -> DrawnForm:
        """The form of an answer that Model Explorer cannot show."""
        return self.form or DrawnForm.table
