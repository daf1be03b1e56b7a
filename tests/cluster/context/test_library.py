"""The context of a run, as Python asks for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import irtool
from irtool.cluster.context.given import ContextError
from irtool.sharding.check import check

BEGIN = "step_parallel_begin_0018.ir"


@pytest.fixture
def folder(samples: Path, tmp_path: Path) -> Path:
    """A run of which no file says the context."""
    shutil.copytree(samples / "mlp_semi_auto", tmp_path / "run")
    (tmp_path / "run" / "case.json").unlink()
    return tmp_path / "run"


def test_a_folder_a_run_a_file_and_a_dump_have_one_context(folder: Path) -> None:
    sources = (folder, irtool.load_run(folder), folder / BEGIN, irtool.load(folder / BEGIN))
    for source in sources:
        found = irtool.find_context(source)
        assert found.parallel is not None
        assert (found.parallel.devices, found.entries["device_num"].origin.source) == (8, "dump")
        assert found.parallel.full_batch


def test_it_is_what_check_takes(folder: Path) -> None:
    dump = irtool.load(folder / BEGIN)
    context = irtool.find_context(dump).parallel
    assert context is not None
    assert check(dump, context).accepted is True


def test_what_is_given_goes_before_dumps_unless_the_run_itself_is_meant(folder: Path) -> None:
    given = {"dataset_strategy": "data_parallel"}
    found = irtool.find_context(folder, given)
    assert found.value("dataset_strategy") == "data_parallel"
    assert [each.key for each in found.contradictions] == ["dataset_strategy"]
    assert irtool.find_context(folder, given, as_run=True).value("dataset_strategy") == "full_batch"


def test_files_and_folders_say_what_they_say_to_commands(samples: Path) -> None:
    found = irtool.find_context(samples / "pipeline_run", rank=4)
    assert (found.value("global_rank"), found.stages) == (4, 2)
    file = samples / "pipeline_run/rank_4/20_validate_0080.ir"
    found = irtool.find_context(file)
    assert found.entries["global_rank"].value == 4
    case = irtool.find_context(samples / "data_parallel")
    assert case.entries["global_rank"].origin.source == "file"


def test_a_dump_without_a_file_says_what_it_shows() -> None:
    found = irtool.find_context(irtool.loads("# IR entry: @f\n"))
    assert found.parallel is None


def test_a_value_that_makes_no_sense_is_refused(folder: Path) -> None:
    with pytest.raises(ContextError, match="device_num"):
        irtool.find_context(folder, {"device_num": "many"})
