"""The adapter that Model Explorer loads with ``--extensions=irtool.report.model_explorer``.

Model Explorer (``pip install ai-edge-model-explorer``) is no dependency of irtool; only this module
imports it, and only Model Explorer imports this module.
"""

# pyright: basic, reportAttributeAccessIssue=false
# Model Explorer is not installed where types are checked, so nothing of it has a type here.
from __future__ import annotations

import os
from typing import Any, ClassVar

from model_explorer import (  # pyright: ignore  # not installed where types are checked
    Adapter,
    AdapterMetadata,
    graph_builder,
)

from irtool.report.model_explorer.graph import model_explorer_graph
from irtool.report.picture.material import material
from irtool.syntax.load import load


class MindSporeDump(Adapter):
    """The adapter that opens ``.ir`` dumps in Model Explorer."""

    metadata: ClassVar[Any] = AdapterMetadata(
        id="irtool",
        name="MindSpore IR dump",
        description="MindSpore's ANF IR dumps (*.ir), read by irtool",
        source_repo="",
        fileExts=["ir"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> dict[str, Any]:
        """The graph of one dump, its calls inlined.

        Args:
            model_path: the dump.
            settings: of Model Explorer's page; none is used.
        """
        name = os.path.basename(model_path)
        made = model_explorer_graph(material(load(model_path).whole(), title=name), name)
        return {"graphs": [_graph(made)]}


def _graph(made: dict[str, Any]) -> Any:
    """Plain data as the objects that Model Explorer expects of adapters."""
    return graph_builder.Graph(id=made["id"], nodes=[_node(node) for node in made["nodes"]])


def _node(node: dict[str, Any]) -> Any:
    build = graph_builder
    style = node.get("style")
    return build.GraphNode(
        id=node["id"],
        label=node["label"],
        namespace=node["namespace"],
        attrs=[build.KeyValue(**item) for item in node["attrs"]],
        incomingEdges=[build.IncomingEdge(**item) for item in node["incomingEdges"]],
        outputsMetadata=[_metadata(item) for item in node["outputsMetadata"]],
        inputsMetadata=[_metadata(item) for item in node["inputsMetadata"]],
        style=build.GraphNodeStyle(**style) if style else None,
    )


def _metadata(item: dict[str, Any]) -> Any:
    attributes = [graph_builder.KeyValue(**attribute) for attribute in item["attrs"]]
    return graph_builder.MetadataItem(id=item["id"], attrs=attributes)
