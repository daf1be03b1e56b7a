"""Graphs for Model Explorer: plain JSON that its adapter hands over unchanged."""

from __future__ import annotations

import json
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.report.json import json_text
from irtool.report.model_explorer.graph import (
    graph_collection,
    model_explorer_graph,
    sync_navigation,
)
from irtool.report.model_explorer.node_data import node_data
from irtool.report.picture.leaves import Material
from irtool.report.picture.material import material
from irtool.report.picture.overlay import Mark, Overlay

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "mlp_semi_auto" / "20_validate_0080.ir"


@pytest.fixture(scope="module")
def mlp() -> Material:
    return material(irtool.load(SAMPLE).whole())


@pytest.fixture(scope="module")
def graph(mlp: Material) -> dict[str, Any]:
    made = graph_collection("mlp", [model_explorer_graph(mlp, "mlp")])
    return json.loads(json_text(made))["graphs"][0]


def test_ids_are_unique_and_every_edge_has_its_ends(graph: dict[str, Any]) -> None:
    ids = [node["id"] for node in graph["nodes"]]
    assert len(ids) == len(set(ids))
    for node in graph["nodes"]:
        for edge in node["incomingEdges"]:
            assert edge["sourceNodeId"] in ids
            assert all(isinstance(value, str) for value in edge.values())


def test_namespaces_are_phases_and_scopes(graph: dict[str, Any]) -> None:
    places = {node["label"]: node["namespace"] for node in graph["nodes"]}
    assert places["ReLU"] == "forward/network-WithLossCell/_backbone-Mlp"
    assert places["ReluGrad"] == "backward/network-WithLossCell/_backbone-Mlp"
    assert places["ApplyMomentum"].startswith("optimizer/optimizer-Momentum/")


def test_nodes_know_their_facts_and_partners(graph: dict[str, Any]) -> None:
    relu = next(node for node in graph["nodes"] if node["label"] == "ReLU")
    facts = {fact["key"]: fact["value"] for fact in relu["attrs"]}
    assert facts["strategy"] == "((2, 4))" or "(2, 4)" in facts["strategy"]
    assert facts["line"].isdigit()
    assert facts["belongs to"]["type"] == "node_ids"
    ids = {node["id"]: node["label"] for node in graph["nodes"]}
    assert "ReluGrad" in {ids[id] for id in facts["belongs to"]["nodeIds"]}


def test_collectives_tell_ranks_and_reason(graph: dict[str, Any]) -> None:
    reduce = next(node for node in graph["nodes"] if node["label"] == "AllReduce")
    facts = {fact["key"]: fact["value"] for fact in reduce["attrs"]}
    assert facts["ranks"] == "0-3"
    assert facts["why"] == "forward reduction"
    assert reduce["style"]["backgroundColor"] == "#EE8866"


def test_node_data_is_keyed_by_graph_and_node(mlp: Material, graph: dict[str, Any]) -> None:
    node = next(leaf.node for leaf in mlp.leaves if leaf.name == "ReLU")
    assert node is not None
    overlay = Overlay("findings", "findings", marks={node: Mark(None, "error", "bad")})
    data = json.loads(json_text(node_data(mlp, "mlp", [overlay])))
    assert set(data) == {"bytes", "findings"}
    ids = {each["id"] for each in graph["nodes"]}
    assert set(data["bytes"]["mlp"]["results"]) <= ids
    assert [step["stop"] for step in data["bytes"]["mlp"]["gradient"]] == [0, 0.25, 0.5, 0.75, 1]
    (result,) = data["findings"]["mlp"]["results"].values()
    assert result == {"value": "bad", "strValue": "bad", "bgColor": "#CC3311"}


def test_two_panes_move_together_along_matched_pairs(mlp: Material) -> None:
    other = material(irtool.load(SAMPLE).whole())
    before, after = (
        [leaf.node for leaf in side.leaves if leaf.node is not None] for side in (mlp, other)
    )
    pairs = [([one], [two]) for one, two in zip(before[:-1], after[:-1], strict=True)]
    found = sync_navigation(mlp, other, pairs)
    entries = found["mappingEntries"]
    assert isinstance(entries, list)
    nodes, parameters = entries[: len(pairs)], entries[len(pairs) :]
    assert all(":%" in key for entry in nodes for key in entry["leftNodeIds"])
    assert {"leftNodeIds": ["parameter up.weight"], "rightNodeIds": ["parameter up.weight"]} in (
        parameters
    )
    assert entries[0] == {"leftNodeIds": ["35:%0"], "rightNodeIds": ["35:%0"]} or (
        entries[0]["leftNodeIds"] == entries[0]["rightNodeIds"]
    )
    assert found["showDiffHighlights"] is True


def test_hostile_names_stay_text(mlp: Material) -> None:
    leaf = mlp.leaves[0]
    name, leaf.name = leaf.name, "<script>\x1b[31m"
    place, leaf.place = leaf.place, ("a/b", "\x1b")
    try:
        made = model_explorer_graph(mlp, "g")["nodes"]
    finally:
        leaf.name, leaf.place = name, place
    assert isinstance(made, list)
    assert made[0]["label"] == "<script>\\x1b[31m"
    assert made[0]["namespace"].split("/")[-2:] == ["a∕b", "\\x1b"]


def test_the_adapter_gives_what_model_explorer_expects(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = types.ModuleType("graph_builder")
    for name in (
        "Graph",
        "GraphNode",
        "KeyValue",
        "IncomingEdge",
        "MetadataItem",
        "GraphNodeStyle",
    ):
        setattr(builder, name, _record(name))
    stand_in = types.ModuleType("model_explorer")
    stand_in.Adapter = object  # type: ignore[attr-defined]  # a module made here
    stand_in.AdapterMetadata = _record("AdapterMetadata")  # type: ignore[attr-defined]  # so is this
    stand_in.graph_builder = builder  # type: ignore[attr-defined]  # and this
    monkeypatch.setitem(sys.modules, "model_explorer", stand_in)
    monkeypatch.delitem(sys.modules, "irtool.report.model_explorer.main", raising=False)
    from irtool.report.model_explorer.main import MindSporeDump

    assert MindSporeDump.metadata.values["fileExts"] == ["ir"]
    (made,) = MindSporeDump().convert(str(SAMPLE), {})["graphs"]
    assert made.values["id"] == "20_validate_0080.ir"
    assert len(made.values["nodes"]) == 76
    monkeypatch.delitem(sys.modules, "irtool.report.model_explorer.main")


@dataclass
class _Record:
    kind: str
    values: dict[str, Any] = field(default_factory=dict[str, Any])


def _record(kind: str) -> Any:
    return lambda **values: _Record(kind, values)
