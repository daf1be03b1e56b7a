"""``irtool pipeline`` as people and scripts use it."""

from __future__ import annotations

import io
import json
import lzma
import os
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator

from irtool.report.reference import schema_of
from tests.cli.running import Run

ROOT = Path(__file__).resolve().parents[2]
FOUR = "samples/pipeline_8_micro"
COMMAND = "pipeline"


@pytest.mark.parametrize(
    ("name", "status", "arguments"),
    [
        ("four_stages", 0, (FOUR,)),
        ("one_rank", 1, (f"{FOUR}/rank_1/20_validate_0080.ir.xz",)),
    ],
)
def test_outputs_for_people(
    name: str, status: int, arguments: tuple[str, ...], irtool: Run
) -> None:
    ran = irtool(*arguments)
    assert ran.status == status
    path = ROOT / "tests" / "golden" / f"pipeline_{name}.txt"
    if os.environ.get("IRTOOL_UPDATE_GOLDEN"):
        path.write_text(ran.output, encoding="utf-8")
    assert ran.output == path.read_text(encoding="utf-8")


def test_a_run_folder_with_all_stages(irtool: Run) -> None:
    ran = irtool(FOUR)
    assert ran.status == 0
    assert ran.output.startswith(f"{FOUR}: 4 stages, 8 micro-batches, 1f1b; idle ")
    assert "48 Sends matched with a Receive" in ran.output
    assert "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7" in ran.output
    context = json.loads(irtool(FOUR, "--format", "json").output)["context"]
    assert context["pipeline_stages"]["value"] == 4
    assert context["pipeline_stages"]["what"] == "each sends to ranks 1 away"


def test_one_rank_alone_says_what_it_cannot_know(irtool: Run) -> None:
    ran = irtool(f"{FOUR}/rank_1/20_validate_0080.ir.xz")
    assert ran.status == 1
    assert "no dump of stages 0,2,3" in ran.output
    assert irtool(f"{FOUR}/rank_1/20_validate_0080.ir.xz", "--allow-unknown").status == 0


def test_a_stage_without_a_validate_dump_is_left_out(irtool: Run, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "samples/pipeline_run", tmp_path / "run")
    (tmp_path / "run/rank_0/20_validate_0080.ir").unlink()
    ran = irtool(str(tmp_path / "run"))
    assert "rank 0: no validate dump, left out" in ran.errors
    assert "no dump of stage 0" in ran.output
    assert "the run would hang" not in ran.output


def test_json_follows_its_schema(irtool: Run) -> None:
    validator = Draft202012Validator(schema_of("pipeline"))
    for path in (FOUR, "samples/pipeline_run", "samples/gpt/20_validate_0080.ir"):
        found = json.loads(irtool(path, "--format", "json").output)
        validator.validate(found)


def test_no_pipeline_is_an_answer_too(irtool: Run) -> None:
    ran = irtool("samples/gpt/20_validate_0080.ir")
    assert ran.status == 0
    assert "no pipeline: one stage" in ran.output
    assert "note:" not in ran.output  # the headline says it


def test_a_receive_without_its_send_is_a_finding(irtool: Run, tmp_path: Path) -> None:
    for rank in range(4):
        folder = tmp_path / f"rank_{rank}"
        folder.mkdir()
        name = "20_validate_0080.ir"
        packed = (ROOT / FOUR / f"rank_{rank}" / f"{name}.xz").read_bytes()
        text = lzma.decompress(packed).decode()
        if rank == 1:
            text = text.replace("sr_tag: I64(0)", "sr_tag: I64(77)")
        (folder / name).write_text(text)
    ran = irtool(str(tmp_path), "--format", "json")
    assert ran.status == 1
    lost = [one for one in json.loads(ran.output)["unmatched"] if one["certain"]]
    assert lost
    assert {one["tag"] for one in lost} <= {0, 77}
    assert "the run would hang" in irtool(str(tmp_path)).output


