"""``irtool ckpt`` and ``irtool check --strategy``, as people and scripts see them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from irtool.cli.main import main

ROOT = Path(__file__).parents[2]
SAVED = ROOT / "samples/strategies"
BEGIN = ROOT / "samples/mlp_semi_auto/step_parallel_begin_0018.ir"
LOOP = ROOT / "samples/mlp_loop"


def run(*words: object) -> int:
    return main([*map(str, words)])


def test_the_slices_of_a_rank(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ckpt", SAVED / "dp2.json", SAVED / "dp2tp2.json", "-f", "json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["schema"] == "irtool.ckpt/1"
    assert [rank["sources"] for rank in answer["ranks"]] == [[0], [1], [0], [1]]
    by_name = {each["name"]: each for each in answer["ranks"][3]["parameters"]}
    assert by_name["net.blocks.0.w1"]["from"] == [
        {"rank": 1, "slice": [[128, 256], [0, 64]], "part": [["1/2", "1"], ["0", "1"]]}
    ]


def test_bytes_need_a_network(capsys: pytest.CaptureFixture[str]) -> None:
    run("ckpt", BEGIN, "whole", "-f", "json")
    assert json.loads(capsys.readouterr().out)["bytes_moved"] is None
    run("ckpt", BEGIN, "whole", "-f", "json", "--network", BEGIN)
    answer = json.loads(capsys.readouterr().out)
    assert answer["bytes_moved"] == 4 * answer["elements_moved"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([SAVED / "dp8.json", SAVED / "stages/dp2tp2pp2_s1.json"], "pipeline stage 1 alone"),
        ([SAVED / "dp8.json", SAVED / "README"], "no such file"),
        ([SAVED / "dp8.json", ROOT / "README.md"], "is no strategy file"),
        (["whole", "whole"], "whole checkpoints stay whole"),
        ([SAVED / "dp8.json", SAVED / "dp2.json", "--rank", 2], "ranks 0 to 1, not 2"),
    ],
)
def test_what_can_not_be_answered(
    words: list[object], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("ckpt", *words) == 2
    assert message in capsys.readouterr().err


def test_parameters_without_a_source_are_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ckpt", SAVED / "dp2tp2.json", SAVED / "merged/dp2tp2pp2.json") == 1
    assert "are in no old checkpoint" in capsys.readouterr().out


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("ckpt", "check"):
        run(command, "--help")
        assert f"irtool {command} " in capsys.readouterr().out


# -- check --strategy ----------------------------------------------------------------------------


def test_a_file_that_mindspore_saved_for_the_network_is_legal_and_complete(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("check", LOOP, "--strategy", LOOP / "saved.json", "-f", "json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["accepted"] is True
    effects = [each["effect"] for each in answer["strategy_file"]["entries"]]
    assert set(effects) == {"same"}
    assert answer["strategy_file"]["missing"] == []


@pytest.mark.parametrize(
    ("mode", "search", "is_passed_over"),
    [
        ("semi_auto_parallel", "sharding_propagation", True),
        ("auto_parallel", "sharding_propagation", False),
    ],
)
def test_semi_auto_mode_passes_over_a_file_keyed_by_operators(
    mode: str, search: str, is_passed_over: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("check", LOOP, "--strategy", LOOP / "saved.json", "--parallel-mode", mode,
             "--search-mode", search)  # fmt: skip
    run(*words, "-f", "json")
    answer = json.loads(capsys.readouterr().out)
    assert answer["strategy_file"]["passed_over"] is is_passed_over
    run(*words)
    assert ("passes over a file" in capsys.readouterr().out) is is_passed_over


def test_semi_auto_mode_reads_a_file_keyed_by_parameters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run("check", BEGIN, "--strategy", SAVED / "dp4tp2.json", "-f", "json")
    assert json.loads(capsys.readouterr().out)["strategy_file"]["passed_over"] is False


def altered(tmp_path: Path, key: str, rows: list[list[int]] | None) -> Path:
    document = json.loads((LOOP / "saved.json").read_bytes())
    items = document["parallel_strategy_item"]
    name = next(each for each in items if key in each)
    if rows is None:
        del items[name]
    else:
        items[name]["parallel_strategy"] = rows
    path = tmp_path / "altered.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_an_illegal_strategy_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = altered(tmp_path, "MatMul-op0", [[8, 8], [8, 1]])
    assert run("check", LOOP, "--strategy", path, "-f", "json") == 1
    assert json.loads(capsys.readouterr().out)["accepted"] is False


def test_an_operator_without_an_entry_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = altered(tmp_path, "MatMul-op0", None)
    assert run("check", LOOP, "--strategy", path) == 1
    assert "Load strategies failed" in capsys.readouterr().out


def test_what_a_file_changes_against_another(capsys: pytest.CaptureFixture[str]) -> None:
    before = SAVED / "dp8.json"
    run("check", BEGIN, "--strategy", SAVED / "dp4tp2.json", "--strategy-before", before,
        "-f", "json")  # fmt: skip
    found = json.loads(capsys.readouterr().out)["strategy_file"]
    changed = {each["key"]: each for each in found["before"]["strategies"]}
    assert changed["MatMul_net.blocks.0.w1"]["before"] == [[8, 1], [1, 1]]
    assert changed["MatMul_net.blocks.0.w1"]["after"] == [[4, 1], [2, 1]]
    assert {each["effect"] for each in found["entries"]} == {"names nothing"}


def test_a_plan_as_a_parameter_file_changes_what_the_network_leaves_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unsearched = ROOT / "samples/mlp_recursive_search/step_auto_parallel_begin_0010.ir"
    file = tmp_path / "plan.json"
    words = ("--format", "strategy", "--keys", "parameters", "-o", file)
    run("plan", unsearched, "--devices", 8, *words)
    layouts = json.loads(file.read_bytes())["parallel_layout_item"]
    assert {len(each["tensor_map"]) == len(each["tensor_shape"]) for each in layouts.values()} == {
        True
    }
    capsys.readouterr()
    status = run("check", unsearched, "--devices", 8, "--strategy", file, "-f", "json")
    answer = json.loads(capsys.readouterr().out)
    assert status in (0, 1)
    assert answer["accepted"] is not False
    assert "used" in {each["effect"] for each in answer["strategy_file"]["entries"]}


def test_before_goes_with_a_strategy(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", BEGIN, "--strategy-before", SAVED / "dp8.json") == 2
    assert "goes with --strategy" in capsys.readouterr().err


STAGED = ROOT / "samples/pipeline_run"


def stage_file(stage: int, more: str = "") -> str:
    """What MindSpore saves of a stage of the pipeline sample: strategies, and layouts."""
    rows = {f"MatMul_layers.{stage}.up": [[2, 1], [1, 2]], more: [[2, 1], [2, 1]]}
    layout = {
        "dev_matrix": [2, 2], "tensor_map": [-1, 0], "tensor_shape": [64, 128], "field": 0,
        "opt_weight_shard_size": 0, "opt_weight_shard_step": 0,
    }  # fmt: skip
    return json.dumps({
        "current_stage": 1,
        "parallel_strategy_item": {
            key: {"stage": stage, "parallel_strategy": each} for key, each in rows.items() if key
        },
        "parallel_layout_item": {f"layers.{stage}.up": layout},
    })  # fmt: skip


@pytest.mark.parametrize("before", [False, True])
def test_a_lone_file_of_a_later_stage_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: bool
) -> None:
    later, first = tmp_path / "later.json", tmp_path / "first.json"
    later.write_text(stage_file(1), encoding="utf-8")
    first.write_text(stage_file(0), encoding="utf-8")
    words = (first, "--strategy-before", later) if before else (later,)
    assert run("check", STAGED / "rank_0", "--strategy", *words) == 2
    said = capsys.readouterr().err
    assert f"{later}: error[ART001]: is of pipeline stage 1 alone" in said
    assert "or give their folder" in said
    assert run("check", STAGED / "rank_0", "--strategy", first) != 2


@pytest.mark.parametrize("rank", [0, 4])
def test_a_folder_of_stage_files_counts_as_merged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rank: int
) -> None:
    (tmp_path / "a.json").write_text(stage_file(0), encoding="utf-8")
    (tmp_path / "b.json").write_text(stage_file(1, "Receive_layers.1.up"), encoding="utf-8")
    path = STAGED / f"rank_{rank}"
    assert run("check", path, "--strategy", tmp_path, "-f", "json") == 0
    found = json.loads(capsys.readouterr().out)["strategy_file"]
    effects = {each["key"]: each["effect"] for each in found["entries"]}
    own, other = ("0", "1") if rank == 0 else ("1", "0")
    assert effects[f"MatMul_layers.{own}.up"] == "same"
    assert effects[f"MatMul_layers.{other}.up"] == "other stage"
    # MindSpore saves what a stage receives beside its operators: nothing is wrong with the file.
    assert effects["Receive_layers.1.up"] == "other stage"


def test_a_folder_without_the_first_stage_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b.json").write_text(stage_file(1), encoding="utf-8")
    assert run("check", STAGED / "rank_4", "--strategy", tmp_path) == 2
    assert "lacks pipeline stage 0 of 2" in capsys.readouterr().err
