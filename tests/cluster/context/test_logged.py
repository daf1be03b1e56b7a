"""What logs say of the context of a run."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

import irtool
from irtool.cluster.context import logged as module
from irtool.cluster.context.evidence import evidence_of
from irtool.cluster.context.find import find_context
from irtool.cluster.context.given import Given
from irtool.cluster.context.logged import logged
from irtool.ir.run import LogFile

HEAD = (
    "[INFO] PARALLEL(7,7f3db8be7b80,python):2026-11-22-15:54:15.748.474 [mindspore/ccsrc/frontend"
)
INIT = (
    HEAD + "/parallel/device_manager.cc:286] Init] The device num: {devices}, rank id: {rank}, "
    "the backend: {backend}, the stage num: {stages}, the stage id: 0, the rank index in stage "
    "is: {rank}\n"
)
PARALLEL = (
    HEAD + "/parallel/step_parallel_utils.cc:3180] ParallelInit] The parallel context: "
    "device_num: {devices}, global_rank: {rank}, communication_backend: {backend}, "
    "gradients_mean: {mean}, gradient_fp32_sync: 1\n"
)
SEARCH = HEAD + "/parallel/step_auto_parallel.cc:232] StepAutoParallel] search_mode: {search}\n"


def log(
    path: Path,
    devices: int = 8,
    rank: int = 0,
    backend: str = "hccl",
    stages: int = 1,
    mean: int = 0,
    search: str = "",
) -> LogFile:
    """A log of one compilation, appended to what is there."""
    values = {"devices": devices, "rank": rank, "backend": backend, "stages": stages, "mean": mean}
    text = "[WARNING] ME(7:1,MainProcess): nothing of interest\n" + INIT.format(**values)
    text += SEARCH.format(search=search) if search else ""
    with path.open("a", encoding="utf-8") as stream:
        stream.write(text + PARALLEL.format(**values) + "train epoch: 1, loss: 0.5\n")
    return LogFile(str(path), "worker", rank)


def values(*logs: LogFile, rank: int | None = 0) -> dict[str, object]:
    return {key: entry.value for key, entry in logged(logs, rank).items()}


def test_lines_of_the_parallel_pass_say_what_it_compiles_for(tmp_path: Path) -> None:
    found = log(tmp_path / "worker_0.log", 16, 0, "nccl", 2, 1, "sharding_propagation")
    assert values(found) == {
        "device_num": 16,
        "global_rank": 0,
        "pipeline_stages": 2,
        "device_target": "GPU",
        "search_mode": "sharding_propagation",
        "gradients_mean": True,
        "gradient_fp32_sync": True,
    }
    origin = logged([found], 0)["pipeline_stages"].origin
    assert (origin.source, origin.path) == ("logs", found.path)
    assert origin.what.startswith("The device num: 16, rank id: 0")


def test_of_another_ranks_log_all_but_the_rank_counts(tmp_path: Path) -> None:
    found = log(tmp_path / "worker_3.log", rank=3)
    assert "global_rank" not in values(found, rank=0)
    assert values(found, rank=0)["device_num"] == 8
    assert values(found, rank=3)["global_rank"] == 3
    assert values(found, rank=None)["global_rank"] == 3


def test_the_own_log_goes_before_others(tmp_path: Path) -> None:
    other, own = log(tmp_path / "worker_1.log", 4, 1), log(tmp_path / "worker_2.log", 8, 2)
    assert values(other, own, rank=2)["device_num"] == 8


def test_compilations_that_differ_say_nothing_of_what_they_differ_in(tmp_path: Path) -> None:
    log(tmp_path / "worker_0.log", mean=1)
    found = log(tmp_path / "worker_0.log", mean=0)
    assert "gradients_mean" not in values(found)
    assert values(found)["device_num"] == 8


def test_a_log_is_read_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "worker_0.log"
    path.write_text("loss\n" * 500_000)
    found = log(path)
    assert values(found)
    monkeypatch.setattr(module, "MOST_BYTES", 1 << 20)
    assert values(found) == {}


def test_packed_and_damaged_logs_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    found = log(tmp_path / "worker_0.log")
    packed = gzip.compress(Path(found.path).read_bytes() + b"loss 0.25\n" * 100_000)
    Path(found.path).write_bytes(packed)
    assert values(found)["device_num"] == 8
    Path(found.path).write_bytes(packed[:-20])
    assert values(found)["device_num"] == 8
    Path(found.path).write_bytes(b"\x1f\x8b\x08garbage")
    assert values(found) == {}
    assert values(LogFile(str(tmp_path / "gone.log"), "log", 0)) == {}


@pytest.mark.parametrize("name", ["recursive", "", "x" * 5000])
def test_a_search_that_there_is_not_says_nothing(name: str, tmp_path: Path) -> None:
    assert "search_mode" not in values(log(tmp_path / "worker_0.log", search=name))


@pytest.fixture
def run(samples: Path, tmp_path: Path) -> Path:
    """A begin dump that no other dump stands beside, and that says nothing of devices."""
    folder = tmp_path / "run" / "rank_0"
    folder.mkdir(parents=True)
    shutil.copy(samples / "mlp_semi_auto" / "step_parallel_begin_0018.ir", folder)
    return folder.parent


def test_a_run_has_the_context_that_its_log_tells(run: Path) -> None:
    log(run / "worker_0.log", devices=16, mean=1)
    loaded = irtool.load_run(run)
    found = find_context(Given(), evidence_of(loaded, loaded.compilation()))
    for key, value in {"device_num": 16, "gradients_mean": True}.items():
        assert (found.value(key), found.entries[key].origin.source) == (value, "logs")
    assert found.parallel is not None
    assert found.parallel.devices == 16
    assert found.parallel.gradients_mean


def test_a_log_that_dumps_contradict_is_told(samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(samples / "mlp_semi_auto", folder)
    log(folder / "worker_0.log", devices=4)
    loaded = irtool.load_run(folder)
    found = find_context(Given(), evidence_of(loaded, loaded.compilation()))
    assert found.value("device_num") == 8
    (contradiction,) = (each for each in found.contradictions if each.key == "device_num")
    assert (contradiction.used.origin.source, contradiction.other.origin.source) == ("dump", "logs")


def test_a_refusal_tells_the_devices_of_the_only_stage(samples: Path, tmp_path: Path) -> None:
    """Not those of a pipeline, whose stages nobody counts."""
    line = (
        "[ERROR] PARALLEL(1,7f,python):2026-11-23-15:20:18.289.401 [operator_info.cc:745] "
        "InferRepeatedCalcInfo] MatMulInfo30: The strategy is ((1, 1), (4, 1)), it requires 4 "
        "devices, but the device number of this stage is 2, it can not be divisible by 4\n"
    )
    (tmp_path / "rank_0").mkdir()
    (tmp_path / "rank_0/compile.log").write_text(line)
    shutil.copy(samples / "mlp_semi_auto/step_parallel_begin_0018.ir", tmp_path / "rank_0")
    run = irtool.load_run(str(tmp_path))
    found = find_context(Given(), evidence_of(run, run.compilation()))
    assert (found.devices, found.entries["device_num"].origin.source) == (2, "logs")
    piped = tmp_path / "piped"
    shutil.copytree(samples / "pipeline_run", piped)
    for dump in piped.rglob("*validate*"):
        dump.unlink()
    (piped / "rank_0/compile.log").write_text(line)
    run = irtool.load_run(str(piped))
    found = find_context(Given(), evidence_of(run, run.compilation()))
    assert found.entries.get("device_num") is None or found.value("device_num") != 2
