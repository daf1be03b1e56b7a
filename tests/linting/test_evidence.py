"""Rules on dumps that MindSpore itself printed: each plant is told, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from irtool.linting.library import lint
from irtool.linting.rule import DumpKind
from irtool.syntax.load import load

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
