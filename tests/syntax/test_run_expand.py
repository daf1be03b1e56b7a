"""Paths of a command line, and the dumps that they stand for."""

from __future__ import annotations

import gzip
import io
import os
import sys
from pathlib import Path

import pytest

from irtool.syntax.run.expanding import expand

TINY = "# IR entry: @main_1\n# Total subgraphs: 1\n\n# Total params: 0\n\n"


def put(folder: Path, *names: str, text: str = TINY) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


# -- paths of a command line -------------------------------------------------------------------


def test_expand_a_run_folder(samples: Path) -> None:
    found = expand([str(samples / "pipeline_run")])
    assert not found.problems
    assert len(found.runs) == 1
    assert [(file.rank, file.compilation, file.name) for file in found.files] == [
        (0, 0, "step_parallel_begin"),
        (0, 0, "validate"),
        (4, 0, "step_parallel_begin"),
        (4, 0, "validate"),
    ]


def test_expand_files_keeps_the_order_given(samples: Path) -> None:
    begin = str(samples / "mlp_semi_auto/step_parallel_begin_0018.ir")
    other = str(samples / "pipeline_run/rank_4/20_validate_0080.ir")
    found = expand([other, "-", begin, other])
    assert [file.path for file in found.files] == [other, "-", begin]
    assert [file.rank for file in found.files] == [4, None, 0]
    assert [file.name for file in found.files] == ["validate", "", "step_parallel_begin"]
    assert not found.problems


def test_expand_reads_what_is_named_itself(tmp_path: Path) -> None:
    put(
        tmp_path,
        "actor_set/0_actor_set_x.ir",
        "old.dat",
        "20_validate_0001.ir",
        "20_validate_0001.dot",
    )
    with gzip.open(tmp_path / "step_parallel_begin_0000.ir.gz", "wt") as file:
        file.write(TINY)
    in_folder = [Path(file.path).name for file in expand([str(tmp_path)]).files]
    assert in_folder == ["step_parallel_begin_0000.ir.gz", "20_validate_0001.ir"]
    named = [str(tmp_path / "old.dat"), str(tmp_path / "actor_set/0_actor_set_x.ir")]
    assert [file.path for file in expand(named).files] == named
    matched = expand([str(tmp_path / "*.dat")])
    assert [Path(file.path).name for file in matched.files] == ["old.dat"]
    assert len(expand([str(tmp_path / "*")]).files) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_expand_does_not_open_pipes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    found = expand([str(tmp_path / "pipe")])
    assert [file.path for file in found.files] == [str(tmp_path / "pipe")]


def test_expand_says_what_is_wrong(tmp_path: Path, samples: Path) -> None:
    empty, losses = tmp_path / "empty", tmp_path / "losses"
    empty.mkdir()
    put(losses, "loss.json")
    (tmp_path / "gone").symlink_to("missing")
    paths = [str(empty), str(losses), str(tmp_path / "no.ir"), str(tmp_path / "*.ir")]
    found = expand([*paths, str(tmp_path / "gone"), str(samples / "gpt")])
    assert [problem.code for problem in found.problems] == [
        "RUN013",
        "RUN013",
        "RUN010",
        "RUN011",
        "RUN010",
    ]
    assert "MS_DEV_SAVE_GRAPHS" in found.problems[0].hint
    assert "losses" in found.problems[1].hint
    assert len(found.files) == 2


def test_expand_says_what_cannot_be_read(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: "step_parallel" not in str(path))
    found = expand([str(samples / "gpt"), str(samples / "gpt/step_parallel_begin_0018.ir")])
    assert [problem.message for problem in found.problems] == ["permission denied"] * 2
    assert [file.name for file in found.files] == ["validate"]


def test_names_that_look_like_globs(tmp_path: Path) -> None:
    put(tmp_path, "a[1].ir")
    assert len(expand([str(tmp_path / "a[1].ir")]).files) == 1


def test_a_folder_of_many_files(tmp_path: Path) -> None:
    for number in range(5_000):
        (tmp_path / f"opt_pass_1_x_{number:04}.ir").touch()
    assert len(expand([str(tmp_path)]).files) == 5_000


def test_standard_input_stays_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert [file.path for file in expand(["-"]).files] == ["-"]
