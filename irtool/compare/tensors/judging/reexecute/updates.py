"""Optimizers that write their state in place: what they found, worked out from what they wrote."""

from __future__ import annotations

import numpy as np

from irtool.compare.tensors.formats.payload import BadPayload
from irtool.compare.tensors.judging.reexecute.call import Call, Missing, Results
from irtool.compare.tensors.model import Op, TensorRun


def state_before(run: TensorRun, op: Op) -> Results | None:
    """What an optimizer found, worked out from what it wrote.

    A dump shows parameters and moments after the step. Two steps that found the same state differ
    by their gradients alone, so the state before has to be equal on both sides; nothing is known
    where a factor is zero. As ``nn.AdamWeightDecay`` computes: ``m = b1·m0 + (1 - b1)·g``, ``v =
    b2·v0 + (1 - b2)·g²``, ``w = w0 - rate·(m / (sqrt(v) + eps) + decay·w0)``.

    Args:
        run: the dump, with values.
        op: the update of one parameter.

    Returns:
        Weight and both moments by label; None of another optimizer, and where a value is not there.
    """
    if op.type.lower() != "adamweightdecay":
        return None
    call = Call(run, op)
    try:
        weight, moment, square, gradient = (
            call.tensor(label) for label in ("input.0", "input.1", "input.2", "input.8")
        )
        rate, beta1, beta2 = (call.one(place) for place in (3, 4, 5))
        epsilon, decay = call.one(6), call.one(7)
    except (Missing, BadPayload, ValueError, TypeError):
        return None
    if not (beta1 and beta2 and rate * decay != 1):
        return None
    step = moment / (np.sqrt(square) + epsilon)
    return {
        "input.0": (weight + rate * step) / (1 - rate * decay),
        "input.1": (moment - (1 - beta1) * gradient) / beta1,
        "input.2": (square - (1 - beta2) * gradient * gradient) / beta2,
    }
