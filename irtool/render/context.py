"""How a run's context is shown: in JSON all of it, to people what was assumed or contradicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from irtool.cluster.context.model import Assumption, RunContext, shown
from irtool.operators.layout import UserLayout
from irtool.render.json import json_text
from irtool.render.tables import Block, Note


def context_object(context: RunContext, more: Iterable[str] = ()) -> dict[str, object]:
    """``context``, ``assumptions`` and ``contradictions``; ``more`` are other assumptions."""
    return {
        "context": {
            key: {
                "value": _value(entry.value),
                "origin": entry.origin.source,
                "path": entry.origin.path or None,
                "what": entry.origin.what or None,
            }
            for key, entry in context.entries.items()
        },
        "assumptions": [*map(assumption_text, context.assumptions), *more],
        "contradictions": [each.message for each in context.contradictions],
    }


def _value(value: object) -> object:
    if isinstance(value, UserLayout):
        return {
            "device_matrix": list(value.device_matrix),
            "tensor_map": [_value(entry) for entry in value.tensor_map],
        }
    if isinstance(value, tuple | list):
        return [_value(item) for item in cast("Sequence[object]", value)]
    return value


def context_pieces(
    pieces: Iterable[str], context: RunContext, more: Iterable[str] = ()
) -> Iterator[str]:
    """An object that comes in pieces, the last of which closes it, with the context at its end."""
    last: str | None = None
    for piece in pieces:
        if last is not None:
            yield last
        last = piece
    for name, value in context_object(context, more).items():
        yield f',\n "{name}": {json_text(value)}'
    yield last or "}\n"


def assumption_text(item: Assumption) -> str:
    """``dataset_strategy data_parallel (MindSpore's default)``."""
    return f"{item.key} {shown(item.value)} ({item.why})"


def context_lines(context: RunContext) -> Sequence[str]:
    """A line of what was assumed and decides the answer; what contradicts goes to stderr."""
    deciding = [each for each in context.assumptions if each.decides]
    if not deciding:
        return ()
    listed = ", ".join(map(assumption_text, deciding))
    return (f"assumed: {listed}; options or --context FILE say otherwise",)


def context_blocks(context: RunContext) -> Sequence[Block]:
    """What was assumed and decides the answer, and what two sources say differently."""
    found = [f"contradiction: {each.message}" for each in context.contradictions]
    return [Note(line) for line in (*found, *context_lines(context))]
