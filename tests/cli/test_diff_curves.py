"""``irtool diff`` of files that are no dumps says which option compares them."""

from __future__ import annotations

from pathlib import Path

import pytest

from irtool.cli.main import main


def test_loss_curves_are_compared_by_an_option(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    sides = [str(samples / "loss" / name) for name in ("reference.csv", "bfloat16.csv")]
    assert main(["diff", *sides]) == 2
    told = capsys.readouterr().err
    assert f"{sides[0]}: error[CLI001]: is a loss curve, not a dump" in told
    assert "irtool diff --loss LEFT RIGHT" in told


def test_what_is_neither_dump_nor_curve_is_no_dump(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = tmp_path / "notes.csv"
    text.write_text("a,b\nx,y\n")
    assert main(["diff", str(text), str(text)]) == 2
    told = capsys.readouterr().err
    assert "not an ANF IR dump" in told
    assert "loss curve" not in told
