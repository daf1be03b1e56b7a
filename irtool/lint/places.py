"""Where a finding is: from a node or parameter to file, line, column and the line of Python."""

from __future__ import annotations

from dataclasses import dataclass

from irtool.ir.comments import Location
from irtool.ir.finding import Finding, RelatedPlace, SourceLine
from irtool.ir.graph import GraphParameter, Node
from irtool.lint.facts import DumpFacts
from irtool.lint.rule import Hit, Rule
from irtool.syntax.printer import print_parameter, print_statement, print_target

FRAMEWORK = ("site-packages/mindspore/", "dist-packages/mindspore/")
"""Parts of paths of MindSpore's own Python code."""
MOST_STATEMENT = 2000
"""Characters of the dump's line that a finding keeps."""


@dataclass(frozen=True, slots=True)
class _Place:
    file: str
    line: int = 0
    column: int = 1
    end_column: int = 1
    statement: str = ""
    graph: str | None = None


def finding_of(rule: Rule, hit: Hit, facts: DumpFacts | None) -> Finding:
    """A finding of what a rule found while it looked at ``facts``' dump."""
    place = _place(hit, facts.path if facts is not None else "")
    node = hit.node
    frames = user_frames(node) if node is not None else ()
    rank = hit.rank if hit.rank is not None else facts.rank if facts is not None else None
    return Finding(
        code=rule.code,
        severity=rule.chosen_severity or hit.severity or rule.severity,
        message=hit.message,
        file=place.file,
        line=place.line,
        column=place.column,
        end_column=place.end_column,
        node=node.id if node is not None else None,
        op=node.op if node is not None else None,
        graph=place.graph,
        scope=node.scope if node is not None else None,
        statement=place.statement,
        source=frames[-1] if frames else None,
        frames=frames,
        hint=hit.hint or rule.hint,
        fix=hit.fix,
        related=tuple(_related(message, other, place.file) for message, other in hit.related),
        rank=rank,
        ranks=() if rank is None else (rank,),
        key=hit.key or (hit.parameter.name if hit.parameter is not None else ""),
    )


def user_frames(node: Node) -> tuple[SourceLine, ...]:
    """The user's lines of Python that made a node, outermost call first."""
    locations = node.comments.locations or node.comments.forward_locations
    return tuple(_source(each) for each in locations if not is_framework(each.path))


def is_framework(path: str) -> bool:
    """Whether a file belongs to MindSpore rather than to its user."""
    return any(part in path.replace("\\", "/") for part in FRAMEWORK)


def _source(location: Location) -> SourceLine:
    return SourceLine(
        location.path,
        location.line,
        location.end_line,
        None if location.column is None else location.column + 1,
        None if location.end_column is None else location.end_column + 1,
        (location.source or "").strip().strip("/").strip(),
    )


def _place(hit: Hit, path: str) -> _Place:
    if hit.node is not None:
        return _node_place(hit.node, path)
    if hit.parameter is not None:
        return _parameter_place(hit.parameter, path)
    return _Place(path, hit.line, hit.column, hit.column, hit.text[:MOST_STATEMENT])


def _node_place(node: Node, path: str) -> _Place:
    """The operator's name is what a caret stands under."""
    statement = print_statement(node)
    target = print_target(node.target)
    at = statement.find(target, len(node.style.indent)) if target else -1
    start = at + 1 if at >= 0 else node.column
    length = min(len(target.partition("(")[0]) if at >= 0 else 1, MOST_STATEMENT)
    graph = node.graph
    if graph is not None and graph.dump is not None:
        path = graph.dump.path
    return _Place(
        path,
        node.line,
        start,
        start + max(length, 1),
        statement[:MOST_STATEMENT],
        graph.name if graph is not None else None,
    )


def _parameter_place(parameter: GraphParameter, path: str) -> _Place:
    declared = parameter.declaration
    if declared is None or not declared.line:
        return _Place(path, graph=parameter.graph or None)
    statement = print_parameter(declared)
    start = len(statement) - len(statement.lstrip()) + 1
    name = statement.split(":", 1)[0].rstrip()
    shown = statement[:MOST_STATEMENT]
    return _Place(path, declared.line, start, len(name) + 1, shown, parameter.graph or None)


def _related(message: str, node: Node, path: str) -> RelatedPlace:
    place = _node_place(node, path)
    return RelatedPlace(message, place.file, place.line, place.column, node.id)
