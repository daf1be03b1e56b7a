"""Lanes of stages: from left to right by phase, one stage below the other."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import irtool
from irtool.ir.phases import phases
from irtool.ir.whole import Whole
from irtool.ir.whole.inlining import join
from irtool.report.picture.build import picture
from irtool.report.picture.dot import dot_text
from irtool.report.picture.material import material
from irtool.report.picture.model import Picture
from irtool.report.picture.tree import Scope, runs

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz's dot is not here")
FRAME = re.compile(
    r'subgraph cluster_\w+ \{graph \[bb="([^"]*)"[^]]*?label=<<B><FONT[^>]*>(stage[^<]*)'
)


@pytest.fixture(scope="module")
def whole() -> Whole:
    folder = SAMPLES / "pipeline_2_stages"
    return join({rank: irtool.load(folder / f"rank_{rank}/20_validate_0080.ir") for rank in (0, 2)})


@pytest.fixture(scope="module")
def drawn(whole: Whole) -> Picture:
    return picture(material(whole))


@needs_dot
def test_lanes_stand_in_order_and_stages_below_each_other(drawn: Picture) -> None:
    laid = subprocess.run(
        ["dot", "-Tdot"], input=dot_text(drawn), text=True, capture_output=True, check=True
    ).stdout
    lanes: dict[str, tuple[float, float, float]] = {}
    for box, title in FRAME.findall(re.sub(r"[\n\t]", "", laid)):
        left, bottom, _, top = (float(number) for number in box.split(","))
        lanes[title] = left, bottom, top
    names = ("forward", "backward", "optimizer")
    first = [lanes[f"stage 0 · rank 0: {name}"] for name in names]
    second = [lanes[f"stage 1 · rank 2: {name}"] for name in names]
    for row in (first, second):
        assert [left for left, _, _ in row] == sorted(left for left, _, _ in row)
    assert min(bottom for _, bottom, _ in first) > max(top for _, _, top in second)


def test_what_updates_a_parameter_stands_with_it(drawn: Picture) -> None:
    frames = {frame.id: frame.title for frame in drawn.frames}
    lines = {box.lines[0]: box for box in drawn.boxes if box.title == "ApplyMomentum"}
    scaled = [box for box in drawn.boxes if box.title == "Mul" and box.lane == "optimizer"]
    assert scaled
    assert {frames[box.frame] for box in scaled} == {frames[box.frame] for box in lines.values()}


def test_gradients_summed_over_micro_batches_are_scaled_after_the_backward_pass(
    whole: Whole,
) -> None:
    found = phases(whole.dumps[0])
    scaled = [node for node in found if node.op == "Mul" and node.scope == "Default"]
    assert [found[node] for node in scaled] == ["optimizer", "optimizer"]


def test_an_operator_that_only_waits_is_joined_to_what_it_waits_for(drawn: Picture) -> None:
    titles = {box.id: box.title for box in drawn.boxes}
    ends = {(titles[edge.tail], titles[edge.head]) for edge in drawn.edges if edge.kind == "order"}
    assert ("AssignAdd", "AddN") in ends


def test_a_receive_takes_no_value_of_its_own_stage(drawn: Picture) -> None:
    receives = {box.id for box in drawn.boxes if box.title == "Receive"}
    assert {edge.kind for edge in drawn.edges if edge.head in receives} <= {
        "transfer",
        "repeat",
        "tie",
    }


def test_layers_before_and_after_another_one_are_folded_apart() -> None:
    layers = [Scope(f"{number}-Block", "scope") for number in range(8)]
    names = [[scope.name[0] for scope in part] for part in runs(layers[:3] + layers[4:], layers)]
    assert names == [["0", "1", "2"], ["4", "5", "6", "7"]]
    assert len(runs(layers[::2], layers)) == 1
