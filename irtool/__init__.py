"""irtool: read, check, re-plan and compare MindSpore's ANF IR dumps."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from irtool.ir.display import add_source
from irtool.ir.version import VERSION

if TYPE_CHECKING:
    from irtool.api import (
        Answer,
        CannotAnswer,
        PlanAnswer,
        check,
        comm_groups,
        cost,
        diff,
        doctor,
        hang,
        lint,
        memory,
        pipeline,
        plan,
    )
    from irtool.cluster.context.library import find_context
    from irtool.ir.dump import Dump
    from irtool.ir.finding import Finding
    from irtool.ir.graph import Graph, Node
    from irtool.syntax.load import dumps, load, loads
    from irtool.syntax.query import query
    from irtool.syntax.run import Run, load_run
    from irtool.syntax.source import DumpError

__version__ = VERSION

add_source("irtool.report.notebook")

_HOMES = {
    "Answer": "irtool.api",
    "CannotAnswer": "irtool.api",
    "PlanAnswer": "irtool.api",
    "check": "irtool.api",
    "comm_groups": "irtool.api",
    "cost": "irtool.api",
    "diff": "irtool.api",
    "doctor": "irtool.api",
    "lint": "irtool.api",
    "plan": "irtool.api",
    "hang": "irtool.api",
    "memory": "irtool.api",
    "pipeline": "irtool.api",
    "Dump": "irtool.ir.dump",
    "DumpError": "irtool.syntax.source",
    "Graph": "irtool.ir.graph",
    "Node": "irtool.ir.graph",
    "Finding": "irtool.ir.finding",
    "Run": "irtool.syntax.run",
    "dumps": "irtool.syntax.load",
    "find_context": "irtool.cluster.context.library",
    "load": "irtool.syntax.load",
    "load_run": "irtool.syntax.run",
    "loads": "irtool.syntax.load",
    "query": "irtool.syntax.query",
}

__all__ = [
    "Answer",
    "CannotAnswer",
    "Dump",
    "DumpError",
    "Finding",
    "Graph",
    "Node",
    "PlanAnswer",
    "Run",
    "check",
    "comm_groups",
    "cost",
    "diff",
    "doctor",
    "dumps",
    "find_context",
    "hang",
    "lint",
    "load",
    "load_run",
    "loads",
    "memory",
    "pipeline",
    "plan",
    "query",
]


def __getattr__(name: str) -> Any:
    # Imported when first used, so that `irtool --help` starts at once.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'irtool' has no attribute {name!r}")


def __dir__() -> list[str]:
    # Not what this module imports for itself: what is listed is what stays.
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
