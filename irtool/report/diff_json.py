"""``irtool diff --format json`` on graphs: the keys that docs/json-diff.md describes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from irtool.ir.graph import Node
from irtool.ir.statement import PrimitiveTarget

if TYPE_CHECKING:
    from irtool.compare.edits import Edit, Pattern
    from irtool.compare.graph_diff import GraphDiff, Pair
    from irtool.compare.timeline import Step
    from irtool.report.diff_ranks import RankDifference

SCHEMA = "irtool.diff/1"

Wanted = Callable[[Node], bool]


def diff_object(
    diff: GraphDiff, patterns: Sequence[Pattern], wanted: Wanted | None = None
) -> dict[str, object]:
    """The whole answer; ``wanted`` chooses the nodes of the lists."""
    first = diff.first_divergence
    return {
        "schema": SCHEMA,
        "left": diff.left.path,
        "right": diff.right.path,
        "identical": diff.is_identical,
        "matched": len(diff.pairs),
        "rounds": dict(Counter(pair.round for pair in diff.pairs)),
        "only_left": [
            node_object(node) for node in diff.only_left if wanted is None or wanted(node)
        ],
        "only_right": [
            node_object(node) for node in diff.only_right if wanted is None or wanted(node)
        ],
        "changed": [
            _changed_object(pair)
            for pair in diff.changed
            if wanted is None or wanted(pair.left) or wanted(pair.right)
        ],
        "first_divergence": {
            "left": node_object(first.left),
            "right": node_object(first.right),
            "why": first.why,
        }
        if first is not None
        else None,
        "edits": [_pattern_object(pattern) for pattern in patterns],
        "parameters": [
            {"name": item.name, "left": item.before, "right": item.after}
            for item in diff.parameters
        ],
        "passing": [
            {"op": op, "left": before, "right": after} for op, before, after in diff.passing
        ],
    }


def node_object(node: Node | None) -> dict[str, object] | None:
    """A node with its place; ``op`` is the operator as the dump has it."""
    if node is None:
        return None
    target = node.target
    dump = node.graph.dump if node.graph else None
    location = node.location
    return {
        "node": node.id,
        "op": target.name if isinstance(target, PrimitiveTarget) else node.op,
        "file": dump.path if dump else None,
        "line": node.line,
        "graph": node.graph.name if node.graph else None,
        "scope": node.scope,
        "source": f"{location.path}:{location.line}" if location is not None else None,
    }


def _changed_object(pair: Pair) -> dict[str, object]:
    return {
        "left": node_object(pair.left),
        "right": node_object(pair.right),
        "matched_by": pair.round,
        "what": [str(change) for change in pair.what],
    }


def _pattern_object(pattern: Pattern) -> dict[str, object]:
    first = pattern.first
    return {
        "kind": first.kind,
        "detail": first.detail,
        "phase": first.phase,
        "follows": first.follows,
        "scope": pattern.scope,
        "times": len(pattern.edits),
        "layers": pattern.layers,
        "counterpart": pattern.counterpart,
        "nodes": [_edit_object(edit) for edit in pattern.edits],
    }


def _edit_object(edit: Edit) -> dict[str, object]:
    return {
        "left": [f"{node.id}" for node in edit.left],
        "right": [f"{node.id}" for node in edit.right],
    }


def timeline_object(steps: Sequence[Step]) -> dict[str, object]:
    """The timeline of a compilation's passes."""
    return {
        "schema": "irtool.diff.passes/1",
        "identical": all(step.is_identical for step in steps),
        "steps": [
            {
                "before": step.before,
                "after": step.after,
                "identical": step.is_identical,
                "edits": step.counts,
                "patterns": [
                    _pattern_object(pattern)
                    for pattern in (step.diff.patterns if step.diff else ())
                    if not pattern.first.follows
                ],
            }
            for step in steps
        ],
    }


def ranks_object(found: Sequence[RankDifference]) -> dict[str, object]:
    """Classes of ranks, each against the first one."""
    return {
        "schema": "irtool.diff.ranks/1",
        "identical": len(found) == 1,
        "classes": [
            {
                "ranks": list(item.ranks),
                "readable": item.readable,
                "edits": [_pattern_object(pattern) for pattern in item.patterns],
            }
            for item in found
        ],
    }
