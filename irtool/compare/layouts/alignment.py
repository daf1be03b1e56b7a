"""Which operators of two runs that are cut otherwise are the same one, whatever their shapes.

Modules are known by their paths, calls by their order and the modules that they ran in, gradients
by their forward calls.  Collectives, which only a cut run has, are nobody's partner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from irtool.compare.tensors.model import Op, TensorRun
from irtool.compare.tensors.pairing.operators import aligned, kind_of, module_key
from irtool.compare.tensors.semantics import family

OWN_CALL = "@"
"""Stands in the name of a call that one rank alone makes, before the number of that rank."""
_TRANSFERS = ("send", "recv", "isend", "irecv", "batch_isend_irecv")


def is_collective(op: Op) -> bool:
    """Whether an operator moves data between ranks.

    Args:
        op: of a tensor dump.
    """
    return op.name.startswith(("Distributed.", "MintDistributed.")) or op.type in _TRANSFERS


def same_operators_of(left: TensorRun, right: TensorRun) -> dict[int, int]:
    """Pairs of operators by their indices.

    Args:
        left: one run as a whole.
        right: the other.
    """
    pairs: dict[int, int] = {}
    theirs = {module_key(op): op.index for op in right.ops if op.is_module}
    for op in left.ops:
        if op.is_module and (match := theirs.get(module_key(op))) is not None:
            pairs[op.index] = match
    calls = [[op for op in run.ops if _is_call(op)] for run in (left, right)]
    if not pairs:
        pairs.update((a.index, b.index) for a, b in _in_step(calls[0], calls[1], _by_kind))
    for key in (_by_owner, _by_kind):
        pairs.update(_in_gaps(calls[0], calls[1], key, pairs))
    forward = {op.call: op.index for op in left.ops if op.phase == "forward" and op.call}
    backward = {op.call: op.index for op in right.ops if op.phase == "backward" and op.call}
    taken = set(pairs.values())
    for op in left.ops:
        if op.phase != "backward" or not op.call or op.index in pairs:
            continue
        partner = pairs.get(forward.get(op.call, -1))
        match = None if partner is None else backward.get(right.ops[partner].call)
        if match is not None and match not in taken:
            pairs[op.index] = match
            taken.add(match)
    return pairs


def calls_aligned(lead: TensorRun, run: TensorRun) -> list[tuple[Op, Op]]:
    """Forward calls of two ranks that are the same one, collectives too, in their order.

    Args:
        lead: one rank.
        run: the other.
    """
    calls = [
        [op for op in side.ops if op.phase == "forward" and not op.is_module]
        for side in (lead, run)
    ]
    if len(calls[0]) == len(calls[1]):
        return list(aligned(calls[0], calls[1], _by_type_and_owner))
    steps = [*_in_step(calls[0], calls[1], _by_type_and_owner)]
    known = {a.index: b.index for a, b in steps}
    known |= _in_gaps(calls[0], calls[1], _by_type_and_owner, known)
    theirs = {op.index: op for op in calls[1]}
    return [(op, theirs[known[op.index]]) for op in calls[0] if op.index in known]


def _in_step(
    ours: Sequence[Op], theirs: Sequence[Op], key: Callable[[int, Op], Hashable]
) -> list[tuple[Op, Op]]:
    """Calls of kinds that both sides make equally often and in one order.

    Layers are alike, so a call more on one side must not let the rest slip by a layer.
    """
    calls = ours, theirs
    keys = [[key(which, op) for op in calls[which]] for which in (0, 1)]
    counts = Counter(keys[0]), Counter(keys[1])
    kept: set[Hashable] = set()
    products = {keys[0][n] for n, op in enumerate(ours) if family(op.type) == "matmul"}
    equal = [kind for kind, count in counts[0].items() if counts[1][kind] == count]
    for kind in sorted(equal, key=lambda kind: kind not in products):
        wanted = kept | {kind}
        if [k for k in keys[0] if k in wanted] == [k for k in keys[1] if k in wanted]:
            kept = wanted
    sides = [
        [op for op, kind in zip(calls[which], keys[which], strict=True) if kind in kept]
        for which in (0, 1)
    ]
    return list(zip(sides[0], sides[1], strict=True))


def _is_call(op: Op) -> bool:
    is_own = OWN_CALL in op.name
    return op.phase == "forward" and not (op.is_module or is_collective(op) or is_own)


def _by_type_and_owner(_: int, op: Op) -> Hashable:
    return op.type, op.owner


def _by_owner(which: int, op: Op) -> Hashable:
    return (op.type, op.owner) if op.owner else (op.type, which, op.index)


def _by_kind(which: int, op: Op) -> Hashable:
    kind = kind_of(op)
    return op.type if kind == "unknown" else kind


def _in_gaps(
    left: Sequence[Op],
    right: Sequence[Op],
    key: Callable[[int, Op], Hashable],
    pairs: dict[int, int],
) -> dict[int, int]:
    """Pairs between those that are known."""
    place = {op.index: n for n, op in enumerate(right)}
    partners: dict[int, int] = {}
    start = (0, 0)
    bounds: list[tuple[int, int]] = []
    for n, op in enumerate(left):
        match = place.get(pairs.get(op.index, -1))
        if match is not None and match >= start[1]:
            bounds.append((n, match))
            start = (n + 1, match + 1)
    taken = set(pairs.values())
    start = (0, 0)
    for end in (*bounds, (len(left), len(right))):
        ours = [op for op in left[start[0] : end[0]] if op.index not in pairs]
        theirs = [op for op in right[start[1] : end[1]] if op.index not in taken]
        if ours and theirs:
            partners.update((a.index, b.index) for a, b in aligned(ours, theirs, key))
        start = (end[0] + 1, end[1] + 1)
    return partners
