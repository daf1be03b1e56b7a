"""Each network and what a later commit made of it: findings keep their fingerprints.

``evidence/twins`` holds small networks of ``benchmarks/plants/twins.py``, ``grown`` the same with a
layer more in front of the others, compiled again from sources whose lines moved.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from irtool.cli.main import main
from irtool.linting.registry import own_rules

FOLDER = Path(__file__).parent / "evidence" / "twins"

FILES = {"begin": "step_parallel_begin_0018", "validate": "20_validate_0080"}

LOUD = """
[lint]
extend-select = ["NUM", "COM", "MEM", "STR", "OPS", "REC", "PIP", "ENV"]

[lint.thresholds]
COM003 = {least_bytes = 1}
COM004 = {least_count = 2, least_share = 1}
COM005 = {least_count = 1}
COM006 = {least_bytes = 1}
COM009 = {least_bytes = 1, least_grave = 1, least_share = 1}
MEM001 = {least_bytes = 1}
MEM002 = {least_bytes = 1}
MEM003 = {least_bytes = 1, margin_percent = 100}
MEM004 = {least_bytes = 1, least_total = 1}
NUM001 = {least_length = 1}
NUM002 = {least_ranks = 1}
NUM004 = {least_length = 1}
NUM006 = {least_ranks = 1}
OPS003 = {least_share = 1, least_bytes = 1}
OPS004 = {least_layers = 2, least_share = 1, least_seconds = 0}
PIP001 = {most_percent = 1}
PIP002 = {most_percent = 1}
PIP003 = {least_bytes = 1}
REC001 = {least_bytes = 1}
STR003 = {least_gigaflops = 0}
STR005 = {least_bytes = 1}
STR007 = {least_gigaflops = 0, least_share = 1}
"""
"""Thresholds at which rules speak of a small network."""

TOLD: dict[str, set[str]] = {
    "across_gated": {"COM006", "NUM003"},
    "contradicted_encoder": {"ENV004"},
    "dynamic_gated": {"OPS005"},
    "habits_encoder": {
        "COM009", "MEM001", "MEM002", "MEM003", "OPS001", "OPS002", "OPS003", "OPS004", "REC001",
        "STR003", "STR005", "STR007",
    },
    "half_weights_gated": {"NUM002"},
    "halves_gated": {"COM005", "NUM001", "NUM005", "NUM006", "NUM007", "NUM008"},
    "mesh_differs_encoder": {"COM008"},
    "pipe_pipes": {"COM007", "PIP001", "PIP002", "PIP003"},
    "soft_encoder": {"NUM004"},
    "unfused_gated": {"COM004"},
    "unheard_gated": {"ENV001", "ENV002", "ENV003"},
}  # fmt: skip
"""By network, the rules that it was made for."""

GROWN = sorted({path.name.split(".")[0] for path in (FOLDER / "grown").glob("*.xz")})

SILENT = {"pipe_pipes": {"COM008"}}
"""What is not told, since another finding is its cause."""


def linted(folder: Path, name: str, tmp_path: Path) -> list[dict[str, Any]]:
    """What ``irtool lint`` finds in a compilation of a network, or in those of its ranks."""
    run = tmp_path / folder.name / name
    context = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    for packed in sorted(folder.glob(f"{name}.*.ir.xz")):
        *ranks, kind = packed.name.removeprefix(f"{name}.").removesuffix(".ir.xz").split(".")
        own = run.joinpath(*ranks)
        own.mkdir(parents=True, exist_ok=True)
        shutil.copy(packed, own / f"{FILES[kind]}.ir.xz")
        own_context = json.loads(context)
        if ranks:
            own_context["global_rank"] = ranks[0].removeprefix("rank_")
        (own / "case.json").write_text(json.dumps({"context": own_context}))
    config, answer = tmp_path / "irtool.toml", tmp_path / "answer.json"
    config.write_text(LOUD)
    answer.unlink(missing_ok=True)
    words = ["--config", str(config), "--machine", "ascend_910b", "-f", "json", "-o", str(answer)]
    main(["lint", str(run), *words])
    found: list[dict[str, Any]] = json.loads(answer.read_text(encoding="utf-8"))["findings"]
    return found


@pytest.mark.parametrize("name", TOLD)
def test_rules_speak_of_what_was_planted(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {each["code"] for each in linted(FOLDER, name, tmp_path)}
    capsys.readouterr()
    assert TOLD[name] <= told
    assert not SILENT.get(name, set()) & told


@pytest.mark.parametrize("name", GROWN)
def test_fingerprints_outlive_a_layer_more_and_lines_that_moved(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = [
        {each["fingerprint"]: each["code"] for each in linted(folder, name, tmp_path)}
        for folder in (FOLDER, FOLDER / "grown")
    ]
    capsys.readouterr()
    own = [{key for key, code in side.items() if code in TOLD[name]} for side in told]
    assert own[0]
    assert own[0] == own[1]


def test_every_network_has_a_verdict() -> None:
    assert {path.name.split(".")[0] for path in FOLDER.glob("*.xz")} == set(TOLD)
    assert set(GROWN) <= set(TOLD)


def test_rules_name_networks_on_which_they_speak() -> None:
    prefix = "tests/linting/evidence/twins/"
    for entry in own_rules().values():
        for case in entry.load().cases:
            if case.startswith(prefix):
                name, _, kind = case.removeprefix(prefix).partition(".")
                assert entry.code in TOLD[name]
                assert not kind or (FOLDER / f"{name}.{kind}.ir.xz").exists()
