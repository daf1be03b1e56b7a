"""What is in a picture: folding, closing, lanes, ties, edges, overlays."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irtool
from irtool.ir.dump import Dump
from irtool.ir.whole import Whole
from irtool.report.picture.build import NoSuchScope, Wishes, picture
from irtool.report.picture.choose import around, between, find_leaves, where
from irtool.report.picture.dot import dot_text
from irtool.report.picture.leaves import Material
from irtool.report.picture.material import material
from irtool.report.picture.model import Box, Picture
from irtool.report.picture.overlay import Mark, Overlay
from irtool.sharding.check import check
from irtool.sharding.network.context import ParallelContext

ROOT = Path(__file__).resolve().parents[3]


def read(name: str) -> Dump:
    return irtool.load(ROOT / "samples" / name)


def drawn(name: str) -> Material:
    return material(read(name).whole())


@pytest.fixture(scope="module")
def gpt() -> Material:
    return drawn("gpt/20_validate_0080.ir")


@pytest.fixture(scope="module")
def pipeline() -> Whole:
    return irtool.load_run(ROOT / "samples" / "pipeline_run").whole()


def titles(found: Picture) -> list[str]:
    return [frame.title for frame in found.frames]


def box(found: Picture, title: str, line: str = "") -> Box:
    return next(
        box for box in found.boxes if box.title == title and (not line or line in box.lines)
    )


# -- what is drawn -----------------------------------------------------------------------------


def test_loads_monads_and_tuples_are_hidden(gpt: Material) -> None:
    drawn_operators = {leaf.name for leaf in gpt.leaves}
    assert drawn_operators.isdisjoint(
        {"Load", "UpdateState", "Depend", "MakeTuple", "TupleGetItem"}
    )
    assert gpt.hidden == 128


def test_everything_is_drawn_when_asked_for() -> None:
    dump = read("gpt/20_validate_0080.ir")
    found = material(dump.whole(), everything=True)
    statements = [leaf for leaf in found.leaves if leaf.node is not None]
    assert len(statements) == len(list(dump.nodes()))
    assert found.hidden == 0


def test_a_value_that_passes_through_hidden_statements_still_links_its_ends(gpt: Material) -> None:
    entropy = next(leaf for leaf in gpt.leaves if leaf.name == "SoftmaxCrossEntropyWithLogits")
    users = {link.head.name for link in gpt.out_of[entropy]}
    assert "ReduceMean" in users, "through a TupleGetItem"


def test_a_tuple_item_comes_from_its_own_element_alone() -> None:
    found = drawn("recompute/20_validate_0081.ir")
    for leaf in found.leaves:
        if leaf.name == "ApplyMomentum":
            gradients = [
                link.tail.name for link in found.into[leaf] if link.tail.lane == "backward"
            ]
            assert gradients == ["AllReduce"]


def test_the_network_of_a_gradient_is_drawn_once() -> None:
    found = drawn("gpt/step_parallel_begin_0018.ir")
    nodes = [leaf.node for leaf in found.leaves if leaf.node is not None]
    assert len(nodes) == len(set(nodes))


def test_branches_stand_in_frames_of_their_graphs() -> None:
    found = picture(drawn("control_flow/01_type_inference_0001.ir"))
    graphs = [frame.title for frame in found.frames if frame.kind == "graph"]
    assert len(graphs) == 4
    assert all(title.startswith("@") for title in graphs)
    assert any(edge.kind == "call" for edge in found.edges)


# -- lanes -------------------------------------------------------------------------------------


def test_lanes_stand_in_order() -> None:
    found = picture(drawn("recompute/20_validate_0081.ir"))
    lanes = [frame.name for frame in found.frames if frame.kind == "phase"]
    assert lanes == ["forward", "recompute", "backward", "optimizer"]


def test_a_gradient_stands_in_the_scope_of_its_forward_operator(gpt: Material) -> None:
    tied = [bond for bond in gpt.bonds if bond.kind == "gradient" and bond.left.node is not None]
    assert tied
    for bond in tied:
        lefts = {other.left.place for other in tied if other.right is bond.right}
        assert bond.right.place in lefts


def test_forward_and_backward_are_tied() -> None:
    found = picture(drawn("mlp_semi_auto/20_validate_0080.ir"))
    lane = {box.id: box.lane for box in found.boxes}
    ties = {(lane[edge.tail], lane[edge.head]) for edge in found.edges if edge.kind == "tie"}
    assert ("forward", "backward") in ties


def test_recomputed_copies_are_tied_to_their_originals() -> None:
    found = picture(drawn("recompute/20_validate_0081.ir"))
    lane = {box.id: box.lane for box in found.boxes}
    copies = [edge for edge in found.edges if edge.kind == "recompute"]
    assert copies
    assert {(lane[edge.tail], lane[edge.head]) for edge in copies} == {("forward", "recompute")}


def test_updates_stand_at_their_parameters_names(gpt: Material) -> None:
    places = {leaf.place for leaf in gpt.leaves if leaf.name == "ApplyMomentum"}
    assert ("optimizer-Momentum", "layers.0", "attention", "query") in places


# -- folding and closing -----------------------------------------------------------------------


def test_equal_layers_are_drawn_once(gpt: Material) -> None:
    found = picture(gpt)
    folded = {frame.title: frame.repeats for frame in found.frames if frame.repeats > 1}
    assert any(title.endswith("0…1-Layer") for title in folded)
    assert set(folded.values()) == {2}
    assert box(found, "GeLU").repeats == 2
    assert len(box(found, "GeLU").nodes) == 2


def test_layers_that_differ_are_not_folded(gpt: Material) -> None:
    marked = next(leaf.node for leaf in gpt.leaves if leaf.name == "GeLU" and leaf.node)
    overlay = Overlay("findings", "f", marks={marked: Mark(None, "error", "wrong")})
    found = picture(gpt, overlays=[overlay])
    forward = [frame for frame in found.frames if frame.title.endswith("-Layer")]
    assert {"0-Layer", "1-Layer"} <= {frame.title for frame in forward}


def test_no_statement_is_lost_by_folding_or_closing(gpt: Material) -> None:
    expected = {leaf.node for leaf in gpt.leaves if leaf.node is not None}
    for most in (0, 300, 120, 60, 20, 5):
        found = picture(gpt, Wishes(most))
        assert {node for box in found.boxes for node in box.nodes} == expected, most


@settings(max_examples=25, deadline=None)
@given(most=st.integers(min_value=4, max_value=320))
def test_a_picture_never_holds_more_boxes_than_allowed(gpt: Material, most: int) -> None:
    found = picture(gpt, Wishes(most))
    assert len(found.boxes) <= most
    ids = {box.id for box in found.boxes}
    assert all(edge.tail in ids and edge.head in ids for edge in found.edges)
    assert all(edge.tail != edge.head for edge in found.edges)


def test_small_dumps_are_drawn_whole() -> None:
    found = picture(drawn("mlp_semi_auto/20_validate_0080.ir"))
    assert all(box.repeats == 1 and box.kind != "scope" for box in found.boxes)


def test_a_closed_scope_says_what_is_in_it(gpt: Material) -> None:
    found = picture(gpt, Wishes(20))
    layers = next(box for box in found.boxes if box.kind == "scope" and box.repeats == 2)
    assert any("operators" in line for line in layers.lines)
    assert any(op == "AllReduce" for box in found.boxes for op, _ in box.groups)


def test_expand_opens_a_scope_in_any_case(gpt: Material) -> None:
    found = picture(gpt, Wishes(20, expand=["1-Layer/attention-Attention"]))
    assert any("1-Layer" in title for title in titles(found))
    assert any(box.title == "Softmax" for box in found.boxes)


def test_expand_says_when_there_is_no_such_scope(gpt: Material) -> None:
    with pytest.raises(NoSuchScope):
        picture(gpt, Wishes(20, expand=["99-Layer"]))


def test_expand_minds_whole_numbers(gpt: Material) -> None:
    with pytest.raises(NoSuchScope):
        picture(gpt, Wishes(20, expand=["-Layer/attention-Attention/query-Dens/x"]))
    assert picture(gpt, Wishes(20, expand=["0-Layer"])).boxes


def test_scopeless_dumps_are_divided_in_order(gpt: Material) -> None:
    for leaf in gpt.leaves:
        assert leaf.place is not None
    flat = drawn("gpt/20_validate_0080.ir")
    for leaf in flat.leaves:
        leaf.place = ()
    found = picture(flat, Wishes(60))
    assert len(found.boxes) <= 60
    assert any(box.kind == "scope" and "…" in box.title for box in found.boxes)


def test_scopes_of_any_depth_are_drawn() -> None:
    text = (ROOT / "samples" / "mlp_semi_auto" / "20_validate_0080.ir").read_text()
    deep = text.replace("(Default/network-WithLossCell/", f"(Default/{'a/' * 20_000}", 3)
    found = picture(material(irtool.load(deep.encode()).whole()))
    assert len(found.frames) < 200
    assert dot_text(found).startswith("digraph")


# -- edges -------------------------------------------------------------------------------------


def test_edges_between_two_boxes_are_bundled(gpt: Material) -> None:
    found = picture(gpt, Wishes(12))
    pairs = [(edge.tail, edge.head, edge.kind) for edge in found.edges]
    assert len(pairs) == len(set(pairs))
    assert any(edge.count > 1 and edge.bytes for edge in found.edges)


def test_an_edge_to_the_next_layer_is_drawn_as_such(gpt: Material) -> None:
    kinds = {edge.kind for edge in picture(gpt).edges}
    assert "repeat" in kinds


def test_slices_and_redistributions_stand_on_edges() -> None:
    dump = read("mlp_semi_auto/step_parallel_begin_0018.ir")
    report = check(dump, ParallelContext.from_mapping({"device_num": 8, "full_batch": True}))
    found = picture(material(dump.whole(), report=report), report=report)
    labels = {edge.label for edge in found.edges}
    assert "64×512 → 32×128" in labels
    assert any("AllGather" in edge.note for edge in found.edges)
    assert any("then AllReduce, ranks 0-3" in box.lines for box in found.boxes)


def test_stages_are_joined_at_send_and_receive(pipeline: Whole) -> None:
    found = picture(material(pipeline))
    stages = [frame.title for frame in found.frames if frame.kind == "stage"]
    assert stages == ["stage 0 · rank 0", "stage 1 · rank 4"]
    source = {box.id: (box.title, box.source) for box in found.boxes}
    ends = {
        (source[edge.tail], source[edge.head]) for edge in found.edges if edge.kind == "transfer"
    }
    assert (("Send", "0"), ("Receive", "4")) in ends
    assert (("Send", "4"), ("Receive", "0")) in ends


def test_micro_batches_are_lanes_of_a_stage() -> None:
    found = picture(drawn("pipeline_run/rank_0/20_validate_0080.ir"))
    assert {"micro-batch 0", "micro-batch 1"} <= set(titles(found))


# -- choosing ----------------------------------------------------------------------------------


def test_around_keeps_what_is_near(gpt: Material) -> None:
    centre = find_leaves(gpt, "%76")
    near = around(gpt, centre, 1)
    assert {leaf.name for leaf in near.leaves} == {"GeLU", "MatMul", "GeLUGrad"}
    assert near.left_out == len([leaf for leaf in gpt.leaves if leaf.node]) - len(near.leaves)


def test_a_path_holds_everything_between_and_nothing_else(gpt: Material) -> None:
    start, end = find_leaves(gpt, "%75"), find_leaves(gpt, "%79")
    found = between(gpt, start, end)
    assert [leaf.name for leaf in found.leaves] == ["MatMul", "GeLU", "MatMul", "AllReduce"]
    assert between(gpt, end, start).leaves == ()


def test_where_joins_what_it_chose_through_what_it_left_out(gpt: Material) -> None:
    chosen = [leaf for leaf in gpt.leaves if leaf.name == "GeLU"]
    found = where(gpt, chosen)
    assert [link.kind for link in found.links] == ["order"]
    assert found.links[0].note.startswith("through ")


@pytest.mark.parametrize("name", ["%76", "gelu", "GeLU"])
def test_nodes_are_found_by_id_and_name(gpt: Material, name: str) -> None:
    assert {leaf.name for leaf in find_leaves(gpt, name)} == {"GeLU"}
    assert find_leaves(gpt, "no such thing") == []
