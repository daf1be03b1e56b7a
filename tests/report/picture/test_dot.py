"""Pictures as graphviz's source and as svg."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import irtool
from irtool.report.picture import render
from irtool.report.picture.build import Wishes, picture
from irtool.report.picture.classes import CLASSES, operator_class
from irtool.report.picture.colours import colouring
from irtool.report.picture.dot import dot_text
from irtool.report.picture.material import material
from irtool.report.picture.model import Box, Edge, Frame, Picture
from irtool.report.picture.overlay import Mark, Overlay
from irtool.report.picture.ranking import Ranking
from irtool.report.picture.render import RenderError, rendered

ROOT = Path(__file__).resolve().parents[3]
needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz's dot is not here")
HOSTILE = '<script>alert("x")</script> \\N \\" & &lt; \x1b[31m }] -> {'


def drawn(name: str, wishes: Wishes | None = None) -> Picture:
    path = ROOT / "samples" / name
    return picture(material(irtool.load(path).whole(), title=name), wishes)


def texts(svg: bytes) -> str:
    root = ET.fromstring(svg)
    return "\n".join(element.text or "" for element in root.iter())


def hostile() -> Picture:
    box = Box("n1", "operator", HOSTILE, (HOSTILE,), HOSTILE, frame="f0")
    other = Box("n2", "parameter", HOSTILE, (HOSTILE,))
    edge = Edge("n2", "n1", "data", 2, 8, HOSTILE, HOSTILE)
    return Picture(
        HOSTILE, (box, other), (edge,), (Frame("f0", "scope", HOSTILE),), notes=(HOSTILE,)
    )


def test_the_legend_shows_what_is_there_and_nothing_else() -> None:
    text = dot_text(drawn("mlp_semi_auto/20_validate_0080.ir"))
    assert "collective" in text
    assert "updates a parameter" in text
    assert "sent to another stage" not in text
    assert "closed scope" not in text


def test_the_legend_says_what_lines_of_each_look_are() -> None:
    boxes = tuple(Box(id, "operator", id, lane=lane) for id, lane in
                  (("a", "forward"), ("b", "forward"), ("c", "backward")))  # fmt: skip
    plain = dot_text(Picture("", boxes, (Edge("a", "b"),), ()))
    looks = ("× n on a line", "value between lanes", "sent to another stage")
    assert [look for look in looks if look in plain] == []
    edges = (Edge("a", "b", count=2), Edge("b", "c"), Edge("c", "a", "transfer"))
    text = dot_text(Picture("", boxes, edges, ()))
    assert [look for look in looks if look in text] == list(looks)


def test_the_legend_says_that_lines_between_lanes_are_left_out() -> None:
    assert "frames say it, no line" in dot_text(drawn("gpt/20_validate_0080.ir"))


def test_long_strategies_that_differ_in_the_middle_are_two() -> None:
    """A box has no room for them; colours and tooltips know them whole."""
    path = ROOT / "samples" / "mlp_semi_auto" / "20_validate_0080.ir"
    long = ("((2, 1), (4, 1), (1, 1), (1, 1), (4, 1))", "((2, 1), (4, 1), (1, 2), (1, 1), (4, 1))")
    text = path.read_text(encoding="utf-8")
    text = text.replace("in_strategy: ((2, 1), (4, 1))", f"in_strategy: {long[0]}")
    text = text.replace("in_strategy: ((2, 4), (1, 4))", f"in_strategy: {long[1]}")
    found = picture(material(irtool.loads(text).whole()), Wishes(colour_by="strategy"))
    boxes = {strategy: [b.id for b in found.boxes if b.strategy == strategy] for strategy in long}
    assert all(boxes.values())
    fills = colouring(found).fills
    one, other = ({fills[id] for id in boxes[strategy]} for strategy in long)
    assert one.isdisjoint(other)
    assert f"strategy {long[0]}" in dot_text(found)


def test_operators_keep_their_class_and_colour() -> None:
    found = {op: operator_class(op).key for op in (
        "MatMul", "BatchMatMul", "FlashAttentionScore", "AllReduce", "ApplyMomentum", "Gather",
        "AssignAdd", "Cast", "LayerNormGrad", "SoftmaxBackward", "GeLU", "Mul", "Reshape",
        "SomeNewThing",
    )}  # fmt: skip
    assert found == {
        "MatMul": "product", "BatchMatMul": "product", "FlashAttentionScore": "product",
        "AllReduce": "communication", "ApplyMomentum": "optimizer", "Gather": "lookup",
        "AssignAdd": "optimizer",
        "Cast": "shape", "LayerNormGrad": "norm", "SoftmaxBackward": "norm", "GeLU": "elementwise",
        "Mul": "elementwise", "Reshape": "shape", "SomeNewThing": "other",
    }  # fmt: skip
    colours = [item.colour for item in CLASSES if item.colour != "#FFFFFF"]
    assert len(colours) == len(set(colours))


def test_redistributions_have_a_colour_of_their_own() -> None:
    found = drawn("mlp_semi_auto/20_validate_0080.ir")
    gathers = [box for box in found.boxes if box.title == "AllGather"]
    assert [box.operator_class for box in gathers] == ["redistribution"]


def test_equal_dumps_give_equal_pictures() -> None:
    one, other = (dot_text(drawn("gpt/20_validate_0080.ir")) for _ in range(2))
    assert one == other


@needs_dot
@pytest.mark.parametrize("format", ["svg", "png", "pdf"])
def test_formats_are_what_they_say(format: str) -> None:
    data = rendered(drawn("mlp_semi_auto/20_validate_0080.ir"), format)
    start = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[format]
    assert data.startswith(start)


@needs_dot
def test_samples_become_svgs() -> None:
    for path in sorted((ROOT / "samples").rglob("*.ir"))[::3]:
        svg = rendered(picture(material(irtool.load(path).whole(), title=path.name)), "svg")
        assert ET.fromstring(svg).tag.endswith("svg"), path


@needs_dot
def test_what_is_in_a_dump_stays_text() -> None:
    svg = rendered(hostile(), "svg")
    root = ET.fromstring(svg)
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    shown = texts(svg)
    assert '<script>alert("x")</script> \\N \\" & &lt; \\x1b[31m }] -> {' in shown.replace(
        "\xa0", " "
    )
    assert b"\x1b" not in svg


def test_no_control_character_gets_into_the_source() -> None:
    text = dot_text(hostile())
    assert re.search("[\x00-\x08\x0b-\x1f\x7f]", text) is None
    assert "<script" not in text


def test_findings_stand_out() -> None:
    dump = irtool.load(ROOT / "samples" / "mlp_semi_auto" / "20_validate_0080.ir")
    node = next(dump.nodes(op="MatMul"))
    overlay = Overlay("findings", "findings of check", marks={node: Mark(None, "error", "too bad")})
    found = picture(material(dump.whole()), overlays=[overlay])
    text = dot_text(found, [overlay])
    assert "too bad" in text
    assert "border: error" in text
    assert text.count("penwidth=2.6") == 1


def test_colours_by_value_get_a_scale_with_units() -> None:
    dump = irtool.load(ROOT / "samples" / "mlp_semi_auto" / "20_validate_0080.ir")
    marks = {node: Mark(1024.0 * (at + 1)) for at, node in enumerate(dump.nodes(op="MatMul"))}
    overlay = Overlay("memory", "alive at the peak", "bytes", marks)
    found = picture(material(dump.whole()), Wishes(colour_by="memory"), [overlay])
    text = dot_text(found, [overlay])
    assert "alive at the peak" in text
    assert "1.0 KiB to" in text
    assert "not known" in text


@pytest.mark.parametrize("by", ["op", "strategy", "bytes", "stage"])
def test_every_colouring_has_its_legend(by: str) -> None:
    found = drawn("gpt/step_parallel_begin_0018.ir", Wishes(colour_by=by))
    assert "BGCOLOR" in dot_text(found)


def test_ranking_edges_make_no_circle() -> None:
    boxes = tuple(Box(id, "scope", id, lane="forward") for id in "abc")
    edges = tuple(Edge(tail, head) for tail, head in ("ab", "bc", "ca", "ba"))
    ranking = Ranking(Picture("", boxes, edges, ()))
    ranked = [edge for edge in edges if ranking.ranks(edge)]
    assert {(edge.tail, edge.head) for edge in ranked} == {("a", "b"), ("b", "c"), ("b", "a")}
    assert ranking.is_turned(edges[3]), "b to a is drawn along a to b"


def test_the_backward_pass_is_laid_out_upwards() -> None:
    boxes = (Box("a", "operator", "a", lane="backward"), Box("b", "operator", "b", lane="backward"))
    edge = Edge("a", "b")
    found = Picture("", boxes, (edge,), ())
    assert Ranking(found).is_turned(edge)
    assert "b -> a" in dot_text(found)
    assert "dir=back" in dot_text(found)


def test_without_the_program_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = drawn("mlp_semi_auto/20_validate_0080.ir")
    with pytest.raises(RenderError) as error:
        rendered(found, "svg")
    assert "install graphviz" in error.value.hint
    assert dot_text(found).startswith("digraph"), "dot needs no program"


# -- corpus ------------------------------------------------------------------------------------


def test_a_sample_of_the_corpus_becomes_dot(corpus: Path) -> None:
    paths = sorted((corpus / "verdicts").rglob("*.ir"))[::150]
    assert paths
    for path in paths:
        found = picture(material(irtool.load(path).whole(), title=path.name))
        assert len(found.boxes) <= 300, path
        assert dot_text(found).startswith("digraph"), path


def test_a_deep_network_folds_into_a_readable_picture(corpus: Path) -> None:
    dump = irtool.load(corpus / "large" / "gpt_24_layers_validate.ir.xz")
    found = picture(material(dump.whole()))
    folded = {frame.name: frame.repeats for frame in found.frames if frame.repeats > 1}
    assert folded == {"0-Block": 24, "blocks.0": 24}
    assert len([frame for frame in found.frames if frame.repeats == 24]) == 3, "one in each lane"
    assert len(found.boxes) <= 200


@pytest.mark.parametrize(("unseen", "drawn_first"), [(True, True), (False, False)])
def test_lines_that_nobody_sees_may_be_lost(
    unseen: bool, drawn_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = drawn("gpt/20_validate_0080.ir", Wishes(0))
    ends = re.findall(r"^\s*(\w+) -> (\w+) \[(.*)\]$", dot_text(made), re.MULTILINE)
    tail, head, _ = next(end for end in ends if ("style=invis" in end[2]) is unseen)
    tried: list[int] = []

    def fails_first(graph: object, format: str, dpi: int | None) -> bytes:
        tried.append(1)
        if len(tried) > 1:
            return b"second"
        said = f"Error: in routesplines, Pshortestpath failed\nError: lost {tail} {head} edge\n"
        raise subprocess.CalledProcessError(1, "dot", b"first", said.encode())

    monkeypatch.setattr(render, "_piped", fails_first)
    assert rendered(made, "svg") == (b"first" if drawn_first else b"second")


@needs_dot
def test_lanes_keep_their_order_where_graphviz_loses_a_tie() -> None:
    made = drawn("grad_accumulation/20_validate_0082.ir")
    root = ET.fromstring(rendered(made, "svg"))
    left = {text.text: float(text.get("x", "nan")) for text in root.iter() if text.get("x")}
    assert left["forward"] < left["backward"] < left["optimizer"]
