"""The order of cause, where that is not the order in which a dump lists calls.

``autograd.grad`` within a step (a penalty on gradients) runs backward calls amid the forward ones.
The backward pass of the loss runs through the same calls again, and a dump keeps each call once:
in its first place, with its last values.  So backward calls count behind the forward ones that
follow them, unless weights have been updated between.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import groupby

from irtool.compare.tensors.model import Op, TensorRun
from irtool.compare.tensors.semantics import family


def order_of_cause(run: TensorRun) -> dict[int, float]:
    """Where backward calls stand that lie amid forward ones: by index, behind all of these.

    Args:
        run: one dump.

    Returns:
        Empty as a rule; places between two indices, in the order of the calls.
    """
    blocks = [list(block) for _, block in groupby(run.ops, key=lambda op: op.phase == "backward")]
    moved: dict[int, float] = {}
    waiting: list[Op] = []
    weights: set[Hashable] = set()
    for block in blocks:
        if block[0].phase == "backward":
            waiting += block
            continue
        read = _weights(run, block)
        if waiting and not _is_updated(run, block, read, weights):
            last = block[-1].index
            share = 1.0 / (len(waiting) + 1)
            moved.update((op.index, last + share * n) for n, op in enumerate(waiting, start=1))
        else:
            waiting = []
        weights |= read
    return moved


def _is_updated(
    run: TensorRun, block: Sequence[Op], read: set[Hashable], before: set[Hashable]
) -> bool:
    """Whether calls may be of another step of an optimizer than those before: by their weights."""
    writes = (op for op in block if op.type.endswith("_") and not op.type.endswith("__"))
    written = {_figures(run, op.inputs[0]) for op in writes if op.inputs}
    is_step = any(op.phase == "optimizer" or family(op.type) == "optimizer" for op in block)
    return is_step or not read <= before or not written.isdisjoint(before)


def _weights(run: TensorRun, block: Sequence[Op]) -> set[Hashable]:
    return {_figures(run, place) for op in block for place in op.parameters}


def _figures(run: TensorRun, place: int) -> Hashable:
    """What tells a tensor: figures and checksum; where there are none, itself alone."""
    columns = run.columns
    norm, checksum = columns.norm[place], columns.hashes[place]
    if norm != norm and not checksum:
        return place
    figures = columns.most[place], columns.least[place], columns.mean[place], norm
    return columns.shapes[place], str(figures), checksum
