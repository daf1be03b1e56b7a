"""Which kind of dump a file is: by the name of its pass, else by what is in it."""

from __future__ import annotations

from irtool.ir.dump import Dump
from irtool.ir.operators import COMMUNICATION, OPTIMIZERS
from irtool.linting.rule import DumpKind

_BY_NAME: dict[str, DumpKind] = {
    "step_auto_parallel_begin": "auto_begin",
    "step_parallel_begin": "begin",
    "step_parallel_end": "end",
    "validate": "validate",
}


_AFTER_PARALLEL = "semi_auto_parallel_run_once_only"
"""In the header of what MindSpore 2.7 and later print after the parallel pass."""


def kind_of_name(name: str) -> DumpKind:
    """The kind of a dump by the name of the pass that it was taken after; ``other`` for most.

    Args:
        name: of the pass, ``step_parallel_begin``.
    """
    return _BY_NAME.get(name, "other")


def kind_of_dump(dump: Dump) -> DumpKind:
    """The kind of a dump by what is in it, for files whose name says nothing.

    While the gradient is still to be taken (calls of ``J``), or where there is none: with
    collectives it is like ``step_parallel_end``, with strategies and no collectives like
    ``step_parallel_begin``.  Where the header says that the parallel pass is done, or with
    backward nodes or an optimizer, it is like ``validate``; so is any other graph whose types are
    known.

    Args:
        dump: of any pass.

    Returns:
        ``other`` for a graph without types, strategies and collectives.
    """
    if dump.properties.get(_AFTER_PARALLEL) == "1":
        return "validate"
    communicates = has_strategy = has_types = has_gradient_to_come = is_whole = False
    for node in dump.nodes():
        if node.op == "J":
            has_gradient_to_come = True
        elif node.op in COMMUNICATION:
            communicates = True
        elif OPTIMIZERS.match(node.op) or node.is_backward:
            is_whole = True
        elif node.has_strategy or node.in_layout is not None:
            has_strategy = True
        has_types = has_types or node.output_type is not None
    if is_whole and not has_gradient_to_come:
        return "validate"
    if communicates:
        return "end"
    if has_strategy:
        return "begin"
    return "validate" if has_types and not has_gradient_to_come else "other"
