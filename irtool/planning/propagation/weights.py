"""Weights with several users: what the propagation does where they want them differently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irtool.planning.propagation.choices import holds
from irtool.planning.propagation.network import Edge, Vertex

if TYPE_CHECKING:
    from irtool.planning.propagation.spread import Spread


def agree_on_weights(spread: Spread) -> None:
    """Users of a weight that take it otherwise than the first one are given something else."""
    for vertex in spread.vertices:
        if vertex.weight is None or vertex not in spread.chosen or _agrees(spread, vertex):
            continue
        given = next((edge for edge in vertex.behind if edge.target in spread.configured), None)
        if given is not None:
            spread.options[vertex] = list(spread.choices.of(vertex))
            wanted = spread.configured[given.target].inputs[given.tensor]
            choice = spread.best_before(given, wanted)
            if choice is not None:
                spread.chosen[vertex] = choice
        for edge in vertex.behind:
            _follow(spread, vertex, edge)


def _agrees(spread: Spread, vertex: Vertex) -> bool:
    layout = spread.chosen[vertex].outputs[0]
    return all(
        edge.target not in spread.chosen
        or holds(spread.chosen[edge.target].inputs, edge.tensor, layout)
        for edge in vertex.behind
    )


def _follow(spread: Spread, vertex: Vertex, edge: Edge) -> None:
    user = edge.target
    layout = spread.chosen[vertex].outputs[0]
    if user in spread.configured or user not in spread.chosen:
        return
    if holds(spread.chosen[user].inputs, edge.tensor, layout):
        return
    spread.options[user] = list(spread.choices.of(user))
    choice = spread.best_behind(edge, layout)
    if choice is not None:
        spread.give(user, choice)
