"""What was worked out of a dump once: at hand for whoever asks again, and for the next command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from irtool.ir.graph import DumpModel

_Made = TypeVar("_Made")
_RECALL = "recall"
"""Under which a dump has what fills in results that were kept, until somebody asks for one."""


def once(dump: DumpModel, name: str, make: Callable[[], _Made]) -> _Made:
    """The result of this name: what was worked out or kept before, else what is made now.

    Args:
        dump: what it is worked out of.
        name: of the result.
        make: works it out.
    """
    derived = dump.derived
    if name not in derived:
        recall: Callable[[dict[str, Any]], None] | None = derived.pop(_RECALL, None)
        if recall is not None:
            recall(derived)
        if name not in derived:
            derived[name] = make()
    return derived[name]


def set_recall(dump: DumpModel, recall: Callable[[dict[str, Any]], None]) -> None:
    """Say what fills in kept results, by their names, when somebody asks for the first one.

    Args:
        dump: whose results were kept.
        recall: is handed the dump's results by name, once, and adds the kept ones.
    """
    dump.derived[_RECALL] = recall
