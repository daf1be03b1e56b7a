"""A misspelt path is told with the one that is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from irtool.cli.main import main
from irtool.syntax.near_path import near_path


@pytest.mark.parametrize(
    ("written", "meant"),
    [("sampels/gpt", "samples/gpt"), ("samples/gtp/a.ir", "samples/gpt/a.ir"), ("zzz/gpt", "")],
)
def test_every_name_of_a_path_is_put_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, meant: str
) -> None:
    (tmp_path / "samples/gpt").mkdir(parents=True)
    (tmp_path / "samples/gpt/a.ir").touch()
    monkeypatch.chdir(tmp_path)
    assert near_path(written) == meant


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sampels/gpt"], "did you mean irtool samples/gpt?"),
        (["samples/gpt/b.ir"], "did you mean irtool parse samples/gpt/a.ir?"),
        (["doctor", "sampels/gpt"], "did you mean samples/gpt?"),
        (["check", "samples/gtp"], "did you mean samples/gpt?"),
        (["no/where"], "nor a folder of this name"),
    ],
)
def test_commands_name_the_near_path(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    told: str,
) -> None:
    (tmp_path / "samples/gpt").mkdir(parents=True)
    (tmp_path / "samples/gpt/a.ir").touch()
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert told in capsys.readouterr().err
