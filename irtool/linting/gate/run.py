"""Runs the rules of the gate: causes before what comes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irtool.ir.finding import Finding
from irtool.linting.gate import GateFacts, GateRule
from irtool.linting.nesting import nested
from irtool.linting.places import placed
from irtool.linting.rule import Rule


def run_gate(
    facts: GateFacts,
    rules: Sequence[GateRule],
    failed: Callable[[Rule, Exception], Finding],
) -> list[Finding]:
    """What the rules of the gate find: causes in the order of the flow, then what has none.

    Args:
        facts: both dumps.
        rules: with their thresholds and severities.
        failed: makes a finding of a rule that raised.
    """
    findings: list[Finding] = []
    failures: list[Finding] = []
    for rule in rules:
        try:
            said = list(rule.check(facts))
        except Exception as error:
            failures.append(failed(rule, error))
            continue
        findings += [placed(finding, facts.new) for finding in said]
    consequences = {rule.code for rule in rules if rule.follows_from}
    told = sorted(
        nested(findings, rules, across_files=True), key=lambda finding: finding.code in consequences
    )
    return [*told, *failures]
