"""``irtool explain PATH`` as it is typed: exit status, inputs, outputs."""

from __future__ import annotations

import gzip
import json
import lzma
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from irtool.cli.main import main
from tests.cli.running import Run

ROOT = Path(__file__).resolve().parents[2]
LOGS = "tests/linting/failure/logs/2.7.0"
REFUSED = f"{LOGS}/mm_contract.log"
FAILED = "samples/analyze_fail/rank_0/om/analyze_fail.ir"
COMMAND = "explain"


Found = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def found(irtool: Run) -> Found:
    """The findings of ``--format json``."""

    def _found(*arguments: str | Path) -> list[dict[str, Any]]:
        document = json.loads(irtool(*arguments, "--format", "json").output)
        assert document["schema"] == "irtool.explain/1"
        return document["findings"]

    return _found


def test_a_refused_compilation(irtool: Run) -> None:
    done = irtool(REFUSED)
    assert done.status == 1
    assert "axis-mismatch, matmul_info.cc:CheckInputStrategy in MindSpore" in done.output
    assert "net.py:49: return self.op(self.relu(x), self.w)" in done.output
    assert "irtool check DUMPS --where 'op == \"MatMul\"'" in done.output


def test_what_is_only_worth_knowing_is_no_failure(irtool: Run, tmp_path: Path) -> None:
    log = tmp_path / "rank_0.log"
    log.write_text(
        "[INFO] DEVICE(1,7f3e0ea3cb80,python):2023-06-02-15:34:04.253.124 [mindspore/ccsrc/plugin/"
        "device/ascend/hal/hardware/ascend_comm_op_reuse.cc:70] AscendCommOpReuse] "
        "MAX_COMM_OP_REUSE_NUM: 1000\n"
    )
    assert "MAX_COMM_OP_REUSE_NUM" in irtool(log).output
    assert irtool(log).status == 0
    assert irtool(log, "--fail-on", "info").status == 1


def test_a_network_whose_types_make_no_sense(irtool: Run) -> None:
    done = irtool(FAILED)
    assert done.status == 1
    for text in ("Float32[2,5], Float32[3,4]", "net.py:46", "%2(CNode_16) = %0(%para0_x, %1)"):
        assert text in done.output


def test_the_command_after_a_failure_dump_works(found: Found) -> None:
    (finding,) = found(FAILED)
    words = ["parse", FAILED, "--where", 'graph == "inner_7"']
    assert finding["next"] == f"irtool {' '.join(words[:3])} '{words[3]}'"
    assert main(words) == 0


def test_standard_input() -> None:
    for path, code in ((REFUSED, "axis-mismatch"), (FAILED, "shape")):
        with (ROOT / path).open("rb") as file:
            done = subprocess.run(
                [sys.executable, "-m", "irtool", "explain", "-", "--format", "json"],
                stdin=file,
                capture_output=True,
                timeout=60,
                cwd=ROOT,
                check=False,
            )
        (finding,) = json.loads(done.stdout)["findings"]
        assert done.returncode == 1
        assert (finding["code"], finding["file"]) == (code, "<stdin>")


def test_packed_logs(found: Found, tmp_path: Path) -> None:
    packed = tmp_path / "run.log.gz"
    packed.write_bytes(gzip.compress((ROOT / REFUSED).read_bytes()))
    assert [each["code"] for each in found(packed)] == ["axis-mismatch"]
    packed = tmp_path / "run.log.xz"
    packed.write_bytes(lzma.compress((ROOT / REFUSED).read_bytes()))
    assert [each["code"] for each in found(packed)] == ["axis-mismatch"]


def test_a_damaged_archive_gives_what_stands_before_the_damage(irtool: Run, tmp_path: Path) -> None:
    packed = tmp_path / "run.log.gz"
    packed.write_bytes(gzip.compress((ROOT / REFUSED).read_bytes())[:500])
    done = irtool(packed)
    assert done.status == 1
    assert "axis-mismatch" in done.output
    assert "the gzip file is truncated" in done.errors


