"""Rules on dumps that MindSpore itself printed: each plant is told, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from irtool.ir.finding import Finding
from irtool.linting.fingerprint import fingerprinted
from irtool.linting.library import lint
from irtool.linting.rule import DumpKind
from irtool.syntax.load import load, loads
from irtool.syntax.printer import dumps

FOLDER = Path(__file__).parent / "evidence"

TOLD: dict[str, list[tuple[str, str]]] = {
    "recompute_lost_last_encoder.validate": [
        ("REC004", r"layers\.3 is not recomputed, as 3 equal layers are \(layers\.0\)")
    ],
    "epsilon_half_gated.validate": [("NUM008", "Add is 0 in float16: nothing keeps Rsqrt")],
    "epsilon_subnormal_gated.begin": [("NUM007", "1.01e-06 in Add is subnormal")],
    "print_gated.begin": [("OPS001", "Print is left in the graph")],
    "tensor_dump_encoder.begin": [("OPS001", "TensorDump is left in the graph")],
    "summary_gated.begin": [("OPS001", "ScalarSummary writes a summary")],
    "dropout_gone_encoder.begin": [("OPS002", r"Dropout is missing in layers\.\d, and stands in")],
    "dropout_half_gated.begin": [("OPS002", r"Dropout: operand 2 is 0\.5 in layers\.\d, 0\.9 in")],
    "epsilon_one_encoder.begin": [("OPS002", r"LayerNorm: operand \d is 0\.001 in layers\.\d")],
    "weight_turned_encoder.validate": [("OPS003", "a weight is transposed in every step for Mat")],
    "ids_cast_gated.validate": [("OPS003", "Int64 and is cast to Int32 in every step")],
    "table_gathered_encoder.validate": [("OPS003", "only constants and positions, which nothing")],
    "reductions_scalar_gated.validate": [("COM005", "times AllReduce of at most 4 bytes")],
}
"""By dump, the rules that speak there and what they say."""


@pytest.mark.parametrize("name", TOLD)
def test_a_plant_is_told_and_nothing_else(name: str) -> None:
    kind: DumpKind = "begin" if name.endswith(".begin") else "validate"
    found = lint(load(FOLDER / f"{name}.ir.xz"), kinds=(kind,))
    assert {each.code for each in found} == {code for code, _ in TOLD[name]}
    for code, words in TOLD[name]:
        assert any(each.code == code and re.search(words, each.message) for each in found)


@pytest.mark.parametrize("name", TOLD)
def test_findings_stand_at_the_line_that_would_change(name: str) -> None:
    kind: DumpKind = "begin" if name.endswith(".begin") else "validate"
    for found in lint(load(FOLDER / f"{name}.ir.xz"), kinds=(kind,)):
        assert found.source is not None
        assert found.source.path == "net/styles.py"


def test_every_dump_has_a_verdict() -> None:
    assert {path.name.removesuffix(".ir.xz") for path in FOLDER.glob("*.xz")} == set(TOLD)


def again(text: str) -> str:
    """A dump as the next compilation prints it: other numbers and addresses, lines that moved."""
    text = re.sub(r"%(\d+)(?=[(,)\s\[])", lambda m: f"%{int(m[1]) + 500}", text)
    text = re.sub(r"CNode_(\d+)", lambda m: f"CNode_{int(m[1]) + 4000}", text)
    text = re.sub(r"0x[0-9a-f]{6,}", lambda m: f"{int(m[0], 16) + 64:#x}", text)
    text = re.sub(r'(unique_id: ")(\d+)', lambda m: f"{m[1]}{int(m[2]) + 900}", text)
    text = re.sub(r"-op(\d+)\)", lambda m: f"-op{int(m[1]) + 3})", text)
    text = re.sub(r"(net/\w+\.py:)(\d+)(?:~(\d+))?", _moved, text)
    return "\n\n" + text


def _moved(found: re.Match[str]) -> str:
    end = f"~{int(found[3]) + 12}" if found[3] else ""
    return f"{found[1]}{int(found[2]) + 12}{end}"


@pytest.mark.parametrize("name", TOLD)
def test_fingerprints_outlive_the_next_compilation(name: str) -> None:
    kind: DumpKind = "begin" if name.endswith(".begin") else "validate"
    text = dumps(load(FOLDER / f"{name}.ir.xz"))
    first, second = (lint(loads(each, f"{kind}.ir"), kinds=(kind,)) for each in (text, again(text)))
    assert [each.line + 2 for each in first] == [each.line for each in second]
    assert prints(first) == prints(second)


def prints(found: Iterable[Finding]) -> list[str]:
    return [each.fingerprint for each in fingerprinted(found, lambda each: "validate")]
