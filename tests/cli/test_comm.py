"""``irtool comm`` as a user runs it: what it prints, its JSON, pages, and exit statuses."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator, validate

from irtool.cli.main import app
from irtool.report.reference import schema_of
from tests.cluster.rank_dumps import all_reduce, rank_text, receive, send

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def run(*arguments: str | Path, status: int = 0) -> str:
    result = CliRunner().invoke(app, ["comm", *map(str, arguments)])
    assert result.exit_code == status, result.output
    return result.stdout


def errors(*arguments: str | Path, status: int = 2) -> str:
    result = CliRunner().invoke(app, ["comm", *map(str, arguments)])
    assert result.exit_code == status, result.output
    return result.stderr


def made(*arguments: str | Path, status: int = 0) -> dict[str, Any]:
    found = json.loads(run(*arguments, "--format", "json", status=status))
    validate(found, schema_of(f"comm-{arguments[0]}"), Draft202012Validator)
    return found


def golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("IRTOOL_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.fixture
def here(samples: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository's folder as current one, so that outputs name relative paths."""
    monkeypatch.chdir(samples.parent)
    return Path("samples")


def folder(path: Path, *texts: str) -> Path:
    for rank, text in enumerate(texts):
        (path / f"rank_{rank}").mkdir()
        (path / f"rank_{rank}" / "20_validate_0080.ir").write_text(text)
    return path


# -- groups --------------------------------------------------------------------------------------


def test_groups_of_a_run(here: Path) -> None:
    golden("comm_groups_run.txt", run("groups", here / "pipeline_2_stages"))


def test_groups_of_a_dump_line_by_line(here: Path) -> None:
    golden(
        "comm_groups_list.txt",
        run("groups", here / "optimizer_parallel/19_validate_0078.ir", "--list"),
    )


def test_groups_as_json_has_the_keys_that_scripts_rely_on(here: Path) -> None:
    found = made("groups", here / "pipeline_4_stages")
    keys = {"node", "op", "dtype", "shape", "bytes", "ranks", "group", "axis", "phase"}
    for item in found["collectives"]:
        assert keys | {"fusion", "stream", "line"} <= item.keys()
    assert found["totals"]["axis"]["pipeline"]["count"] == 96
    assert all(item["matched"] for item in found["transfers"])


def test_a_group_of_a_log_needs_no_dump() -> None:
    found = made("groups", "--group", "4-5226697808808137312", "--devices", "8")
    assert found["group"]["ranks"] == [0, 2, 4, 6]


def test_the_group_of_all_devices_needs_their_number() -> None:
    assert "unknown ranks" in run("groups", "--group", "hccl_world_group", status=1)
    found = made("groups", "--group", "nccl_world_group", "--devices", "4")
    assert found["group"]["ranks"] == [0, 1, 2, 3]


def test_a_group_of_a_dump_comes_with_operators_and_lines(here: Path) -> None:
    text = run("groups", here / "pipeline_2_stages", "--group", "2-5004544844489628105")
    assert "ranks 0,1" in text
    assert "tensor" in text
    assert "AllReduce" in text


def test_missing_ranks_are_something_to_see(here: Path) -> None:
    text = run("groups", here / "pipeline_run", status=1)
    assert "no dump of 6 of the 8 ranks: 1-3,5-7" in text
    run("groups", here / "pipeline_run", "--allow-unknown")


@pytest.mark.parametrize("dump", ["step_parallel_begin_0018.ir", "step_parallel_end_0019.ir"])
def test_a_pass_before_all_communications_are_there_is_no_answer(here: Path, dump: str) -> None:
    path = here / "mlp_semi_auto" / dump
    found = made("groups", path, status=1)
    assert found["partial"] == dump[: dump.rindex("_")]
    assert "does not hold all communications yet" in run("groups", path, status=1)
    made("groups", path, "--allow-unknown")
    for command in ("hang", "reuse", "fuse"):
        assert "no validate dump" in errors(command, path)


