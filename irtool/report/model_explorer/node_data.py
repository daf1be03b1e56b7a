"""Model Explorer's node data: numbers and colours laid over a graph, one file for each overlay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irtool.report.model_explorer.graph import leaf_keys
from irtool.report.picture.colours import SEQUENTIAL, SEVERITIES, value_text
from irtool.report.picture.leaves import Material
from irtool.report.picture.overlay import Mark, Overlay

Object = dict[str, object]


def node_data(
    material: Material, graph: str, overlays: Sequence[Overlay]
) -> dict[str, dict[str, Object]]:
    """Node data by topic: ``bytes`` always, and one for each overlay.

    Args:
        material: what the graph was made of.
        graph: the graph's id.
        overlays: what other commands found.
    """
    keys = leaf_keys(material)
    sizes = {keys[leaf]: leaf.bytes for leaf in material.leaves if leaf.node and leaf.bytes}
    by_topic = {
        "bytes": {graph: _data("bytes of results", _numbers(sizes, "bytes"), gradient=True)}
    }
    for overlay in overlays:
        marks = {
            keys[leaf]: overlay.marks[leaf.node]
            for leaf in material.leaves
            if leaf.node is not None and leaf.node in overlay.marks
        }
        by_value = all(mark.severity is None for mark in marks.values())
        results = {key: _result(mark, overlay.unit) for key, mark in marks.items()}
        by_topic[overlay.topic] = {graph: _data(overlay.title, results, gradient=by_value)}
    return by_topic


def _numbers(values: Mapping[str, int | None], unit: str) -> dict[str, Object]:
    return {
        key: {"value": value, "strValue": value_text(value, unit)}
        for key, value in values.items()
        if value is not None
    }


def _result(mark: Mark, unit: str) -> Object:
    made: Object = {}
    words = [value_text(mark.value, unit)] if mark.value is not None else []
    if mark.text:
        words.append(mark.text)
    made["value"] = mark.value if mark.value is not None else ": ".join(words)
    made["strValue"] = ": ".join(words)
    if mark.severity is not None:
        made["bgColor"] = SEVERITIES[mark.severity][0]
    return made


def _data(name: str, results: dict[str, Object], gradient: bool) -> Object:
    made: Object = {"name": name, "results": results}
    if gradient:
        steps = len(SEQUENTIAL) - 1
        made["gradient"] = [
            {"stop": index / steps, "bgColor": colour} for index, colour in enumerate(SEQUENTIAL)
        ]
    return made
