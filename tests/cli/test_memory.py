"""``irtool memory`` as people and scripts use it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator

from irtool.report.reference import schema_of
from tests.cli.running import Run

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = "samples/memory/without_recompute.ir.xz"
RUN = "samples/pipeline_run"
DYNAMIC = "samples/dynamic_shape/20_validate_0080.ir"
COMMAND = "memory"


@pytest.mark.parametrize(
    ("name", "status", "arguments"),
    [
        ("blocks", 1, (BLOCKS, "--limit", "780MiB", "--rows", "4")),
        ("run", 1, (RUN, "--limit", "600MiB", "--rows", "3", "--layers")),
    ],
)
def test_outputs_for_people(
    name: str, status: int, arguments: tuple[str, ...], irtool: Run
) -> None:
    ran = irtool(*arguments)
    assert ran.status == status
    path = ROOT / "tests" / "golden" / f"memory_{name}.txt"
    if os.environ.get("IRTOOL_UPDATE_GOLDEN"):
        path.write_text(ran.output, encoding="utf-8")
    assert ran.output == path.read_text(encoding="utf-8")


def test_the_answer_comes_first(irtool: Run) -> None:
    ran = irtool(BLOCKS)
    assert ran.status == 0
    assert ran.output.startswith(f"{BLOCKS}: peak 156.0 MiB\n")
    assert "Alive at the peak" in ran.output
    assert "What would save memory" in ran.output


@pytest.mark.parametrize(
    ("limit", "status", "words"),
    [
        ("60GiB", 0, "fits 60.0 GiB"),
        ("100MiB", 1, "does not fit 100.0 MiB"),
        ("770MiB", 1, "may or may not fit 770.0 MiB"),
    ],
)
def test_a_limit_decides_the_status(limit: str, status: int, words: str, irtool: Run) -> None:
    ran = irtool(BLOCKS, "--limit", limit)
    assert ran.status == status
    assert ran.output.partition("\n")[0].endswith(words)


def test_what_may_or_may_not_fit_can_be_allowed(irtool: Run) -> None:
    assert irtool(BLOCKS, "--limit", "770MiB", "--allow-unknown").status == 0


def test_combinations_say_what_to_write(irtool: Run) -> None:
    ran = irtool(BLOCKS, "--limit", "780MiB")
    assert "What fits 780.0 MiB, the cheapest first" in ran.output
    assert re.search(r"recompute\(mp_comm_recompute=False\)|enable_parallel_optimizer", ran.output)
    assert "No set of these options fits" in irtool(BLOCKS, "--limit", "1MiB").output


def test_the_worst_rank_of_a_run_comes_first(irtool: Run) -> None:
    ran = irtool(RUN, "--limit", "600MiB", "--format", "json")
    found = json.loads(ran.output)
    assert ran.status == 1
    assert [one["rank"] for one in found["ranks"]] == [4, 0]
    assert [one["stage"] for one in found["ranks"]] == [1, 0]
    assert found["rank"] == 4
    assert found["fits"] is False


def test_json_follows_its_schema(irtool: Run) -> None:
    validator = Draft202012Validator(schema_of("memory"))
    for arguments in ((BLOCKS,), (RUN, "--limit", "1GiB"), (DYNAMIC,)):
        found = json.loads(irtool(*arguments, "--format", "json").output)
        validator.validate(found)


def test_json_adds_up(irtool: Run) -> None:
    found = json.loads(irtool(BLOCKS, "--format", "json").output)
    assert found["peak"]["bytes"] == max(point["bytes"] for point in found["curve"])
    assert found["static"]["bytes"] == sum(found["static"]["by_cause"].values())
    assert found["peak"]["dynamic"] == sum(one["bytes"] for one in found["alive_at_peak"])


def test_unknown_sizes_are_asked_for(irtool: Run) -> None:
    ran = irtool(DYNAMIC)
    assert ran.status == 1
    assert "peak at least" in ran.output
    assert "--bind s4=32" in ran.errors
    bound = irtool(DYNAMIC, "--bind", "s4=64", "--format", "json")
    assert "inputs0" not in json.loads(bound.output)["unknown"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--limit", "lots"), "'lots' is no size"),
        (("--bind", "s4"), "'s4' binds nothing"),
        (("--bind", "s4=9"), "s4 is a multiple of 8, not 9"),
        (("--bind", "s99=8"), "s99 is no unknown dimension"),
        (("--machine", "abacus"), "there is no machine abacus"),
        (("--order", "random"), "random"),
    ],
)
def test_wrong_options_end_with_status_2(
    arguments: tuple[str, ...], message: str, irtool: Run
) -> None:
    ran = irtool(DYNAMIC, *arguments)
    assert ran.status == 2
    assert message in ran.errors
    assert "Traceback" not in ran.errors


def test_what_cannot_be_read_ends_with_status_2(irtool: Run, tmp_path: Path) -> None:
    empty = tmp_path / "empty.ir"
    empty.write_bytes(b"")
    garbage = tmp_path / "garbage.ir"
    garbage.write_bytes(b"\x00\xff no dump \x1b[31m")
    for path in (str(empty), str(garbage), str(tmp_path / "missing.ir"), str(tmp_path)):
        ran = irtool(path)
        assert ran.status == 2
        assert "error" in ran.errors
        assert "\x1b[31m" not in ran.errors


def test_a_dump_without_backward_pass_is_said_to_be_one(irtool: Run) -> None:
    ran = irtool("samples/gpt/step_parallel_begin_0018.ir")
    assert "no backward pass" in ran.output
    assert "not sliced yet" in ran.output


def test_lists_are_shortened_and_can_be_shown_whole(irtool: Run) -> None:
    short, whole = irtool(BLOCKS, "--rows", "2").output, irtool(BLOCKS, "--rows", "0").output
    assert "more rows (--rows 0 shows all)" in short
    assert "more (--rows 0 shows all)" not in whole


def test_layers_and_servers_are_lists_of_their_own(irtool: Run) -> None:
    ran = irtool("samples/gpt/20_validate_0080.ir", "--layers", "--servers")
    assert "Static memory by layer" in ran.output
    assert "Parameter server mode" in ran.output


def test_the_curve_is_a_picture(irtool: Run) -> None:
    picture = ElementTree.fromstring(irtool(BLOCKS, "--format", "svg").output)
    assert picture.tag.endswith("svg")
    page = irtool(BLOCKS, "--format", "html").output
    assert page.lower().startswith("<!doctype html>")
    assert "Alive at the peak" in page


def test_a_custom_operator_can_be_counted(irtool: Run, tmp_path: Path) -> None:
    rules = tmp_path / "my.rules"
    rules.write_text("flops MyRowNorm, MyMatMulBias = 2 * output\n")
    config = tmp_path / "irtool.toml"
    config.write_text('rules = ["my.rules"]\n')
    ran = irtool("samples/custom_rules/step_parallel_begin_0001.ir", "--config", str(config))
    assert ran.status in (0, 1)
    rules.write_text("flops MyRowNorm = 2 * outputt\n")
    ran = irtool("samples/custom_rules/step_parallel_begin_0001.ir", "--config", str(config))
    assert ran.status == 2
    assert "my.rules:1:23: error[RUL002]: outputt is no size of a tensor" in ran.errors


def test_half_a_dump_says_so(tmp_path: Path, irtool: Run) -> None:
    half = tmp_path / "20_validate_0080.ir"
    text = (ROOT / "samples/gpt/20_validate_0080.ir").read_text()
    half.write_text(text[: len(text) // 2])
    ran = irtool(str(half), "--limit", "60GiB", "--allow-unknown")
    assert ran.status == 1
    assert "peak at least" in ran.output
    assert "may or may not fit" in ran.output
    assert "could not be read" in ran.output


def test_a_recorded_peak_stands_beside_the_predicted_one(irtool: Run) -> None:
    """A CPU's pool holds the tensors of a step: what is predicted of these is held against it."""
    answer = json.loads(irtool("samples/artefacts/run", "--format", "json").output)
    recorded = answer["recorded"]
    assert (recorded["record"], recorded["allocated"]) == ("cpu pool", 1_320_448)
    predicted = recorded["predicted"]
    assert predicted == {"low": answer["peak"]["dynamic"], "high": answer["peak"]["dynamic"]}
    assert predicted["low"] == pytest.approx(recorded["allocated"], rel=0.001)
    assert answer["order_error"] == 0
    assert "0.1 % less" in irtool("samples/artefacts/run").output


def test_what_validate_alone_says_is_an_interval(irtool: Run) -> None:
    answer = json.loads(irtool(BLOCKS, "--format", "json").output)
    error = answer["order_error"]
    assert error == int(0.06 * answer["peak"]["dynamic"])
    beside = sum(answer[part]["low"] for part in ("workspace", "fusion", "communicators"))
    assert answer["device"]["low"] == answer["peak"]["bytes"] - error + beside
    assert answer["recorded"] is None
