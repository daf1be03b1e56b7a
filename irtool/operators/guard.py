"""The one guard where operators are asked: what a rule stumbles over is not known, and no more.

A dump may hold anything: operators with inputs that no network gives them, attributes of other
types, sizes out of all proportion.  What a rule expects of its inputs is checked before it is asked
(see :mod:`irtool.operators.fitting`); whatever it stumbles over all the same concerns this one
operator, and the rest of the network is judged.

A guard may hide mistakes of our own.  So tests set :data:`strict`, under which everything is raised
as it is, and what was caught is counted by where it came from (:func:`take_counts`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType

strict = False
"""Raise what a rule stumbles over: for tests, so that mistakes are seen."""

_caught: Counter[str] = Counter()


def could_not_judge(op: str, error: Exception) -> str:
    """Why an operator could not be judged, to be said in the place of an answer.

    Args:
        op: the operator's name.
        error: what its rule stumbled over; to be called while it is handled.

    Returns:
        A sentence.

    Raises:
        MemoryError: it was one, which is nothing of the operator's.
        Exception: ``error``, where :data:`strict` is set.
    """
    if strict or isinstance(error, MemoryError):
        raise error
    place = _place(error.__traceback__)
    _caught[f"{place} {type(error).__name__}"] += 1
    message = " ".join(str(error).split())[:200]
    reason = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return f"{op} could not be judged: its inputs are not what its rule expects ({reason})"


@contextmanager
def asking(op: str, refusal: type[Exception]) -> Generator[None]:
    """A stretch of work on one operator, that ends in a refusal where it stumbles.

    Args:
        op: the operator's name.
        refusal: what to raise with the reason; one that is raised inside goes on as it is.
    """
    try:
        yield
    except refusal:
        raise
    except Exception as error:
        raise refusal(could_not_judge(op, error)) from error


def take_counts() -> dict[str, int]:
    """How often the guard caught something since the last call, by function and kind of error."""
    counts = dict(_caught)
    _caught.clear()
    return counts


def _place(step: TracebackType | None) -> str:
    """The innermost function of the package."""
    place = ""
    while step is not None:
        code = step.tb_frame.f_code
        if f"{os.sep}irtool{os.sep}" in code.co_filename:
            file = code.co_filename.rpartition(f"{os.sep}irtool{os.sep}")[2]
            place = f"{file.replace(os.sep, '/')}:{code.co_name}"
        step = step.tb_next
    return place
