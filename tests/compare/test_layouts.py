"""A run on one device against the same network cut over two: tensors are put together.

``data/executed_mlp.tar.xz``: one training step of a perceptron that MindSpore 2.7.0 really ran, on
one process and on two (tensor parallel): its own tensor dump, and the graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from irtool.compare.layouts.slices import Cut, best_cut, counts_of, cuts
from irtool.compare.runs.comparison import RunComparison, first_case
from tests.compare.executed import DATA, compared, unpack

Values = NDArray[np.float32]
ARCHIVE = DATA / "executed_mlp.tar.xz"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return unpack(tmp_path, ARCHIVE)


def change(
    runs: Path, ranks: tuple[int, ...], tensor: str, what: Callable[[Values], Values]
) -> None:
    """Change one tensor of some ranks' dumps, by the beginning and the end of its name."""
    operator, _, label = tensor.partition("|")
    for rank in ranks:
        folder = runs / "mlp_tp2" / f"rank_{rank}" / "Net" / "0" / "0"
        files = [f for f in folder.iterdir() if operator in f.name and f".{label}." in f.name]
        assert len(files) == 1, [f.name for f in files]
        np.save(files[0], what(np.load(files[0])))


def named(found: RunComparison) -> str:
    assert found.first is not None
    first = found.first
    return (first.maker_right or first.maker_left or first.pair.right).name


@pytest.mark.parametrize("sides", [("mlp_single", "mlp_tp2"), ("mlp_tp2", "mlp_single")])
def test_a_healthy_run_accuses_nobody(runs: Path, sides: tuple[str, str]) -> None:
    found = compared(*(runs / name for name in sides))
    assert found.first is None
    assert not found.is_suspicious
    (unit,) = found.units
    assert unit.name == "step 0, ranks 0 to 1 put together"
    alone = unit.only_left if sides[0] == "mlp_single" else unit.only_right
    assert alone == 0, "every operator of the run on one device has its partner"


def test_slices_partial_sums_and_replicas_are_told_from_each_other(runs: Path) -> None:
    layout = compared(runs / "mlp_single", runs / "mlp_tp2").units[0].layout
    assert layout is not None
    run, logical = layout.logical.run, layout.logical
    up = next(op for op in run.ops if op.type == "MatMul" and "_up-Dense_MatMul" in op.name)
    down = next(op for op in run.ops if op.type == "MatMul" and "_down-Dense_MatMul" in op.name)
    assert logical.cuts[up.inputs[0]].counts == (1, 1)
    assert logical.cuts[up.inputs[1]].counts == (2, 1)
    assert logical.cuts[up.outputs[0]].counts == (1, 2)
    assert up.outputs[0] not in logical.sums
    assert logical.sums[down.outputs[0]] == (0, 1)


def test_a_collective_is_held_against_its_own_operands(runs: Path) -> None:
    change(runs, (0, 1), "AllReduce.Default_network-WithLossCell__backbone-Mlp_down|output.0",
           lambda x: x * np.float32(0.5))  # fmt: skip
    found = compared(runs / "mlp_single", runs / "mlp_tp2")
    assert "down-Dense_AllReduce" in named(found)
    assert found.first is not None
    assert found.first.ranks == (0, 1)
    assert "the mean of the operands, not their sum" in found.first.why


@pytest.mark.parametrize("sides", [("mlp_single", "mlp_tp2"), ("mlp_tp2", "mlp_single")])
def test_an_operator_of_one_run_is_shown_as_that_ones_alone(
    runs: Path, sides: tuple[str, str]
) -> None:
    change(runs, (0, 1), "AllReduce.Default_network-WithLossCell__backbone-Mlp_down|output.0",
           lambda x: x * np.float32(0.5))  # fmt: skip
    case = first_case(compared(*(runs / name for name in sides)))
    assert case is not None
    cut = "right" if sides[1] == "mlp_tp2" else "left"
    assert case.only_on == cut
    shown = {"left": case.left_neighbours, "right": case.right_neighbours}
    assert [side for side, nodes in shown.items() if nodes] == [cut]
    assert "this collective" in case.advice[0]


def test_an_operator_of_both_runs_is_shown_in_both(runs: Path) -> None:
    change(runs, (1,), "LayerNorm.Default|input.0", lambda x: x + np.float32(1))
    case = first_case(compared(runs / "mlp_single", runs / "mlp_tp2"))
    assert case is not None
    assert case.only_on is None
    assert case.left_neighbours
    assert case.right_neighbours


def test_a_wrong_slice_is_a_parameter_that_differs_on_that_rank(runs: Path) -> None:
    change(runs, (1,), "MatMul.Default_network-WithLossCell__backbone-Mlp_up|input.1",
           lambda x: np.flip(x, 0))  # fmt: skip
    found = compared(runs / "mlp_single", runs / "mlp_tp2")
    assert "up-Dense_MatMul" in named(found)
    assert found.first is not None
    assert found.first.parameter
    assert found.first.ranks == (1,)


def test_replicas_that_differ_are_told_with_their_rank(runs: Path) -> None:
    change(runs, (1,), "LayerNorm.Default|input.0", lambda x: x + np.float32(1))
    found = compared(runs / "mlp_single", runs / "mlp_tp2")
    assert "LayerNorm" in named(found)
    assert found.first is not None
    assert found.first.ranks == (1,)


def test_a_fault_inside_the_sharded_region_is_named(runs: Path) -> None:
    for what in (
        "ReLU.Default|output.0",
        "MatMul.Default_network-WithLossCell__backbone-Mlp_down|input.0",
    ):
        change(runs, (0, 1), what, lambda x: x * np.float32(1.05))
    assert "ReLU" in named(compared(runs / "mlp_single", runs / "mlp_tp2"))


def test_sizes_say_into_how_many_parts_an_axis_is_cut() -> None:
    assert counts_of((8, 6), (4, 6)) == (2, 1)
    assert counts_of((8, 6), (3, 6)) is None
    assert counts_of((8,), (8, 1)) is None


def test_the_way_in_which_parts_agree_is_taken() -> None:
    whole = np.arange(8.0)
    candidates = list(cuts((8,), (2,), (0, 1, 2, 3)))
    assert [cut.parts[1] for cut in candidates] == [(0,), (1,)]
    ranks = {rank: whole[4 * (rank % 2) :][:4] for rank in range(4)}

    def error(cut: Cut) -> float:
        return float(np.abs(cut.joined(ranks) - whole).sum())

    assert best_cut(candidates, error).parts == {0: (0,), 1: (1,), 2: (0,), 3: (1,)}


def test_where_no_way_agrees_those_that_hold_the_same_part_have_to() -> None:
    candidates = list(cuts((4,), (2,), range(4)))
    wanted = {0: (0,), 1: (1,), 2: (0,), 3: (1,)}

    def apart(cut: Cut) -> float:
        return 0.0 if cut.parts == wanted else 1.0

    def noise(cut: Cut) -> float:
        return 1.2 if cut.parts == wanted else 1.1

    assert best_cut(candidates, noise, None, apart).parts == wanted
    assert best_cut(candidates, lambda cut: noise(cut) - 1, None, apart).parts != wanted


def test_a_partial_sum_adds_up_the_ranks_of_its_group_that_hold_the_part() -> None:
    (cut,) = cuts((2,), (1,), (0, 1))
    values = {0: np.ones(2), 1: np.full(2, 3.0)}
    assert cut.joined(values).tolist() == [1, 1]
    both = frozenset((0, 1))
    assert cut.joined(values, {0: both, 1: both}).tolist() == [4, 4]
