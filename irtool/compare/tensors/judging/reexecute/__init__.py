"""Operators computed again in double precision, from the inputs that a dump holds.

An operator that puts out what its own inputs give is not at fault, however far its result is from
the other side's.  Each function is one line of a table (:func:`call.computes`); an operator that
has none is never cleared, and never accused for that.
"""

from __future__ import annotations

import numpy as np

from irtool.compare.tensors.formats.payload import BadPayload
from irtool.compare.tensors.judging.reexecute import elementwise, products, rows
from irtool.compare.tensors.judging.reexecute.call import KERNELS, Call, Missing, Results
from irtool.compare.tensors.judging.reexecute.updates import state_before
from irtool.compare.tensors.model import Op, TensorRun

__all__ = ["KERNELS", "can_compute", "recomputed", "state_before"]

FILLED = (elementwise, products, rows)
"""Modules that fill the table when they are imported."""


def can_compute(op: Op) -> bool:
    """Whether there is a function for an operator."""
    return _key(op) in KERNELS


def recomputed(run: TensorRun, op: Op, forward: Op | None = None) -> Results | None:
    """Results by label in double precision; None where the operator or a value is not known.

    Args:
        run: the dump.
        op: the operator.
        forward: of the gradient of a call, that call.
    """
    kernel = KERNELS.get(_key(op))
    if kernel is None or op.is_module:
        return None
    try:
        with np.errstate(all="ignore"):
            computed = kernel(Call(run, op, forward))
    except (Missing, BadPayload, ValueError, IndexError, TypeError, MemoryError):
        return None
    if computed is None:
        return None
    results = computed if isinstance(computed, dict) else {"output.0": computed}
    return {label: np.asarray(value) for label, value in results.items()}


def _key(op: Op) -> str:
    return op.type.lower() + (".backward" if op.call and op.phase == "backward" else "")
