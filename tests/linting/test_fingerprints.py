"""Fingerprints on what MindSpore compiled a second time: other sizes, other layers, other numbers.

``evidence/again`` holds the networks of ``evidence`` of the same names, drawn with another seed
(or, ``flatten_reshape``, compiled once more); ``evidence/gate`` two networks with a layer more, and
one whose lines moved.
"""

from __future__ import annotations

import base64
import json
import lzma
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from irtool.cli.inputs.dumps import read_input
from irtool.cli.main import main
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.ir.run import InputFile
from irtool.linting.folding import folded
from irtool.linting.registry import own_rules
from irtool.syntax.load import load
from irtool.syntax.printer import dumps
from irtool.syntax.source import DumpError
from tests.linting.cases import compilation, lint_ranks, rule
from tests.linting.test_evidence import FOLDER, RANKS, TOLD, linted, prints

AGAIN = sorted(path.name.removesuffix(".ir.xz") for path in (FOLDER / "again").glob("*.xz"))
SINGLE = [name for name in AGAIN if name in TOLD]
OF_RANKS = [name for name in RANKS if f"{name}.rank_0.validate" in AGAIN]

LOUD = """
[lint]
extend-select = ["NUM", "COM", "MEM", "STR", "OPS", "REC"]

[lint.thresholds]
STR005 = {least_bytes = 1}
MEM001 = {least_bytes = 1}
MEM002 = {least_bytes = 1}
MEM003 = {least_bytes = 1, margin_percent = 100}
COM005 = {least_count = 1}
REC001 = {least_bytes = 1}
OPS004 = {least_layers = 2, least_seconds = 0, least_share = 1}
"""
"""Thresholds at which rules speak of a small healthy network."""

PAIRS = [
    ("golden_dense", "layer_more_dense", {"REC001", "MEM003", "COM005", "OPS004"}),
    ("golden_mixer", "layer_more_mixer", {"REC001", "MEM003", "COM005"}),
    ("golden_mixer", "again_mixer", {"REC001", "MEM003", "COM005"}),
]


def _without(text: str, op: str) -> str:
    """The dump without the statement of the last operator of a kind."""
    start = text.rindex("\n  %", 0, text.rindex(f"{op}(")) + 1
    return text[:start] + text[text.index("\n  %", start) + 1 :]


def _twice(text: str, op: str) -> str:
    """The dump with the statement of the last operator of a kind printed twice."""
    start = text.rindex("\n  %", 0, text.rindex(f"{op}(")) + 1
    end = text.index("\n  %", start) + 1
    return text[:end] + text[start:end] + text[end:]


def _spoiled(text: str, op: str, old: str, new: str) -> str:
    """The dump with something else behind the last operator of a kind."""
    start = text.rindex(f"{op}(")
    return text[:start] + text[start:].replace(old, new, 1)


DAMAGE: dict[str, Callable[[str], str]] = {
    "SYN001": lambda text: _spoiled(_without(text, "RealDiv"), "RmsNormGrad", "(", "(]"),
    "SYN002": lambda text: _spoiled(_without(text, "RealDiv"), "RmsNormGrad", "<Ten", "<Ten<"),
    "SYN003": lambda text: text[: text.rindex("RmsNormGrad(")],
    "SYN004": lambda text: re.sub(r"(Total number of cnodes|Total subgraphs)[^\d]*\d+",
                                  r"\g<1>: 9999", _without(text, "RmsNormGrad")),
    "SYN005": lambda text: base64.encodebytes(text.encode("utf-8", "replace")).decode(),
    "SYN006": lambda text: "",
    "SYN007": lambda text: text + "\n" + text,
    "SYN008": lambda text: _spoiled(text, "RmsNormGrad", "\n", "\x00\n"),
    "SYN009": lambda text: _twice(text, "RmsNormGrad"),
    "SYN010": lambda text: _without(text, "RmsNormGrad"),
}  # fmt: skip
"""What happens to a dump on its way, by the rule that tells it."""


def told(found: list[Finding], codes: set[str]) -> set[str]:
    """Fingerprints of what rules say, one for each cause."""
    return set(prints(folded([each for each in found if each.code in codes])))


