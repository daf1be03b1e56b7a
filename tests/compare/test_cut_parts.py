"""Two runs cut over ranks: which ranks go together, and how many micro-batches each had."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from irtool.compare.layouts.across_ranks import _common  # pyright: ignore[reportPrivateUsage]
from irtool.compare.layouts.chained import CannotChain, check_ranks, micro_batches
from irtool.compare.layouts.declared import SideLayout


def parts(ours: SideLayout, theirs: SideLayout) -> list[tuple[str, list[int], list[int]]]:
    """What is compared: its name, and the ranks of both runs that belong to it."""
    runs = tuple({rank: rank for rank in range(layout.ranks)} for layout in (ours, theirs))
    return [
        (name, list(one), list(other))
        for name, (one, other), _ in _common(runs, (ours, theirs))  # type: ignore[arg-type]
    ]


def test_runs_cut_otherwise_are_put_together_as_wholes() -> None:
    found = parts(SideLayout(tensor_parallel=2), SideLayout(data_parallel=2))
    assert found == [("", [0, 1], [0, 1])]


def test_ranks_that_both_have_alike_are_compared_one_by_one() -> None:
    found = parts(SideLayout(tensor_parallel=2, data_parallel=2), SideLayout(tensor_parallel=2))
    assert found == [
        ("tensor parallel rank 0", [0, 2], [0]),
        ("tensor parallel rank 1", [1, 3], [1]),
    ]
    found = parts(SideLayout(data_parallel=2), SideLayout(data_parallel=2, pipeline_parallel=2))
    assert found == [
        ("data parallel rank 0", [0], [0, 2]),
        ("data parallel rank 1", [1], [1, 3]),
    ]
    both = SideLayout(tensor_parallel=2, data_parallel=2)
    assert [name for name, *_ in parts(both, both)] == [
        "tensor parallel rank 0, data parallel rank 0",
        "tensor parallel rank 1, data parallel rank 0",
        "tensor parallel rank 0, data parallel rank 1",
        "tensor parallel rank 1, data parallel rank 1",
    ]


def test_what_was_compared_one_by_one_is_cut_no_more() -> None:
    ours = SideLayout(tensor_parallel=2, data_parallel=4)
    theirs = SideLayout(tensor_parallel=2, data_parallel=2)
    runs = tuple({rank: rank for rank in range(one.ranks)} for one in (ours, theirs))
    for _, _, reduced in _common(runs, (ours, theirs)):  # type: ignore[arg-type]
        assert [one.tensor_parallel for one in reduced] == [1, 1]
        assert [one.data_parallel for one in reduced] == [4, 2]


# -- micro-batches ---------------------------------------------------------------------------------


def run(*calls: str, phase: str = "forward", is_module: bool = False) -> Any:
    ops = [
        SimpleNamespace(name=f"{kind}.0", type=kind, phase=phase, is_module=is_module)
        for kind in calls
    ]
    return SimpleNamespace(ops=ops)


@pytest.mark.parametrize(
    ("ours", "theirs", "counts"),
    [
        (["MatMul"], ["MatMul"], (1, 1)),
        (["MatMul"], ["MatMul"] * 4, (1, 4)),
        (["MatMul"] * 4, ["MatMul"], (4, 1)),
        (["MatMul", "Exp"], ["MatMul", "MatMul", "Exp", "Exp"], (1, 2)),
        # One that is called once more does not outvote the others.
        (["MatMul", "MatMul", "Exp"], ["MatMul"] * 4 + ["Exp"] * 3, (1, 2)),
        (["MatMul"], ["Exp"], (1, 1)),
    ],
)
def test_how_often_the_same_is_called_tells_micro_batches(
    ours: list[str], theirs: list[str], counts: tuple[int, int]
) -> None:
    whole = SideLayout()
    assert micro_batches(({0: run(*ours)}, {0: run(*theirs)}), (whole, whole)) == counts


def test_of_many_ranks_those_of_the_first_place_in_each_stage_are_counted() -> None:
    cut = SideLayout(tensor_parallel=2, pipeline_parallel=2)
    theirs = {rank: run("MatMul", "MatMul") for rank in range(4)}
    ours = {0: run("MatMul", "MatMul")}  # the layers of both stages
    assert micro_batches((ours, theirs), (SideLayout(), cut)) == (1, 2)


def test_what_is_declared_is_not_counted() -> None:
    sides = ({0: run("MatMul")}, {0: run(*["MatMul"] * 4)})
    assert micro_batches(sides, (SideLayout(micro_batches=2), SideLayout())) == (2, 1)
    assert micro_batches(sides, (SideLayout(), SideLayout(micro_batches=8))) == (1, 8)


def test_a_layout_makes_as_many_ranks_as_there_are() -> None:
    layout = SideLayout(2, 3, 4)
    check_ranks(dict.fromkeys(range(24)), layout)  # type: ignore[arg-type]
    with pytest.raises(CannotChain, match=r"makes 24 ranks .* the run has 23"):
        check_ranks(dict.fromkeys(range(23)), layout)  # type: ignore[arg-type]
