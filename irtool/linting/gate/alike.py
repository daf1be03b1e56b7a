"""Equal changes in several places, told once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from irtool.compare.edits import Pattern
from irtool.ir.finding import Finding
from irtool.linting.gate import GateRule
from irtool.linting.gate.layers import shown

_MOST_RELATED = 10
"""Further places that a finding names."""


def alike_told_once(rule: GateRule, changes: Mapping[str, Sequence[Pattern]]) -> Iterator[Finding]:
    """A finding for each text, at the first of its places, that names the others.

    Args:
        rule: whose findings they are.
        changes: by what is said of them, the changes in the order of the flow.
    """
    for text, (first, *others) in changes.items():
        yield rule.finding(
            text,
            shown(first.first.right or first.first.left),
            related=[
                ("the same here", node)
                for other in others[:_MOST_RELATED]
                if (node := shown(other.first.right or other.first.left)) is not None
            ],
            key=f"{first.scope} {first.detail}",
        )
