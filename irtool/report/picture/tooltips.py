"""What is told of a box or a line that somebody points at."""

from __future__ import annotations

from irtool.ir.units import bytes_text
from irtool.report.picture.model import Box, Edge

_MOST_NODES = 6


def edge_tooltip(edge: Edge, tail: Box, head: Box) -> str:
    """From where to where, and what.

    Args:
        edge: of a picture.
        tail: the box that it comes from.
        head: the box that it goes to.

    Returns:
        lines of text, not yet escaped.
    """
    note = f"\n{edge.note}" if edge.note else ""
    what = " · ".join(filter(None, (edge.label, bytes_text(edge.bytes) if edge.bytes else "")))
    return f"{tail.title} → {head.title}\n{what}{note}".rstrip()


def box_tooltip(box: Box) -> str:
    """What a box holds, and where its statements stand in the dump.

    Args:
        box: of a picture; its first statements are listed, the others counted.

    Returns:
        lines of text, not yet escaped.
    """
    lines = [f"{box.title}" + (f" × {box.repeats}" if box.repeats > 1 else ""), *box.lines]
    if box.strategy:
        lines.append(f"strategy {box.strategy}")
    lines += [
        f"{node.id} {node.op}, line {node.line}: {node.full_name or node.scope or ''}"
        for node in box.nodes[:_MOST_NODES]
    ]
    if len(box.nodes) > _MOST_NODES:
        lines.append(f"… and {len(box.nodes) - _MOST_NODES} more")
    return "\n".join(lines)
