"""Dumps with damaged parts: what is broken is named, the rest is compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from irtool.cli.main import main
from irtool.compare.tensors.formats.msprobe.dump import read_msprobe
from irtool.ir.run import MsprobeDump
from tests.compare.dumps import msprobe, network


def compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any], str]:
    status = main(["diff", str(folder / "a"), str(folder / "b"), "-f", "json"])
    captured = capsys.readouterr()
    return status, json.loads(captured.out), captured.err


def test_what_stands_before_the_cut_of_a_dump_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side in ("a", "b"):
        msprobe(tmp_path / side, network(epsilon=1e-5 if side == "a" else 1e-2))
    file = tmp_path / "b/step0/rank0/dump.json"
    text = file.read_text()
    file.write_text(text[: text.index("Functional.linear.1") + 200])
    status, found, told = compared(tmp_path, capsys)
    assert status == 1
    assert found["tensors"][0]["first"] == "Functional.layer_norm.0.forward"
    assert [op["name"] for op in found["only_left"]] == ["Functional.linear.1.forward"]
    assert "cut off or damaged after 3 operators" in told


def test_files_that_cannot_be_read_are_named_and_their_figures_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side in ("a", "b"):
        msprobe(tmp_path / side, network(epsilon=1e-5 if side == "a" else 1e-2), tensors=True)
    folder = tmp_path / "b/step0/rank0/dump_tensor_data"
    (folder / "Functional.layer_norm.0.forward.output.0.npy").write_bytes(b"")
    (folder / "Functional.linear.0.forward.input.0.npy").unlink()
    status, found, told = compared(tmp_path, capsys)
    assert status == 1
    assert found["tensors"][0]["first"] == "Functional.layer_norm.0.forward"
    assert "Functional.layer_norm.0.forward.output.0.npy: the file is empty" in told
    assert "Functional.linear.0.forward.input.0.npy: no such file" in told


def test_a_rank_without_its_dump_leaves_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side in ("a", "b"):
        for rank in (0, 1):
            step = msprobe(tmp_path / f"{side}{rank}", network()) / "step0"
            (step / "rank0").rename(step / f"rank{rank}")
            (tmp_path / side / "step0").mkdir(parents=True, exist_ok=True)
            (step / f"rank{rank}").rename(tmp_path / side / "step0" / f"rank{rank}")
    (tmp_path / "b/step0/rank1/dump.json").write_text("{")
    status, found, told = compared(tmp_path, capsys)
    assert status == 1
    assert [unit["unit"] for unit in found["tensors"]] == ["rank 0, step 0"]
    assert "b/step0/rank1" in told


def test_checksums_of_one_kind_are_compared_and_of_two_kinds_not(tmp_path: Path) -> None:
    folder = msprobe(tmp_path / "a", network()) / "step0/rank0"
    document = json.loads((folder / "dump.json").read_text())
    for entry in document["data"].values():
        for leaf in (*entry["input_args"], *entry["output"]):
            if "shape" in leaf:
                for name in ("Max", "Min", "Mean", "Norm"):
                    del leaf[name]
                leaf["md5"] = 0.0 if leaf["shape"] == [16] else "0x07a17647febc8772"
    (folder / "dump.json").write_text(json.dumps(document))
    run = read_msprobe(MsprobeDump(str(folder), 0, 0))
    assert run.level == "md5"
    assert set(run.columns.hashes) == {"0.0", "0x07a17647febc8772"}
