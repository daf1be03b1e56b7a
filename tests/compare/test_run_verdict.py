"""Two runs as a whole: identical, suspicious, what to look for next, what could not be compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from irtool.compare.losses.comparison import FIRST_STEP
from irtool.compare.runs.comparison import RunComparison, _add_missing, _first_limit
from irtool.compare.runs.hyperparameters import Row
from irtool.compare.runs.sides import RunSide, side_of_file
from irtool.compare.runs.units import UnitResult
from irtool.compare.tensors.model import Columns, NoTensors, Op

EQUAL = UnitResult("step 0", {}, 3, 0, 0, None, True, (None, None))
CARRIES = replace(EQUAL, equal=False, counts={"carries error": 2})
FIRST: Any = SimpleNamespace(name="the first wrong operator")
FAULTY = replace(CARRIES, first=FIRST, cause=(1,))


def graphs(same: bool) -> Any:
    return SimpleNamespace(is_identical=same)


def losses(verdict: str = "identical", change: int | None = None, first: int = 0) -> Any:
    return SimpleNamespace(
        verdict=verdict, is_suspicious=verdict == "drift", change_step=change,
        steps=list(range(first, first + 20)),
    )  # fmt: skip


def compared(**parts: Any) -> RunComparison:
    return RunComparison(RunSide("left"), RunSide("right"), **parts)


LR = Row("learning rate", "0.1", "0.1", True)


@pytest.mark.parametrize(
    ("parts", "identical", "suspicious"),
    [
        ({}, False, False),  # nothing was compared
        ({"graphs": graphs(True)}, True, False),
        ({"graphs": graphs(False)}, False, True),
        ({"units": [EQUAL]}, True, False),
        ({"units": [EQUAL, CARRIES]}, False, False),  # error that is carried accuses nobody
        ({"units": [EQUAL, FAULTY]}, False, True),
        ({"graphs": graphs(False), "units": [EQUAL]}, False, False),  # tensors decide
        ({"losses": losses()}, True, False),
        ({"losses": losses("noise")}, False, False),
        ({"losses": losses("drift")}, False, True),
        ({"graphs": graphs(True), "hyperparameters": [LR]}, True, False),
        ({"graphs": graphs(True), "hyperparameters": [replace(LR, same=None)]}, True, False),
        ({"graphs": graphs(True), "hyperparameters": [replace(LR, same=False)]}, False, True),
        ({"units": [replace(CARRIES, counts={"attribute differs": 1})]}, False, True),
        ({"units": [replace(CARRIES, counts={"attribute differs": 0})]}, False, False),
        ({"units": [replace(CARRIES, counts={"lower precision, explained": 1})]}, False, True),
        ({"units": [replace(CARRIES, lowered=(("MatMul", "input 0"),))]}, False, True),
    ],
)
def test_what_is_identical_and_what_is_something_to_see(
    parts: dict[str, Any], identical: bool, suspicious: bool
) -> None:
    found = compared(**parts)
    assert (found.is_identical, found.is_suspicious) == (identical, suspicious)


def test_the_unit_that_is_shown_is_the_one_where_it_begins() -> None:
    later = replace(FAULTY, cause=(2,))
    assert compared(units=[EQUAL, later, FAULTY]).shown is FAULTY
    assert compared(units=[EQUAL, CARRIES]).shown is EQUAL
    assert compared().shown is None
    assert compared(units=[FAULTY]).first is FIRST
    assert compared().first is None


@pytest.mark.parametrize(
    ("curve", "steps"),
    [
        (None, (0,)),
        (losses("noise", 5), (0,)),
        (losses("drift"), (0,)),
        (losses("drift", 5), (4, 5)),
        (losses("drift", 0), (0,)),  # from the start
        (losses("drift", 105, first=100), (4, 5)),  # counted from the first step there is
        (losses("drift", 101, first=100), (0, 1)),
    ],
)
def test_tensors_would_decide_where_losses_part_and_just_before(
    curve: Any, steps: tuple[int, ...]
) -> None:
    assert compared(losses=curve).decisive_steps == steps


def test_tensors_are_wanted_where_there_is_something_to_look_for() -> None:
    suspects: Any = [SimpleNamespace(kind="operands reordered")]
    assert compared(suspects=suspects).wants_tensors
    assert compared(graphs=graphs(False)).wants_tensors
    assert not compared().wants_tensors
    assert not compared(units=[EQUAL], suspects=suspects).wants_tensors


# -- what could not be compared --------------------------------------------------------------------

DUMP: Any = object()
RUN: Any = object()


def missing(left: dict[str, Any], right: dict[str, Any], *names: str) -> list[str]:
    found = RunComparison(
        *(RunSide(name, **parts) for name, parts in zip(names, (left, right), strict=True))
    )
    _add_missing(found)
    return found.missing


def test_what_one_side_lacks_is_told_by_its_name() -> None:
    everything = {"dump": DUMP, "losses": RUN, "units": {(0, 0, 0, ""): RUN}}
    alike = {"dump": DUMP, "losses": RUN}
    assert missing(everything, alike, "runs/a/", "runs/b") == ["tensors: b has none"]
    assert missing({"losses": RUN}, alike, "runs/a", "runs/b") == [
        "graphs: a has none",
        "tensors: neither run has any",
    ]
    assert missing({}, {}, "runs/a", "runs/b") == [
        f"{what}: neither run has any" for what in ("graphs", "tensors", "losses")
    ]


def test_sides_of_one_name_are_told_by_their_paths() -> None:
    assert missing({"dump": DUMP, "losses": RUN}, {"losses": RUN}, "x/run", "y/run") == [
        "graphs: y/run has none",
        "tensors: neither run has any",
    ]


def test_a_file_that_is_neither_a_digest_nor_tensors_is_none(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("nothing of the kind", encoding="utf-8")
    with pytest.raises(NoTensors, match="neither a digest nor a file of tensors"):
        side_of_file(str(file))


@pytest.mark.parametrize(
    ("types", "limit"),
    [(("Float32", "Float32"), FIRST_STEP), (("BFloat16", "Float32"), FIRST_STEP),
     (("BFloat16", "BFloat16"), 2.0**-8), (("Float16", "BFloat16"), FIRST_STEP)],
)  # fmt: skip
def test_first_losses_may_be_apart_by_what_the_type_rounds_that_both_compute_in(
    types: tuple[str, str], limit: float
) -> None:
    runs: list[Any] = []
    for dtype in types:
        columns = Columns()
        place = columns.add("output.0", dtype, (4,))
        op = Op(0, "Functional.linear.0.forward", "linear", "forward", (), (place,))
        runs.append(SimpleNamespace(columns=columns, ops=[op]))
    tensors: Any = SimpleNamespace(left=runs[0], right=runs[1])
    assert _first_limit(tensors) == pytest.approx(limit)
    assert _first_limit(None) == FIRST_STEP
