"""``irtool check`` as people and scripts use it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from irtool.cli.main import main
from irtool.operators.call import OperatorCall, constant, tensor
from irtool.operators.judgement import Context
from irtool.sharding.judge import judge
from tests.cli.running import Run

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
ACCEPTED = "samples/mlp_semi_auto/step_parallel_begin_0018.ir"
REFUSED = "samples/mlp_rejected/step_parallel_begin_0018.ir"
EXCERPT = "samples/search_page_step_parallel_begin.ir"


def piped(path: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "irtool", "check", "-", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (ROOT / path).open("rb") as file:
        return subprocess.run(
            command, cwd=ROOT, env=environment, stdin=file, capture_output=True, timeout=60
        )


def checked(irtool: Run, *arguments: str) -> dict[str, Any]:
    ran = irtool("check", *arguments, "--format", "json")
    assert ran.status in (0, 1), ran.errors
    return json.loads(ran.output)


# -- what people see ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "status"),
    [
        ("accepted", [ACCEPTED], 0),
        ("refused", [REFUSED], 1),
        ("lists", [ACCEPTED, "--operators", "--redistributions", "--parameters"], 0),
        ("gpt", ["samples/gpt/step_parallel_begin_0018.ir", "--limit", "5"], 0),
        ("where", [ACCEPTED, "--where", 'op == "MatMul"'], 0),
        ("pipeline", ["samples/pipeline_run/rank_4/step_parallel_begin_0018.ir"], 0),
    ],
)
def test_golden(irtool: Run, name: str, arguments: list[str], status: int) -> None:
    ran = irtool("check", *arguments)
    assert ran.status == status
    path = GOLDEN / f"check_{name}.txt"
    if os.environ.get("IRTOOL_UPDATE_GOLDEN"):
        path.write_text(ran.output, encoding="utf-8")
    assert ran.output == path.read_text(encoding="utf-8")


def test_verdict_comes_first_and_the_finding_has_all_one_needs(irtool: Run) -> None:
    lines = irtool("check", REFUSED).output.splitlines()
    assert lines[0] == f"{REFUSED}: refused, for 1 reason"
    text = "\n".join(lines)
    for part in (
        "axis-mismatch, matmul_info.cc:CheckInputStrategy in MindSpore",
        f"{REFUSED}:75",
        "in_strategy ((2, 4), (1, 2))",
        "net.py:33: return self.bias_add(self.matmul(x, self.weight), self.bias)",
        "instead    in_strategy ((2, 4), (1, 4))",
    ):
        assert part in text


def test_the_same_mistake_in_many_layers_is_told_once(irtool: Run, tmp_path: Path) -> None:
    text = (ROOT / "samples/gpt/step_parallel_begin_0018.ir").read_text()
    path = tmp_path / "step_parallel_begin_0001.ir"
    path.write_text(re.sub(r"in_strategy: \(\(2, 1, 4, 1\)\)", "in_strategy: ((2, 1, 3, 1))", text))
    ran = irtool("check", str(path), "--devices", "8", "--full-batch")
    assert ran.status == 1
    assert ran.output.count("not-power-of-two") + ran.output.count("not-divisible") == 1
    assert "more like it" in ran.output


def test_what_is_proposed_is_legal(irtool: Run) -> None:
    finding = checked(irtool, REFUSED)["findings"][0]
    assert finding["instead"]
    call = OperatorCall(
        "MatMul",
        (tensor(64, 512), tensor(512, 512), constant(False), constant(True)),
        (tensor(64, 512),),
    )
    for rows in finding["instead"]:
        strategy = tuple(map(tuple, rows))
        assert judge(call, strategy, Context(tuple(range(8)), 8)).verdict == "legal"


def test_device_list_rule_says_that_it_depends_on_the_soc(irtool: Run, tmp_path: Path) -> None:
    text = (ROOT / EXCERPT).read_text()
    path = tmp_path / "excerpt.ir"
    path.write_text(text.replace("((4, 2), (1, 2))", "((3, 2), (1, 2))").replace("256", "288"))
    ran = irtool("check", str(path), "--devices", "24", "--soc", "Ascend910")
    assert ran.status == 1
    assert "--soc Ascend910B" in ran.output
    given = irtool("check", str(path), "--devices", "24", "--soc", "Ascend910B")
    assert given.status == 0
    assert "soc" not in given.output
    # Where nobody says it, that of the machine is taken, and said where it decides.
    taken = irtool("check", str(path), "--devices", "24")
    assert taken.status == 0
    assert "assumed: soc Ascend910B" in taken.output


# -- standard input and run folders --------------------------------------------------------------


def test_excerpt_on_standard_input() -> None:
    ran = piped(EXCERPT, "--devices", "8", "--rank", "0", "--format", "json")
    assert (ran.returncode, ran.stderr) == (0, b"")
    found = json.loads(ran.stdout)
    by_op = {item["op"]: item for item in found["operators"]}
    matmul = by_op["MatMul"]
    assert found["accepted"] is True
    assert matmul["input_slices"] == [[64, 392], [512, 392]]
    assert matmul["output_slices"] == [[64, 512]]
    (collective,) = matmul["collectives"]
    assert (collective["op"], collective["ranks"]) == ("AllReduce", [0, 1])
    assert collective["group"] == "2-5004544844489628105"
    assert by_op["BiasAdd"]["repeated"] == by_op["ReLU"]["repeated"] == 2


def test_excerpt_without_devices_asks_for_them() -> None:
    ran = piped(EXCERPT)
    assert ran.returncode == 2
    assert b"--devices 8" in ran.stderr


def test_run_folder_says_which_dump_it_took(irtool: Run) -> None:
    ran = irtool("check", "samples/pipeline_run")
    assert ran.status == 0
    assert "reads samples/pipeline_run/rank_0/step_parallel_begin_0018.ir" in ran.errors
    assert "seen from rank 0 of stage 0" in ran.output
    ran = irtool("check", "samples/pipeline_run", "--rank", "5")
    assert "rank_4/step_parallel_begin_0018.ir" in ran.errors
    assert "seen from rank 5 of stage 1" in ran.output


def test_folder_of_a_rank_says_the_rank(irtool: Run) -> None:
    found = checked(irtool, "samples/pipeline_run/rank_4/step_parallel_begin_0018.ir")
    assert (found["rank"], found["stages"]) == (4, 2)
    inside = [item for item in found["collectives"] if item["op"] not in ("Send", "Receive")]
    assert all(rank >= 4 for item in inside for rank in item["ranks"])


def test_later_dump_is_refused_with_the_begin_dump_as_hint(irtool: Run) -> None:
    ran = irtool("check", "samples/gpt/20_validate_0080.ir")
    assert ran.status == 2
    assert "give samples/gpt/step_parallel_begin_0018.ir" in ran.errors


def test_folder_without_begin_dump(irtool: Run) -> None:
    ran = irtool("check", "samples/recompute")
    assert ran.status == 2
    assert "there is no dump step_parallel_begin" in ran.errors


def test_devices_are_taken_from_the_validate_dump_beside(irtool: Run, tmp_path: Path) -> None:
    for name in ("step_parallel_begin_0018.ir", "20_validate_0080.ir"):
        shutil.copy(ROOT / "samples/mlp_semi_auto" / name, tmp_path)
    found = checked(irtool, str(tmp_path / "step_parallel_begin_0018.ir"))
    devices = found["context"]["device_num"]
    assert (devices["value"], devices["origin"]) == (8, "dump")
    assert devices["path"] == str(tmp_path / "20_validate_0080.ir")
    assert found["context"]["dataset_strategy"]["value"] == "full_batch"
    assert [item["slice"] for item in found["dataset"]] == [[64, 784], [64, 16]]


@pytest.mark.parametrize("content", ["", "hello\n", "# IR entry: @main\n"])
def test_no_dump_is_no_accepted_network(irtool: Run, tmp_path: Path, content: str) -> None:
    path = tmp_path / "step_parallel_begin_0001.ir"
    path.write_text(content)
    ran = irtool("check", str(path), "--devices", "8")
    assert (ran.status, ran.output) == (2, "")


def test_what_cannot_be_read_makes_the_verdict_unknown(irtool: Run, tmp_path: Path) -> None:
    path = tmp_path / "step_parallel_begin_0001.ir"
    text = (ROOT / ACCEPTED).read_text()
    path.write_text(text.replace("= PrimFunc_Sub(", "= PrimFunc_Sub((((", 1))
    ran = irtool("check", str(path), "--devices", "8", "--full-batch", "--format", "json")
    assert ran.status == 1
    found = json.loads(ran.output)
    assert found["accepted"] is None
    assert "could not be read" in found["findings"][-1]["message"]


def test_unknown_part_can_be_allowed(irtool: Run, tmp_path: Path) -> None:
    rules = tmp_path / "own.rules"
    rules.write_text('BiasAdd: unknown "nobody looked"\n')
    config = tmp_path / "irtool.toml"
    config.write_text('rules = ["own.rules"]\n')
    ran = irtool("check", ACCEPTED, "--config", str(config))
    assert ran.status == 1
    assert "unknown in a part: BiasAdd" in ran.output
    assert irtool("check", ACCEPTED, "--config", str(config), "--allow-unknown").status == 0


# -- lists -------------------------------------------------------------------------------------


def test_where_thins_out_lists_but_not_the_verdict(irtool: Run) -> None:
    found = checked(irtool, REFUSED, "--where", 'op == "ReLU"')
    assert {item["op"] for item in found["operators"]} == {"ReLU"}
    assert found["accepted"] is False
    assert found["findings"]


def test_limit(irtool: Run) -> None:
    assert len(checked(irtool, ACCEPTED, "--limit", "2")["operators"]) == 2
    assert "10 more operators" in irtool("check", ACCEPTED, "--operators", "--limit", "2").output
    assert "more operator" not in irtool("check", ACCEPTED, "--operators", "--limit", "0").output


def test_bad_query(irtool: Run) -> None:
    ran = irtool("check", ACCEPTED, "--where", "op =")
    assert ran.status == 2
    assert "--where:1:" in ran.errors


# -- JSON --------------------------------------------------------------------------------------

SCHEMA = Draft202012Validator(
    json.loads((ROOT / "docs/json-check.schema.json").read_text(encoding="utf-8"))
)
BEGINS = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("samples/**/step_parallel_beg*"))


@pytest.mark.parametrize("path", BEGINS)
def test_json_is_as_documented(irtool: Run, path: str) -> None:
    found = checked(irtool, path, "--devices", "8")
    SCHEMA.validate(found)
    case = ROOT / os.path.dirname(path) / "case.json"
    if case.exists():
        assert found["accepted"] is json.loads(case.read_text())["accepted"]


def test_json_goes_to_a_file(irtool: Run, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    ran = irtool("check", ACCEPTED, "--format", "json", "-o", str(path))
    assert (ran.status, ran.output) == (0, "")
    assert json.loads(path.read_text())["schema"] == "irtool.check/1"


def test_control_characters_do_not_get_through(irtool: Run, tmp_path: Path) -> None:
    path = tmp_path / "step_parallel_begin_0001.ir"
    text = (ROOT / REFUSED).read_text()
    path.write_text(text.replace("mid-Linear", "mid\x1b[2J\u202e"))
    for arguments in ([], ["--operators"], ["--format", "json"]):
        ran = irtool("check", str(path), "--devices", "8", *arguments)
        assert "\x1b" not in ran.output
        assert "\u202e" not in ran.output


# -- against a later dump, and why ----------------------------------------------------------------

LATER = "samples/mlp_semi_auto/20_validate_0080.ir"


@pytest.mark.parametrize("later", [LATER, "samples/mlp_semi_auto"])
def test_against_the_dump_of_the_same_compilation(irtool: Run, later: str) -> None:
    ran = irtool("check", ACCEPTED, "--against", later)
    assert ran.status == 0
    assert f"against {LATER}: as predicted" in ran.output
    assert "_VirtualDataset" in ran.output


@pytest.mark.parametrize("brackets", [True, False])
def test_a_later_dump_tells_the_context_wherever_it_stands(
    irtool: Run, tmp_path: Path, brackets: bool
) -> None:
    """The dataset is not taken to be split: its inputs come whole there.

    Without the whole sizes behind their types, those of the begin dump are the whole ones.
    """
    begin, later = tmp_path / "before.ir", tmp_path / "elsewhere" / "after.ir"
    later.parent.mkdir()
    shutil.copy(ROOT / ACCEPTED, begin)
    text = (ROOT / LATER).read_text(encoding="utf-8")
    if not brackets:
        text, count = re.subn(r"(?m)^(%para[12]_\S+: <.*>) : \[.*\]$", r"\1", text)
        assert count == 2
    later.write_text(text, encoding="utf-8")
    found = checked(irtool, str(begin), "--against", str(later))
    assert found["against"]["agrees"] is True
    dataset = found["context"]["dataset_strategy"]
    assert (dataset["value"], dataset["path"]) == ("full_batch", str(later))
    assert found["context"]["device_num"]["value"] == 8


def test_against_another_context_differs(irtool: Run) -> None:
    ran = irtool("check", ACCEPTED, "--against", LATER, "--devices", "16")
    assert ran.status == 1
    for part in ("9 differences", "predicted  (0, 1, 8, 9)", "actual     (0, 4)", f"{LATER}:86"):
        assert part in ran.output
    found = checked(irtool, ACCEPTED, "--against", LATER, "--devices", "16")
    SCHEMA.validate(found)
    assert found["against"]["agrees"] is False
    assert found["against"]["differences"][0]["begin"]["op"] == "MatMul"


def test_against_another_network_is_no_agreement(irtool: Run) -> None:
    assert irtool("check", ACCEPTED, "--against", "samples/recompute").status == 1


def test_why_of_one_node(irtool: Run) -> None:
    ran = irtool("check", ACCEPTED, "--why", "%8")
    assert ran.status == 0
    assert f"nodes are those of {LATER}" in ran.errors
    for part in (
        "forward reduction",
        "AllReduce over 0-3",
        "64.0 KiB",
        f"{ACCEPTED}:75",
        "instead",
    ):
        assert part in ran.output


def test_why_of_what_a_query_chooses(irtool: Run) -> None:
    ran = irtool("check", LATER, "--why", 'op == "AllReduce"', "--format", "json")
    assert ran.status == 0
    causes = json.loads(ran.output)["why"]
    assert len(causes) == 9
    assert {cause["kind"] for cause in causes} == {"forward reduction", "mirror"}
    assert "up.weight" in {cause["parameter"] for cause in causes}


def test_why_without_begin_dump_goes_by_names(irtool: Run) -> None:
    ran = irtool("check", "samples/data_parallel/19_validate_0078.ir", "--why", "collective")
    assert ran.status == 0
    assert "no begin dump was given" in ran.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([ACCEPTED, "--why", "%99999"], "there is no node %99999"),
        ([ACCEPTED, "--why", "op ="], "--why:1:"),
        (["samples/layout/step_parallel_begin_0019.ir", "--why", "%1"], "--against"),
        ([ACCEPTED, "--against", "/no/such/file"], "/no/such/file"),
    ],
)
def test_why_and_against_fail_clearly(irtool: Run, arguments: list[str], message: str) -> None:
    ran = irtool("check", *arguments)
    assert (ran.status, ran.output) == (2, "")
    assert message in ran.errors


def test_what_would_be_cut_is_not_read_off_a_dump_that_cuts_nothing(irtool: Run) -> None:
    """The later dumps beside it were compiled without optimizer parallel: they exclude nothing."""
    found = checked(irtool, ACCEPTED, "--enable-parallel-optimizer")
    gathered = {item["name"]: item["gather_ranks"] for item in found["parameters"]}
    assert gathered["mid.weight"] == [0, 4]
    assert "parallel_optimizer_excluded" not in found["context"]


def test_weights_that_are_kept_out_of_optimizer_parallel_are_marked(irtool: Run) -> None:
    """Named by the user: in their rows and in the summary; not without optimizer parallel."""
    names = ("--parallel-optimizer-excluded", "mid.weight", "--parameters")
    on = irtool("check", ACCEPTED, "--enable-parallel-optimizer", *names).output
    row = next(line for line in on.splitlines() if line.startswith("  mid.weight"))
    assert "kept out (parallel_optimizer=False)" in row
    assert "AllGather" not in row
    assert "1 kept out of that" in on
    assert "kept out" not in irtool("check", ACCEPTED, *names).output


@pytest.mark.parametrize("form", ["sarif", "github", "gitlab", "junit"])
def test_findings_of_check_have_the_forms_of_ci(
    form: str, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The refused product, at the user's line of Python, with what would be legal."""
    assert main(["check", str(samples / "mlp_rejected"), "--format", form]) == 1
    out = capsys.readouterr().out
    assert "axis-mismatch" in out
    assert "net.py" in out
    assert "((2, 4), (1, 4))" in out or form == "gitlab"