def test_a_healthy_log_and_an_empty_one(irtool: Run, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("epoch: 1 step: 1, loss is 2.3\n", encoding="utf-8")
    assert irtool(log).status == 0
    log.write_bytes(b"")
    done = irtool(log)
    assert done.status == 0
    assert "nothing found" in done.output


def test_what_can_not_be_read(irtool: Run, tmp_path: Path) -> None:
    done = irtool(tmp_path / "no.log")
    assert done.status == 2
    assert "no such file" in done.errors
    done = irtool(tmp_path)
    assert done.status == 2
    assert "no log or dump of a failed run in this folder" in done.errors


def test_one_unreadable_file_does_not_hide_the_others(irtool: Run, tmp_path: Path) -> None:
    done = irtool(REFUSED, tmp_path / "no.log")
    assert done.status == 2
    assert "axis-mismatch" in done.output
    assert "no such file" in done.errors


def test_garbage_in_a_log_and_terminal_escapes(irtool: Run, tmp_path: Path) -> None:
    log = tmp_path / "odd.log"
    text = b"epoch: 1 step: 1\n" * 5000
    garbage = bytes(range(256)) * 1000
    log.write_bytes(text + garbage + b"\nRuntimeError: \x1b[31mred\x1b[0m\n" + b"[" * 200_000)
    done = irtool(log)
    assert done.status == 1
    assert "RuntimeError: \\x1b[31mred" in done.output
    assert "\x1b" not in done.output


def test_what_is_no_text_is_no_log(irtool: Run, tmp_path: Path) -> None:
    log = tmp_path / "model.bin"
    log.write_bytes(bytes(range(256)) * 1000)
    done = irtool(log)
    assert done.status == 2
    assert "is no text" in done.errors


def test_a_run_folder_names_the_ranks_and_puts_the_cause_first(
    found: Found, tmp_path: Path, samples: Path
) -> None:
    waits = "EI0002: The wait execution of the Notify register times out. Reason: The Notify "
    waits += "register has not received the Notify record from remote rank [3].base information: []"
    for rank in range(3):
        folder = tmp_path / "log_output" / "127.0.0.1" / f"rank.{rank}"
        folder.mkdir(parents=True)
        (folder / "stdout.log").write_text(waits, encoding="utf-8")
    folder = tmp_path / "log_output" / "127.0.0.1" / "rank.3"
    folder.mkdir()
    memory = "RuntimeError: Device(id:0) memory isn't enough and alloc failed, kernel name: a, "
    (folder / "stdout.log").write_text(memory + "alloc size: 8B.\n", encoding="utf-8")
    shutil.copytree(samples / "pipeline_run" / "rank_0", tmp_path / "rank_0")
    first, second = found(tmp_path)
    assert (first["code"], first["ranks"]) == ("out-of-memory", [3])
    assert first["next"] == f"irtool memory {tmp_path}"
    assert (second["code"], second["role"]) == ("hccl-timeout", "consequence")
    assert second["ranks"] == [0, 1, 2]


def test_a_failure_dump_and_its_log_are_one_finding(found: Found, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "samples" / "analyze_fail", tmp_path / "run")
    exception = (ROOT / FAILED).read_text(encoding="utf-8").split("\n")[7]
    (tmp_path / "run" / "worker_0.log").write_text(f"ValueError: {exception}\n", encoding="utf-8")
    (finding,) = found(tmp_path / "run")
    assert (finding["code"], finding["times"], finding["ranks"]) == ("shape", 2, [0])
    assert finding["operands"] == ["Float32[2,5]", "Float32[3,4]"]


def test_markdown_is_for_codes(irtool: Run) -> None:
    done = irtool(REFUSED, "--format", "markdown")
    assert done.status == 2
    assert "markdown" in done.errors


@pytest.mark.parametrize("path", [REFUSED, FAILED, f"{LOGS}/rec_user.log", f"{LOGS}/devices6.log"])
def test_the_documented_schema(irtool: Run, path: str) -> None:
    schema = json.loads((ROOT / "docs/json-explain.schema.json").read_text(encoding="utf-8"))
    document = json.loads(irtool(path, "--format", "json").output)
    jsonschema.validate(document, schema)
