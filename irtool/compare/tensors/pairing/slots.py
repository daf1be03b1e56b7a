"""Which tensors of two paired operators belong together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from irtool.compare.tensors.model import Columns
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.semantics import family

_SAME_TERM = 0.01
"""Relative difference of norms up to which operands of two sums are taken for one tensor."""


_FACTORS = ("input.alpha", "input.value")
"""What a sum may multiply a term by."""


class Slots(NamedTuple):
    """Paired tensors of an operator pair, by place; the rest one side has alone."""

    inputs: tuple[tuple[int, int], ...]
    outputs: tuple[tuple[int, int], ...]
    only_left: tuple[int, ...] = ()
    only_right: tuple[int, ...] = ()


def _adds_bias_alone(pair: OpPair) -> bool:
    """Whether one of two products adds a bias, which is an operator of its own elsewhere.

    Their operands are the same then, their results are not.
    """
    ours, theirs = pair.left, pair.right
    if ours.is_module or ours.phase != "forward" or family(ours.type) != "matmul":
        return False
    return family(theirs.type) == "matmul" and {len(ours.inputs), len(theirs.inputs)} == {2, 3}


def _is_gradient_of_another_call(pair: OpPair) -> bool:
    """Whether two calls of other names give gradients of other tensors.

    What is dumped as a call's gradient is that of the last function it is made of: of ``matmul``
    a view, of ``bmm`` the product itself.
    """
    ours, theirs = pair.left, pair.right
    is_call = ours.phase == "backward" and bool(ours.call) and not ours.is_module
    return is_call and len(ours.outputs) != len(theirs.outputs)


def is_fused_sum(pair: OpPair) -> bool:
    """Whether one of two sums may have a product in it, which is a call of its own elsewhere.

    So are ``x + a * b`` and ``addcmul(x, a, b)``: they give the same, of other operands.

    Args:
        pair: two operators; gradients of two calls that add up are meant too.
    """
    ours, theirs = pair.left, pair.right
    if not (ours.call and theirs.call) or ours.is_module or ours.type == theirs.type:
        return False
    if not family(ours.type) == family(theirs.type) == "sum":
        return False
    if ours.phase == "backward" or len(ours.inputs) != len(theirs.inputs):
        return True
    return any((name in ours.attributes) != (name in theirs.attributes) for name in _FACTORS)


def _same_terms(
    ours: Sequence[int], theirs: Sequence[int], left: Columns, right: Columns
) -> list[tuple[int, int]]:
    """Operands of such sums, or their gradients, that are one tensor as size and norm say."""
    return _alike(ours, theirs, left, right, lambda a, alike: _nearest(left.norm[a], alike, right))


def _same_operands(
    ours: Sequence[int], theirs: Sequence[int], left: Columns, right: Columns
) -> list[tuple[int, int]]:
    """Operands of functions that take more and fewer of them, by size and norm.

    Arguments of other functions do not stand in the same places: ``cos(a)`` and ``polar(r, a)``.
    Those of which another one is no more alike than the one in their place are left to it.
    """
    if len(ours) == len(theirs):
        return []

    def in_its_place(a: int, alike: Sequence[int]) -> int:
        return next((b for b in alike if right.labels[b] == left.labels[a]), alike[0])

    return _alike(ours, theirs, left, right, in_its_place)


def _alike(
    ours: Sequence[int],
    theirs: Sequence[int],
    left: Columns,
    right: Columns,
    choose: Callable[[int, Sequence[int]], int],
) -> list[tuple[int, int]]:
    """Pairs of tensors of one size and norm; of several that one is like, one is chosen."""
    pairs: list[tuple[int, int]] = []
    free = list(theirs)
    for a in ours:
        size = math.prod(left.shapes[a])
        alike = [
            b
            for b in free
            if math.prod(right.shapes[b]) == size
            and math.isclose(left.norm[a], right.norm[b], rel_tol=_SAME_TERM)
        ]
        if alike:
            b = choose(a, alike)
            pairs.append((a, b))
            free.remove(b)
    return pairs


def _sizes(columns: Columns, places: Sequence[int]) -> list[int]:
    return [math.prod(columns.shapes[place]) for place in places]


def _nearest(norm: float, places: Sequence[int], columns: Columns) -> int:
    """Of parameters that are called otherwise on the other side, the one that is most alike."""
    return min(
        places, key=lambda place: abs(columns.norm[place] - norm)
    )  # the first, if it is not known


def pair_parameter_gradients(
    pairs: Sequence[OpPair], slots: Sequence[Slots], left: Columns, right: Columns
) -> list[Slots]:
    """Pair gradients of parameters as the parameters are paired, by their names.

    Args:
        pairs: of operators.
        slots: tensors of each pair.
        left: columns of one dump.
        right: columns of the other.

    Returns:
        The tensors of each pair, with these gradients.
    """
    names: dict[tuple[str, str], str] = {}
    for pair, tensors in zip(pairs, slots, strict=True):
        if pair.left.is_module and pair.left.phase == "forward":
            for a, b in tensors.inputs:
                names[pair.left.owner, left.labels[a]] = right.labels[b]
    extended: list[Slots] = []
    for pair, tensors in zip(pairs, slots, strict=True):
        if pair.left.is_module and ".parameters_grad" in pair.left.name:
            theirs = {right.labels[b]: b for b in pair.right.outputs}
            rows: list[tuple[int, int]] = []
            for a in pair.left.outputs:
                name, mark, rest = left.labels[a].partition(".grad")
                match = theirs.get(f"{names.get((pair.left.owner, name), name)}{mark}{rest}")
                if match is not None and left.shapes[a] == right.shapes[match]:
                    rows.append((a, match))
            if len(rows) == len(tensors.outputs):
                tensors = tensors._replace(outputs=tuple(rows))
        extended.append(tensors)
    return extended


def pair_tensors(pair: OpPair, left: Columns, right: Columns) -> Slots:
    """Which tensors of two operators belong together: by label, else by what is left over.

    Args:
        pair: the operators.
        left: columns of one dump.
        right: columns of the other.
    """
    lone_left: list[int] = []
    lone_right: list[int] = []
    sides: list[tuple[tuple[int, int], ...]] = []
    labels, others = left.labels, right.labels
    is_other = pair.left.type != pair.right.type
    is_gradient = pair.left.phase == "backward"
    by_figures = (pair.left.inputs, pair.left.outputs)[is_gradient] if is_fused_sum(pair) else None
    for ours, theirs in (
        (pair.left.inputs, pair.right.inputs),
        (pair.left.outputs, pair.right.outputs),
    ):
        if ours is by_figures:
            terms = _same_terms(ours, theirs, left, right)
            sides.append(tuple(terms))
            lone_left += [a for a in ours if a not in {a for a, _ in terms}]
            lone_right += [b for b in theirs if b not in {b for _, b in terms}]
            continue
        is_other_input = is_other and ours is pair.left.inputs
        if [labels[a] for a in ours] == [others[b] for b in theirs] and not (
            is_other_input and _sizes(left, ours) != _sizes(right, theirs)
        ):
            sides.append(tuple(zip(ours, theirs, strict=True)))
            continue
        if is_other and [left.shapes[a] for a in ours] == [right.shapes[b] for b in theirs]:
            sides.append(tuple(zip(ours, theirs, strict=True)))  # arguments are counted otherwise
            continue
        by_label = {right.labels[b]: b for b in theirs}
        matched = [(a, by_label[left.labels[a]]) for a in ours if left.labels[a] in by_label]
        if is_other_input and not is_gradient and not pair.left.is_module:
            matched = _same_operands(ours, theirs, left, right) or matched
        if is_other:  # the second argument of one may be the third of the other
            matched = [(a, b) for a, b in matched if left.shapes[a] == right.shapes[b]]
        used_a, used_b = {a for a, _ in matched}, {b for _, b in matched}
        rest_a = [a for a in ours if a not in used_a]
        rest_b = [b for b in theirs if b not in used_b]
        for a in list(rest_a):
            is_last = len(rest_a) == len(rest_b) == 1
            alike = [b for b in rest_b if left.shapes[a] == right.shapes[b]]
            if not alike and (is_other or is_last):
                size = math.prod(left.shapes[a])
                alike = [b for b in rest_b if math.prod(right.shapes[b]) == size]
            if alike:
                b = alike[0] if not pair.left.is_module else _nearest(left.norm[a], alike, right)
                matched.append((a, b))
                rest_a.remove(a)
                rest_b.remove(b)
        sides.append(tuple(sorted(matched)))
        lone_left += rest_a
        lone_right += rest_b
    if is_other and (_adds_bias_alone(pair) or _is_gradient_of_another_call(pair)):
        lone_left += [a for a, _ in sides[1]]
        lone_right += [b for _, b in sides[1]]
        sides[1] = ()
    return Slots(sides[0], sides[1], tuple(lone_left), tuple(lone_right))
