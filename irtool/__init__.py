"""irtool: read, check, re-plan and compare MindSpore's ANF IR dumps."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from irtool.ir.display import add_source

if TYPE_CHECKING:
    from irtool.cluster.context.library import find_context
    from irtool.ir.dump import Dump
    from irtool.ir.finding import Finding
    from irtool.ir.graph import Graph, Node
    from irtool.syntax.load import dumps, load, loads
    from irtool.syntax.query import query
    from irtool.syntax.run import Run, load_run
    from irtool.syntax.source import DumpError

__version__ = "0.1.0"

add_source("irtool.report.notebook")

_HOMES = {
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
    "Dump",
    "DumpError",
    "Finding",
    "Graph",
    "Node",
    "Run",
    "dumps",
    "find_context",
    "load",
    "load_run",
    "loads",
    "query",
]


def __getattr__(name: str) -> Any:
    # Imported when first used, so that `irtool --help` starts at once.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'irtool' has no attribute {name!r}")
