"""What would be legal instead of what is refused, so that all of it together is accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.graph import Node, node_of
from irtool.operators.call import Strategy
from irtool.sharding.network.graphs import network_of
from irtool.sharding.network.report import CheckResult
from irtool.sharding.network.strategies import Wanted
from irtool.sharding.suggest.alone import Alone
from irtool.sharding.suggest.nearest import Layouts
from irtool.sharding.suggest.together import Repair, repaired


@dataclass(frozen=True, slots=True)
class Proposals:
    """What would be legal in the place of what is refused.

    Attributes:
        strategies: for findings about strategies the nearest legal ones.
        layouts: for findings about layouts, likewise: one layout a tensor input.
        together: whether the network is accepted with the first of each; None where nothing was
            proposed. The first ones are such that it is, wherever a bounded search found any.
        first: what a finding's operator is asked for by the first of its proposals; what it says of
            results holds for the others, too.
        beside: what operators that no finding is about have to change to, with the first of each.
        remaining: what is refused with the first of each.
        why_none: why nothing is proposed for a finding that is about an operator.
    """

    strategies: Mapping[Finding, tuple[Strategy, ...]]
    layouts: Mapping[Finding, tuple[Layouts, ...]]
    together: bool | None = None
    first: Mapping[Finding, Wanted] = field(default_factory=dict[Finding, Wanted])
    beside: Mapping[Node, Wanted] = field(default_factory=dict[Node, Wanted])
    remaining: tuple[Finding, ...] = ()
    why_none: Mapping[Finding, str] = field(default_factory=dict[Finding, str])


NO_PROPOSALS = Proposals({}, {})


def proposals(dump: Dump, report: CheckResult) -> Proposals:
    """The nearest legal strategies and layouts, those first that the whole network accepts.

    Args:
        dump: the dump that was checked.
        report: what ``check`` says of it.
    """
    network = network_of(dump)
    alone = Alone(report, network)
    options = {finding: tuple(alone.options(finding)) for finding in alone.findings}
    why_none = {
        finding: why
        for finding in report.findings
        if finding.severity == "error" and not options.get(finding)
        for why in [alone.why_none(finding)]
        if why
    }
    by_node: dict[Node, tuple[Wanted, ...]] = {}
    for finding, given in options.items():
        node = node_of(finding)
        if node is not None and given:
            by_node[node] = tuple(dict.fromkeys((*by_node.get(node, ()), *given)))
    if not by_node and not alone.findings:
        return replace(NO_PROPOSALS, why_none=why_none)
    made = repaired(network, report, by_node)
    left = {finding.message for finding in made.remaining}
    for finding in alone.findings:
        if finding.message in left and finding not in why_none and not options.get(finding):
            why_none[finding] = "no strategy of it, or of what shares its weights, changes this"
    return _arranged(options, made, why_none)


def _arranged(
    options: Mapping[Finding, tuple[Wanted, ...]], made: Repair, why_none: Mapping[Finding, str]
) -> Proposals:
    """Proposals by finding, what was chosen in front; those of one finding are of one form."""
    strategies: dict[Finding, tuple[Strategy, ...]] = {}
    layouts: dict[Finding, tuple[Layouts, ...]] = {}
    firsts: dict[Finding, Wanted] = {}
    about: set[Node] = set()
    for finding, given in options.items():
        node = node_of(finding)
        chosen = made.chosen.get(node) if node is not None else None
        ordered = tuple(dict.fromkeys(given if chosen is None else (chosen, *given)))
        if node is None or not ordered:
            continue
        about.add(node)
        first = firsts[finding] = ordered[0]
        alike = [one for one in ordered if _output(one) == _output(first)]
        if first.strategy is not None:
            strategies[finding] = tuple(one.strategy for one in alike if one.strategy is not None)
        else:
            layouts[finding] = tuple(one.in_layout for one in alike if one.in_layout is not None)
    return Proposals(
        strategies,
        layouts,
        together=not made.remaining if made.chosen else None,
        first=firsts,
        beside={node: one for node, one in made.chosen.items() if node not in about},
        remaining=made.remaining if made.chosen else (),
        why_none={finding: why for finding, why in why_none.items() if finding not in firsts},
    )


def _output(asked: Wanted) -> object:
    """What is asked of the results."""
    return (asked.out_strategy, asked.out_layout)


def legal_instead(report: CheckResult) -> dict[Finding, tuple[Strategy, ...]]:
    """For illegal strategies the nearest legal ones of each operator alone, found by trying.

    Args:
        report: of ``check``, with its findings.

    Returns:
        By finding the strategies, best first; findings that none helps are left out.
    """
    alone = Alone(report)
    found = {
        finding: tuple(one.strategy for one in alone.options(finding) if one.strategy is not None)
        for finding in alone.findings
    }
    return {finding: strategies for finding, strategies in found.items() if strategies}


def layouts_instead(report: CheckResult) -> dict[Finding, tuple[Layouts, ...]]:
    """For illegal layouts the nearest legal ones of each operator alone, found by trying.

    Args:
        report: of ``check``, with its findings.

    Returns:
        By finding a layout for each input, best first; findings that none helps are left out.
    """
    alone = Alone(report)
    found = {
        finding: tuple(one.in_layout for one in alone.options(finding) if one.in_layout is not None)
        for finding in alone.findings
    }
    return {finding: layouts for finding, layouts in found.items() if layouts}
