"""REC003: recompute was asked for, and nothing is recomputed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import takewhile

from irtool.cluster.memory.layers import NETWORK, layer_of_scope
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION, PLUMBING
from irtool.linting.facts import DumpFacts
from irtool.linting.layers import kind_of
from irtool.linting.places import user_frames
from irtool.linting.rule import DumpRule


class RecomputeWithoutEffect(DumpRule):
    """Nodes marked for recomputation in a scope of which validate holds no copy."""

    code = "REC003"
    name = "recompute-without-effect"
    severity = "warning"
    summary = "Recompute was asked for, but validate holds no second copy"
    explanation = """
        MindSpore puts the operators of a cell on which `recompute()` was called into a scope that
        begins with `recompute_`; differentiation then makes a second copy of what the backward pass
        needs, except of what the cell gives to others, which is kept. Where nothing of a cell, nor
        of a layer like it, has a copy, the call does nothing. It happens to cells whose operators
        all give their results to others, to cells in front of anything that needs a gradient, and
        when graphs are built by `lazy_inline` in versions that ignore the setting. A part of a cell
        that has nothing to compute again is not told.
        """
    hint = "look at the scope in validate: which operators does the backward pass read?"
    bad = "%7(y) = PrimFunc_GeLU(%6) primitive_attrs: {recompute: Bool(1)}, and no copy of it"
    good = "%90(z) = PrimFunc_GeLU(%6) cnode_attrs: {duplicated: Bool(1), …}"
    cases = (
        "tests/linting/evidence/recompute_idle_encoder.validate",
        "tests/linting/evidence/recompute_shared_encoder.validate",
    )
    dumps = ("validate",)

    def check(self, facts: DumpFacts) -> Iterator[Finding]:
        marked: dict[str, list[Node]] = defaultdict(list)
        copied: set[str] = set()
        scopes: set[tuple[str, ...]] = set()
        for node in facts.dump.nodes():
            if node.op in PLUMBING or node.scope is None or node.is_backward:
                continue
            scopes.add(_path(node.scope))
            if node.is_recomputed:
                copied.add(node.scope)
            elif _is_marked(node):
                marked[node.scope].append(node)
        if not marked or not _has_backward(facts):
            return
        root = _common(scopes)
        groups = {_group(scope, root) for scope in copied}
        lost: dict[str, dict[str, list[Node]]] = defaultdict(lambda: defaultdict(list))
        for scope, nodes in marked.items():
            # Where an equal layer has copies, REC004 tells of those that have none.
            if _group(scope, root) not in groups:
                lost[_group(scope, root)][_layer(scope)] += nodes
        for group, by_layer in lost.items():
            layers = list(by_layer)
            more = f" and {len(layers) - 1} more like it" if len(layers) > 1 else ""
            nodes = by_layer[layers[0]]
            inner = "/".join(_common({_path(node.scope or "") for node in nodes})[-2:])
            yield self.finding(
                f"recompute is set in {inner}{more}, but nothing of it is computed again",
                next((node for node in nodes if user_frames(node)), nodes[0]),
                related=[("as little here", by_layer[layer][0]) for layer in layers[1:20]],
                key=group,
            )


def _path(scope: str) -> tuple[str, ...]:
    """The cells of a scope, outermost first."""
    return tuple(scope.removeprefix("recompute_").split("/"))


def _common(paths: Collection[tuple[str, ...]]) -> tuple[str, ...]:
    """The cells that all scopes begin with."""
    first, last = min(paths), max(paths)
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return tuple(cell for cell, _ in pairs)


def _layer(scope: str) -> str:
    """The layer that a scope belongs to, else the scope itself."""
    layer = layer_of_scope(scope)
    return scope.removeprefix("recompute_") if layer == NETWORK else layer


def _group(scope: str, root: tuple[str, ...]) -> str:
    """What is recomputed as one: a kind of layer, else a cell right below the network."""
    if layer_of_scope(scope) != NETWORK:
        return kind_of(_layer(scope))
    return "/".join(_path(scope)[: len(root) + 1])


def _has_backward(facts: DumpFacts) -> bool:
    return any(phase == "backward" for phase in facts.phases.values())


def _is_marked(node: Node) -> bool:
    """Whether somebody asked to recompute a node: its mark, or the scope of its cell.

    What the compiler puts in bears the mark of the operator that it serves.
    """
    in_cell = (node.scope or "").startswith("recompute_")
    if not (in_cell or node.attribute("recompute") is True) or node.op in COMMUNICATION:
        return False
    return not (node.instance_name or "").startswith(("redistribution_op", "forward_op"))
