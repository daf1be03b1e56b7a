"""Pictures drawn without graphviz: nothing overlaps, lines keep clear of boxes and titles."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import irtool
from irtool.ir.whole.inlining import join
from irtool.report.page.svg import clean_svg
from irtool.report.picture.build import Wishes, picture
from irtool.report.picture.layout.place import Area, Layout, layout
from irtool.report.picture.layout.text_size import text_width
from irtool.report.picture.looks import Looks
from irtool.report.picture.material import material
from irtool.report.picture.model import Box, Edge, Frame, Picture
from irtool.report.picture.overlay import Mark, Overlay
from irtool.report.picture.svg import svg_text

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
HOSTILE = '<script>alert("x")</script> \\N & &lt; \x1b[31m ]]> \uffff \u202e'
NEAR = 0.01
"""Pixels that rounding may take."""


def placed(made: Picture) -> Layout:
    looks = Looks(made, ())
    return layout(made, [e for e in made.edges if not looks.is_left_out(e, ties=False)], looks)


def apart(one: Area, other: Area) -> bool:
    return (
        one.x + one.w <= other.x + NEAR
        or other.x + other.w <= one.x + NEAR
        or one.y + one.h <= other.y + NEAR
        or other.y + other.h <= one.y + NEAR
    )


def holds(outer: Area, inner: Area) -> bool:
    return (
        outer.x - NEAR <= inner.x
        and outer.y - NEAR <= inner.y
        and inner.x + inner.w <= outer.x + outer.w + NEAR
        and inner.y + inner.h <= outer.y + outer.h + NEAR
    )


def around(id: str, parents: dict[str, str]) -> list[str]:
    found: list[str] = []
    while parents.get(id):
        id = parents[id]
        found.append(id)
    return found


def faults(made: Picture) -> list[str]:
    """What is wrong with the layout of a picture, in words."""
    done = placed(made)
    frames = {frame.id for frame in made.frames}
    parents = {frame.id: frame.parent if frame.parent in frames else "" for frame in made.frames}
    parents |= {box.id: box.frame if box.frame in frames else "" for box in made.boxes}
    titles = {
        id: Area(area.x + 10, area.y, done.titles[id].w, done.titles[id].h)
        for id, area in done.frames.items()
    }
    everything = done.boxes | done.frames
    whole = Area(0, 0, done.width, done.height)
    found = [f"{id} is outside" for id, area in everything.items() if not holds(whole, area)]
    for id, area in everything.items():
        if parents[id] and not holds(done.frames[parents[id]], area):
            found.append(f"{id} is not in its frame {parents[id]}")
        if parents[id] and not apart(titles[parents[id]], area):
            found.append(f"{id} covers the title of {parents[id]}")
    ways = {id: around(id, parents) for id in everything}
    for one, other in combinations(everything, 2):
        if one in ways[other] or other in ways[one]:
            continue
        if not apart(everything[one], everything[other]):
            found.append(f"{one} and {other} overlap")
    for label in done.labels:
        found += [f"a text covers {id}" for id, area in done.boxes.items()
                  if not apart(label.area, area)]  # fmt: skip
    return found + line_faults(done, titles, ways)


def line_faults(done: Layout, titles: dict[str, Area], ways: dict[str, list[str]]) -> list[str]:
    found: list[str] = []
    for line in done.lines:
        tail, head = line.edge.tail, line.edge.head
        name = f"{tail} → {head}"
        for id, (x, y) in ((tail, line.pieces[0][0]), (head, line.pieces[-1][-1])):
            area = done.boxes[id]
            on_edge = min(abs(y - area.y), abs(y - area.y - area.h)) < NEAR
            if not on_edge or not area.x <= x <= area.x + area.w:
                found.append(f"{name} does not end at {id}")
        own = {*ways[tail], *ways[head]}
        for piece in line.pieces:
            for (x, y), (to_x, to_y) in pairwise(piece):
                room = Area(min(x, to_x), min(y, to_y), abs(x - to_x), abs(y - to_y))
                found += [f"{name} runs through {id}" for id, area in done.boxes.items()
                          if not apart(room, area)]  # fmt: skip
                found += [f"{name} runs through the title of {id}" for id, area in titles.items()
                          if not apart(room, area)]  # fmt: skip
                found += [f"{name} runs through frame {id}" for id, area in done.frames.items()
                          if id not in own and not apart(room, area)]  # fmt: skip
    return found


# -- random pictures -----------------------------------------------------------------------------

LANES = ("forward", "recompute", "backward", "optimizer", "other")
names = st.text(min_size=0, max_size=30)


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    frames: list[Frame] = []
    stages = draw(st.integers(0, 3))
    outer = [""]
    for number in range(stages):
        frames.append(Frame(f"s{number}", "stage", f"stage {number}"))
        outer.append(f"s{number}")
    lane_of = dict.fromkeys(outer, "other")
    if draw(st.booleans()):
        for stage in outer[1:] or [""]:
            for lane in draw(st.lists(st.sampled_from(LANES[:4]), unique=True)):
                id = f"{stage}{lane}"
                frames.append(Frame(id, "phase", lane, stage, name=lane))
                lane_of[id] = lane
                outer.append(id)
    for number in range(draw(st.integers(0, 6))):
        parent = draw(st.sampled_from(outer))
        repeats = draw(st.integers(1, 3))
        frames.append(Frame(f"f{number}", "scope", draw(names), parent, repeats, note="note"))
        lane_of[f"f{number}"] = lane_of[parent]
        outer.append(f"f{number}")
    boxes = [
        Box(
            f"b{number}",
            draw(st.sampled_from(("operator", "scope", "parameter", "input", "call"))),
            draw(names),
            tuple(draw(st.lists(names, max_size=2))),
            frame=(frame := draw(st.sampled_from(outer))),
            lane=lane_of[frame],
            stage=int(frame[1]) if frame[:1] == "s" else None,
            focus=draw(st.booleans()),
            groups=draw(st.sampled_from(((), (("AllReduce", 1),)))),
        )
        for number in range(draw(st.integers(1, 14)))
    ]
    ids = st.sampled_from([box.id for box in boxes])
    kinds = st.sampled_from(("data", "repeat", "tie", "transfer", "call", "order"))
    edges = draw(
        st.lists(
            st.builds(Edge, ids, ids, kinds, count=st.integers(1, 3), bytes=st.just(4096),
                      label=st.sampled_from(("", "32×128")), note=st.sampled_from(("", "Split"))),
            max_size=30,
        )
    )  # fmt: skip
    return Picture("random", tuple(boxes), tuple(edges), tuple(frames))


QUICK = settings(
    max_examples=50, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate)
)
"""Without making failures smaller, which takes minutes for so large examples."""


@given(pictures())
@QUICK
@example(Picture("", (), (), ()))
@example(Picture("", (Box("a", "operator", "a"),), (Edge("a", "a"),), ()))
@example(Picture("", (), (), (Frame("f", "scope", "empty"), Frame("l", "phase", "lane"))))
def test_nothing_overlaps_and_lines_keep_clear(made: Picture) -> None:
    assert faults(made) == []


@given(pictures())
@settings(QUICK, max_examples=15)
def test_random_pictures_are_documents_and_equal_ones_equal(made: Picture) -> None:
    text = svg_text(made)
    assert ET.fromstring(text).tag.endswith("svg")
    assert svg_text(made) == text


# -- real ones -----------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [15, 300])
@pytest.mark.parametrize(
    "name",
    ["mlp_semi_auto/20_validate_0080.ir", "gpt/20_validate_0080.ir",
     "gpt/step_parallel_begin_0018.ir", "grad_accumulation/20_validate_0082.ir"],
)  # fmt: skip
def test_samples_are_drawn_clearly(name: str, most: int) -> None:
    made = picture(material(irtool.load(SAMPLES / name).whole()), Wishes(most))
    assert faults(made) == []


def test_stages_stand_below_each_other_and_lanes_side_by_side() -> None:
    folder = SAMPLES / "pipeline_2_stages"
    whole = join(
        {rank: irtool.load(folder / f"rank_{rank}/20_validate_0080.ir") for rank in (0, 2)}
    )
    made = picture(material(whole))
    assert faults(made) == []
    areas = placed(made).frames
    stages = [areas[frame.id] for frame in made.frames if frame.kind == "stage"]
    assert stages[0].y + stages[0].h <= stages[1].y
    for stage in (frame.id for frame in made.frames if frame.kind == "stage"):
        lanes = [areas[f.id] for f in made.frames if f.parent == stage and f.kind == "phase"]
        assert len({(lane.y, lane.h) for lane in lanes}) == 1, "all of equal height"
        assert all(one.x + one.w < other.x for one, other in pairwise(lanes))


def test_the_forward_pass_runs_down_and_the_backward_pass_up() -> None:
    boxes = tuple(Box(f"{lane}{i}", "operator", "x", lane=lane, frame=lane)
                  for lane in ("forward", "backward") for i in (0, 1))  # fmt: skip
    frames = tuple(Frame(lane, "phase", lane, name=lane) for lane in ("forward", "backward"))
    edges = (Edge("forward0", "forward1"), Edge("backward0", "backward1"))
    areas = placed(Picture("", boxes, edges, frames)).boxes
    assert areas["forward0"].y < areas["forward1"].y
    assert areas["backward0"].y > areas["backward1"].y


def test_texts_fit_their_boxes() -> None:
    """The letters of DejaVu Sans, the widest of the usual fonts, as measured in a browser."""
    for text, browser in (
        ("StridedSlice", 71.6),
        ("WWWWWWWWWW", 108.8),
        ("((2, 1), (4, 1))", 83.0),
    ):
        assert text_width(text, 11) >= browser
    box = Box("a", "operator", "W" * 30, ("iiii",))
    assert placed(Picture("", (box,), (), ())).boxes["a"].w > text_width("W" * 30, 11)


def test_what_is_in_a_dump_stays_text() -> None:
    box = Box("n1", "operator", HOSTILE, (HOSTILE,), HOSTILE, frame="f0",
              marks=(("check", Mark(None, "error", HOSTILE)),))  # fmt: skip
    other = Box("n2", "parameter", HOSTILE, (HOSTILE,))
    edge = Edge("n2", "n1", "data", 2, 8, HOSTILE, HOSTILE)
    frame = Frame("f0", "scope", HOSTILE, note=HOSTILE)
    text = svg_text(Picture(HOSTILE, (box, other), (edge,), (frame,), notes=(HOSTILE,)))
    root = ET.fromstring(text)
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    assert '<script>alert("x")</script> \\N & &lt; \\x1b[31m ]]>' in "".join(root.itertext())
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "alert" in clean_svg(text), "a page takes it as it is"


def test_frames_may_be_deeper_than_python_calls() -> None:
    frames = tuple(
        Frame(f"f{depth}", "scope", "x", f"f{depth - 1}" if depth else "") for depth in range(2000)
    )
    boxes = (Box("a", "operator", "a", frame="f1999"), Box("b", "operator", "b"))
    done = placed(Picture("", boxes, (Edge("a", "b"),), frames))
    assert done.boxes["a"].y < done.boxes["b"].y


def test_a_circle_is_drawn_with_all_its_lines() -> None:
    boxes = tuple(Box(id, "scope", id) for id in "abc")
    edges = tuple(Edge(tail, head) for tail, head in ("ab", "bc", "ca", "ba"))
    made = Picture("", boxes, edges, ())
    assert faults(made) == []
    assert len(placed(made).lines) == 4


def test_300_boxes_with_800_lines_are_drawn_without_a_fault() -> None:
    boxes = tuple(Box(f"b{i}", "operator", f"box {i}", frame=f"f{i // 10}") for i in range(300))
    edges = tuple(Edge(f"b{i}", f"b{j}", label="8×8") for i in range(300)
                  for j in (i + 1, i + 7, i + 40) if j < 300)  # fmt: skip
    frames = tuple(Frame(f"f{i}", "scope", f"frame {i}") for i in range(30))
    made = Picture("", boxes, edges, frames)
    assert len(placed(made).lines) == len(edges)
    assert svg_text(made).count("<rect") >= 330


def test_overlays_colour_and_mark() -> None:
    dump = irtool.load(SAMPLES / "mlp_semi_auto" / "20_validate_0080.ir")
    marks = {node: Mark(1024.0 * (at + 1), "error" if not at else None)
             for at, node in enumerate(dump.nodes(op="MatMul"))}  # fmt: skip
    overlay = Overlay("memory", "alive at the peak", "bytes", marks)
    made = picture(material(dump.whole()), Wishes(colour_by="memory"), [overlay])
    text = svg_text(made, [overlay])
    assert "alive at the peak" in text
    assert "1.0 KiB to" in text
    assert "border: error" in text
    assert text.count('stroke-width="2.6"') == 1


def test_what_is_not_drawn_is_not_in_the_legend() -> None:
    boxes = (Box("a", "operator", "a", lane="forward"), Box("b", "operator", "b", lane="backward"))
    text = svg_text(Picture("", boxes, (Edge("a", "b", "tie"),), ()))
    assert "belong together" not in text
    assert "<path" not in text
