"""Whether an operator with too much error is innocent: it puts out what its own inputs give.

Each side is computed again in double precision from what that side dumped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from irtool.compare.tensors.dtypes import coarsest
from irtool.compare.tensors.formats.payload import BadPayload, read_array
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.measuring.measure import Measure, measure_arrays
from irtool.compare.tensors.model import Op, Places, TensorRun
from irtool.compare.tensors.semantics import family, reduction_length

_RECOMPUTED = 3.0
"""How many times the rounding that is allowed a stored result may be off the computed one."""


def only_propagates(
    left: TensorRun,
    right: TensorRun,
    judged: Judged,
    forward: Judged | None,
    measures: Mapping[Places, Measure],
) -> bool:
    """Whether each side's output is what its own inputs give; says in ``found`` whose is not.

    Args:
        left: one dump.
        right: the other.
        judged: the operator, with the output that decided.
        forward: of a gradient, the forward call.
        measures: of all pairs of tensors.
    """
    if judged.output is None:
        return False
    state = _same_state(left, right, judged, measures)
    if state is not None:
        return state
    ratios: list[float] = []
    for which, (run, op) in enumerate(((left, judged.pair.left), (right, judged.pair.right))):
        call = None
        if forward is not None and op.phase == "backward":
            call = (forward.pair.left, forward.pair.right)[which]
        ratio = _ratio(run, op, call, judged.output[which])
        if ratio is None:
            return False
        ratios.append(ratio)
    sides = zip(("left", "right"), ratios, strict=True)
    wrong = [name for name, ratio in sides if ratio > _RECOMPUTED]
    if wrong:
        judged.wrong = " and ".join(wrong)
        judged.why = (
            f"computed again in double precision, the {judged.wrong} output is not what its "
            f"inputs give ({max(ratios):.3g} times the rounding that is allowed)"
        )
    return not wrong


def _same_state(
    left: TensorRun, right: TensorRun, judged: Judged, measures: Mapping[Places, Measure]
) -> bool | None:
    """Of an optimizer: whether both sides found the same state; None where nobody knows."""
    from irtool.compare.tensors.judging.reexecute import state_before

    ours = state_before(left, judged.pair.left)
    theirs = state_before(right, judged.pair.right) if ours else None
    if ours is None or theirs is None:
        return None
    for places in judged.slots.outputs:
        label = left.columns.labels[places[0]]
        after = measures.get(places)
        if label not in ours or label not in theirs or after is None:
            continue
        before = measure_arrays(ours[label], theirs[label])
        if before.distance > 64 * 2.0**-24 * max(after.left, after.right):
            return False
    return True


def recomputed_error(run: TensorRun, op: Op, forward: Op | None, place: int) -> float | None:
    """Relative error of a stored output against the computed one; None where that is not known.

    Args:
        run: the dump.
        op: the operator.
        forward: of a gradient, the forward call.
        place: the output.
    """
    from irtool.compare.tensors.judging.reexecute import recomputed

    results = recomputed(run, op, forward)
    columns = run.columns
    expected = results.get(columns.labels[place]) if results else None
    if expected is None or not columns.files[place]:
        return None
    try:
        stored = read_array(columns.files[place], columns.dtypes[place])
    except BadPayload:
        return None
    error = measure_arrays(stored, expected).error
    return None if math.isnan(error) else error


def _ratio(run: TensorRun, op: Op, forward: Op | None, place: int) -> float | None:
    """That error over what rounding allows."""
    error = recomputed_error(run, op, forward, place)
    if error is None:
        return None
    columns = run.columns
    shapes = [columns.shapes[tensor] for tensor in op.inputs]
    length = reduction_length(family(op.type), op.phase, shapes, columns.shapes[place], False)
    unit = coarsest([columns.dtypes[tensor] for tensor in op.tensors])
    return error / (math.sqrt(length) * 2.0**-24 + 2 * unit)
