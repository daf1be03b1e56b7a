"""The graph's data: everything of the dump is in it, and groups hold what belongs together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.ir.ties import ties
from irtool.report.page.graph.data import (
    CALL,
    INPUT,
    MONAD,
    PASSING,
    RESULT,
    WEIGHT,
    graph_data,
)
from irtool.report.page.graph.page import graph_page
from irtool.report.page.graph.tree import MOST_MEMBERS, build_tree
from irtool.report.page.keys import node_key
from irtool.report.page.write import render_page
from irtool.report.picture.overlay import Mark, Overlay
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

DUMPS = (
    "gpt/20_validate_0080.ir", "gpt/step_parallel_begin_0018.ir", "recompute/20_validate_0081.ir",
    "control_flow/01_type_inference_0001.ir", "fragment_1.3.ir",
    "dynamic_shape/20_validate_0080.ir",
)  # fmt: skip


@pytest.fixture(params=DUMPS)
def dump(request: pytest.FixtureRequest, samples: Path) -> Dump:
    return irtool.load(samples / request.param)


def text(data: dict[str, Any], column: str, member: int) -> str:
    return data["strings"][data["nodes"][column][member]]


def member(data: dict[str, Any], key: str) -> int:
    return next(n for n in range(len(data["edges"])) if text(data, "key", n) == key)


def path(data: dict[str, Any], member: int) -> str:
    return data["strings"][data["groups"]["path"][data["nodes"]["group"][member]]]


def test_every_statement_and_parameter_is_a_member(dump: Dump) -> None:
    data = graph_data(dump)
    keys = {text(data, "key", n) for n in range(len(data["edges"]))}
    assert {node_key(node) for node in dump.nodes()} <= keys
    parameters = sum(len(graph.parameters) for graph in dump.graphs)
    assert len(data["edges"]) == parameters + sum(len(graph.nodes) for graph in dump.graphs)


def test_columns_agree(dump: Dump) -> None:
    data = graph_data(dump)
    count, groups = len(data["edges"]), len(data["groups"]["name"])
    assert {len(column) for column in data["nodes"].values()} == {count}
    assert {len(column) for column in data["groups"].values()} == {groups}
    assert all(0 <= group < groups for group in data["nodes"]["group"])
    assert all(parent < group for group, parent in enumerate(data["groups"]["parent"]))
    for own in data["edges"]:
        assert len(own) % 3 == 0
        assert all(0 <= own[at] < count for at in range(0, len(own), 3))


def test_edges_are_the_inputs_of_the_model(samples: Path) -> None:
    dump = irtool.load(samples / "gpt" / "20_validate_0080.ir")
    data = graph_data(dump)
    for node in dump.nodes(op="MatMul"):
        own = data["edges"][member(data, node_key(node))]
        found = [text(data, "key", own[at]) for at in range(0, len(own), 3)]
        expected = [node_key(item) for item in node.inputs if type(item) is type(node)]
        assert found[: len(expected)] == expected


def test_kinds(samples: Path) -> None:
    data = graph_data(irtool.load(samples / "gpt" / "step_parallel_begin_0018.ir"))
    by_kind: dict[int, set[str]] = {}
    for n, kind in enumerate(data["nodes"]["kind"]):
        by_kind.setdefault(kind, set()).add(text(data, "op", n))
    assert by_kind[PASSING] == {"Load", "Depend", "UpdateState", "MakeTuple", "TupleGetItem"}
    assert by_kind[RESULT] == {"Return"}
    assert by_kind[WEIGHT] == by_kind[INPUT] == by_kind[MONAD] == {"Parameter"}
    assert by_kind[CALL] == {"call"}


def test_groups_are_phase_and_scope(samples: Path) -> None:
    dump = irtool.load(samples / "gpt" / "20_validate_0080.ir")
    data = graph_data(dump)
    for node in dump.nodes(op="LayerNormGrad"):
        assert path(data, member(data, node_key(node))).startswith("backward/network-WithLossCell")
    update = next(dump.nodes(op="ApplyMomentum"))
    assert path(data, member(data, node_key(update))).startswith("optimizer/optimizer-Momentum/")


def test_a_weight_stands_with_its_operator(samples: Path) -> None:
    data = graph_data(irtool.load(samples / "gpt" / "20_validate_0080.ir"))
    names = {text(data, "name", n): n for n, k in enumerate(data["nodes"]["kind"]) if k == WEIGHT}
    weight = next(name for name in names if name.endswith("0.up.weight") and "moments" not in name)
    assert path(data, names[weight]).endswith("layers-CellList/0-Layer/up-Dense")
    assert path(data, names["learning_rate"]) == "optimizer/optimizer-Momentum"


def test_a_gradient_stands_in_the_scope_of_its_forward_operator(samples: Path) -> None:
    """Scopes in the dump won't do: they name one layer for the gradients of all."""
    dump = irtool.load(samples / "gpt" / "20_validate_0080.ir")
    data = graph_data(dump)
    placed: set[str] = set()
    for tie in ties(dump):
        if tie.kind == "gradient" and isinstance(tie.left, Node):
            left, right = (
                path(data, member(data, node_key(node))) for node in (tie.left, tie.right)
            )
            if right.startswith("backward"):
                assert right.partition("/")[2] == left.partition("/")[2]
                placed.add(right)
    assert sum("0-Layer" in each for each in placed) > 0
    assert sum("1-Layer" in each for each in placed) > 0


