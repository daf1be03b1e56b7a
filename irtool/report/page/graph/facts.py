"""What the graph on a page says of a node when it is clicked: pairs of label and value."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.ir.collectives import collective
from irtool.ir.graph import GraphParameter, Node
from irtool.ir.units import bytes_text, count_text, ranks_text, tuple_text
from irtool.ir.values import Attributes
from irtool.report.json import json_text, json_value
from irtool.report.text import escape
from irtool.sharding.network.report import OperatorReport, ParameterReport
from irtool.syntax.printer import print_value

Fact = tuple[str, str]

MOST_CHARACTERS = 3000
"""Of one value on the page; longer ones say how long they are."""
_MOST_LOCATIONS = 12


def node_facts(node: Node, phase: str, report: OperatorReport | None = None) -> Iterator[Fact]:
    """Everything that a statement says, and what ``check`` found for it.

    Args:
        node: of a dump.
        phase: of the step: forward, backward, ….
        report: of ``check``; None where it was not asked, or says nothing of the node.

    Yields:
        label and value, only of what is known.
    """
    yield "phase", phase
    if node.scope:
        yield "scope", node.scope
    if node.output_type is not None:
        size = node.output_bytes
        text = node.output_type.short()
        yield "output", f"{text}, {bytes_text(size)}" if size else text
    for index, type in enumerate(node.input_types):
        if type is not None:
            yield f"input {index}", type.short()
    yield from _strategies(node)
    if report is not None:
        yield from _judged(report)
    yield from _communicated(node)
    for name, value in (("stage", node.stage), ("micro-batch", node.micro)):
        if value is not None:
            yield name, str(value)
    if node.is_recomputed:
        yield "recomputed", "a second copy of a forward operator"
    if node.instance_name:
        yield "instance name", node.instance_name
    if node.callees:
        yield "calls", ", ".join(f"@{name}" for name in node.callees)
    for block in (node.node_attributes, node.primal_attributes, node.primitive_attributes):
        yield from _attributes(block)
    yield from _constants(node)
    yield from _locations(node)


def _strategies(node: Node) -> Iterator[Fact]:
    effective, user = node.written_strategy(), node.written_strategy("user_strategy")
    if effective is not None:
        yield "strategy", tuple_text(effective)
    if user is not None and user != effective:
        yield "strategy asked for", tuple_text(user)
    if node.written_strategy("out_strategy") is not None:
        yield "output strategy", tuple_text(node.written_strategy("out_strategy"))
    for name, value in (("input layouts", node.in_layout), ("output layouts", node.out_layout)):
        if value is not None:
            yield name, json_text(json_value(value))


def _judged(report: OperatorReport) -> Iterator[Fact]:
    """Device matrix, maps and slices as ``check`` derives them."""
    yield "verdict", report.verdict
    for finding in report.judgement.reasons:
        yield finding.code, finding.message
    if report.verdict != "legal":
        return
    yield "device matrix", tuple_text(report.device_matrix)
    yield "tensor maps", f"{tuple_text(report.input_maps)} → {tuple_text(report.output_maps)}"
    yield "input slices", ", ".join(map(tuple_text, report.input_slices))
    yield "output slices", ", ".join(map(tuple_text, report.output_slices))
    if report.judgement.repeats > 1:
        yield "repeated over", f"{report.judgement.repeats} devices"
    for item in report.collectives:
        yield (
            "brings",
            f"{item.op} among ranks {ranks_text(item.ranks)}, {bytes_text(item.bytes)}: {item.why}",
        )


def _communicated(node: Node) -> Iterator[Fact]:
    communication = collective(node)
    if communication is None:
        return
    yield (
        "collective",
        communication.op + (f" ({communication.reduction})" if communication.reduction else ""),
    )
    yield "why", communication.origin
    yield "ranks", ranks_text(communication.ranks)
    if communication.group:
        yield "group", communication.group
    yield "communicated", bytes_text(communication.bytes)
    if communication.peer is not None:
        yield "peer rank", str(communication.peer)
    if communication.parameter:
        yield "parameter", communication.parameter


_SAID = frozenset(("in_strategy", "out_strategy", "in_layout", "out_layout", "group"))


def _attributes(block: Attributes | None) -> Iterator[Fact]:
    for key in block or ():
        if key not in _SAID:
            assert block is not None
            yield f"{key}:", _short(tuple_text(json_value(block[key])))


def _constants(node: Node) -> Iterator[Fact]:
    """Operands that are no node, parameter or graph: they have no box of their own."""
    for index, operand in enumerate(node.operands):
        text = print_value(operand)
        if not text.startswith(("%", "@", "$")):
            yield f"operand {index}", _short(text)


def _locations(node: Node) -> Iterator[Fact]:
    locations = node.comments.locations or node.comments.forward_locations
    own = node.location
    for place in reversed(locations[-_MOST_LOCATIONS:]):
        code = (place.source or "").strip().strip("/").strip()
        text = f"{place.path}:{place.line}" + (f"  {code}" if code else "")
        yield ("source" if place is own else "called from"), _short(text)


def parameter_facts(
    parameter: GraphParameter, graph: str, report: ParameterReport | None = None
) -> Iterator[Fact]:
    """What is known of a parameter.

    Args:
        parameter: of a graph.
        graph: the name of that graph.
        report: how ``check`` slices it; None where it was not asked, or says nothing of it.

    Yields:
        label and value, only of what is known.
    """
    yield "name", parameter.name
    if parameter.type is not None:
        size = parameter.type.size
        text = parameter.type.short()
        yield "type", f"{text}, {bytes_text(size)}" if size else text
    yield "of graph", f"@{graph}"
    if parameter.declaration is not None:
        yield "weight", "yes" if parameter.declaration.is_weight else "no, an input"
        if parameter.declaration.line:
            yield "line", count_text(parameter.declaration.line)
    if report is None:
        return
    if report.slice is None:
        yield "slice", f"not known: {report.why}"
        return
    yield "slice", f"{tuple_text(report.shape)} → {tuple_text(report.slice)}"
    for name, ranks in (
        ("mirror (gradient AllReduce)", report.mirror_ranks),
        ("gathered among", report.gather_ranks),
        ("gradient scattered among", report.scatter_ranks),
    ):
        if ranks is not None and len(ranks) > 1:
            yield name, f"ranks {ranks_text(ranks)}"


def _short(text: str) -> str:
    safe = escape(text)
    if len(safe) <= MOST_CHARACTERS:
        return safe
    return f"{safe[:MOST_CHARACTERS]} … ({count_text(len(safe))} characters)"
