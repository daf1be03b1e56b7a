"""What the analyses say of a document, as far as they are done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from irtool.cluster.context.model import RunContext
from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.ties import Ties
from irtool.sharding.network.report import CheckResult
from irtool.sharding.suggest import NO_PROPOSALS, Proposals
from irtool.sharding.why import Cause


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers to one text of a document; None and empty are "not yet" until ``is_complete``.

    Attributes:
        ties: forward to backward nodes.
        context: of the run, with origins.
        report: what ``check`` says, of a dump taken before the parallel pass.
        proposals: what would be legal instead.
        causes: of a dump taken after the parallel pass, why its collectives and cuts are there.
        findings: what ``lint`` says.
        troubles: what could not be asked, and why.
        is_complete: whether nothing more will come.
    """

    ties: Ties | None = None
    context: RunContext | None = None
    report: CheckResult | None = None
    proposals: Proposals = NO_PROPOSALS
    causes: Mapping[Node, Cause] = field(default_factory=dict[Node, Cause])
    findings: tuple[Finding, ...] = ()
    troubles: tuple[str, ...] = ()
    is_complete: bool = False


NO_ANSWERS = Answers()
