"""A pipeline whose stages are cut too, with no run of MindSpore on one device beside it.

``data/executed_pipeline.tar.xz``: one training step of a small network (norm, up, GELU, down |
norm, tanh, a factor, head) that MindSpore 2.7.0 really ran, on one process and on four, two stages
of two micro-batches, tensor or data parallel; and the begin dumps of the stages.  What stands
beside them is the same step as PyTorch shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.compare.dumps import Entry, msprobe
from tests.compare.executed import DATA, compared, unpack
from tests.compare.test_layouts import Values, named

ARCHIVE = DATA / "executed_pipeline.tar.xz"
SCOPE = "Default_network-WithLossCell__backbone-Net"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return unpack(tmp_path, ARCHIVE, begins=("single/", "tp2pp2/"))


def files_of(run: Path, rank: int, operator: str, label: str) -> list[Path]:
    folder = run / f"rank_{rank}" / "Net" / "0" / "0"
    files = [f for f in folder.iterdir() if operator in f.name and f".{label}." in f.name]
    forward = sorted(f for f in files if "Gradients_" not in f.name)
    assert forward, (operator, label)
    return forward


def change(
    run: Path, rank: int, operator: str, label: str, what: Callable[[Values], Values]
) -> None:
    """Change a tensor of a rank in all micro-batches."""
    for file in files_of(run, rank, operator, label):
        np.save(file, what(np.load(file)))


def torch_run(runs: Path, factor: float = 1.0) -> Path:
    """The step as PyTorch would show it: a product and its bias are one call."""

    def tensor(operator: str, label: str) -> Values:
        (file,) = files_of(runs / "single", 0, f"{operator}-op0.", label)
        return np.load(file)

    def linear(place: int, name: str) -> Entry:
        product, bias = f"MatMul.{SCOPE}_{name}-Dense_MatMul", f"Add.{SCOPE}_{name}-Dense_Add"
        arguments = [tensor(product, "input.0"), tensor(product, "input.1"),
                     tensor(bias, "input.1")]  # fmt: skip
        return f"Functional.linear.{place}.forward", arguments, tensor(bias, "output.0")

    def norm(place: int, name: str) -> Entry:
        operator = f"LayerNorm.{SCOPE}_{name}-Norm_LayerNorm"
        arguments = [tensor(operator, f"input.{n}") for n in range(3)]
        given = [arguments[0], arguments[0].shape[-1], *arguments[1:], 1e-5]
        return f"Functional.layer_norm.{place}.forward", given, tensor(operator, "output.0")

    gelu, tanh, scaled = f"GeLU.{SCOPE}_GeLU", f"Tanh.{SCOPE}_Tanh", f"{SCOPE}_scaled-Scaled_Mul"
    made = tensor(scaled, "output.0") * np.float32(factor)
    entries: list[Entry] = [
        norm(0, "norm"),
        linear(0, "up"),
        ("Functional.gelu.0.forward", [tensor(gelu, "input.0")], tensor(gelu, "output.0")),
        linear(1, "down"),
        norm(1, "norm2"),
        ("Torch.tanh.0.forward", [tensor(tanh, "input.0")], tensor(tanh, "output.0")),
        ("Tensor.__mul__.0.forward", [tensor(scaled, "input.0"), 1.5 * factor], made),
        ("Functional.linear.2.forward", [made, *linear(2, "head")[1][1:]],
         (tensor(f"MatMul.{SCOPE}_head-Dense_MatMul", "output.0") * np.float32(factor)
          + tensor(f"Add.{SCOPE}_head-Dense_Add", "input.1"))),
    ]  # fmt: skip
    return msprobe(runs / "torch", entries, tensors=True)


@pytest.mark.parametrize("is_left", [True, False])
def test_a_healthy_pipeline_beside_another_framework(runs: Path, is_left: bool) -> None:
    sides = torch_run(runs), runs / "tp2pp2"
    found = compared(*(sides if is_left else sides[::-1]))
    assert found.first is None
    assert not found.is_suspicious
    (unit,) = found.units
    assert unit.name == "step 0, ranks 0 to 3 put together"
    assert unit.pairs >= 7


def test_a_healthy_pipeline_beside_one_device(runs: Path) -> None:
    found = compared(runs / "single", runs / "tp2pp2")
    assert found.first is None
    assert not found.is_suspicious


@pytest.mark.parametrize("sides", [("tp2pp2", "dp2pp2"), ("dp2pp2", "tp2pp2")])
def test_two_pipelines_that_are_cut_otherwise(tmp_path: Path, sides: tuple[str, str]) -> None:
    runs = unpack(
        tmp_path,
        ARCHIVE,
        begins=(
            "tp2pp2/",
            "dp2pp2/",
        ),
    )
    found = compared(*(runs / side for side in sides))
    assert found.first is None
    assert not found.is_suspicious
    (unit,) = found.units
    assert unit.name == "step 0, ranks 0 to 3 put together and ranks 0 to 3 put together"
    assert unit.pairs > 30


def test_micro_batches_are_joined_along_the_batch_and_ranks_along_the_features(runs: Path) -> None:
    layout = compared(torch_run(runs), runs / "tp2pp2").units[0].layout
    assert layout is not None
    run, logical = layout.logical.run, layout.logical
    up = next(op for op in run.ops if "up-Dense_MatMul" in op.name and op.phase == "forward")
    cut = logical.cuts[up.outputs[0]]
    assert cut.counts == (2, 2)
    # rank 0 in micro-batches 0 and 1, then rank 1
    assert [cut.parts[part] for part in range(4)] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert logical.gradient_factor == 0.5, "means over half of the batch, two of them"


def test_another_factor_in_the_second_stage_is_named(runs: Path) -> None:
    found = compared(torch_run(runs, factor=1.05), runs / "tp2pp2")
    assert "scaled-Scaled_Mul" in named(found)
    assert found.first is not None
    assert found.first.ranks == (2, 3)


def test_a_wrong_slice_of_one_rank_is_named(tmp_path: Path) -> None:
    runs = unpack(
        tmp_path,
        ARCHIVE,
        begins=(
            "tp2pp2/",
            "dp2pp2/",
        ),
    )
    change(runs / "tp2pp2", 1, "up-Dense_MatMul", "input.1", lambda x: x[::-1].copy())
    found = compared(runs / "dp2pp2", runs / "tp2pp2")
    assert "up-Dense_MatMul" in named(found)
    assert found.first is not None
    assert found.first.ranks == (1,)
    weights = next(f for f in found.units[0].facts if f.kind == "initial weights")
    assert len(weights.differing) == 1


def test_a_mean_instead_of_a_sum_is_named_with_the_collective(runs: Path) -> None:
    for rank in (0, 1):
        change(runs / "tp2pp2", rank, "down-Dense_AllReduce", "output.0", lambda x: x / 2)
    found = compared(torch_run(runs), runs / "tp2pp2")
    assert "AllReduce" in named(found)
    assert found.first is not None
    assert found.first.ranks == (0, 1)
    assert "gives the mean of the operands" in found.first.why


def test_other_data_on_one_rank_is_named(runs: Path) -> None:
    for operator in ("0-_MicroBatch_StridedSlice", "1-_MicroBatch_StridedSlice"):
        change(runs / "tp2pp2", 1, operator, "input.0", lambda x: x + np.float32(1))
    found = compared(torch_run(runs), runs / "tp2pp2")
    assert found.first is not None
    assert found.first.ranks == (1,)


def test_without_the_begin_dump_of_a_stage_that_is_said(runs: Path) -> None:
    (begin,) = (runs / "tp2pp2" / "rank_2" / "ir").glob("step_parallel_begin*")
    begin.unlink()
    found = compared(torch_run(runs), runs / "tp2pp2")
    assert not found.units
    (text,) = found.right.complaints
    assert "the right run: ranks 2 to 3 have no step_parallel_begin dump" in text
