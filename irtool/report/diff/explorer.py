"""``irtool diff --format model-explorer``: both graphs, and what lets two panes move together."""

from __future__ import annotations

from collections.abc import Sequence

from irtool.compare.graph_diff import GraphDiff
from irtool.ir.graph import Node
from irtool.report.model_explorer.graph import (
    Object,
    graph_collection,
    model_explorer_graph,
    sync_navigation,
)
from irtool.report.picture.material import material


def diff_explorer(diff: GraphDiff) -> tuple[Object, Object]:
    """The file with both graphs, and the mapping for Model Explorer's two panes.

    Nodes that replace each other (split, fused) are mapped as well, several to one; what stays in
    no pair is shown as deleted on the left or new on the right. Loads, monads and tuples, which
    only hand on values or order, are matched with nothing and so are not in the graphs.

    Args:
        diff: of two dumps.

    Returns:
        the collection of both graphs, and what Model Explorer calls a sync navigation file.
    """
    pairs: list[tuple[Sequence[Node], Sequence[Node]]] = [
        ((pair.left,), (pair.right,)) for pair in diff.pairs
    ]
    pairs += [(edit.left, edit.right) for edit in diff.edits if len(edit.left) != len(edit.right)]
    sides = [
        material(dump.whole(), must_show=alone, title=f"{side}: {dump.path}")
        for dump, alone, side in (
            (diff.left, diff.only_left, "left"),
            (diff.right, diff.only_right, "right"),
        )
    ]
    graphs = [
        model_explorer_graph(side, name)
        for side, name in zip(sides, ("left", "right"), strict=True)
    ]
    label = f"{diff.left.path} ↔ {diff.right.path}"
    return graph_collection(label, graphs), sync_navigation(sides[0], sides[1], pairs)
