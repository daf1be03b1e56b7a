"""Boxes: what is written in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from irtool.ir.collectives import collective
from irtool.ir.graph import Node
from irtool.ir.operators import COMMUNICATION
from irtool.ir.units import plural, ranks_text, tuple_text
from irtool.report.picture.classes import REDISTRIBUTES, operator_class
from irtool.report.picture.edge_labels import shape_text
from irtool.report.picture.leaves import Leaf
from irtool.report.picture.model import Box
from irtool.report.picture.overlay import Mark, Overlay
from irtool.report.picture.places import natural, range_title
from irtool.report.text import shortened
from irtool.sharding.network.report import CheckResult

WIDTH = 30
"""Characters of the longest line in a box."""
_HASHED = ("redistribution_op_", "forward_op_", "grad_redistribution_op_", "grad_forward_op_")
_MOST_OPERATORS = 4


def leaf_box(
    leaf: Leaf,
    same: Sequence[Leaf],
    frame: str,
    repeats: int,
    overlays: Sequence[Overlay],
    report: CheckResult | None,
) -> Box:
    """The box of one statement or parameter.

    Args:
        leaf: what is drawn.
        same: the leaves of all repeats that it stands for, itself among them.
        frame: id of the frame that it stands in.
        repeats: how often what it shows is there.
        overlays: whose marks of its nodes the box takes.
        report: what ``check`` says of the dump; gives slices.
    """
    nodes = tuple(item.node for item in same if item.node is not None)
    node = leaf.node
    if node is None:
        type = leaf.parameter.type if leaf.parameter else None
        lines = (shape_text(type.dimensions),) if type else ()
        title, kind = shortened(repeated_name(same), WIDTH), leaf.kind
        return Box(
            leaf.id, kind, title, tuple(filter(None, lines)), "", kind, frame, leaf.lane,
            leaf.source_name, leaf.stage, repeats, (), leaf.bytes,
        )  # fmt: skip
    strategy = _strategy(node)
    return Box(
        id=leaf.id,
        kind=leaf.kind,
        title=shortened(leaf.name, WIDTH),
        lines=(*_name_lines(node, repeats), *_facts(node, report)),
        strategy=strategy,
        operator_class=class_of(node),
        frame=frame,
        lane=leaf.lane,
        source=leaf.source_name,
        stage=leaf.stage,
        repeats=repeats,
        nodes=nodes,
        bytes=leaf.bytes,
        groups=((node.op, 1),) if node.op in COMMUNICATION else (),
        marks=_marks(overlays, nodes),
    )


def scope_box(
    id: str,
    title: str,
    leaves: Sequence[Leaf],
    behind: Sequence[Leaf],
    frame: str,
    repeats: int,
    overlays: Sequence[Overlay],
) -> Box:
    """The box of a closed frame.

    Args:
        id: of the box.
        title: of the frame.
        leaves: those of one repeat: they are counted and named.
        behind: those of all repeats: overlays mark them.
        frame: id of the frame that it stands in.
        repeats: how many frames of equal structure it stands for.
        overlays: whose marks of its nodes the box takes.
    """
    nodes = [leaf.node for leaf in leaves if leaf.node is not None]
    everything = tuple(leaf.node for leaf in behind if leaf.node is not None)
    operators = Counter(node.op for node in nodes)
    groups = tuple((op, number) for op, number in operators.items() if op in COMMUNICATION)
    common = [(op, number) for op, number in operators.most_common() if op not in COMMUNICATION]
    shown = [f"{op} × {number}" if number > 1 else op for op, number in common[:_MOST_OPERATORS]]
    if len(common) > _MOST_OPERATORS:
        shown.append(f"{len(common) - _MOST_OPERATORS} more kinds")
    parameters = len(leaves) - len(nodes)
    size = plural(len(nodes), "operator")
    if parameters:
        size += f", {plural(parameters, 'parameter')}"
    sizes = [leaf.bytes for leaf in leaves if leaf.node is not None]
    strategies = {_strategy(node) for node in nodes} - {""}
    lanes = {leaf.lane for leaf in behind}
    stages = {leaf.stage for leaf in behind}
    return Box(
        id=id,
        kind="scope",
        title=shortened(title, 2 * WIDTH),
        lines=(*wrapped(shown), size),
        strategy=strategies.pop() if len(strategies) == 1 else "",
        operator_class="scope",
        frame=frame,
        lane=lanes.pop() if len(lanes) == 1 else "other",
        source=leaves[0].source_name if leaves else None,
        stage=stages.pop() if len(stages) == 1 else None,
        repeats=repeats,
        nodes=everything,
        bytes=None if None in sizes else sum(size for size in sizes if size is not None),
        groups=groups,
        marks=_marks(overlays, everything),
    )


def class_of(node: Node) -> str:
    """Key of the class that colours a statement; what redistributes stands out from other moves.

    Args:
        node: of a dump; MindSpore names what it inserts ``redistribution_…``.
    """
    name = node.instance_name or ""
    if name.removeprefix("grad_").startswith("redistribution_"):
        return REDISTRIBUTES.key
    return operator_class(node.op).key


def wrapped(items: Sequence[str], width: int = WIDTH) -> tuple[str, ...]:
    """Items joined by commas, in lines of at most ``width`` characters where words allow.

    Args:
        items: none of them is broken.
        width: in characters, the comma at the end of a line not counted.
    """
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + 2 + len(item) <= width:
            lines[-1] += f", {item}"
        else:
            if lines:
                lines[-1] += ","
            lines.append(item)
    return tuple(lines)


def _marks(overlays: Sequence[Overlay], nodes: Sequence[Node]) -> tuple[tuple[str, Mark], ...]:
    marks = ((overlay.topic, overlay.of(nodes)) for overlay in overlays)
    return tuple((topic, mark) for topic, mark in marks if mark is not None)


def _strategy(node: Node) -> str:
    strategy = node.written_strategy()
    if strategy is None or strategy == ():
        return ""
    return tuple_text(strategy)


def _name_lines(node: Node, repeats: int) -> tuple[str, ...]:
    """``%12 matmul``: where to find it; of repeats, the name alone."""
    name = "" if node.op in COMMUNICATION else node.instance_name or ""
    if name.startswith(_HASHED) or name in (node.op, ""):
        name = ""
    id = node.id if repeats == 1 and not node.is_return else ""
    text = " ".join(filter(None, (id, shortened(name, WIDTH - 8))))
    return (text,) if text else ()


def _facts(node: Node, report: CheckResult | None) -> tuple[str, ...]:
    if node.op == "call":
        return tuple(shortened(f"@{name}", WIDTH) for name in node.callees[:3])
    communication = collective(node) if node.op in COMMUNICATION else None
    if communication is not None:
        ranks = f"ranks {ranks_text(communication.ranks)}" if communication.ranks else ""
        if communication.peer is not None:
            ranks = f"{'to' if communication.op == 'Send' else 'from'} rank {communication.peer}"
        first = " · ".join(filter(None, (communication.reduction, shortened(ranks, WIDTH))))
        why = communication.origin if communication.origin != "unknown" else ""
        return tuple(filter(None, (first, why)))
    operator = report.operator(node) if report is not None else None
    if operator is None:
        return ()
    follows = [
        f"then {item.op}, ranks {shortened(ranks_text(item.ranks), 16)}"
        for item in operator.collectives
        if item.why != "mirror"
    ]
    return tuple(dict.fromkeys(follows))[:2]


def short_parameter(name: str) -> str:
    """``…q.weight`` for ``blocks.0…23.q.weight``: the frame around it says the rest.

    Args:
        name: of a parameter, or of those of all repeats.
    """
    parts = name.split(".")
    if len(name) <= 20 or len(parts) < 3:
        return shortened(name, WIDTH)
    return shortened(f"…{'.'.join(parts[-2:])}", WIDTH)


def repeated_name(same: Sequence[Leaf]) -> str:
    """One name for the leaves of all repeats: ``blocks.0…23.q.weight``.

    Args:
        same: the leaves, in any order.
    """
    names = sorted({leaf.name for leaf in same}, key=natural)
    return range_title(names) if names else ""
