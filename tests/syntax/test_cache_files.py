"""What kept files rest on: irtool's own files and its grammars, and nothing beside them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import irtool
from irtool.syntax import grammar_files, kept
from irtool.syntax.cache_files import program_digest, states_of_files

PACKAGE = str(Path(irtool.__file__).parent)


def test_the_program_is_the_package_and_its_grammars(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def noted(*folders: str) -> list[str]:
        asked.extend(folders)
        return []

    monkeypatch.setattr("irtool.syntax.cache_files.states_of_files", noted)
    program_digest.__wrapped__()
    assert asked == [PACKAGE, grammar_files.grammar_folder()]
    assert (Path(grammar_files.grammar_folder()) / "dump.lark").is_file()


def test_a_model_rests_on_what_reads_it_and_on_the_grammars(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def noted(*folders: str) -> list[str]:
        asked.extend(os.path.normpath(folder) for folder in folders)
        return []

    monkeypatch.setattr(kept, "states_of_files", noted)
    kept._maker.__wrapped__()
    grammars = os.path.normpath(grammar_files.grammar_folder())
    assert asked == [f"{PACKAGE}{os.sep}ir", f"{PACKAGE}{os.sep}syntax", grammars]


def test_every_file_counts_by_path_size_and_time(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    module, data = tmp_path / "below" / "module.py", tmp_path / "data.json"
    module.write_text("a = 1")
    data.write_text("{}")
    before = states_of_files(str(tmp_path))
    assert len(before) == 2

    os.utime(data, ns=(1, 1))
    assert len(set(before) & set(states_of_files(str(tmp_path)))) == 1
    data.unlink()
    assert len(states_of_files(str(tmp_path))) == 1
    module.write_text("a = 12")
    assert not set(before) & set(states_of_files(str(tmp_path)))


def test_what_python_compiled_and_other_folders_do_not_count(tmp_path: Path) -> None:
    ours, others = tmp_path / "ours", tmp_path / "others"
    for folder in (ours / "__pycache__", others):
        folder.mkdir(parents=True)
    (ours / "module.py").write_text("")
    before = states_of_files(str(ours))
    (ours / "__pycache__" / "module.pyc").write_text("x")
    (others / "numpy.py").write_text("x")
    assert states_of_files(str(ours)) == before
    assert states_of_files(str(ours), str(ours)) == before
