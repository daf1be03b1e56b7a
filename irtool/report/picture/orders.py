"""What a statement waits for, where no value says where it belongs."""

from __future__ import annotations

from collections.abc import Mapping

from irtool.ir.whole import WholeNode
from irtool.report.picture.leaves import Leaf

_MOST_SEEN = 2000
_MOST_FOUND = 256


def waits_for(item: WholeNode, leaves: Mapping[WholeNode, Leaf]) -> list[Leaf]:
    """The nearest drawn statements that run before another: through loads, tuples and Depends.

    States are not followed, and what is sent is left out: by them, nearly everything runs after
    everything else.

    Args:
        item: the statement that waits.
        leaves: what is drawn.
    """
    nearest: dict[Leaf, None] = {}
    seen = {item}
    pending = list(item.producers)
    while pending and len(seen) < _MOST_SEEN:
        producer = pending.pop(0)
        if producer in seen:
            continue
        seen.add(producer)
        leaf = leaves.get(producer)
        if leaf is not None and producer.op != "Send":
            nearest[leaf] = None
        elif leaf is None and producer.op != "UpdateState":
            pending += producer.producers
    return list(nearest)[:_MOST_FOUND]
