"""``irtool recover`` as a user types it."""

from __future__ import annotations

import json
import shutil
from math import prod
from pathlib import Path
from typing import Any

import pytest

from irtool.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main(["recover", *map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.fixture
def folder(samples: Path) -> Path:
    return samples / "mlp_semi_auto"


def test_before_any_failure(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    status, out, _ = run(capsys, folder)
    assert status == 0
    assert out.startswith("the loss of any single rank can be repaired from peers")
    assert "0,4" in out


def test_a_lost_rank(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    status, out, _ = run(capsys, folder, "--lost", 5)
    assert status == 0
    assert out.startswith("go on with 4 devices: everything survives")
    assert "2-12944936785892925600" in out
    assert "inferred from other ranks" in out


def test_a_pipeline_reads_the_dumps_of_all_stages(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    _, out, _ = run(capsys, samples / "pipeline_run", "--lost", 2, "--format", "json")
    found = json.loads(out)
    sets = {each["parameter"]: each["sets"] for each in found["replicas"]}
    assert sets["layers.0.up"] == [[0, 2], [1, 3]]
    assert sets["layers.1.up"] == [[4, 6], [5, 7]]
    assert found["weak_points"] == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert found["common_replicas"] == found["weak_points"]
    survivors = {each["parameter"]: each["survivors"] for each in found["slices_surviving"]}
    assert survivors["layers.0.up"] == [0]
    assert "layers.1.up" not in survivors
    assert {move["device"] // 4 for move in found["moves"][:2]} == {0}
    assert {move["device"] // 4 for move in found["moves"][2:]} == {1}


def test_a_stage_without_a_begin_dump_is_told(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    begin = samples / "pipeline_run/rank_4/step_parallel_begin_0018.ir"
    status, out, _ = run(capsys, begin)
    assert "no begin dump of stage 0" in out
    assert "4,6" in out
    assert "0,2" not in out
    assert status == 1
    assert run(capsys, begin, "--allow-unknown")[0] == 0


def test_lost_slices_give_status_1(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    status, out, _ = run(capsys, folder, "--lost", "1,5", "--format", "json")
    found = json.loads(out)
    assert status == 1
    assert found["schema"] == "irtool.recover/1"
    assert len(found["slices_lost"]) == 6
    assert found["accepted"] is True
    assert {tuple(group["ranks"]) for group in found["groups_rebuilt"]} == {
        (1, 5), (0, 1, 2, 3), (4, 5, 6, 7), tuple(range(8)),
    }  # fmt: skip
    assert found["time"]["peers"] is None


def test_added_layers(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    before, after = (samples / "mlp_grown" / name for name in ("before", "after"))
    status, out, _ = run(capsys, before, "--grown", after)
    assert status == 0
    assert "2 parameters to initialise, 9 kept" in out
    assert "added0.weight" in out
    assert "stale" in out


def test_the_same_graph_keeps_its_compile_cache(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    before, after = (samples / "mlp_grown" / name for name in ("before", "after"))
    _, out, _ = run(capsys, before, "--grown", before)
    assert "still valid: the graph is the same" in out
    prints = [
        json.loads(run(capsys, folder, "--format", "json")[1])["fingerprints"]["0"]
        for folder in (before, before, after)
    ]
    assert prints[0] == prints[1] != prints[2]


def test_a_stage_that_did_not_change_keeps_its_compile_cache(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    shutil.copytree(samples / "pipeline_run", tmp_path / "new")
    path = tmp_path / "new/rank_4/step_parallel_begin_0018.ir"
    path.write_text(
        path.read_text(encoding="utf-8").replace("PrimFunc_MatMul", "PrimFunc_MatMulExt"),
        encoding="utf-8",
    )
    _, out, _ = run(capsys, samples / "pipeline_run", "--plan", tmp_path / "new")
    assert "of stage 0 still valid: the graph is the same; of all others stale" in out


def test_a_page(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    _, out, _ = run(capsys, folder, "--lost", 5, "--format", "html")
    assert out.lower().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--lost", "x"], "x is no rank"),
        (["--lost", "9"], "there is no rank 9"),
        (["--lost", "1", "--to", "6"], "legal here: 4, 2, 1"),
        (["--assume", "speed=1"], "step_seconds"),
        (["--assume", "step_seconds=fast"], "is no number"),
        (["--assume", "storage_bandwidth=0"], "must be more than 0"),
        (["--data-bytes", "many"], "60GiB"),
        (["--grown", "nowhere.ir"], "no such file"),
        (["--lost", "3-1"], "ends before it begins"),
        (["--lost", ","], "names no rank"),
        (["--assume", "checkpoint_steps=inf"], "inf is no number"),
        (["--assume", "step_seconds=nan"], "nan is no number"),
        (["--to", "100000"], "4096 at most"),
    ],
)
def test_mistakes_are_explained(
    capsys: pytest.CaptureFixture[str], folder: Path, arguments: list[str], words: str
) -> None:
    status, _, err = run(capsys, folder, *arguments)
    assert status == 2
    assert words in err
    assert "Traceback" not in err


@pytest.mark.parametrize("devices", [[], ["--devices", 8]])
def test_what_is_no_dump_has_nothing_to_recover(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path, devices: list[object]
) -> None:
    # Not even from the dumps of the run that it lies beside.
    shutil.copytree(samples / "pipeline_2_stages", tmp_path / "run")
    text = tmp_path / "run/notes.txt"
    text.write_text("# What we trained\n")
    status, out, err = run(capsys, text, *devices)
    assert (status, out) == (2, "")
    assert "no statement" in err


@pytest.mark.parametrize("begins", [True, False])
def test_accumulated_gradients_are_nothing_to_restore(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path, begins: bool
) -> None:
    # They are zero between steps: four weights of 8 KiB on a rank, and their momentum, are lost.
    shutil.copytree(samples / "pipeline_no_replicas", tmp_path / "run")
    for begin in () if begins else (tmp_path / "run").rglob("*begin*"):
        begin.unlink()
    arguments = [tmp_path / "run", "--lost", 1, "--add-devices", 1, "--format", "json"]
    _, out, _ = run(capsys, *arguments)
    found = json.loads(out)
    lost = {each["parameter"]: each["bytes"] for each in found["slices_lost"]}
    weights = [f"bs.{block}.{name}" for block in (0, 1) for name in "wv"]
    assert lost == dict.fromkeys([*weights, *(f"moments.{name}" for name in weights)], 8192)
    assert not any(each["parameter"].startswith("accu_grads") for each in found["replicas"])


def test_a_new_device_has_to_compile(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    _, out, _ = run(capsys, folder, "--lost", 3, "--add-devices", 1, "--format", "json")
    found = json.loads(out)
    assert found["plan"] is None
    assert found["time"]["peers"]["compile"] > 0


def test_devices_asked_for_beyond_those_there_are_new(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    status, out, _ = run(capsys, folder, "--to", 16)
    assert status == 0
    assert "as asked for, 8 of them new" in out
    assert "legal               16, 8" in out


# -- runs that left only validate dumps ----------------------------------------------------------


@pytest.fixture
def only_validate(samples: Path, tmp_path: Path) -> Path:
    for rank in (0, 4):
        folder = tmp_path / f"rank_{rank}"
        folder.mkdir()
        path = samples / f"pipeline_run/rank_{rank}/20_validate_0080.ir"
        shutil.copy(path, folder / path.name)
    return tmp_path


def test_validate_dumps_alone_tell_who_holds_the_same(
    capsys: pytest.CaptureFixture[str], only_validate: Path, samples: Path
) -> None:
    status, out, _ = run(capsys, only_validate, "--lost", 2, "--format", "json")
    found = json.loads(out)
    assert status == 1  # what moves is not known
    assert found["moves"] is None
    assert any("there is no begin dump" in note for note in found["notes"])
    _, out, _ = run(capsys, samples / "pipeline_run", "--lost", 2, "--format", "json")
    whole = json.loads(out)
    for key in ("weak_points", "common_replicas", "slices_lost", "groups_rebuilt", "classes"):
        assert found[key] == whole[key], key
    survivors, known = (
        {each["parameter"]: each["survivors"] for each in one["slices_surviving"]}
        for one in (whole, found)
    )
    assert survivors == known


def test_validate_dumps_alone_tell_what_a_new_device_gets(
    capsys: pytest.CaptureFixture[str], only_validate: Path
) -> None:
    status, out, _ = run(capsys, only_validate, "--lost", 2, "--add-devices", 1)
    assert status == 0
    assert out.startswith("go on with 8 devices: everything survives, 64.0 KiB move")


def test_nothing_can_be_compared_with_validate_dumps(
    capsys: pytest.CaptureFixture[str], only_validate: Path, samples: Path
) -> None:
    status, _, err = run(capsys, only_validate, "--grown", samples / "pipeline_run")
    assert status == 2
    assert "without a begin dump of the run there is nothing to compare with" in err


def test_devices_and_stages_are_seen_where_nobody_says_them(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    for rank in (0, 4):
        folder = tmp_path / f"rank_{rank}"
        folder.mkdir()
        for path in (samples / f"pipeline_run/rank_{rank}").glob("*.ir"):
            shutil.copy(path, folder / path.name)
    for arguments in ((), ("--devices", 8)):
        _, out, _ = run(capsys, tmp_path, *arguments, "--format", "json")
        found = json.loads(out)
        stages = found["context"]["pipeline_stages"]
        assert (stages["value"], stages["origin"]) == (2, "dump")
        assert found["context"]["device_num"]["value"] == 8
        assert found["weak_points"] == [[0, 2], [1, 3], [4, 6], [5, 7]]


@pytest.mark.parametrize("name", ["step_parallel_begin_0018.ir", "b.ir"])
def test_dumps_around_a_begin_dump_that_are_not_its_own_tell_nothing(
    name: str, capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    """Neither those of other networks beside it nor runs in folders below."""
    begin = tmp_path / name
    shutil.copy(samples / "mlp_semi_auto/step_parallel_begin_0018.ir", begin)
    _, alone, _ = run(capsys, begin, "--devices", 8, "--lost", 5, "--format", "json")
    shutil.copytree(samples / "gpt", tmp_path / "gpt")
    shutil.copy(samples / "gpt/20_validate_0080.ir", tmp_path)
    _, among, err = run(capsys, begin, "--devices", 8, "--lost", 5, "--format", "json")
    assert err == ""
    told, expected = json.loads(among), json.loads(alone)
    for answer in (told, expected):
        del answer["context"], answer["assumptions"], answer["path"]
    assert told == expected


def test_ranks_without_their_last_dump_are_left_out(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    shutil.copytree(samples / "pipeline_run", tmp_path / "run")
    (tmp_path / "run/rank_0/20_validate_0080.ir").unlink()
    status, out, err = run(capsys, tmp_path / "run", "--format", "json")
    assert status == 0
    assert "rank 0: no validate dump, left out" in err
    found = json.loads(out)
    assert found["weak_points"] == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert found["classes"] == [[4]]


def test_where_the_stages_do_not_fit_fewer_are_tried_and_lost_slices_named(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    run_folder = samples / "pipeline_no_replicas"
    status, out, _ = run(capsys, run_folder, "--lost", "1,2,3", "--format", "json")
    found = json.loads(out)
    assert status == 1
    assert (found["target"], found["stages"], found["accepted"]) == (1, 1, None)
    assert {each["parameter"] for each in found["slices_lost"]} >= {"bs.0.w", "bs.3.v"}
    assert any("pipeline_stages=1" in note for note in found["notes"])


def test_stages_stay_where_they_fit(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    _, out, _ = run(capsys, samples / "pipeline_run", "--lost", 2, "--format", "json")
    assert json.loads(out)["stages"] == 2


def test_what_check_says_is_not_called_mindspores_word(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    _, out, _ = run(capsys, folder, "--lost", 5)
    assert "passes irtool check" in out
    assert "accepted by MindSpore" not in out


def strategy_file(
    capsys: pytest.CaptureFixture[str], path: Path, *words: object
) -> tuple[dict[str, Any], str]:
    status, out, err = run(capsys, path, *words, "--format", "strategy")
    assert status == 0
    return json.loads(out), err


def test_the_plan_of_a_pipeline_is_one_file_that_check_accepts_on_every_stage(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    """MindSpore 2.7.0 loads such a file on ranks of both stages."""
    path = samples / "pipeline_run"
    file, said = strategy_file(capsys, path, "--to", 4)
    assert {key[:2] for key in file["parallel_layout_item"]} == {"0-", "1-"}
    assert {item["stage"] for item in file["parallel_strategy_item"].values()} == {0, 1}
    assert "take out their .shard(...) calls" in said
    (tmp_path / "new.json").write_text(json.dumps(file), encoding="utf-8")
    layouts = file["parallel_layout_item"]
    assert all(prod(each["dev_matrix"]) == 2 for each in layouts.values())


def test_a_pipeline_has_no_file_keyed_by_operators(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    words = ("--to", 4, "--format", "strategy", "--keys", "operators")
    status, _, err = run(capsys, samples / "pipeline_run", *words)
    assert status == 2
    assert "begin dumps of stages do not show all of that" in err
    assert "--keys parameters" in err


def test_both_kinds_of_file_say_how_parameters_lie(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    by_operators, said = strategy_file(capsys, folder, "--to", 4)
    assert any("-op0" in key for key in by_operators["parallel_strategy_item"])
    assert "sharding_propagation" in said
    by_parameters, _ = strategy_file(capsys, folder, "--to", 4, "--keys", "parameters")
    assert not any("-op0" in key for key in by_parameters["parallel_strategy_item"])
    assert (
        by_operators["parallel_layout_item"].keys() == by_parameters["parallel_layout_item"].keys()
    )


def test_without_a_change_the_file_is_that_of_the_run(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path
) -> None:
    file, _ = strategy_file(capsys, folder, "--keys", "parameters")
    (tmp_path / "own.json").write_text(json.dumps(file), encoding="utf-8")
    assert main(["check", str(folder), "--strategy", str(tmp_path / "own.json"), "-f", "json"]) == 0
    entries = json.loads(capsys.readouterr().out)["strategy_file"]["entries"]
    assert {each["effect"] for each in entries} == {"same"}


def test_what_becomes_of_checkpoints(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    """The ranks are those that ``rank_list_for_transform`` of 2.7.0 and 2.10.0 names."""
    _, out, _ = run(capsys, samples / "pipeline_run", "--to", 4, "--format", "json")
    answer = json.loads(out)
    assert answer["strategy_file"]["keys"] == "parameters"
    found = answer["checkpoints"]
    assert [each["sources"] for each in found["ranks"]] == [[0, 1], [0, 1], [4, 5], [4, 5]]
    assert found["bytes_moved"] == sum(each["bytes_moved"] for each in found["ranks"]) > 0
    assert (
        "    'old_checkpoints', 'new_checkpoints', 'converted', "
        + ("'old_strategy.json', 'new_strategy.json'")
        in found["call"]
    )


def test_checkpoints_of_lost_ranks_are_named(
    capsys: pytest.CaptureFixture[str], samples: Path
) -> None:
    _, out, _ = run(capsys, samples / "pipeline_run", "--lost", "1")
    assert "MindSpore's conversion reads checkpoints of lost ranks 1" in out
    _, out, _ = run(capsys, samples / "pipeline_run", "--lost", "2")
    assert "checkpoints of lost ranks" not in out


def test_a_replaced_device_changes_no_file(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    _, out, _ = run(capsys, folder, "--lost", 5, "--add-devices", 1, "--format", "json")
    answer = json.loads(out)
    assert answer["strategy_file"] is None
    assert answer["checkpoints"] is None


def test_a_strategy_file_that_the_run_left_is_the_old_one(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path
) -> None:
    own, _ = strategy_file(capsys, folder, "--keys", "parameters")
    copy = tmp_path / "run"
    shutil.copytree(folder, copy)
    (copy / "strategy").mkdir()
    (copy / "strategy/ckpt_strategy_rank_0.json").write_text(json.dumps(own), encoding="utf-8")
    _, out, _ = run(capsys, copy, "--to", 4, "--format", "json")
    assert json.loads(out)["checkpoints"]["old"].endswith("run")
    own["parallel_layout_item"] = {
        key: {**item, "dev_matrix": [2], "tensor_map": [-1] * len(item["tensor_map"])}
        for key, item in own["parallel_layout_item"].items()
    }
    (copy / "strategy/ckpt_strategy_rank_0.json").write_text(json.dumps(own), encoding="utf-8")
    _, out, err = run(capsys, copy, "--to", 4, "--format", "json")
    assert json.loads(out)["checkpoints"]["old"] == "old_strategy.json"
    assert "is for 2 devices, not for the run's 8" in err


@pytest.mark.parametrize(
    ("keys", "load"),
    [
        ("operators", 'set_op_strategy_config("LOAD", os.environ["STRATEGY_FILE"])'),
        ("parameters", 'strategy_ckpt_config={"load_file": os.environ["STRATEGY_FILE"]}'),
    ],
)
def test_the_job_carries_the_file_and_says_what_loads_it(
    capsys: pytest.CaptureFixture[str], folder: Path, keys: str, load: str
) -> None:
    words = ("--to", 4, "--format", "msjob", "--keys", keys, "--image", "training:1")
    status, out, _ = run(capsys, folder, *words)
    assert status == 0
    assert load in out.splitlines()[0]
    assert 'image: "training:1"' in out
    assert "replicas: 4" in out
    assert 'kind: "ConfigMap"' in out


def test_options_of_files_go_with_their_formats(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert run(capsys, folder, "--to", 4, "--keys", "parameters")[0] == 2
    status, _, err = run(capsys, folder, "--to", 4, "--format", "strategy", "--image", "a")
    assert status == 2
    assert "--image: error[CLI001]: goes with --format msjob" in err


def test_without_begin_dumps_there_is_no_file(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run/rank_0"
    folder.mkdir(parents=True)
    shutil.copy(samples / "mlp_semi_auto/20_validate_0080.ir", folder)
    status, _, err = run(capsys, tmp_path / "run", "--devices", 8, "--format", "strategy")
    assert status == 2
    assert "without a begin dump there is no plan" in err
