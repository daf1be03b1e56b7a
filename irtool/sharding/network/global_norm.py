"""The AllReduce that ``clip_by_global_norm`` gets: each device holds a part of the gradients only.

MindSpore follows each parameter's gradient to its sum of squares, which the clipping marks with
``grad_scale``, and from there to the square root of all sums; before that it adds up over the
stage, and over the stages of a pipeline.

Source: ``PARALLEL_GLOBALNORM_IN_STAGES`` and ``…_BETWEEN_STAGES`` in step_parallel_end dumps.
"""

from __future__ import annotations

from collections import deque

from irtool.ir.graph import GraphParameter, Node
from irtool.sharding.network.analysis import Analysis
from irtool.sharding.network.sharded_nodes import primitive

MARK = "grad_scale"
SUM_OF_SQUARES = "ExpandDims"
GRADIENTS = frozenset({
    "EnvironGet", "Mul", "Square", "ReduceSum", "SumExt", "Depend", "Cast", "RefToEmbed", "embed",
    "Load", SUM_OF_SQUARES,
})  # fmt: skip
"""Operators between a parameter and its gradient's sum of squares."""

MOST = 15
"""Nodes that are looked at between a sum of squares and the square root."""


def global_norms(analysis: Analysis) -> list[Node]:
    """The square roots before which sums of squares are added up over devices.

    Args:
        analysis: of a network that ``clip_by_global_norm`` may clip the gradients of.

    Returns:
        Each root once, in the dump's order of the sums of squares.
    """
    roots: list[Node] = []
    for node in analysis.network.applying(SUM_OF_SQUARES):
        if node.attribute(MARK) is not True:
            continue
        root = _root_behind(analysis, node)
        if root is not None and root not in roots and _is_of_gradient(analysis, node):
            roots.append(root)
    return roots


def _root_behind(analysis: Analysis, node: Node) -> Node | None:
    todo = deque([node])
    for _ in range(MOST):
        if not todo:
            return None
        for use in analysis.network.users_of(todo.popleft()):
            if primitive(use.node) == "Sqrt":
                return use.node
            todo.append(use.node)
    return None


def _is_of_gradient(analysis: Analysis, node: Node) -> bool:
    """Whether the sum is one of a parameter's gradient, through nothing but known operators."""
    todo: list[object] = [node]
    seen: set[int] = set()
    while todo:
        source = todo.pop()
        if isinstance(source, GraphParameter) and source.declaration is not None:
            return True
        if id(source) in seen or not isinstance(source, Node):
            continue
        seen.add(id(source))
        if primitive(source) == "EnvironGet":
            return True
        if primitive(source) in GRADIENTS:
            todo += analysis.network.inputs[source]
    return False
