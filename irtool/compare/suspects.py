"""Without tensors nobody can be convicted: what in two graphs could make their numbers differ.

Ranked by how much error each can bring by what is known of rounding, and the dump settings that
would decide it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irtool.compare.tensors.dtypes import roundoff
from irtool.compare.tensors.semantics import family
from irtool.ir.graph import Node
from irtool.ir.operators import PLUMBING, VIRTUAL

if TYPE_CHECKING:
    from irtool.compare.edits import Edit
    from irtool.compare.graph_diff import GraphDiff

_FUSED = ("FlashAttention", "PromptFlash", "MatMulAllReduce", "AllGatherMatmul", "Fused")
_IDLE = PLUMBING | VIRTUAL
"""Operators that compute nothing: with or without them the numbers are the same."""
_LAYOUT = ("format", "dst_type")


@dataclass(frozen=True, slots=True)
class Suspect:
    """What may explain a difference.

    Attributes:
        kind: the edit's kind, or what a lone graph computes (``half-precision reduction``).
        nodes: where it stands, the first place first.
        why: in words.
        error: the relative error that it can bring.
        times: how often it is there: once a layer, as a rule.
    """

    kind: str
    nodes: tuple[Node, ...]
    why: str
    error: float
    times: int

    @property
    def node(self) -> Node:
        """The first node."""
        return self.nodes[0]


def suspects(diff: GraphDiff) -> list[Suspect]:
    """Edits that can change numbers, the heaviest first; equal edits of layers once."""
    ranked: list[tuple[float, float, Suspect]] = []
    for pattern in diff.patterns:
        edit = pattern.first
        judged = _judged(edit)
        if judged is not None:
            nodes = tuple(node for each in pattern.edits for node in (*each.left, *each.right))
            order = edit.order
            suspect = Suspect(edit.kind, nodes, judged[0], judged[1], len(pattern.edits))
            ranked.append((-judged[1], order, suspect))
    return [item for _, _, item in sorted(ranked, key=lambda row: row[:2])]


def _judged(edit: Edit) -> tuple[str, float] | None:
    """Why an edit is suspicious and the error it can bring; None if it is not."""
    node = edit.node
    unit = _coarsest((*edit.left, *edit.right))
    kind = edit.kind
    if all(each.op in _IDLE for each in (*edit.left, *edit.right)):
        return None
    if kind == "shape changed" and (edit.follows or _is_given_other_shapes(edit)):
        return None  # slices, or another batch
    if kind == "attribute changed":
        if family(node.op) == "collective" and not edit.detail.startswith("op:"):
            return None  # how it is sent, not what
        if any(word in edit.detail.partition(":")[0] for word in _LAYOUT):
            return None
        return f"{node.op} computes with another {edit.detail}", 1.0
    if kind == "constant changed":
        return f"{node.op} computes with another constant: {edit.detail}", 1.0
    if kind in ("added", "removed", "replaced", "input changed", "shape changed"):
        if all(_hands_on(each) for each in (*edit.left, *edit.right)):
            return None
        return f"{kind}: {edit.detail}", 0.5
    if kind in ("collective inserted", "collective removed"):
        if unit < 2.0**-20:
            return None
        return f"{node.op} adds up in half precision", 0.5 * math.sqrt(_ranks(node)) * unit
    if kind in ("reduction split", "reduction joined", "reduction reordered"):
        terms = 64.0
        return f"{kind}: the sum has another order", 0.4 * math.sqrt(terms) * max(unit, 2.0**-24)
    if kind in ("cast inserted", "cast removed", "dtype changed") and not edit.follows:
        return f"{kind}: {edit.detail}", max(unit, 2.0**-24)
    if kind in ("fused", "split"):
        fused = any(any(word in each.op for word in _FUSED) for each in (*edit.left, *edit.right))
        return f"{kind}: {edit.detail}", (8.0 if fused else 4.0) * max(unit, 2.0**-24)
    return None


def _hands_on(node: Node) -> bool:
    """Whether the numbers that come out are those that went in."""
    return node.op in _IDLE or family(node.op) in ("view", "cast", "collective")


def _is_given_other_shapes(edit: Edit) -> bool:
    """Whether an operand has another shape, so that the result's is no choice of the operator."""
    left, right = (
        [str(kind.shape) for kind in node.input_types if kind is not None and kind.shape]
        for node in (edit.left[0], edit.right[0])
    )
    return left != right


def _ranks(node: Node) -> int:
    size = node.attribute("rank_size") or node.attribute("dev_num")
    return size if isinstance(size, int) and size > 0 else 8


def _coarsest(nodes: Sequence[Node]) -> float:
    """The unit roundoff of the coarsest type that these nodes put out or take in."""
    kinds = [kind for node in nodes for kind in (node.output_type, *node.input_types) if kind]
    units = [0.0, *(roundoff(kind.short().partition("[")[0]) for kind in kinds)]
    return max(units)


def mindspore_dump_settings(
    found: Sequence[Suspect], steps: Sequence[int] = (0,), folder: str = "/absolute/path"
) -> str:
    """What MINDSPORE_DUMP_CONFIG has to name to decide between suspects.

    Args:
        found: the suspects; without any, everything is dumped.
        steps: the steps to dump, counted from 0, one after the other.
        folder: where to.
    """
    # Operators by type: full names are numbered anew when the backend has finished a graph.
    nodes = (node for item in found for node in item.nodes)
    kernels = list(dict.fromkeys(node.op for node in nodes if node.op not in _IDLE))
    settings = {
        "common_dump_settings": {
            "op_debug_mode": 0,
            "dump_mode": 1 if kernels else 0,
            "path": folder,
            "net_name": "Net",
            "iteration": "-".join(str(step) for step in dict.fromkeys((steps[0], steps[-1]))),
            "saved_data": "tensor",
            "input_output": 0,
            "kernels": kernels,
            "support_device": [0, 1, 2, 3, 4, 5, 6, 7],
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }
    return json.dumps(settings, indent=2)


def msprobe_settings(steps: Sequence[int] = (0,), folder: str = "/absolute/path") -> str:
    """The config.json with which msprobe dumps the same step on either side."""
    settings = {
        "task": "statistics",
        "dump_path": folder,
        "rank": [],
        "step": list(steps),
        "level": "mix",
        "async_dump": False,
        "statistics": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"},
    }
    return json.dumps(settings, indent=2)
