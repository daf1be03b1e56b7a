"""GAT010: operators that came, went, or took the place of others, and weights trained otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irtool.cluster.memory.layers import layer_of_parameter
from irtool.cluster.weight_layers import cells_of
from irtool.compare.edits import Pattern
from irtool.ir.finding import Finding
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION, PLUMBING, VIRTUAL
from irtool.linting.gate import GateFacts, GateRule
from irtool.linting.gate.layers import in_changed_layer, is_completed, layer_change, shown, where
from irtool.linting.gate.updates import Update, updates
from irtool.operators.table import operator_of

_KINDS = ("added", "removed", "replaced", "fused", "split")


class ChangedOperators(GateRule):
    """Operators that only one of the dumps has, or that read others, and what updates weights."""

    code = "GAT010"
    name = "changed-operators"
    severity = "warning"
    summary = "Operators came or went, are wired otherwise, or weights are trained otherwise"
    explanation = """
        A `Print` that was left in, a dropout that is gone, another activation: operators of the
        forward pass that were matched with nothing, those that feed each other together. Casts,
        collectives, redistributions and copies for recomputation have rules of their own, and what
        differentiation makes follows the forward pass. Where the dumps were written by different
        versions of MindSpore, an operator that took the place of another at the same line of Python
        is the version's, and is not told; neither is any of what follows here.

        A layer whose operators are the same and read others (pre-norm became post-norm, a residual
        is taken elsewhere) is told where nothing else of the forward pass changed: else the wiring
        may only follow from that.

        Weights are compared by name. Another operator that updates them is another optimizer;
        weights that only one of the dumps updates were frozen or thawed; and where no operator of
        the backward pass leads to an update any more, the weight has lost its gradient (a
        `stop_gradient`). Where both update the same weights by the same operators, operators that
        came or went between the gradients and the updates are told (clipping by the global norm).

        Not told: that a weight lost its gradient where something of all gradients enters each
        update (clipping by the global norm, a loss scale that looks for overflow), where gradients
        are summed over micro-batches, or where a part of the gradient is left; and freezing, or
        another optimizer, where updates are written as plain arithmetic (`Assign`), such as those
        of `nn.AdamWeightDecay` on some targets.
        """
    hint = "update the golden dump if the change is meant"
    bad = "Print was added in layers.1"
    good = "(the same operators)"
    cases = (
        "tests/linting/evidence/gate/print_dense.validate",
        "tests/linting/evidence/gate/print_mixer.validate",
        "tests/linting/evidence/gate/momentum_blocks.validate",
        "tests/linting/evidence/gate/clip_blocks.validate",
        "tests/linting/evidence/gate/frozen_blocks.validate",
        "tests/linting/evidence/gate/detach_blocks.validate",
        "tests/linting/evidence/gate/postnorm_blocks.validate",
        "tests/linting/evidence/gate/skip_blocks.validate",
        "tests/linting/evidence/gate/sum_blocks.validate",
    )

    def check(self, facts: GateFacts) -> Iterator[Finding]:
        same_version = facts.old.dump.dialect == facts.new.dump.dialect
        yield from self._operators(_regions(facts, same_version))
        if not same_version:
            return
        yield from self._wiring(facts)
        trained = list(self._trained(facts))
        yield from trained
        if not trained:
            yield from self._operators(_between_updates(facts), " between gradients and updates")

    def _operators(self, patterns: Iterable[Pattern], place: str = "") -> Iterator[Finding]:
        """What came or went; what the compiler made beside it, in the same cell, belongs to it."""
        by_scope: dict[str, list[Pattern]] = {}
        for pattern in patterns:
            by_scope.setdefault(pattern.scope, []).append(pattern)
        for scope, told in by_scope.items():
            written = [pattern for pattern in told if _is_written(pattern)]
            made = [pattern for pattern in told if not _is_written(pattern)]
            if not written:  # nothing says which of them comes of which
                written, made = told, []
            for number, pattern in enumerate(written):
                yield self.finding(
                    f"{_text(pattern)}{place or where(pattern)}",
                    _node(pattern),
                    related=[
                        (f"follows from it: {_text(other)}", node)
                        for other in made
                        if number == 0 and (node := _node(other)) is not None
                    ],
                    key=f"{pattern.first.kind} {scope} {pattern.detail}",
                )

    def _wiring(self, facts: GateFacts) -> Iterator[Finding]:
        """Operators that read others, where nothing else of the forward pass changed."""
        forward = [one for one in facts.diff.patterns if one.first.phase == "forward"]
        if any(pattern.first.kind != "input changed" for pattern in forward):
            return
        edits = [edit for pattern in forward if _computes(pattern) for edit in pattern.edits]
        if not edits:
            return
        nodes = list(dict.fromkeys(edit.right[0] for edit in edits))
        cells = dict.fromkeys(found[-1] for node in nodes if (found := cells_of(node)))
        layers, ops = list(cells), list(dict.fromkeys(node.op for node in nodes))
        more = f" and {len(layers) - 3} more" if len(layers) > 3 else ""
        yield self.finding(
            f"the same operators are wired otherwise{' in ' if layers else ''}"
            f"{', '.join(layers[:3])}{more}: {', '.join(ops[:4])}"
            f"{' and others' if len(ops) > 4 else ''} read other results",
            nodes[0],
            related=[(f"{edit.right[0].op}: {edit.detail}", edit.right[0]) for edit in edits[:10]],
            key="wiring",
        )

    def _trained(self, facts: GateFacts) -> Iterator[Finding]:
        """Weights that are updated by another operator, no longer, or without a gradient."""
        old, new = updates(facts.old), updates(facts.new)
        if not old.by_weight or not new.by_weight:
            return
        both = [
            (old.by_weight[name], update)
            for name, update in new.by_weight.items()
            if name in old.by_weight
        ]
        other: dict[tuple[str, str], list[Update]] = {}
        for before, after in both:
            if before.node.op != after.node.op:
                other.setdefault((before.node.op, after.node.op), []).append(after)
        for (before, after), changed in other.items():
            some = f" for {len(changed)} of {len(both)} weights" if len(changed) < len(both) else ""
            yield self.finding(
                f"the optimizer is {after} instead of {before}{some}",
                changed[0].node,
                key=f"optimizer {before} {after}",
            )
        if old.is_complete and new.is_complete:
            yield from self._frozen(facts, old.by_weight, new.by_weight)
        if all(any(each.has_gradient for each in side.by_weight.values()) for side in (old, new)):
            yield from self._without_gradient(both)

    def _without_gradient(self, both: list[tuple[Update, Update]]) -> Iterator[Finding]:
        """Weights to whose update the backward pass leads in one dump only."""
        lost = [after for before, after in both if before.has_gradient and not after.has_gradient]
        got = [after for before, after in both if after.has_gradient and not before.has_gradient]
        for changed, what in ((lost, "no gradient any more"), (got, "a gradient now")):
            for layer, alike in _by_layer(changed).items():
                one = len(alike) == 1
                still = f": the optimizer still updates {'it' if one else 'them'}"
                yield self.finding(
                    f"{_weights(alike, layer)} {what}{still if changed is lost else ''}",
                    alike[0].node,
                    key=f"{what} {layer}",
                )

    def _frozen(
        self, facts: GateFacts, old: dict[str, Update], new: dict[str, Update]
    ) -> Iterator[Finding]:
        """Weights that both dumps have and only one of them updates."""
        names = [{item.name for item in side.dump.parameters} for side in (facts.old, facts.new)]
        kept = names[0] & names[1]
        for here, there, what in ((old, new, "no longer trained"), (new, old, "now trained")):
            changed = [
                update for name, update in here.items() if name not in there and name in kept
            ]
            for layer, alike in _by_layer(changed).items():
                yield self.finding(
                    f"{_weights(alike, layer, 'is', 'are')} {what}: "
                    f"{alike[0].node.op} was {'removed' if here is old else 'added'}",
                    alike[0].node,
                    key=f"{what} {layer}",
                )


def _regions(facts: GateFacts, same_version: bool) -> Iterator[Pattern]:
    """Operators of the forward pass that were matched with nothing, in layers of both dumps."""
    change = layer_change(facts)
    for pattern in facts.diff.patterns:
        first = pattern.first
        if first.kind not in _KINDS or first.phase != "forward":
            continue
        if in_changed_layer(first, change) or not _computes(pattern):
            continue
        if first.kind in ("added", "removed") and is_completed(first, change, facts):
            continue
        if same_version or first.kind in ("added", "removed"):
            yield pattern


def _between_updates(facts: GateFacts) -> Iterator[Pattern]:
    """Edits between gradients and updates, if the same weights are updated in both dumps.

    Else they may be those of weights that came or went.  What no line of Python made is left out:
    it may come of another strategy.
    """
    sides = [updates(side) for side in (facts.old, facts.new)]
    if sides[0].by_weight.keys() != sides[1].by_weight.keys():
        return
    if not all(side.is_complete for side in sides):
        return
    for pattern in facts.diff.patterns:
        first = pattern.first
        is_between = first.kind in _KINDS and first.phase == "optimizer"
        if is_between and _computes(pattern) and _is_written(pattern):
            yield pattern


def _by_layer(changed: Iterable[Update]) -> dict[str, list[Update]]:
    by_layer: dict[str, list[Update]] = {}
    for update in changed:
        by_layer.setdefault(layer_of_parameter(update.weight) or "", []).append(update)
    return by_layer


def _weights(some: list[Update], layer: str, one: str = "gets", several: str = "get") -> str:
    """``blocks.1.up is``, or ``4 weights of blocks.2 (blocks.2.up, …) are``."""
    if len(some) == 1:
        return f"{some[0].weight} {one}"
    named = ", ".join(update.weight for update in some[:3])
    more = f" and {len(some) - 3} more" if len(some) > 3 else ""
    of = f" of {layer}" if layer else ""
    return f"{len(some)} weights{of} ({named}{more}) {several}"


def _text(pattern: Pattern) -> str:
    kind = pattern.first.kind
    if kind not in ("added", "removed"):
        return f"{kind}: {pattern.detail}"
    several = len(pattern.first.left) + len(pattern.first.right) > 1
    return f"{pattern.detail} {'were' if several else 'was'} {kind}"


def _node(pattern: Pattern) -> Node | None:
    return shown(pattern.first.right or pattern.first.left)


def _is_written(pattern: Pattern) -> bool:
    """Whether one of them has a line of Python, be it MindSpore's own: no pass made all of them."""
    return any(node.comments.locations for node in (*pattern.first.left, *pattern.first.right))


def _computes(pattern: Pattern) -> bool:
    """Whether an operator among them does something that a user wrote."""
    nodes = (*pattern.first.left, *pattern.first.right)
    return any(
        node.op not in PLUMBING
        and node.op not in VIRTUAL
        and node.op not in COMMUNICATION
        and not operator_of(node.op).is_("converts")
        and not (node.instance_name or "").startswith(("redistribution", "forward_op"))
        for node in nodes
    )