def test_a_dump_alone_is_of_a_rank_that_its_groups_allow(here: Path, tmp_path: Path) -> None:
    shutil.copy(here / "pipeline_2_stages/rank_3/20_validate_0080.ir", tmp_path)
    path = tmp_path / "20_validate_0080.ir"
    assert made("groups", path)["ranks"] == [2]  # 2 and 3 share a group; 1 is the peer
    assert made("groups", path, "--rank", "3")["ranks"] == [3]
    found = made("hang", path, status=1)
    assert (found["hangs"], found["ranks"]) == (None, [2])


def test_an_early_pass_is_known_without_its_name(here: Path, tmp_path: Path) -> None:
    shutil.copy(here / "mlp_semi_auto/step_parallel_begin_0018.ir", tmp_path / "x.ir")
    assert "nothing is communicated yet" in run("groups", tmp_path / "x.ir", status=1)


def test_a_query_chooses_nodes(here: Path) -> None:
    sample = here / "gpt/20_validate_0080.ir"
    found = made("groups", sample, "--where", 'op == "AllGather"')
    assert [item["op"] for item in found["collectives"]] == ["AllGather"]


def test_a_machine_of_the_users_own(here: Path, tmp_path: Path) -> None:
    path = tmp_path / "machine.toml"
    path.write_text('name = "mine"\n[[levels]]\nname = "wire"\nbandwidth = 1e9\n')
    found = made("groups", here / "gpt/20_validate_0080.ir", "--machine", path)
    assert found["machine"] == "mine"
    assert list(found["totals"]["level"]) == ["wire"]


def test_a_machine_that_makes_no_sense_is_told_by_key(here: Path, tmp_path: Path) -> None:
    path = tmp_path / "machine.toml"
    path.write_text('[[levels]]\nname = "wire"\nbandwith = 1e9\n')
    text = errors("groups", here / "gpt/20_validate_0080.ir", "--machine", path)
    assert "levels[0].bandwith: there is no such key" in text
    text = errors("groups", here / "gpt/20_validate_0080.ir", "--machine", "cray")
    assert "there is no machine cray" in text


# -- hang ----------------------------------------------------------------------------------------


def test_a_run_that_gets_done(here: Path) -> None:
    found = made("hang", here / "pipeline_4_stages")
    assert found["hangs"] is False
    assert found["cycle"] == found["mismatches"] == found["missing_ranks"] == []


def test_two_groups_in_opposite_order(tmp_path: Path) -> None:
    one, other = all_reduce((0, 1), group="first"), all_reduce((0, 1), group="second")
    path = folder(tmp_path, rank_text(one, other), rank_text(other, one))
    found = made("hang", path, status=1)
    assert found["hangs"] is True
    assert [(item["rank"], item["group"]) for item in found["cycle"]] == [
        (0, "first"),
        (1, "second"),
    ]
    assert found["blocked"]["group"] == "first"
    assert [member["state"] for member in found["blocked"]["members"]] == [
        "waits",
        "waits elsewhere",
    ]
    assert (found["odd_ranks"], found["stuck"]) == ([], [0, 1])
    assert [item["kind"] for item in found["departures"]] == ["order"]
    text = run("hang", path, status=1)
    assert "no side has more ranks" in text
    assert "net.py:1: x = self.step0(x)" in text


def test_a_missing_receive(tmp_path: Path) -> None:
    path = folder(tmp_path, rank_text(send(1, 4)), rank_text(receive(0, 5)))
    text = run("hang", path, status=1)
    assert "no Receive" in text
    assert "no Send" in text


def test_ranks_without_dumps_limit_the_answer(here: Path) -> None:
    found = made("hang", here / "pipeline_run", status=1)
    assert found["hangs"] is None
    assert found["missing_ranks"] == [1, 2, 3, 5, 6, 7]
    assert found["limits"] == ["ranks without a dump are assumed to take part as the others expect"]
    run("hang", here / "pipeline_run", "--allow-unknown")


