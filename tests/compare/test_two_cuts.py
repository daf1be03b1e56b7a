"""Runs that are cut, with no run of MindSpore on one device: their begin dumps tell shapes.

``data/executed_mlp_cut.tar.xz``: the perceptron of ``executed_mlp.tar.xz`` on two processes, data
parallel; and the begin dumps of both runs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.compare.dumps import Entry, msprobe
from tests.compare.executed import DATA, compared, unpack
from tests.compare.test_layouts import ARCHIVE, Values, named

CUT = DATA / "executed_mlp_cut.tar.xz"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return unpack(tmp_path, ARCHIVE, CUT)


def change(
    run: Path, ranks: tuple[int, ...], tensor: str, what: Callable[[Values], Values]
) -> None:
    """Change one tensor of some ranks' dumps, by the beginning of its operator and its label."""
    operator, _, label = tensor.partition("|")
    for rank in ranks:
        folder = run / f"rank_{rank}" / "Net" / "0" / "0"
        files = [f for f in folder.iterdir() if operator in f.name and f".{label}." in f.name]
        assert len(files) == 1, [f.name for f in files]
        np.save(files[0], what(np.load(files[0])))


@pytest.mark.parametrize("sides", [("mlp_tp2", "mlp_dp2"), ("mlp_dp2", "mlp_tp2")])
def test_two_healthy_runs_that_are_cut_otherwise_accuse_nobody(
    runs: Path, sides: tuple[str, str]
) -> None:
    found = compared(*(runs / name for name in sides))
    assert found.first is None
    assert not found.is_suspicious
    (unit,) = found.units
    assert unit.name == "step 0, ranks 0 to 1 put together and ranks 0 to 1 put together"
    assert unit.pairs > 30
    assert (unit.only_left, unit.only_right) == (0, 0)


def test_a_fault_in_one_of_two_cut_runs_is_named(runs: Path) -> None:
    for rank in (0, 1):
        down = "MatMul.Default_network-WithLossCell__backbone-Mlp_down|input.0"
        for tensor in ("ReLU.Default|output.0", down):
            change(runs / "mlp_dp2", (rank,), tensor, lambda x: x * np.float32(1.05))
    assert "ReLU" in named(compared(runs / "mlp_tp2", runs / "mlp_dp2"))


@pytest.mark.parametrize("is_left", [True, False])
def test_a_replica_that_differs_is_told_with_its_rank_on_either_side(
    runs: Path, is_left: bool
) -> None:
    change(runs / "mlp_tp2", (1,), "LayerNorm.Default|input.0", lambda x: x + np.float32(1))
    sides = (runs / "mlp_tp2", runs / "mlp_dp2")
    found = compared(*(sides if is_left else sides[::-1]))
    assert found.first is not None
    assert found.first.ranks == (1,)


def test_without_a_begin_dump_that_is_said(runs: Path) -> None:
    for path in (runs / "mlp_dp2").glob("rank_0/ir/step_parallel_begin*"):
        path.unlink()
    found = compared(runs / "mlp_tp2", runs / "mlp_dp2")
    assert not found.units
    (text,) = found.right.complaints
    assert "the right run: ranks 0 to 1 have no step_parallel_begin dump" in text


def torch_run(folder: Path, single: Path, scale: float = 1.0) -> Path:
    """The same step as PyTorch would show it: a module's product and its bias are one call."""

    def tensor(operator: str, label: str) -> Values:
        files = sorted((single / "rank_0" / "Net" / "0" / "0").iterdir())
        (file,) = (f for f in files if operator in f.name and f".{label}." in f.name)
        return np.load(file)

    scope = "Default_network-WithLossCell__backbone-Mlp_"
    norm, relu, tanh = f"{scope}norm-Norm_LayerNorm-op0", f"{scope}ReLU-op0", f"{scope}Tanh-op0"
    entries: list[Entry] = [
        ("Functional.layer_norm.0.forward",
         [tensor(norm, "input.0"), 16, tensor(norm, "input.1"), tensor(norm, "input.2"), 1e-5],
         tensor(norm, "output.0")),
    ]  # fmt: skip
    for place, name in enumerate(("up", "down", "head")):
        product, bias = f"MatMul.{scope}{name}-Dense_MatMul-op0", f"Add.{scope}{name}-Dense_Add-op0"
        given = tensor(product, "input.0")
        arguments = [given, tensor(product, "input.1"), tensor(bias, "input.1")]
        made = tensor(bias, "output.0")
        factor = np.float32(scale if name == "down" else 1.0)
        entries.append((f"Functional.linear.{place}.forward", arguments, made * factor))
        if name == "up":
            entries.append(("Functional.relu.0.forward", [made], tensor(relu, "output.0")))
        if name == "down":
            entries.append(("Torch.tanh.0.forward", [made * factor], tensor(tanh, "output.0")))
    return msprobe(folder / "torch", entries, tensors=True)


@pytest.mark.parametrize("is_left", [True, False])
def test_a_run_of_another_framework_beside_a_cut_one(runs: Path, is_left: bool) -> None:
    sides = (torch_run(runs, runs / "mlp_single"), runs / "mlp_tp2")
    found = compared(*(sides if is_left else sides[::-1]))
    assert found.first is None
    (unit,) = found.units
    assert unit.pairs >= 6
    assert unit.counts.get("introduces error", 0) == 0


def test_a_fault_beside_a_run_of_another_framework_is_named(runs: Path) -> None:
    found = compared(torch_run(runs, runs / "mlp_single", 1.05), runs / "mlp_tp2")
    assert found.first is not None
    assert found.first.pair.left.name == "Functional.linear.1.forward"
