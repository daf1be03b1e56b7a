"""Dimensions that are not known when the graph is compiled, and what is refused because of them."""

from __future__ import annotations

from irtool.ir.finding import Finding
from irtool.ir.graph import node_of
from irtool.ir.types import Abstract
from irtool.linting.accepted import is_accepted
from irtool.linting.facts import CompilationFacts
from irtool.linting.needs import Lacking

NOT_DIVISIBLE = "not-divisible"
"""The check that a strategy's number divides a size, or what is known to divide it."""


def unknown_dimensions(value: Abstract | None) -> list[int]:
    """Dimensions of a tensor that are not known, from 0.

    Args:
        value: what is known of it; None: nothing, and no dimension is listed.
    """
    dimensions = value.dimensions if value is not None else None
    return [axis for axis, size in enumerate(dimensions or ()) if size < 0]


def is_for_unknown_size(finding: Finding) -> bool:
    """Whether a strategy is refused as nothing says that it divides a size which is not known.

    Args:
        finding: of ``irtool check``.
    """
    node = node_of(finding)
    return (
        finding.code == NOT_DIVISIBLE
        and node is not None
        and any(unknown_dimensions(item) for item in node.input_types or ())
    )


def is_refused_for_unknown_size(facts: CompilationFacts) -> bool:
    """Whether the parallel pass refuses the network for a size that is not known.

    Args:
        facts: of the compilation.

    Returns:
        False where the context is not known, too.
    """
    if is_accepted(facts):
        return False
    try:
        return any(map(is_for_unknown_size, facts.report.findings))
    except Lacking:
        return False