def test_dumps_named_one_by_one_need_ranks(here: Path, tmp_path: Path) -> None:
    ranks = [here / "pipeline_2_stages" / f"rank_{rank}/20_validate_0080.ir" for rank in range(4)]
    assert "no hang" in run("hang", *ranks)
    for number in range(2):
        shutil.copy(ranks[number], tmp_path / f"{number}.ir")
    text = errors("hang", tmp_path / "0.ir", tmp_path / "1.ir")
    assert "whose dump is this?" in text


# -- reuse ---------------------------------------------------------------------------------------


@pytest.fixture
def thirty(tmp_path: Path) -> Path:
    path = tmp_path / "20_validate_0080.ir"
    path.write_text(rank_text(*[all_reduce(tuple(range(16)))] * 30))
    return path


def test_reuse_of_thirty(thirty: Path) -> None:
    found = made("reuse", thirty, "--limit", "-1", "--devices", "16")
    assert (found["enabled"], found["limit"], found["labels"]) == (True, 1000, 32)
    (group,) = found["groups"]
    assert (group["streams_before"], group["streams_after"]) == (10, 1)
    assert (found["streams_before"], found["streams_after"]) == (40, 4)
    assert found["recommended_limit"] == 30


def test_reuse_is_off_where_the_variable_is_unset(thirty: Path) -> None:
    found = made("reuse", thirty, "--devices", "16")
    assert (found["enabled"], found["limit"]) == (False, None)
    assert found["recommended_limit"] == 30
    assert found["groups"][0]["reused"] is False


def test_a_value_that_raises_is_something_to_see(thirty: Path) -> None:
    text = run("reuse", thirty, "--limit", "on", "--devices", "16", status=1)
    assert "MindSpore raises an exception" in text


def test_a_log_is_held_against_the_prediction(thirty: Path, tmp_path: Path) -> None:
    log = tmp_path / "rank.log"
    log.write_text("[INFO] MAX_COMM_OP_REUSE_NUM: 1000\n[INFO] Label list size: 32, label id: 3\n")
    arguments = ("reuse", thirty, "--limit", "-1", "--devices", "16", "--log", log)
    facts = {item["fact"]: item["agrees"] for item in made(*arguments)["log"]}
    assert facts["labels"] is True
    log.write_text("[INFO] Label list size: 33\n[INFO] MAX_COMM_OP_REUSE_NUM: 1000\n")
    assert re.search(r"labels +32 +33 +no\n", run(*arguments, status=1))


def test_later_versions_say_what_is_left(here: Path) -> None:
    found = made("reuse", here / "gpt/20_validate_0080.ir", "--target-version", "2.7")
    assert found["available"] is False
    assert found["streams"]["group"] == 4
    text = run("reuse", here / "gpt/20_validate_0080.ir", "--target-version", "2.7")
    assert "does not reuse communication subgraphs" in text
    assert "layers-CellList/*-Layer" in text


@pytest.mark.parametrize("version", ["1.7", "two", ""])
def test_a_version_that_makes_no_sense_is_refused(thirty: Path, version: str) -> None:
    assert "--target-version" in errors("reuse", thirty, "--target-version", version)


# -- fuse ----------------------------------------------------------------------------------------


def test_fuse_shows_what_is_configured(here: Path) -> None:
    golden("comm_fuse.txt", run("fuse", here / "gpt/20_validate_0080.ir"))


def test_fuse_simulates_sizes_and_positions(here: Path) -> None:
    sample = here / "gpt/20_validate_0080.ir"
    assert made("fuse", sample, "--size", "1")["simulated"]
    found = made("fuse", sample, "--index", "3,7")
    assert {bucket["fusion"] for bucket in found["simulated"]} == {1, 2, 3}
    assert "increase" in errors("fuse", sample, "--index", "7,3")
    assert "no list of positions" in errors("fuse", sample, "--index", "a")
    errors("fuse", sample, "--index", "3", "--size", "2")


# -- all of them ---------------------------------------------------------------------------------

COMMANDS = ("groups", "hang", "reuse", "fuse")


