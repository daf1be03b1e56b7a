"""``irtool gate``: what became worse than in a golden dump."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from irtool.cli.main import main


def gate(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main(["gate", *map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err


def codes(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    status, out, _ = gate(capsys, *arguments, "--format", "json")
    report = json.loads(out)
    assert report["schema"] == "irtool.gate/1"
    assert status == (1 if report["findings"] else 0)
    return [finding["code"] for finding in report["findings"]]


@pytest.fixture
def golden(samples: Path) -> Path:
    return samples / "recompute/20_validate_0081.ir"


def changed(golden: Path, folder: Path, old: str, new: str) -> Path:
    text = golden.read_text(encoding="utf-8")
    assert old in text
    path = folder / golden.name
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def test_a_dump_is_no_worse_than_itself(capsys: pytest.CaptureFixture[str], golden: Path) -> None:
    status, out, _ = gate(capsys, golden, golden)
    assert status == 0
    assert out.startswith("nothing found in 2 dumps")


def test_more_collectives(capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path) -> None:
    # One of the GeLUs becomes a forward reduction.
    new = changed(
        golden,
        tmp_path,
        "%3(equiv_22_CNode_344) = PrimFunc_GeLU(%2) {instance name: gelu}",
        "%3(equiv_22_CNode_344) = AllReduce(%2) {instance name: forward_op_11}",
    )
    assert "GAT001" in codes(capsys, golden, new)
    assert "GAT001" not in codes(capsys, golden, new, "--threshold", "GAT001.most_more=1")
    assert "GAT001" not in codes(capsys, golden, new, "--ignore", "GAT001")


def test_fewer_collectives_are_fine(
    capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path
) -> None:
    new = changed(golden, tmp_path, " = AllReduce(%23)", " = PrimFunc_Neg(%23)")
    assert "GAT001" not in codes(capsys, golden, new)


def test_larger_collectives(
    capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path
) -> None:
    text = golden.read_text(encoding="utf-8")
    lines = text.split("\n")
    at = next(n for n, line in enumerate(lines) if " = AllReduce(" in line)
    lines[at + 1] = lines[at + 1].replace("(8, 64)", "(8000, 64)")
    new = tmp_path / golden.name
    new.write_text("\n".join(lines), encoding="utf-8")
    found = codes(capsys, golden, new)
    assert "GAT002" in found
    assert "GAT002" not in codes(capsys, golden, new, "--threshold", "GAT002.most_percent=1e9")


def test_changed_strategies_are_told_once_for_all_layers(
    capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path
) -> None:
    new = changed(
        golden, tmp_path, "in_strategy: ((4, 1), (1, 2))", "in_strategy: ((2, 1), (1, 4))"
    )
    assert codes(capsys, golden, new, "--select", "GAT003") == ["GAT003"]


def test_lost_recompute(capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path) -> None:
    new = changed(golden, tmp_path, "duplicated: Bool(1)", "duplicated: Bool(0)")
    assert codes(capsys, golden, new, "--select", "GAT004") == ["GAT004"]
    assert codes(capsys, new, golden, "--select", "GAT004") == []


def test_more_memory(capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path) -> None:
    new = changed(golden, tmp_path, "(8, 64)", "(80000, 64)")
    assert "GAT005" in codes(capsys, golden, new)


def test_changed_precision(
    capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path
) -> None:
    text = golden.read_text(encoding="utf-8")
    lines = text.split("\n")
    at = next(n for n, line in enumerate(lines) if " = PrimFunc_GeLU(%2)" in line)
    head, arrow, result = lines[at + 1].partition(" -> ")
    lines[at + 1] = head + arrow + result.replace("Float32", "Float16")
    new = tmp_path / golden.name
    new.write_text("\n".join(lines), encoding="utf-8")
    assert "GAT006" in codes(capsys, golden, new)


def test_a_larger_graph(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    small, large = (samples / name for name in ("recompute/20_validate_0081.ir",
                                                "gpt/20_validate_0080.ir"))  # fmt: skip
    assert "GAT007" in codes(capsys, small, large)
    assert "GAT007" not in codes(capsys, large, small)


def test_severities_decide_the_status(
    capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path
) -> None:
    new = changed(golden, tmp_path, "duplicated: Bool(1)", "duplicated: Bool(0)")
    assert gate(capsys, golden, new, "--fail-on", "error")[0] == 0
    assert gate(capsys, golden, new, "--fail-on", "warning")[0] == 1


def test_sarif_and_configuration(
    capsys: pytest.CaptureFixture[str], golden: Path, tmp_path: Path
) -> None:
    new = changed(golden, tmp_path, "duplicated: Bool(1)", "duplicated: Bool(0)")
    settings = tmp_path / "irtool.toml"
    settings.write_text('[lint.severities]\nGAT004 = "error"\n', encoding="utf-8")
    status, out, _ = gate(
        capsys, golden, new, "--format", "sarif", "--config", settings, "--select", "GAT004"
    )
    assert status == 1
    results = json.loads(out)["runs"][0]["results"]
    assert [(each["ruleId"], each["level"]) for each in results] == [("GAT004", "error")]


def test_run_folders(capsys: pytest.CaptureFixture[str], samples: Path) -> None:
    status, _, err = gate(capsys, samples / "gpt", samples / "gpt")
    assert status == 0
    assert "20_validate_0080.ir" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.ir", "{golden}"], "no such file"),
        (["{golden}", "{golden}", "--threshold", "GAT001"], "is not CODE.NAME=NUMBER"),
        (["{golden}", "{golden}", "--threshold", "GAT001.mots_more=1"], "most_more"),
        (["{golden}", "{golden}", "--threshold", "GAT001.mots_more=1"], "--threshold: error"),
        (["{golden}", "{golden}", "--select", "GAT999"], "GAT999"),
        (["{golden}", "{golden}", "--select", "COM"], "no rule of the gate"),
    ],
)
def test_mistakes_are_explained(
    capsys: pytest.CaptureFixture[str], golden: Path, arguments: list[str], words: str
) -> None:
    status, _, err = gate(capsys, *(text.format(golden=golden) for text in arguments))
    assert status == 2
    assert words in err
    assert "Traceback" not in err


def test_all_ranks_of_two_runs_are_compared(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    old, new = samples / "pipeline_2_stages", tmp_path / "new"
    shutil.copytree(old, new)
    assert codes(capsys, old, new) == []
    worse = new / "rank_2/20_validate_0080.ir"
    worse.write_text(worse.read_text("utf-8").replace("PrimFunc_ReLU(", "PrimFunc_AllReduce("))
    report = json.loads(gate(capsys, old, new, "--format", "json")[1])
    assert [(each["code"], each["ranks"]) for each in report["findings"]] == [("GAT001", [2])]
    assert report["counts"]["files"] == 6  # ranks 0 and 1 are equal
    assert codes(capsys, old, new, "--rank", "0") == []
    shutil.rmtree(new / "rank_0")
    assert "left out ranks 0: in one of the runs only" in gate(capsys, old, new)[2]


def test_dumps_of_different_passes_are_not_compared(
    capsys: pytest.CaptureFixture[str], samples: Path, tmp_path: Path
) -> None:
    folder = samples / "mlp_semi_auto"
    begin = shutil.copy(folder / "step_parallel_begin_0018.ir", tmp_path / "new.ir")
    status, _, err = gate(capsys, folder / "20_validate_0080.ir", begin)
    assert status == 2
    assert "validate cannot be compared with" in err
