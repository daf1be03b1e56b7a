"""STR001: what MindSpore's parallel pass would refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from irtool.ir.finding import Finding
from irtool.ir.graph import node_of
from irtool.ir.units import plural
from irtool.linting.accepted import REPORT, is_accepted
from irtool.linting.facts import DumpFacts
from irtool.linting.rule import ReportRule
from irtool.linting.rules.strategies.unknown_sizes import NOT_DIVISIBLE, is_for_unknown_size
from irtool.operators.call import Strategy
from irtool.sharding.network.report import CheckResult
from irtool.sharding.suggest import legal_instead

DEVICE_LIST = "device-list"
"""The check that holds on first-generation Ascend 910 only."""


_PLACED = frozenset((NOT_DIVISIBLE, "strategy-value", "not-power-of-two"))
"""Checks whose messages say behind a colon where it is."""
_MOST_PLACES = 50
"""Operators that are named beside the first."""
_UNSURE = "say which chip it is: --soc Ascend910B"
_UNKNOWN = (
    "nothing is known to divide this dimension: give the input a fixed size, or set_inputs with "
    "Symbol(divisor=N)"
)


class IllegalStrategy(ReportRule):
    """Every reason for which ``irtool check`` says that the network is refused."""

    code = "STR001"
    name = "illegal-strategy"
    severity = "error"
    summary = "MindSpore refuses a strategy"
    explanation = """
        MindSpore's parallel pass would stop here: the strategy does not fit the operator's shape,
        asks for more devices than a stage has, or contradicts another one. MindSpore names only the
        first reason; this rule tells all of them, operators that are refused for the same reason
        (one size, by one number) as one. `irtool check` shows the same with device
        matrices and layouts.

        Where a later dump of the same compilation is there, MindSpore did accept the network: then
        the doubt is irtool's, and what it would have refused is told once, as an info.

        Groups that first-generation Ascend 910 cannot form are told as a warning where nobody says
        which chip it is (`soc` in the context).
        """
    hint = "give the operator a legal strategy; irtool check shows which ones are near"
    bad = "%8(x) = PrimFunc_MatMul(%6, %7, Bool(0), Bool(1)) {in_strategy: ((2, 4), (1, 2))}"
    good = "%8(x) = PrimFunc_MatMul(%6, %7, Bool(0), Bool(1)) {in_strategy: ((2, 4), (1, 4))}"
    cases = (
        "tests/linting/evidence/tied_encoder.begin",
        "samples/mlp_rejected",
    )

    def check(self, report: CheckResult, facts: DumpFacts) -> Iterator[Finding]:
        refused = [finding for finding in report.findings if finding.severity == "error"]
        if not refused:
            return
        if is_accepted(facts.compilation):
            yield self._doubt(refused)
            return
        instead = facts.kept("instead", lambda: legal_instead(report))
        context = facts.compilation.surroundings.context or {}
        causes: dict[tuple[str, str], list[Finding]] = {}
        for finding in refused:
            causes.setdefault((finding.code, _reason(finding)), []).append(finding)
        for first, *others in causes.values():
            unsure = first.code == DEVICE_LIST and "soc" not in context
            more = f"; so {_are(others)} for the same reason" if others else ""
            yield self.finding(
                _text(first) + more,
                node_of(first),
                hint=_UNSURE if unsure else _UNKNOWN if is_for_unknown_size(first) else "",
                fix=_fix(first, instead),
                severity="warning" if unsure else None,
                related=[
                    (_place(other, instead), node)
                    for other in others[:_MOST_PLACES]
                    if (node := node_of(other)) is not None
                ],
                key=first.code,
            )

    def _doubt(self, refused: Sequence[Finding]) -> Finding:
        first = refused[0]
        others = [(other.message, node_of(other)) for other in refused[1:]]
        return self.finding(
            f"irtool would refuse {first.op or 'this'}, but MindSpore compiled it: {first.message}",
            node_of(first),
            severity="info",
            hint=REPORT,
            related=[(message, node) for message, node in others if node is not None],
            key=first.code,
        )


def _text(finding: Finding) -> str:
    return f"{finding.op}: {finding.message}" if finding.op else finding.message


def _reason(finding: Finding) -> str:
    """What several operators may be refused for alike: without the place in each."""
    return finding.message.partition(": ")[0] if finding.code in _PLACED else finding.message


def _are(others: Sequence[Finding]) -> str:
    count = plural(len(others), "other operator")
    return f"is {count}" if len(others) == 1 else f"are {count}"


def _place(finding: Finding, instead: Mapping[Finding, Sequence[Strategy]]) -> str:
    """Another operator that is refused for the same, and what would be legal there."""
    fix = _fix(finding, instead)
    where = finding.message.partition(": ")[2] if finding.code in _PLACED else ""
    text = f"{finding.op or 'here'} likewise" + (f": {where}" if where else "")
    return text + (f"; legal is {fix}" if fix else "")


def _fix(finding: Finding, instead: Mapping[Finding, Sequence[Strategy]]) -> str | None:
    strategies = instead.get(finding, ())
    return "in_strategy " + ", or ".join(map(str, strategies)) if strategies else None