@pytest.mark.parametrize("command", COMMANDS)
def test_pictures_and_pages_are_written(here: Path, tmp_path: Path, command: str) -> None:
    for suffix, start in (("svg", "<svg"), ("html", "<!DOCTYPE html>")):
        out = tmp_path / f"out.{suffix}"
        run(command, here / "pipeline_2_stages", "--format", suffix, "-o", out)
        assert out.read_text().lower().startswith(start.lower())


@pytest.mark.parametrize("command", COMMANDS)
def test_names_of_a_dump_stay_text(tmp_path: Path, command: str) -> None:
    path = tmp_path / "20_validate_0080.ir"
    path.write_text(rank_text(all_reduce((0, 1), group="<script>\x1b[31m")))
    for suffix in ("table", "json", "html"):
        out = tmp_path / "out"
        CliRunner().invoke(app, ["comm", command, str(path), "--format", suffix, "-o", str(out)])
        text = out.read_text()
        assert "\x1b" not in text
        if suffix == "html":
            assert "<script>\\x1b" not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_bad_input_gets_a_message(tmp_path: Path, command: str) -> None:
    assert "no such file" in errors(command, tmp_path / "nothing.ir")
    empty = tmp_path / "empty.ir"
    empty.write_text("")
    errors(command, empty)
    hollow = tmp_path / "hollow"
    hollow.mkdir()
    assert "no dumps" in errors(command, hollow)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_dump_that_communicates_nothing_is_fine(here: Path, command: str) -> None:
    sample = here / "control_flow/graph_build_0_0104.ir"
    run(command, sample)


@pytest.mark.parametrize("devices", ["6", "7", "12"])
def test_device_numbers_that_no_cluster_has_are_refused(here: Path, devices: str) -> None:
    text = errors("groups", here / "gpt/20_validate_0080.ir", "--devices", devices)
    assert "divisible by 8" in text


@pytest.mark.parametrize("command", ["groups", "hang", "reuse", "fuse"])
def test_ranks_without_a_validate_dump_are_left_out(
    samples: Path, tmp_path: Path, command: str
) -> None:
    shutil.copytree(samples / "pipeline_run", tmp_path / "run")
    (tmp_path / "run/rank_0/20_validate_0080.ir").unlink()
    status = 1 if command == "hang" else 0
    text = run(command, tmp_path / "run", status=status)
    assert "internal error" not in text


def test_a_folder_of_no_rank_holds_the_dump_of_the_rank_that_it_names(tmp_path: Path) -> None:
    """A lone dump of rank 5 was taken for one of rank 0, which no group of it holds: a hang."""
    folder = Path(__file__).resolve().parents[1] / "cluster" / "context" / "interleaved_rank_5"
    shutil.copy(folder / "20_validate_0089.ir.xz", tmp_path)
    for path in (tmp_path, tmp_path / "20_validate_0089.ir.xz"):
        told = made("hang", path, status=1)  # other ranks lack
        assert told["hangs"] is None
        assert 5 not in told["missing_ranks"]
        assert made("reuse", path)["rank"] == 5


def test_the_picture_of_a_page_stands_alone_as_svg(here: Path) -> None:
    for command in ("groups", "hang", "reuse", "fuse"):
        drawn = run(command, here / "pipeline_2_stages", "--format", "svg")
        assert drawn.startswith("<svg ")
        assert drawn.endswith("</svg>\n")
        page = run(command, here / "pipeline_2_stages", "--format", "html")
        assert drawn.splitlines()[1] in page


def test_one_group_has_a_page_and_no_picture(here: Path) -> None:
    asked = ("groups", here / "pipeline_2_stages", "--group", "2-5004544844489628105")
    assert "known from" in run(*asked, "--format", "html")
    assert "one group has no picture" in errors(*asked, "--format", "svg")


def test_all_that_is_assumed_is_listed_when_asked_for(here: Path) -> None:
    asked = ("hang", here / "pipeline_2_stages")
    assert "loss_repeated_mean" not in run(*asked)
    assert "assumed: loss_repeated_mean true (MindSpore's default)" in run(*asked, "--assumptions")
