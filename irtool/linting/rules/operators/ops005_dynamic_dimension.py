"""OPS005: an input whose size is not known when the graph is compiled."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.operators import PLUMBING
from irtool.ir.types import Abstract
from irtool.ir.units import count_text, plural
from irtool.linting.facts import DumpFacts
from irtool.linting.places import user_frames
from irtool.linting.rule import DumpRule, Threshold

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

        Told where operators compute shapes in every step, or most results have no known size; else
        as an info.
        """
    hint = (
        "give fixed sizes (drop_remainder=True, padding to a few lengths), or set_inputs with them"
    )
    bad = "%para1_ids: <Tensor[Int32], (-1, 32)>"
    good = "%para1_ids: <Tensor[Int32], (16, 32)>"
    dumps = ("validate", "end", "begin", "auto_begin", "other")
    least_share = Threshold(50, "percent", "a warning where so many results have no known size")

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
        grave = bool(shapes) or len(unknown) * 100 >= self.least_share * max(1, len(sized))
        dimensions = [
            f"dimension {axis} of {item.name}"
            for item in inputs
            for axis in unknown_dimensions(item.type)
        ]
        told = ", ".join(dimensions[:3])
        more = f" and {len(dimensions) - 3} more" if len(dimensions) > 3 else ""
        verb = "is" if len(dimensions) == 1 else "are"
        in_steps = (
            f", and {plural(len(shapes), 'operator')} find{'s' if len(shapes) == 1 else ''} out "
            "shapes in every step"
            if shapes
            else ""
        )
        yield self.finding(
            f"{told}{more} {verb} not known: {count_text(len(unknown))} of "
            f"{count_text(len(sized))} results have no known size{in_steps}",
            _first(unknown),
            severity=None if grave else "info",
            related=[("finds out a shape", node) for node in shapes[:5]],
            key="dynamic",
        )


def unknown_dimensions(value: Abstract | None) -> list[int]:
    """Dimensions of a tensor that are not known, from 0."""
    dimensions = value.dimensions if value is not None else None
    return [axis for axis, size in enumerate(dimensions or ()) if size < 0]


def _first(nodes: list[Node]) -> Node | None:
    """The first that a person wrote, else the first."""
    return next((node for node in nodes if user_frames(node)), nodes[0] if nodes else None)
