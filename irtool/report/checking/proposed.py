"""What ``irtool check`` proposes, as people read it: what to write, and where."""

from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.finding import Finding
from irtool.ir.graph import Node, node_of
from irtool.ir.held import held_by
from irtool.ir.units import count_text, tuple_text
from irtool.operators.layout import WHOLE, MapEntry, UserLayout
from irtool.report.places import location_text
from irtool.sharding.network.strategies import Wanted
from irtool.sharding.suggest import Proposals
from irtool.sharding.suggest.alone import asked_of

TOGETHER = "With the first of each instead, the whole network passes this check."
TOGETHER_BESIDE = "With the first of each instead, and these beside, it passes this check: {}."
NOT_TOGETHER = "With the first of each instead, this is left: {}."
_MOST_BESIDE = 6
_MOST_LEFT = 3


def together_text(found: Proposals) -> str:
    """What comes of the first proposals of all findings; "" where there are none.

    Args:
        found: what would be legal instead, and whether it was tried all at once.
    """
    if found.together is None:
        return ""
    if not found.together:
        return NOT_TOGETHER.format("; ".join(_some(left_texts(found), _MOST_LEFT)))
    if not found.beside:
        return TOGETHER
    beside = [f"{node.op} {node.id} {asked_text(one)}" for node, one in found.beside.items()]
    return TOGETHER_BESIDE.format("; ".join(_some(beside, _MOST_BESIDE)))


def left_texts(found: Proposals) -> list[str]:
    """What is refused with the first of each proposal, the same of several operators once."""
    texts = (f"{one.op or ''} {one.message}".strip() for one in found.remaining)
    return list(dict.fromkeys(texts))


def _some(texts: list[str], most: int) -> list[str]:
    more = len(texts) - most
    return [*texts[:most], f"and {count_text(more)} more"] if more > 0 else texts


def asked_text(asked: Wanted) -> str:
    """``in_strategy ((2, 1), (1, 4))``, or layouts, and what is asked of the results."""
    if asked.in_layout is not None:
        text = f"in_layout {layouts_text(asked.in_layout)}"
        out = asked.out_layout
        return text if out is None else f"{text}, out_layout {layouts_text(out)}"
    text = f"in_strategy {tuple_text(asked.strategy)}"
    given = asked.out_strategy
    return text if given is None else f"{text}, out_strategy {tuple_text(given)}"


def output_text(found: Proposals, finding: Finding) -> str:
    """What a finding's proposals say of results that were asked for otherwise: ``, without …``.

    Args:
        found: what would be legal instead.
        finding: one of those that it was sought for.

    Returns:
        text that follows the proposed inputs; "" where the result stays as it was asked for.
    """
    node, first = node_of(finding), found.first.get(finding)
    if node is None or first is None:
        return ""
    asked = asked_of(node)
    if asked.out_layout is not None and first.out_layout is None:
        return ", without out_layout"
    if first.out_layout is not None and first.out_layout != asked.out_layout:
        return f", out_layout {layouts_text(first.out_layout)}"
    return ", without out_strategy" if asked.out_strategy and not first.out_strategy else ""


def layouts_text(layouts: Sequence[UserLayout]) -> str:
    """Layouts as one writes them: ``((dp, None), (tp, None)) over (2, 4)``.

    Args:
        layouts: one a tensor, all over the device matrix and with the axis names of the first; a
            tensor map counts axes of the matrix from the last one, and an entry of several axes is
            written as a tuple.
    """
    matrix = layouts[0].device_matrix if layouts else ()
    names = layouts[0].alias_name if layouts else ()
    last = len(matrix) - 1

    def entry_text(entry: MapEntry) -> str:
        if isinstance(entry, tuple):
            return f"({', '.join(map(entry_text, entry))})"
        if entry == WHOLE:
            return "None"
        place = last - entry
        return names[place] if place < len(names) else f"axis {place}"

    rows = [f"({', '.join(map(entry_text, layout.tensor_map))})" for layout in layouts]
    return f"({', '.join(rows)}) over {tuple_text(matrix)}"


def shard_text(node: Node) -> str:
    """The line that sets an operator's strategy where the dump tells it, else what is called there.

    A dump holds the lines that call operators; ``.shard(`` mostly stands where one is made.

    Args:
        node: the operator.
    """
    for location in reversed(node.comments.locations):
        if ".shard(" in (location.source or ""):
            return location_text(location)
    held = held_by(node)
    if held is None:
        return "a .shard( whose line the dump does not tell"
    return f"{held[0]}.{held[1]}.shard(…), whose line the dump does not tell"
