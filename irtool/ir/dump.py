"""A dump: one .ir file as a model, with views of it."""

from __future__ import annotations

from typing import Any
from weakref import ref

from irtool.ir.dataclass import dataclass
from irtool.ir.display import Shown
from irtool.ir.graph import DumpModel, LineEnds, Node
from irtool.ir.table import to_arrow
from irtool.ir.whole import Whole
from irtool.ir.whole.inlining import inline

__all__ = ["Dump", "LineEnds", "dump_of", "dumps_of"]


@dataclass(frozen=True, eq=False, repr=False)
class Dump(DumpModel, Shown):
    """One dump: the model of an .ir file, with the views that analyses ask for."""

    def whole(self) -> Whole:
        """The whole graph: calls and closures inlined, control flow left as calls.

        That of the last dump that was asked for it is at hand: several analyses of one ask.
        """
        known: Whole | None = self.derived.get("whole")
        if known is None:
            before = _last_inlined.pop() if _last_inlined else None
            if before is not None and (dump := before()) is not None:
                dump.derived.pop("whole", None)
            known = self.derived["whole"] = inline(self)
            _last_inlined.append(ref(self))
        return known

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table`` with one row a node; needs the extra ``irtool[arrow]``."""
        return to_arrow(self)


_last_inlined: list[ref[Dump]] = []


def dump_of(node: Node) -> Dump | None:
    """The dump that a node stands in.

    Args:
        node: of a dump, or made by itself.

    Returns:
        None of a node that was made by itself.
    """
    dump = node.graph.dump if node.graph is not None else None
    return dump if isinstance(dump, Dump) else None


def dumps_of(whole: Whole) -> tuple[Dump, ...]:
    """The dumps that were joined into a whole graph.

    Args:
        whole: the graph across dumps.
    """
    return tuple(dump for dump in whole.dumps if isinstance(dump, Dump))
