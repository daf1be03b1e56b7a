"""What a rule stumbles over is said of that operator, and seen in tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from irtool.cli.main import main
from irtool.operators import guard
from irtool.operators.irregular import FUNCTIONS
from irtool.operators.table import rule_of
from irtool.sharding.judge import judge
from tests.sharding.calls import call, context


@pytest.fixture
def stumbling(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule of bias_add fails."""

    def stumble(*_: object) -> None:
        raise IndexError("tuple index out of range")

    assert rule_of("BiasAdd") is not None  # functions are registered when rules are first read
    monkeypatch.setitem(FUNCTIONS, "bias_add", stumble)


def test_an_operator_that_its_rule_stumbles_over_is_unknown(
    stumbling: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "strict", False)
    guard.take_counts()
    found = judge(call("BiasAdd", [8, 4], [4], out=[8, 4]), ((8, 1), (1,)), context(8))
    assert found.verdict == "unknown"
    (finding,) = found.reasons
    assert finding.message.startswith("BiasAdd could not be judged: ")
    assert "IndexError: tuple index out of range" in finding.message
    (site,) = guard.take_counts()
    assert site.endswith(" IndexError")
    assert guard.take_counts() == {}


def test_in_tests_it_is_raised(stumbling: None) -> None:
    with pytest.raises(IndexError):
        judge(call("BiasAdd", [8, 4], [4], out=[8, 4]), ((8, 1), (1,)), context(8))


def test_memory_is_no_matter_of_an_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "strict", False)
    with pytest.raises(MemoryError):
        guard.could_not_judge("Add", MemoryError())


def test_the_rest_of_a_network_is_judged_and_the_line_named(
    stumbling: None,
    monkeypatch: pytest.MonkeyPatch,
    samples: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(guard, "strict", False)
    begin = samples / "mlp_semi_auto" / "step_parallel_begin_0018.ir"
    assert main(["check", str(begin), "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["accepted"] is None
    unknown = [one for one in told["findings"] if "could not be judged" in one["message"]]
    assert {one["op"] for one in unknown} == {"BiasAdd"}
    lines = begin.read_text().split("\n")
    assert all("PrimFunc_BiasAdd(" in lines[one["line"] - 1] for one in unknown)
    verdicts = {one["op"]: one["verdict"] for one in told["operators"]}
    assert verdicts["MatMul"] == "legal"
    assert verdicts["BiasAdd"] == "unknown"