@pytest.mark.parametrize("name", SINGLE)
def test_fingerprints_outlive_other_sizes_and_layers(name: str) -> None:
    codes = {code for code, _ in TOLD[name]}
    text = dumps(load(FOLDER / "again" / f"{name}.ir.xz"))
    first = told(linted(name), codes)
    assert first
    assert first == told(linted(name, text), codes)


@pytest.mark.parametrize("name", OF_RANKS)
def test_fingerprints_of_several_ranks_outlive_other_sizes(name: str) -> None:
    code, _ = RANKS[name]
    found: list[set[str]] = []
    for folder in (FOLDER, FOLDER / "again"):
        context = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        ranks = {
            rank: compilation(
                {"validate": folder / f"{name}.rank_{rank}.validate.ir.xz"},
                {**context, "global_rank": rank},
                rank,
            )
            for rank in (0, 2)
        }
        found.append(told(lint_ranks(rule(code), ranks).findings, {code}))
    assert found[0]
    assert found[0] == found[1]


@pytest.mark.parametrize(("old", "new", "codes"), PAIRS)
def test_fingerprints_outlive_a_layer_that_is_added_and_lines_that_move(
    old: str, new: str, codes: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "irtool.toml"
    config.write_text(LOUD)
    found: list[dict[str, str]] = []
    for name in (old, new):
        answer = tmp_path / f"{name}.json"
        dump = str(FOLDER / "gate" / f"{name}.validate.ir.xz")
        main(["lint", dump, "--config", str(config), "-f", "json", "-o", str(answer)])
        findings = json.loads(answer.read_text(encoding="utf-8"))["findings"]
        found.append({each["fingerprint"]: each["code"] for each in findings})
    capsys.readouterr()
    assert codes <= set(found[0].values())
    assert found[0] == found[1]


@pytest.mark.parametrize("code", DAMAGE)
def test_fingerprints_of_damage_outlive_a_layer_that_is_added(
    code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found: list[set[str]] = []
    dump, answer = tmp_path / "20_validate_0080.ir", tmp_path / "answer.json"
    for name in ("golden_mixer", "layer_more_mixer"):
        packed = FOLDER / "gate" / f"{name}.validate.ir.xz"
        text = lzma.decompress(packed.read_bytes()).decode("utf-8", "surrogateescape")
        dump.write_text(DAMAGE[code](text), encoding="utf-8", errors="surrogateescape")
        main(["lint", str(dump), "--select", code, "-f", "json", "-o", str(answer)])
        findings = json.loads(answer.read_text(encoding="utf-8"))["findings"]
        found.append({each["fingerprint"] for each in findings if each["code"] == code})
    capsys.readouterr()
    assert found[0]
    assert found[0] == found[1]


def test_rules_of_damage_name_the_dump_that_is_damaged() -> None:
    damaged = "tests/linting/evidence/gate/golden_mixer.validate, damaged"
    named = {entry.code for entry in own_rules().values() if damaged in entry.load().cases}
    assert named == set(DAMAGE)


@pytest.mark.parametrize("code", ["SYN000", "ENG001"])
def test_fingerprints_of_what_cannot_be_judged_outlive_a_layer_that_is_added(
    code: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(*_: object) -> None:
        raise KeyError("group")

    found: list[set[str]] = []
    folder, answer = tmp_path / "dumps", tmp_path / "answer.json"
    folder.mkdir()
    for name in ("golden_mixer", "layer_more_mixer"):
        packed = FOLDER / "gate" / f"{name}.validate.ir.xz"
        for file in ("19_step_parallel_end_0060.ir", "20_validate_0080.ir"):
            (folder / file).write_bytes(lzma.decompress(packed.read_bytes()))
        words = ["--no-cache", "-f", "json", "-o", str(answer)]
        with monkeypatch.context() as patch:
            if code == "ENG001":
                patch.setattr(type(rule("COM005")), "check", failing)
            else:
                # An administrator may read whatever is there.
                patch.setattr("irtool.cli.lint.work.read_input", _unreadable)
            main(["lint", str(folder), *words])
        findings = json.loads(answer.read_text(encoding="utf-8"))["findings"]
        found.append({each["fingerprint"] for each in findings if each["code"] == code})
    capsys.readouterr()
    assert found[0]
    assert found[0] == found[1]


def _unreadable(file: InputFile) -> Dump:
    if "validate" in file.path:
        raise DumpError(file.path, "permission denied")
    return read_input(file)
