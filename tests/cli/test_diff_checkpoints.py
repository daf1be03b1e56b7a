"""``irtool diff`` of checkpoints: what is taken for one, what it says, and its status."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import irtool
from irtool.cli.main import main
from tests.compare.checkpoints.checkpoint_files import write_ckpt, write_torch

SAVED = Path(__file__).resolve().parents[2] / "samples" / "artefacts" / "checkpoints"
WEIGHT = np.arange(24, dtype=np.float32).reshape(4, 6)


def test_mindspore_saves_the_same_in_both_of_its_formats(
    capsys: pytest.CaptureFixture[str],
) -> None:
    paths = [str(SAVED / "three.ckpt"), str(SAVED / "three.safetensors")]
    assert main(["diff", *paths]) == 0
    assert capsys.readouterr().out.startswith("the same 3 parameters\n")


def test_a_difference_is_told_the_worst_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = {"a": WEIGHT, "b": WEIGHT + 1, "c": WEIGHT}
    right = {"a": WEIGHT, "b": WEIGHT * np.float32(1.5) + 1, "c": WEIGHT * np.float32(3)}
    paths = [str(write_ckpt(tmp_path / "a.ckpt", left)), str(write_torch(tmp_path / "b.pt", right))]
    assert main(["diff", *paths, "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "irtool.diff.checkpoints/1"
    verdicts = [(each["left"], each["verdict"]) for each in told["parameters"]]
    assert verdicts == [("a", "equal"), ("b", "differs"), ("c", "scaled")]
    assert irtool.diff(*paths).to_dict() == told
    assert main(["diff", *paths]) == 1
    text = capsys.readouterr().out
    assert text.startswith(
        "2 of 3 (66.7 %) parameters differ, first of all c: 3 times the left one"
    )
    assert main(["diff", *paths, "--fail-on", "error"]) == 0


def test_folders_of_ranks_are_checkpoints_and_ask_for_a_strategy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = write_ckpt(tmp_path / "whole.ckpt", {"w": WEIGHT})
    for rank in range(2):
        half = WEIGHT[2 * rank : 2 * rank + 2]
        write_ckpt(tmp_path / "cut" / f"rank_{rank}" / "net.ckpt", {"w": half})
    assert main(["diff", str(whole), str(tmp_path / "cut")]) == 1
    assert "--right-strategy" in capsys.readouterr().out
    layout = {
        "dev_matrix": [2], "tensor_map": [0, -1], "tensor_shape": [4, 6], "field": 0,
        "opt_weight_shard_size": 0, "opt_weight_shard_step": 0,
    }  # fmt: skip
    strategy = tmp_path / "strategy.json"
    items = {"parallel_strategy_item": {}, "parallel_layout_item": {"w": layout}}
    strategy.write_text(json.dumps(items))
    paths = [str(whole), str(tmp_path / "cut"), "--right-strategy", str(strategy)]
    assert main(["diff", *paths]) == 0


def test_what_is_no_checkpoint_ends_with_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SAVED / "three.ckpt", tmp_path / "a.ckpt")
    (tmp_path / "b.ckpt").write_bytes(b"no checkpoint")
    assert main(["diff", str(tmp_path / "a.ckpt"), str(tmp_path / "b.ckpt")]) == 2
    assert "b.ckpt" in capsys.readouterr().err