def test_ties_lead_from_forward_to_backward(samples: Path) -> None:
    data = graph_data(irtool.load(samples / "gpt" / "20_validate_0080.ir"))
    pairs = {(text(data, "op", left), text(data, "op", right)) for left, right, *_ in data["ties"]}
    assert ("LayerNorm", "LayerNormGrad") in pairs
    assert ("GeLU", "GeLUGrad") in pairs


def test_a_report_adds_slices_and_redistributions(samples: Path) -> None:
    dump = irtool.load(samples / "gpt" / "step_parallel_begin_0018.ir")
    report = check(dump, ParallelContext(devices=8, mode="semi_auto_parallel"))
    data = graph_data(dump, report)
    strings = data["strings"]
    node = next(item.node for item in report.operators if item.op == "Gather")
    facts = data["nodes"]["facts"][member(data, node_key(node))]
    labels = {strings[label] for label in facts[::2]}
    assert {"verdict", "device matrix", "tensor maps", "input slices", "output slices"} <= labels
    assert data["notes"]
    assert all(
        "Gather" in strings[note[2]] or "Slice" in strings[note[2]] for note in data["notes"]
    )


def test_overlays_mark_members(samples: Path) -> None:
    dump = irtool.load(samples / "gpt" / "20_validate_0080.ir")
    node = next(dump.nodes(op="Softmax"))
    overlay = Overlay("memory", "alive", "bytes", {node: Mark(7.0, "warning", "x")})
    (laid,) = graph_data(dump, None, [overlay])["overlays"]
    assert laid["unit"] == "bytes"
    assert [mark[:2] for mark in laid["marks"]] == [[member(graph_data(dump), node_key(node)), 7.0]]


def test_stages_stand_beside_each_other(samples: Path) -> None:
    whole = irtool.load_run(samples / "pipeline_run").whole()
    dumps = [(f"stage {number}", dump) for number, dump in enumerate(whole.dumps)]
    links = [(send.node, receive.node, "transfer") for send, receive in whole.transfers]
    page = graph_page(dumps, links=links)
    (section,) = page.elements
    data = section.data  # type: ignore[union-attr]  # a page of a graph holds nothing else
    top = [
        n
        for n, parent in zip(data["groups"]["name"], data["groups"]["parent"], strict=True)
        if parent == 0
    ]
    assert [data["strings"][name] for name in top] == ["stage 0", "stage 1"]
    assert len(data["links"]) == len(links) > 0
    assert len(render_page(page)) < 300_000


# -- the tree ----------------------------------------------------------------------------------


def names(paths: list[tuple[str, ...]]) -> list[tuple[str, str]]:
    tree = build_tree(paths, [True] * len(paths))
    return list(zip(tree.names, tree.notes, strict=True))[1:]


def test_a_chain_of_groups_is_one_group() -> None:
    assert names([("a", "b", "c"), ("a", "b", "d")]) == [("a/b", ""), ("c", ""), ("d", "")]


def test_repeated_layers_are_counted() -> None:
    paths = [("net", f"{n}-Block") for n in range(5)]
    assert names(paths)[0] == ("net", "5 × N-Block")


def test_layers_among_others_get_a_group() -> None:
    paths = [("net", f"block{n}") for n in range(5)] + [("net", "head")]
    assert names(paths)[:2] == [("net", ""), ("block0 … block4", "5 × blockN")]


def test_many_members_are_cut_into_parts() -> None:
    tree = build_tree([("a",)] * (MOST_MEMBERS + 1), [True] * (MOST_MEMBERS + 1))
    assert tree.names[1:] == ("a", "part 1 of 3", "part 2 of 3", "part 3 of 3")
    assert tree.of == (2,) * 40 + (3,) * 40 + (4,)


def test_what_is_hidden_does_not_count_as_many() -> None:
    count = MOST_MEMBERS + 1
    tree = build_tree([("a",)] * count, [False] * count)
    assert tree.names == ("", "a")


def test_a_deep_scope_is_no_harm() -> None:
    tree = build_tree([tuple(f"s{n}" for n in range(5000)), ("x",)], [True, True])
    assert len(tree.names) == 3


def test_a_judged_dump_opens_at_its_first_sharded_operator(samples: Path) -> None:
    dump = irtool.load(samples / "gpt" / "step_parallel_begin_0018.ir")
    report = check(dump, ParallelContext(devices=8, mode="semi_auto_parallel"))
    data = graph_data(dump, report)
    key = data["strings"][data["nodes"]["key"][data["first"]]]
    assert key == node_key(next(dump.nodes(op="_VirtualDataset")))
    assert "first" not in graph_data(dump)
