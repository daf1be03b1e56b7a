"""Overlays from what other commands write with ``--format json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import irtool
from irtool.cli.main import main
from irtool.ir.dump import Dump
from irtool.report.picture.build import picture
from irtool.report.picture.dot import dot_text
from irtool.report.picture.material import material
from irtool.report.picture.overlay import Mark, Overlay, worst
from irtool.report.picture.overlay_json import OverlayError, read_overlays

ROOT = Path(__file__).resolve().parents[3]
REJECTED = str(ROOT / "samples" / "mlp_rejected" / "step_parallel_begin_0018.ir")


@pytest.fixture(scope="module")
def dump() -> Dump:
    return irtool.load(REJECTED)


def place(dump: Dump, op: str) -> dict[str, Any]:
    node = next(dump.nodes(op=op))
    return {"node": node.id, "line": node.line, "file": dump.path}


def test_what_check_writes_is_an_overlay(dump: Dump, tmp_path: Path) -> None:
    main(["check", REJECTED, "--format", "json", "-o", str(tmp_path / "check.json")])
    data = json.loads((tmp_path / "check.json").read_text())
    (overlay,) = read_overlays(data, [dump])
    assert overlay.topic == "findings"
    ((node, mark),) = overlay.marks.items()
    assert (node.op, mark.severity) == ("MatMul", "error")
    assert "(2, 4) and (1, 2)" in mark.text or "dimension" in mark.text


def test_what_diff_writes_marks_the_side_that_is_drawn(tmp_path: Path) -> None:
    left = str(ROOT / "samples" / "mlp_semi_auto" / "20_validate_0080.ir")
    right = str(ROOT / "samples" / "data_parallel" / "19_validate_0078.ir")
    main(["diff", left, right, "--format", "json", "-o", str(tmp_path / "diff.json")])
    data = json.loads((tmp_path / "diff.json").read_text())
    severities = {}
    for path in (left, right):
        overlays = read_overlays(data, [irtool.load(path)])
        marks = next(each for each in overlays if each.topic == "diff").marks.values()
        severities[path] = {mark.severity for mark in marks}
    assert "removed" in severities[left]
    assert "added" not in severities[left]
    assert "added" in severities[right]
    assert "removed" not in severities[right]


def test_dumps_of_one_name_in_folders_of_one_name_are_told_apart(tmp_path: Path) -> None:
    text = Path(REJECTED).read_bytes()
    dumps: dict[str, Dump] = {}
    for run in ("old", "new"):
        path = tmp_path / run / "rank_0" / "20_validate_0080.ir"
        path.parent.mkdir(parents=True)
        path.write_bytes(text)
        dumps[run] = irtool.load(path)
    node = place(dumps["old"], "MatMul")
    sides = {run: {**node, "file": f"{run}/rank_0/20_validate_0080.ir"} for run in dumps}
    data: dict[str, Any] = {
        "schema": "irtool.diff/1",
        "only_left": [sides["old"]],
        "changed": [{"left": sides["old"], "right": {**sides["new"], **place(dumps["new"], "ReLU"),
                     "file": sides["new"]["file"]}, "what": [], "error_out": 0.5}],
    }  # fmt: skip
    found = {run: read_overlays(data, [dump]) for run, dump in dumps.items()}
    ops = {
        (run, overlay.topic, node.op, mark.severity, mark.value)
        for run, overlays in found.items()
        for overlay in overlays
        for node, mark in overlay.marks.items()
    }
    assert ops == {
        ("old", "diff", "MatMul", "removed", None),
        ("old", "error", "MatMul", None, 0.5),
        ("new", "diff", "ReLU", "changed", None),
        ("new", "error", "ReLU", None, 0.5),
    }


def test_the_first_difference_is_called_that_and_no_error(dump: Dump) -> None:
    first = {"right": {**place(dump, "ReLU"), "file": dump.path}, "why": "attributes differ"}
    data = {"schema": "irtool.diff/1", "first_divergence": first}
    (overlay,) = read_overlays(data, [dump])
    (mark,) = overlay.marks.values()
    assert mark == Mark(None, "first", "first: attributes differ")
    text = dot_text(picture(material(dump.whole()), None, [overlay]), [overlay])
    assert "border: first difference" in text
    assert "border: error" not in text


def test_plan_marks_operators_whose_strategy_changes(dump: Dump) -> None:
    operators = [
        {**place(dump, "MatMul"), "before": [[2, 4], [1, 4]], "after": [[8, 1], [1, 1]]},
        {**place(dump, "ReLU"), "before": [[2, 4]], "after": [[2, 4]]},
    ]
    (overlay,) = read_overlays({"schema": "irtool.plan/1", "operators": operators}, [dump])
    (mark,) = overlay.marks.values()
    assert mark == Mark(None, "changed", "((2, 4), (1, 4)) → ((8, 1), (1, 1))")


def test_memory_and_cost_bring_numbers(dump: Dump) -> None:
    alive = {"schema": "irtool.memory/1", "alive_at_peak": [{**place(dump, "ReLU"), "bytes": 4096}]}
    (memory,) = read_overlays(alive, [dump])
    assert (memory.topic, memory.unit) == ("memory", "bytes")
    assert [mark.value for mark in memory.marks.values()] == [4096]
    spent = {"schema": "irtool.cost/1", "operators": [{**place(dump, "ReLU"), "seconds": 0.25}]}
    (cost,) = read_overlays(spent, [dump])
    assert (cost.topic, cost.unit) == ("cost", "seconds")


def test_marks_of_other_files_are_not_placed(dump: Dump) -> None:
    finding = {"code": "X", "severity": "error", "message": "m", "node": "%3", "line": 5}
    data = {"schema": "irtool.lint/1", "findings": [{**finding, "file": "elsewhere/other.ir"}]}
    (overlay,) = read_overlays(data, [dump])
    assert not overlay.marks
    assert "other.ir" in overlay.unplaced[0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "expected a JSON object"),
        ({}, "no schema"),
        ({"schema": "irtool.parse/1"}, "says nothing of nodes"),
        ({"schema": "irtool.check/9"}, "version 9"),
        ({"schema": "irtool.cost/1", "path": "elsewhere/other.ir"}, "other.ir, which is not drawn"),
    ],
)
def test_what_is_no_overlay_is_refused(dump: Dump, data: object, message: str) -> None:
    with pytest.raises(OverlayError, match=message):
        read_overlays(data, [dump])


def test_odd_entries_are_passed_over(dump: Dump) -> None:
    odd: list[object] = [None, 3, "x", {}, {"node": 7}, {"line": "x", "node": None}, {"node": []}]
    for schema in ("check", "lint", "plan", "cost", "memory", "diff"):
        keys = ("findings", "operators", "alive_at_peak", "only_left", "only_right", "changed")
        data = {"schema": f"irtool.{schema}/1", **dict.fromkeys(keys, odd), "first_divergence": 3}
        for overlay in read_overlays(data, [dump]):
            assert not overlay.marks


def test_marks_of_several_nodes_become_one(dump: Dump) -> None:
    one, other = list(dump.nodes(op="MatMul"))[:2]
    marks = {one: Mark(1.0, "warning", "a"), other: Mark(2.0, "error", "b")}
    both = [one, other]
    assert Overlay("cost", "", marks=marks).of(both) == Mark(3.0, "error", "a … and 1 more")
    largest = Overlay("error", "", marks=marks, total="max").of(both)
    assert largest is not None
    assert largest.value == 2.0
    assert Overlay("cost", "").of(both) is None
    assert worst([None, "info", "added"]) == "added"


def test_what_was_measured_goes_before_what_is_modelled(dump: Dump) -> None:
    """It may be of another dump than the rest of the answer: of the one that is drawn it counts."""
    measured = {"dump": dump.path, "operators": [{**place(dump, "ReLU"), "seconds": 0.5}]}
    modelled = [{**place(dump, "ReLU"), "seconds": None, "modelled": 0.25}]
    answer = {"schema": "irtool.cost/1", "path": "elsewhere/begin.ir", "operators": modelled}
    (found,) = read_overlays({**answer, "measured": measured}, [dump])
    assert found.title == "measured time of a step"
    assert [mark.value for mark in found.marks.values()] == [0.5]
    (found,) = read_overlays({**answer, "path": dump.path, "measured": None}, [dump])
    assert [mark.value for mark in found.marks.values()] == [0.25]
