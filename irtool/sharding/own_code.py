"""Programs that shard in their own code: no strategy of theirs stands in any dump.

HyperParallel's DTensors, and functions that stand in for operators
(``mindspore.graph.register_op_infer``, ``register_op_wrapper``; MindSpore 2.10), cut tensors and
communicate in Python.  The graph that MindSpore compiles of them is one device's from the start:
its shapes are local, its collectives the program's, and the parallel pass has nothing to check.
"""

from __future__ import annotations

from irtool.ir.collectives import collective, is_collective
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.operators import POINT_TO_POINT

LIBRARY = "hyper_parallel"
"""The package of HyperParallel, as it stands in the paths of source lines."""

REDUCER = "GradReducer"
"""In the scope of what sums gradients in data parallel training: the network is whole there."""


@dataclass(frozen=True, slots=True)
class OwnCode:
    """What shows that a program shards in its own code.

    ``node``: its first collective; ``collectives``: how many there are; ``library``: whose code.
    """

    node: Node
    collectives: int
    library: str

    @property
    def message(self) -> str:
        """A sentence that says what the program's own collectives mean for a check."""
        whose = f"code of {self.library}" if self.library else "its own code"
        return (
            f"the program shards in {whose}: its graph holds its own collectives "
            f"({self.node.op} first, {self.collectives} in all) and no strategy; its shapes are "
            "those of one device, and MindSpore's parallel pass checks nothing in it"
        )


def own_code_of(dump: Dump) -> OwnCode | None:
    """What shows that a program shards in its own code; None where nothing does.

    Args:
        dump: any dump of the program.
    """
    collectives: list[Node] = []
    for node in dump.nodes():
        if node.has_strategy or node.in_layout is not None:
            return None
        if not is_collective(node) or node.is_backward or REDUCER in (node.scope or ""):
            continue
        item = collective(node)
        if item is None or item.is_virtual or item.op in POINT_TO_POINT:
            continue
        if item.origin in ("user code", "unknown"):
            collectives.append(node)
    if not collectives:
        return None
    return OwnCode(collectives[0], len(collectives), "HyperParallel" if _is_library(dump) else "")


def _is_library(dump: Dump) -> bool:
    """Whether code of the library made a node; comments are read for that, which takes time."""
    places = (place for node in dump.nodes() for place in node.comments.locations)
    return any(LIBRARY in place.path for place in places)
