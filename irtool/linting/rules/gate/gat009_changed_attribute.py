"""GAT009: attributes and constants that change what is computed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from irtool.compare.edits import Edit, Pattern
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.linting.gate import GateFacts, GateRule
from irtool.linting.gate.alike import alike_told_once
from irtool.linting.gate.layers import in_changed_layer, layer_change, where
from irtool.operators.table import operator_of
from irtool.sharding.why.walk import is_helper_part

_KINDS = ("attribute changed", "constant changed")
_ABSENT = "(none)"
_TYPED = re.compile(r"(\w+) (\S+) → (\w+) (\S+)$")
"""``Float32 0.125 → Float16 0.125``."""
_NUMBERS = re.compile(r": (\d+) → (\d+)$")
"""``out_channel: 16 → 32``."""
_HALF_ROUNDS = 2.0**-8
"""Relative error of a number that bfloat16 rounds."""
_HALF_STEP = 2.0**-25
"""Error of a number that is subnormal in float16."""


class ChangedAttribute(GateRule):
    """Rates, epsilons, axes, factors: what an operator is told, not where it runs."""

    code = "GAT009"
    name = "changed-attribute"
    severity = "warning"
    summary = "An attribute or constant of an operator is not that of the golden dump"
    explanation = """
        What a dropout keeps, the epsilon of a normalisation, the axis of a sum, the factor of the
        scores, a learning rate: the network has the same operators and computes something else.
        Only operators of the forward pass and the optimizer are told, gradients follow them.
        Attributes that only one of the dumps has come with another version of MindSpore, and
        seeds and the sizes that a Reshape is given are not compared; neither is a number that is a
        dimension of the operator's tensors (channels), which GAT008 tells by the weights.
        """
    hint = "update the golden dump if the change is meant"
    bad = "Dropout: keep_prob: 0.9 → 0.5 in layers.1"
    good = "Dropout: keep_prob: 0.9"
    cases = (
        "tests/linting/evidence/gate/later_rate_gated.validate",
        "tests/linting/evidence/gate/epsilon_gated.validate",
        "tests/linting/evidence/gate/rate_dense.validate",
        "tests/linting/evidence/gate/rate_mixer.validate",
        "tests/linting/evidence/gate/epsilon_mixer.validate",
    )

    def check(self, facts: GateFacts) -> Iterator[Finding]:
        change = layer_change(facts)
        same: dict[str, list[Pattern]] = {}
        for pattern in facts.diff.patterns:
            first = pattern.first
            if first.kind not in _KINDS or first.phase not in ("forward", "optimizer", "other"):
                continue
            if in_changed_layer(first, change) or not _means_something(pattern):
                continue
            if is_helper_part(first.node):
                continue  # GAT003 tells that what it stands around is cut otherwise
            if _is_size(first):
                continue  # GAT008 tells that weights or inputs have other shapes
            text = f"{first.node.op}: {pattern.detail}{where(pattern)}"
            same.setdefault(text, []).append(pattern)
        yield from alike_told_once(self, same)


def _means_something(pattern: Pattern) -> bool:
    first = pattern.first
    entry = operator_of(first.node.op)
    if _ABSENT in first.detail or _is_rounded(first.detail):
        return False
    if first.kind == "constant changed":
        if entry.is_("shape_taker") or entry.moves or entry.computes == "collective":
            return False
        if entry.is_("random"):
            return "." in first.detail  # a seed is a whole number
    return entry.computes != "collective"


def _is_size(edit: Edit) -> bool:
    """Whether what changed is a dimension of a tensor of the operator, which changed along."""
    match = _NUMBERS.search(edit.detail)
    if match is None or not edit.left or not edit.right:
        return False
    before, after = int(match[1]), int(match[2])
    return any(
        (before, after) in zip(old, new, strict=True)
        for old, new in zip(_shapes(edit.left[0]), _shapes(edit.right[0]), strict=False)
        if len(old) == len(new)
    )


def _shapes(node: Node) -> list[tuple[int, ...]]:
    """Dimensions of what an operator reads and makes, in order; () where they are not known."""
    types = (*(node.input_types or ()), node.output_type)
    return [tuple(item.dimensions or ()) if item is not None else () for item in types]


def _is_rounded(detail: str) -> bool:
    """Whether a constant only has another element type: GAT006 tells what changed that."""
    match = _TYPED.search(detail)
    if match is None or match[1] == match[3]:
        return False
    try:
        before, after = float(match[2]), float(match[4])
    except ValueError:
        return False
    return after != 0 and math.isclose(before, after, rel_tol=_HALF_ROUNDS, abs_tol=_HALF_STEP)
