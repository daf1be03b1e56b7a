"""Where a finding is: from a node or parameter to file, line, column and the line of Python."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from irtool.cluster.sources import forward_node
from irtool.ir.collectives import named_origin
from irtool.ir.comments import Location
from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Finding, RelatedPlace, SourceLine
from irtool.ir.framework import is_framework
from irtool.ir.graph import GraphParameter, Node
from irtool.linting.facts import DumpFacts
from irtool.syntax.printer import print_parameter, print_statement, print_target

MOST_STATEMENT = 2000
"""Characters of the dump's line that a finding keeps."""
_MOST_SEARCHED = 64
"""Nodes to look at for the line of who needs what the compiler made."""


@dataclass(frozen=True, slots=True)
class FindingPlace:
    """Where something stands in a dump; ``file`` is "" where the model does not say."""

    file: str = ""
    line: int = 0
    column: int = 1
    end_column: int = 1
    statement: str = ""
    graph: str | None = None


def located(finding: Finding) -> Finding:
    """A finding with the place, scope and lines of Python of its subject, if it has one.

    Args:
        finding: about a node, a parameter, or nothing in a graph.
    """
    subject = finding.subject
    if isinstance(subject, Node):
        place = node_place(subject)
        frames = user_frames(subject) or cause_frames(subject)
        return replace(
            _at(finding, place),
            node=subject.id,
            op=finding.op or subject.op,
            scope=subject.scope,
            source=frames[-1] if frames else None,
            frames=frames,
            is_backward=subject.is_backward,
        )
    return (
        _at(finding, parameter_place(subject)) if isinstance(subject, GraphParameter) else finding
    )


def placed(finding: Finding, facts: DumpFacts) -> Finding:
    """What a rule found while it looked at a dump: with its file and rank, without the model.

    Args:
        finding: that a rule made.
        facts: of the dump that it looked at.
    """
    rank = facts.rank if finding.rank is None else finding.rank
    return replace(
        finding,
        file=finding.file or facts.path,
        related=tuple(
            place if place.file else replace(place, file=facts.path) for place in finding.related
        ),
        rank=rank,
        ranks=() if rank is None else (rank,),
        subject=None,
    )


def _at(finding: Finding, place: FindingPlace) -> Finding:
    return replace(
        finding,
        file=place.file or finding.file,
        line=place.line,
        column=place.column,
        end_column=place.end_column,
        statement=place.statement,
        graph=place.graph,
    )


def user_frames(node: Node) -> tuple[SourceLine, ...]:
    """The user's lines of Python that made a node, outermost call first.

    A gradient that MindSpore's own Python computes belongs to the line of its forward node.

    Args:
        node: of any dump.

    Returns:
        Without MindSpore's own lines; empty where the dump shows none of the user's.
    """
    comments = node.comments
    return _user_lines(comments.locations) or _user_lines(comments.forward_locations)


def _user_lines(locations: Iterable[Location]) -> tuple[SourceLine, ...]:
    return tuple(_source(location) for location in locations if not is_framework(location.path))


def cause_frames(node: Node) -> tuple[SourceLine, ...]:
    """The user's lines of what made a node of the compiler necessary.

    That is the next operator on its way that the user wrote: a gather is there for who reads it.
    Where nobody reads it, or only the compiler does, and of a sum of partial results, it is who its
    value comes from.  What belongs to a gradient is there for the same line as its forward node.
    """
    forward = forward_node(node)
    if forward is not None and forward is not node:
        frames = user_frames(forward) or cause_frames(forward)
        if frames:
            return frames
    directions = (_users, _sources)
    if named_origin(node) == "forward reduction":
        directions = (_sources, _users)
    for following in directions:
        seen: set[Node] = {node}
        queue: deque[Node] = deque((node,))
        while queue and len(seen) < _MOST_SEARCHED:
            for other in following(queue.popleft()):
                if other in seen:
                    continue
                frames = user_frames(other)
                if frames:
                    return frames
                seen.add(other)
                queue.append(other)
    return ()


def _users(node: Node) -> Iterable[Node]:
    return (user for user in node.users if user.op != "UpdateState")


def _sources(node: Node) -> Iterable[Node]:
    return (source for source in node.inputs if isinstance(source, Node))


def _source(location: Location) -> SourceLine:
    return SourceLine(
        location.path,
        location.line,
        location.end_line,
        None if location.column is None else location.column + 1,
        None if location.end_column is None else location.end_column + 1,
        (location.source or "").strip().strip("/").strip(),
    )


def node_place(node: Node) -> FindingPlace:
    """The place of a node; its operator's name is what a caret stands under.

    Args:
        node: of any dump.

    Returns:
        Its file, line and columns, from 1, and the statement as it is printed.
    """
    statement = print_statement(node)
    target = print_target(node.target)
    offset = statement.find(target, len(node.style.indent)) if target else -1
    start = offset + 1 if offset >= 0 else node.column
    length = min(len(target.partition("(")[0]) if offset >= 0 else 1, MOST_STATEMENT)
    graph = node.graph
    return FindingPlace(
        graph.dump.path if graph is not None and graph.dump is not None else "",
        node.line,
        start,
        start + max(length, 1),
        statement[:MOST_STATEMENT],
        graph.name if graph is not None else None,
    )


def parameter_place(parameter: GraphParameter) -> FindingPlace:
    """The place of a parameter's declaration; its name is what a caret stands under.

    Args:
        parameter: of a graph; one that is not declared has no line.

    Returns:
        Its line and columns, from 1, without a file.
    """
    declared = parameter.declaration
    if declared is None or not declared.line:
        return FindingPlace(graph=parameter.graph or None)
    statement = print_parameter(declared)
    start = len(statement) - len(statement.lstrip()) + 1
    name = statement.split(":", 1)[0].rstrip()
    shown = statement[:MOST_STATEMENT]
    return FindingPlace("", declared.line, start, len(name) + 1, shown, parameter.graph or None)


def related_place(message: str, node: Node) -> RelatedPlace:
    """Another node that a finding is about.

    Args:
        message: what the node has to do with the finding.
        node: of any dump.
    """
    place = node_place(node)
    return RelatedPlace(message, place.file, place.line, place.column, node.id)
