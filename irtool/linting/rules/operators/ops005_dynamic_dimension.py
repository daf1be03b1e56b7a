"""OPS005: an input whose size is not known when the graph is compiled."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.items import Parameter
from irtool.ir.operators import PLUMBING
from irtool.ir.units import count_text, plural
from irtool.linting.facts import DumpFacts
from irtool.linting.places import user_frames
from irtool.linting.rule import DumpRule
from irtool.linting.rules.strategies.unknown_sizes import (
    is_refused_for_unknown_size,
    unknown_dimensions,
)
from irtool.sharding.network.symbols import sizes_of_parameter

_SHAPES = frozenset(("Shape", "TensorShape", "ShapeCalc", "DynamicShape"))
"""Operators that find out a size while the network runs."""


class DynamicDimension(DumpRule):
    """A dimension of an input that is not known, and what is not known or done because of it."""

    code = "OPS005"
    name = "dynamic-dimension"
    severity = "warning"
    summary = "An input's dimension is not known when the graph is compiled"
    explanation = """
        Where a dimension of an input is unknown, so are the sizes of what is computed from it:
        shapes are computed in every step instead of once, kernels are launched with shapes that
        are found while they run, memory is not planned ahead, strategies of that dimension cannot
        be checked for being divisible, and constants that depend on it are not folded. It is worth
        that where batches or sequences do differ; often it is only the last batch.

        A warning where it keeps something from being done: operators find out shapes in every step,
        or, in a network with collectives, no number is known to divide the dimension, so that no
        strategy can split it (before the parallel pass: behind it an input is a slice). Else an
        info. Where MindSpore refuses a strategy for it, STR001 says so instead.
        """
    hint = (
        "give fixed sizes (drop_remainder=True, padding to a few lengths), or set_inputs with "
        "Symbol(divisor=N) where a dimension is to be split"
    )
    bad = "%para1_ids: <Tensor[Int32], (-1, 32)>"
    good = "%para1_ids: <Tensor[Int32], (16, 32)>"
    cases = ("samples/dynamic_shape",)
    dumps = ("validate", "end", "begin", "auto_begin", "other")

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        entry = facts.dump.entry
        inputs = [
            item
            for item in facts.dump.parameters
            if not item.is_weight and unknown_dimensions(item.type)
        ]
        if not inputs or entry is None:
            return
        computed = [node for node in facts.dump.nodes() if node.op not in PLUMBING]
        sized = [node for node in computed if node.output_type is not None]
        unknown = [node for node in sized if unknown_dimensions(node.output_type)]
        shapes = [node for node in computed if node.op in _SHAPES]
        if not unknown and not shapes:
            return  # nothing depends on it
        if is_refused_for_unknown_size(facts.compilation):
            return  # STR001 tells of it
        unsplittable = _cannot_be_split(inputs, facts) if facts.collectives else []
        dimensions = [
            f"dimension {axis} of {item.name}"
            for item in inputs
            for axis in unknown_dimensions(item.type)
        ]
        listed = ", ".join(dimensions[:3])
        more = f" and {len(dimensions) - 3} more" if len(dimensions) > 3 else ""
        verb = "is" if len(dimensions) == 1 else "are"
        costs = [
            f"{count_text(len(unknown))} of {count_text(len(sized))} results have no planned size"
        ]
        if shapes:
            finds = "finds" if len(shapes) == 1 else "find"
            costs.insert(0, f"{plural(len(shapes), 'operator')} {finds} out shapes in every step")
        if unsplittable:
            they = "it" if len(dimensions) == 1 else "them"
            of = they if unsplittable == dimensions else ", ".join(unsplittable[:3])
            costs.insert(0, f"no strategy can split {of}")
        first = _first([*shapes, *unknown])
        yield self.finding(
            f"{listed}{more} {verb} not known: {', '.join(costs)}",
            first,
            severity=None if shapes or unsplittable else "info",
            related=[("finds out a shape", node) for node in shapes[:5] if node is not first],
            key="dynamic",
        )


def _cannot_be_split(inputs: list[Parameter], facts: DumpFacts) -> list[str]:
    """Unknown dimensions that no number is known to divide.

    Behind the parallel pass an input is a slice, and what divides the whole is lost: only the dump
    before it tells.
    """
    before = facts.compilation.first_of(("begin", "auto_begin"))
    if before is None and facts.kind in ("validate", "end"):
        return []
    named = {item.name for item in inputs}
    return [
        f"dimension {axis} of {item.name}"
        for item in (before or facts).dump.parameters
        if item.name in named and (sizes := sizes_of_parameter(item.symbolic)) is not None
        for axis in unknown_dimensions(item.type)
        if axis < len(sizes.divisors) and sizes.divisors[axis] <= 1
    ]


def _first(nodes: list[Node]) -> Node | None:
    """The first of the forward pass that a person wrote, else the first."""
    written = (node for node in nodes if not node.is_backward and user_frames(node))
    return next(written, nodes[0] if nodes else None)