@pytest.mark.slow
def test_a_thousand_ranks_are_folded(irtool: Run, tmp_path: Path) -> None:
    """1,024 ranks with two graphs: each class is read once."""
    count = 1024
    for rank in range(count):
        stage = rank * 2 // count
        peer = rank + (1 - 2 * stage) * count // 2
        folder = tmp_path / f"rank_{rank}"
        folder.mkdir()
        (folder / "20_validate_0080.ir").write_text(_moved(stage, peer))
    ran = irtool(str(tmp_path), "--devices", str(count), "--stages", "2", "--format", "json")
    found = json.loads(ran.output)
    assert [stage["ranks"][0] for stage in found["stages"]] == [0, 512]
    assert [len(stage["ranks"]) for stage in found["stages"]] == [512, 512]
    assert found["matched"] == 4
    assert found["unmatched"] == []


_TEXTS: dict[int, list[str]] = {}


def _moved(stage: int, peer: int) -> str:
    """The dump of a stage's first rank with another peer; its head alone would be no network."""
    if stage not in _TEXTS:
        path = ROOT / f"samples/pipeline_2_stages/rank_{2 * stage}/20_validate_0080.ir"
        _TEXTS[stage] = re.split(r"(primitive_attrs: \{[^}]*\})", path.read_text())
    parts = [
        re.sub(
            r"group_rank_ids: \(0, 1, 2, 3\), ",
            "",
            re.sub(r"\b(dest_rank|src_rank): I64\(\d+\)", rf"\1: I64({peer})", part),
        )
        if part.startswith("primitive_attrs")
        else part
        for part in _TEXTS[stage]
    ]
    return "".join(parts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("samples/pipeline_run/nothing",), "no such file"),
        (("samples/gpt/20_validate_0080.ir", "--stages", "3"), "3"),
        (("samples/pipeline_run", "--format", "pdf"), "pdf"),
    ],
)
def test_wrong_use_ends_with_status_2(
    arguments: tuple[str, ...], message: str, irtool: Run
) -> None:
    ran = irtool(*arguments)
    assert ran.status == 2
    assert message in ran.errors
    assert "Traceback" not in ran.errors


def test_the_timeline_is_a_picture(irtool: Run) -> None:
    picture = ElementTree.fromstring(irtool(FOUR, "--format", "svg").output)
    assert picture.tag.endswith("svg")
    page = irtool(FOUR, "--format", "html").output
    assert page.lower().startswith("<!doctype html>")
    assert "Best cut" in page


LAST_STAGE = ROOT / "samples/pipeline_run/rank_4/20_validate_0080.ir"


def test_a_dump_alone_is_of_the_rank_that_its_groups_allow(irtool: Run, tmp_path: Path) -> None:
    path = tmp_path / "20_validate_0080.ir"
    path.write_bytes(LAST_STAGE.read_bytes())
    for command in ([str(path)], [str(tmp_path)]):
        ran = irtool(*command, "--allow-unknown", "--format", "json")
        assert ran.status == 0
        (stage,) = json.loads(ran.output)["stages"]
        assert (stage["stage"], stage["ranks"]) == (1, [4])


def test_a_pipeline_of_unknown_size_is_asked_about(irtool: Run, tmp_path: Path) -> None:
    """The last stage sends to one rank only: without groups, nobody knows from where."""
    listed = r"(rank_list|group_rank_ids): \(4, [^)]*\)|(group_ranks): \"[^\"]*\""
    text = re.sub(listed, r"\1\2: None", LAST_STAGE.read_text())
    text = re.sub(r"\"2-\d+\"", '"mine"', text)  # names made of the ranks
    path = tmp_path / "20_validate_0080.ir"
    path.write_text(text)
    ran = irtool(str(path))
    assert ran.status == 2
    assert "--stages" in ran.errors
    assert irtool(str(path), "--rank", "4", "--allow-unknown").status == 0


def test_a_pass_before_the_pipeline_is_split_says_what_it_lacks(irtool: Run) -> None:
    ran = irtool("samples/mlp_semi_auto/step_parallel_begin_0018.ir")
    assert "no backward pass" in ran.output
    assert "not sliced yet" in ran.output


def test_standard_input_is_called_so(irtool: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "samples/gpt/20_validate_0080.ir").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert irtool("-").output.startswith("<stdin>: no pipeline")
