"""Where ``irtool check`` takes the parallel context from, and what it says of a bad one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from irtool.cli.configuration import Configuration
from irtool.cli.context import ContextArguments, find, given_by, parallel_of
from irtool.cli.main import main
from irtool.cli.report import Failure
from irtool.cluster.context.evidence import Evidence
from irtool.sharding.network.context import ParallelContext

ROOT = Path(__file__).resolve().parents[2]
BEGIN = ROOT / "samples/mlp_semi_auto/step_parallel_begin_0018.ir"

Resolve = Callable[..., ParallelContext]


@pytest.fixture
def layers(tmp_path: Path) -> Resolve:
    """The context that the places say, where no dump shows anything."""

    def made(
        options: dict[str, Any] | None = None,
        file: dict[str, Any] | None = None,
        config: dict[str, Any] | None = None,
        case: dict[str, Any] | None = None,
        rank: int | None = None,
    ) -> ParallelContext:
        folder = tmp_path if rank is None else tmp_path / f"rank_{rank}"
        folder.mkdir(exist_ok=True)
        if case is not None:
            (folder / "case.json").write_text(json.dumps({"context": case}))
        path = None
        if file is not None:
            path = str(tmp_path / "context.json")
            Path(path).write_text(json.dumps(file))
        arguments = ContextArguments(options or {}, path)
        configuration = Configuration("irtool.toml", config or {})
        given = given_by(arguments, configuration, str(folder / "x.ir"))
        return parallel_of(find(given, Evidence()))

    return made


def test_each_place_goes_before_the_next(layers: Resolve) -> None:
    places: list[dict[str, Any]] = [
        {"device_num": count} for count in (8, 16, 32, 64)
    ]  # options, --context, irtool.toml, case.json
    for first in range(4):
        given = [None] * first + places[first:]
        assert layers(*given).devices == places[first]["device_num"]


def test_keys_are_looked_up_one_by_one(layers: Resolve) -> None:
    found = layers(
        {"global_rank": 3},
        {"pipeline_stages": 2},
        {"enable_alltoall": True},
        {"device_num": "16", "pipeline_stages": "4", "global_rank": "1"},
    )
    assert (found.devices, found.stages, found.rank, found.enable_alltoall) == (16, 2, 3, True)


def test_the_rest_is_as_mindspore_has_it(layers: Resolve) -> None:
    found = layers({"device_num": 8})
    assert (found.threshold, found.enable_alltoall, found.soc, found.target) == (
        64,
        False,
        "Ascend910B",
        "Ascend",
    )
    assert (found.stages, found.rank, found.full_batch) == (1, 0, False)


def test_full_batch_goes_before_a_dataset_strategy_of_a_weaker_place(layers: Resolve) -> None:
    case = {"device_num": 8, "dataset_strategy": "[[8, 1], [8]]", "full_batch": False}
    assert layers(case=case).dataset == ((8, 1), (8,))
    found = layers({"full_batch": True}, case=case)
    assert (found.dataset, found.full_batch) == (None, True)
    assert layers({"dataset_strategy": "data_parallel"}, case=case).dataset is None


def test_full_batch_beside_dataset_strategy_is_no_conflict(layers: Resolve) -> None:
    found = layers({"device_num": 8, "full_batch": True, "dataset_strategy": "((2, 1),)"})
    assert found.dataset == ((2, 1),)


def test_optimizer_settings_are_merged(layers: Resolve) -> None:
    found = layers(
        {"device_num": 8, "parallel_optimizer_threshold": 10},
        config={"parallel_optimizer_config": {"optimizer_weight_shard_size": 2}},
        case={"parallel_optimizer_config": "{'parallel_optimizer_threshold': 24}"},
    )
    assert (found.threshold, found.weight_shard_size) == (10, 2)


def test_folder_of_a_rank_goes_before_files_but_not_before_the_option(layers: Resolve) -> None:
    case = {"device_num": 8, "global_rank": 1}
    assert layers(case=case, rank=4).rank == 4
    assert layers({"global_rank": 2}, case=case, rank=4).rank == 2


def test_case_of_a_folder_may_have_keys_that_nobody_knows(layers: Resolve) -> None:
    assert layers(case={"device_num": 8, "of_tomorrow": 1}).devices == 8


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ('{"device_num": 8}', ""),  # flat, as --context takes it
        ('{"context": {"device_num": 8}}', ""),
        ('{"parallel_context": {"device_num": 8}}', "holds no parallel context: not used"),
        ('{"devices": 8, "rank": 3, "target": "x86"}', "holds no parallel context: not used"),
        ('{"device_num": 8, "gradient_mean": 1}', "did you mean gradients_mean?"),
        ('{"device_num": 8, "log": "…", "error": ""}', ""),
    ],
)
def test_what_of_a_case_is_not_used_is_said(
    case: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "case.json").write_text(case)
    shutil.copy(BEGIN, tmp_path / BEGIN.name)
    status, out, errors = run(capsys, path=str(tmp_path / BEGIN.name))
    assert ("not used" in errors) == bool(said)
    assert said in errors
    assert (status, "8 devices" in out) == ((2, False) if said.startswith("holds") else (0, True))


def test_unreadable_case_is_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "case.json").write_text("{")
    arguments = ContextArguments({"device_num": 8})
    given_by(arguments, Configuration(), str(tmp_path / "x.ir"))
    assert "is not JSON" in capsys.readouterr().err


# -- files ---------------------------------------------------------------------------------------


@pytest.fixture
def alone(tmp_path: Path) -> str:
    """The dump without those of later passes, which would tell the context."""
    return str(shutil.copy(BEGIN, tmp_path / BEGIN.name))


def run(
    capsys: pytest.CaptureFixture[str], *arguments: str, path: str = str(BEGIN)
) -> tuple[int, str, str]:
    status = main(["check", path, *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_toml_and_case_files(
    alone: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toml = tmp_path / "context.toml"
    toml.write_text("device_num = 16\nenable_alltoall = true\n")
    status, out, _ = run(capsys, "--context", str(toml), path=alone)
    assert status == 0
    assert "16 devices" in out
    assert "all-to-all" in out
    case = ROOT / "samples/gpt/case.json"
    assert run(capsys, "--context", str(case))[0] == 0


def test_a_file_that_a_later_dump_contradicts_counts_and_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toml = tmp_path / "context.toml"
    toml.write_text("device_num = 16\n")
    status, out, _ = run(capsys, "--context", str(toml))
    assert status == 1
    assert "16 devices" in out
    assert "its group of all devices" in out


def test_irtool_toml_of_this_folder_or_one_above(
    alone: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "irtool.toml").write_text("[context]\ndevice_num = 32\n[lint]\nselect = []\n")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert "32 devices" in run(capsys, path=alone)[1]
    (tmp_path / "a" / ".git").mkdir()
    assert "32 devices" not in run(capsys, path=alone)[1]


# -- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--devices", "0"], "--devices: error[CTX002]: device_num must be from 1"),
        (["--devices", "7"], "--devices: error[CTX002]: device_num must be 1, 2, 4 or"),
        (["--stages", "3"], "--stages: error[CTX002]: device_num 8 is not divisible"),
        (["--devices", "7"], "4 or 8 would do"),
        (["--devices", "5000"], "4096 would do"),
        (["--devices", "20", "--stages", "3"], "24 would do"),
        (["--devices", "7", "--stages", "5000"], "--devices: error[CTX002]"),
        (["--stages", "3"], "8 devices allow 1, 2, 4, 8 stages"),
        (["--rank", "8"], "--rank: error[CTX002]: global_rank must be from 0 to 7"),
        (["--set", "gradiens_mean=1"], "did you mean gradients_mean?"),
        (["--set", "device_num"], "--set takes KEY=VALUE"),
        (["--parallel-mode", "semi_auto"], "did you mean semi_auto_parallel?"),
        (["--dataset-strategy", "foo"], "--dataset-strategy: error[CTX002]"),
        (["--set", "pipeline_config=3"], "pipeline_config must be a table"),
        (["--set", "parallel_optimizer_config=3"], "parallel_optimizer_config must be a table"),
        (["--target", "TPU"], "device_target must be Ascend, GPU or CPU"),
        (["--devices", "x"], "'--devices'"),
        (["--full-bach"], "did you mean --full-batch"),
        (["--context", "/no/such/file"], "/no/such/file: error[CLI001]: cannot be read"),
    ],
)  # fmt: skip
def test_bad_context(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, errors = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert message in errors


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.toml", "device_num = \n", "c.toml:1:14: error[CLI002]: no TOML"),
        ("c.toml", "devise_num = 8\n", "did you mean device_num?"),
        ("c.json", '{"device_num": 8,\n"x"}', "c.json:2:4: error[CLI002]: no JSON"),
        ("c.json", '{"context": 3}', "context must be a table"),
        ("c.json", "[1]", "holds no table"),
        ("c.json", "\xff", "error[CLI002]"),
        ("c", "device_num = 12", "device_num must be 1, 2, 4 or divisible by 8"),
    ],
)
def test_bad_context_file(
    name: str, content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    status, out, errors = run(capsys, "--context", str(path))
    assert (status, out) == (2, "")
    assert message in errors


def test_options_may_be_written_as_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = tmp_path / BEGIN.name
    shutil.copy(BEGIN, alone)
    options = (
        "--enable_alltoall", "--no_full_batch", "--dataset_strategy", "data_parallel",
        "--set", "gradients-mean=true", "--device_num", "16",
    )  # fmt: skip
    assert main(["check", str(alone), *options]) == 0
    out = capsys.readouterr().out
    assert "16 devices" in out
    assert "all-to-all" in out


def test_options_that_later_dumps_contradict_count_and_are_findings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, errors = run(capsys, "--dataset-strategy", "data_parallel", "--format", "json")
    assert status == 1
    found = json.loads(out)
    assert found["context"]["dataset_strategy"]["value"] == "data_parallel"
    assert found["context"]["dataset_strategy"]["origin"] == "option"
    (finding,) = [each for each in found["findings"] if each["code"] == "context"]
    assert "full_batch" in finding["message"]
    assert "step_parallel_end_0019.ir" in finding["message"]
    assert "warning[CTX005]" in errors


def test_mode_without_strategies(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--parallel-mode", "stand_alone")
    assert status == 0
    assert "strategies mean nothing in mode stand_alone" in out


def test_nobody_says_how_many_devices() -> None:
    with pytest.raises(Failure, match="for how many devices"):
        parallel_of(find(given_by(ContextArguments(), Configuration(), None), Evidence()))
