"""Names of operators, as artefacts of a run write them.

``<scope>/<Primitive>-op<number>`` is the full name of a node; the profiler and the runtime put it
between other words.  Sources: ``mindspore/profiler`` of 2.7.0 (``f"{launch}/{kernel}"``), and the
reader of DeepInsight (mindspore-ai/toolkits), which takes exactly this apart.
"""

from __future__ import annotations

import re

_FULL = re.compile(r"^(.*?-op\d+)(?:/.*)?$")
_TASK = re.compile(r"^\d+_(.+)$")
_NUMBER = re.compile(r"^(.*-op)(\d+)$")


def full_name_of_kernel(name: str) -> str | None:
    """The node's full name in a device kernel's name; None where a kernel bears no node's name.

    ``Kernel::KernelLaunch::Default/net-Net/MatMul-op0/aclnnMatmul_MatMulV2`` is a kernel of
    ``Default/net-Net/MatMul-op0``.

    Args:
        name: as the profiler writes it.
    """
    rest = name.rpartition("::")[2]
    match = _FULL.match(rest)
    return match[1] if match is not None and "/" in match[1] else None


def full_name_of_task(name: str) -> str:
    """The node's full name in a task's name: ``12_Default/net-Net/MatMul-op0``.

    Args:
        name: as the memory tracker writes it; returned as it is where no number stands before it.
    """
    match = _TASK.match(name)
    return match[1] if match is not None else name


def split_number(name: str) -> tuple[str, int] | None:
    """``Default/MatMul-op3`` as ``Default/MatMul-op`` and 3.

    Args:
        name: a full name.

    Returns:
        None where no number stands at its end.
    """
    match = _NUMBER.match(name)
    return None if match is None else (match[1], int(match[2][:18]))
