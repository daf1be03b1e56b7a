"""Pages of answers are those of their classes, and answers are as their schemas say."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from irtool.cli.main import main
from irtool.report.reference import ANSWERS, answer_classes, page_of, schema_of

ROOT = Path(__file__).parents[2]
BEGIN = "samples/gpt/step_parallel_begin_0018.ir"

ASKED = {
    "comm-fuse": ["comm", "fuse", "samples/pipeline_2_stages"],
    "comm-groups": ["comm", "groups", "samples/pipeline_2_stages"],
    "comm-hang": ["comm", "hang", "samples/pipeline_2_stages"],
    "comm-reuse": ["comm", "reuse", "samples/pipeline_2_stages"],
    "check": ["check", "samples/mlp_rejected/step_parallel_begin_0018.ir"],
    "check-why": ["check", "samples/mlp_semi_auto", "--why", 'op == "AllReduce"'],
    "calibrate": ["calibrate", "samples/artefacts/tests/all_reduce_8ranks.txt"],
    "ckpt": ["ckpt", "samples/strategies/stages", "samples/strategies/dp2.json"],
    "cost": ["cost", "samples/pipeline_run"],
    "diff": ["diff", "samples/mlp_semi_auto/step_parallel_begin_0018.ir",
             "samples/mlp_semi_auto/20_validate_0080.ir"],
    "diff-checkpoints": [
        "diff",
        "samples/artefacts/checkpoints/three.ckpt",
        "samples/artefacts/checkpoints/three.safetensors",
    ],
    "diff-loss": ["diff", "--loss", "samples/loss/reference.csv",
                  "samples/loss/halved_gradient.csv"],
    "diff-passes": ["diff", "--passes", "samples/mlp_semi_auto"],
    "diff-ranks": ["diff", "--ranks", "samples/pipeline_2_stages"],
    "diff-runs": ["diff", "samples/precision/reference", "samples/precision/tanh_gelu"],
    "doctor": ["doctor", "samples/mlp_rejected"],
    "explain": ["explain", "samples/analyze_fail"],
    "explain-code": ["explain", "device-list"],
    "gate": ["gate", "samples/recompute/20_validate_0081.ir",
             "samples/mlp_semi_auto/20_validate_0080.ir"],
    "lint": ["lint", "samples/mlp_rejected", "--no-cache"],
    "memory": ["memory", "samples/pipeline_run"],
    "parse": ["parse", "samples/mlp_semi_auto"],
    "parse-history": ["parse", "samples/mlp_semi_auto", "--history", "%12"],
    "pipeline": ["pipeline", "samples/pipeline_2_stages"],
    "plan": ["plan", BEGIN, "--to", "4"],
    "rules": ["rules", "COM"],
    "recover": ["recover", "samples/pipeline_run", "--lost", "1"],
}  # fmt: skip
"""A command whose answer is held against the schema, by the name of the page."""

OF_NO_RUN = {"rules", "explain-code"}
"""Answers about irtool itself, not about what somebody runs."""


@pytest.mark.parametrize("name", ANSWERS)
def test_pages_and_schemas_are_current(name: str) -> None:
    """``python benchmarks/reference.py`` writes them."""
    docs = ROOT / "docs"
    assert (docs / f"json-{name}.md").read_text(encoding="utf-8") == page_of(name)
    kept = json.loads((docs / f"json-{name}.schema.json").read_text(encoding="utf-8"))
    assert kept == schema_of(name)


def test_a_part_of_a_result_says_in_its_docstring_what_its_keys_mean() -> None:
    transfer = schema_of("pipeline")["$defs"]["Transfer"]
    assert (
        transfer["properties"]["bytes"]["description"]
        == "of all of them; null: a size is not known"
    )
    assert "Attributes" not in transfer["description"]
    line = schema_of("lint")["$defs"]["SourceLine"]
    assert line["required"] == list(line["properties"])
    assert "default" not in line["properties"]["column"]


@pytest.mark.parametrize("name", sorted(ANSWERS.keys() - OF_NO_RUN))
def test_answers_hold_the_context_and_what_is_assumed(name: str) -> None:
    for answer in answer_classes(name):
        assert {"context", "assumptions"} <= set(answer.__struct_fields__)


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_as_their_schemas_say(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    main([*ASKED[name], "--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    jsonschema.validate(answer, schema_of(name))
    usual = answer_classes(name)[0].__name__
    assert set(answer) == set(schema_of(name)["$defs"][usual]["properties"])
