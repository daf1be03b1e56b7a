"""The operator that makes NaN or infinity of finite numbers is told, and nothing behind it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irtool.compare.tensors.model import Columns, Op, TensorRun
from irtool.compare.tensors.nonfinite import first_non_finite


class Made:
    """A run of operators in a row, each given what the one before it made."""

    def __init__(self, folder: Path, rank: int = 0) -> None:
        self.folder = folder
        self.run = TensorRun(str(folder), "mindspore", "tensors", "mindspore", Columns(), [], rank)

    def tensor(self, values: list[float], dtype: str = "Float32") -> int:
        path = self.folder / f"{self.run.rank}_{len(self.run.columns)}.npy"
        kind = np.float16 if dtype == "Float16" else np.float32
        np.save(path, np.array(values, kind))
        return self.run.columns.add("output.0", dtype, (len(values),), file=str(path))

    def op(self, kind: str, given: list[int], values: list[float], dtype: str = "Float32") -> int:
        made = self.tensor(values, dtype)
        index = len(self.run.ops)
        self.run.ops.append(Op(index, f"{kind}-op{index}", kind, "forward", given, [made]))
        return made


def test_what_makes_it_of_finite_numbers_is_told_and_not_what_hands_it_on(tmp_path: Path) -> None:
    made = Made(tmp_path)
    a = made.op("MatMul", [made.tensor([1.0, -3.0])], [2.0, 0.0])
    b = made.op("Log", [a], [0.7, -np.inf])
    made.op("Mul", [b], [1.0, np.nan])
    found = first_non_finite([made.run])
    assert found is not None
    assert (found.op.name, found.content.infinite, found.content.nan) == ("Log-op1", 1, 0)
    assert (found.is_read, found.largest_input) == (False, 2.0)


def test_healthy_numbers_are_silent(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.op("MatMul", [made.tensor([1.0])], [2.0])
    assert first_non_finite([made.run]) is None


def test_masks_are_meant(tmp_path: Path) -> None:
    made = Made(tmp_path)
    mask = made.op("Fill", [], [-np.inf, 0.0])
    scores = made.op("Add", [mask, made.tensor([1.0, 1.0])], [-np.inf, 1.0])
    made.op("Softmax", [scores], [0.0, 1.0])
    assert first_non_finite([made.run]) is None


def test_a_mask_that_holds_nan_is_not(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.op("Fill", [], [np.nan])
    found = first_non_finite([made.run])
    assert found is not None
    assert found.op.type == "Fill"


def test_a_weight_that_is_nan_was_read_so(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.op("MatMul", [made.tensor([1.0]), made.tensor([np.nan])], [np.nan])
    found = first_non_finite([made.run])
    assert found is not None
    assert (found.op.type, found.is_read) == ("MatMul", True)


def test_of_several_ranks_the_one_where_it_begins_is_told(tmp_path: Path) -> None:
    ranks = [Made(tmp_path, 0), Made(tmp_path, 1)]
    for made in ranks:
        broken = np.inf if made.run.rank == 1 else 1.0
        first = made.op("Exp", [made.tensor([99.0])], [broken])
        made.op("AllReduce", [first], [np.inf])
    found = first_non_finite([made.run for made in ranks])
    assert found is not None
    assert (found.run.rank, found.op.type) == (1, "Exp")


@pytest.mark.parametrize(("dtype", "most"), [("Float16", 65504.0), ("Float32", 1e30)])
def test_the_largest_input_is_told(tmp_path: Path, dtype: str, most: float) -> None:
    made = Made(tmp_path)
    made.op("Mul", [made.tensor([most], dtype)], [np.inf], dtype)
    found = first_non_finite([made.run])
    assert found is not None
    assert found.largest_input == pytest.approx(most)
