"""A dump: one .ir file as a model, with views of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irtool.ir.display import Shown
from irtool.ir.graph import DumpModel, LineEnds, Node
from irtool.ir.table import to_arrow
from irtool.ir.whole import Whole
from irtool.ir.whole.inlining import inline

__all__ = ["Dump", "LineEnds", "dump_of", "dumps_of"]


@dataclass(frozen=True, eq=False, repr=False)
class Dump(DumpModel, Shown):
    """One dump."""

    def whole(self) -> Whole:
        """The whole graph: calls and closures inlined, control flow left as calls."""
        return inline(self)

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table`` with one row a node; needs the extra ``irtool[arrow]``."""
        return to_arrow(self)


def dump_of(node: Node) -> Dump | None:
    """The dump that a node stands in; None of a node that was made by itself."""
    dump = node.graph.dump if node.graph is not None else None
    return dump if isinstance(dump, Dump) else None


def dumps_of(whole: Whole) -> tuple[Dump, ...]:
    """The dumps that were joined into a whole graph."""
    return tuple(dump for dump in whole.dumps if isinstance(dump, Dump))
