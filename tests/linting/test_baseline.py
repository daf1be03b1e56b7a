"""Fingerprints and baselines: known findings stay known when the network is compiled again."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.cli.main import main
from irtool.ir.finding import Finding, SourceLine
from irtool.linting.baseline import BaselineError, apply_baseline, read_baseline, write_baseline
from irtool.linting.fingerprint import fingerprinted, lasting
from tests.linting.cases import compilation, lint, rule

FINDING = Finding(
    "COM001",
    "warning",
    "wrong",
    "rank_0/20_validate_0080.ir",
    90,
    node="%8",
    op="AllReduce",
    scope="Default/layers.0/AllReduce-op3",
    source=SourceLine("/home/a/net.py", 33, text="x = f(x)"),
    key="redistribution_op_4630934634094683 CNode_12",
)


def fingerprint(*findings: Finding) -> list[str]:
    return [each.fingerprint for each in fingerprinted(findings, lambda each: "rank_0/validate")]


@pytest.mark.parametrize(
    "again",
    [
        replace(FINDING, line=400, node="%31", file="rank_0/20_validate_0099.ir"),
        replace(FINDING, scope="Default/layers.0/AllReduce-op77"),
        replace(FINDING, scope="Default/layers.1/AllReduce-op3"),  # a layer was put in front
        replace(FINDING, key="redistribution_op_1111111111111111 CNode_999"),
        replace(FINDING, source=SourceLine("/ci/b/net.py", 40, text="x  = f(x)")),
        replace(FINDING, message="another wording", hint="another hint"),
    ],
)
def test_a_fingerprint_outlives_another_compilation(again: Finding) -> None:
    assert fingerprint(again) == fingerprint(FINDING)


@pytest.mark.parametrize(
    "other",
    [
        replace(FINDING, code="COM002"),
        replace(FINDING, scope="Default/head/AllReduce-op3"),
        replace(FINDING, op="AllGather"),
        replace(FINDING, source=SourceLine("/home/a/net.py", 33, text="y = g(x)")),
        replace(FINDING, key="other"),
    ],
)
def test_a_fingerprint_tells_findings_apart(other: Finding) -> None:
    assert fingerprint(other) != fingerprint(FINDING)


def test_findings_that_are_alike_are_counted() -> None:
    assert len(set(fingerprint(FINDING, FINDING, FINDING))) == 3
    assert fingerprint(FINDING, FINDING)[0] == fingerprint(FINDING)[0]


@given(st.text(max_size=30))
def test_what_lasts_is_lasting(text: str) -> None:
    assert lasting(lasting(text)) == lasting(text)


def test_a_real_dump_with_other_numbers_has_the_same_fingerprints(samples: Path) -> None:
    text = (samples / "mlp_rejected/step_parallel_begin_0018.ir").read_text(encoding="utf-8")
    moved = re.sub(r"%(\d+)\(", lambda m: f"%{int(m[1]) + 500}(", text)
    moved = re.sub(r"%(\d+)([,)])", lambda m: f"%{int(m[1]) + 500}{m[2]}", moved)
    moved = re.sub(r"CNode_(\d+)", lambda m: f"CNode_{int(m[1]) + 4000}", moved)
    found = [
        lint(rule("STR001"), compilation({"begin": each}, {"device_num": 8})).findings
        for each in (text, "\n\n" + moved)
    ]
    assert len(found[0]) == len(found[1]) == 1
    assert found[0][0].node != found[1][0].node
    assert fingerprint(*found[0]) == fingerprint(*found[1])


def test_a_baseline_answers_for_what_it_holds_and_tells_what_is_gone() -> None:
    old, new = fingerprinted([FINDING, replace(FINDING, op="AllGather")], lambda each: "")
    known = read_baseline(write_baseline([old]))
    marked, stale = apply_baseline([old, new], known, ["COM001"])
    assert [each.suppressed for each in marked] == ["baseline", ""]
    assert stale == ()
    assert len(apply_baseline([new], known, ["COM001"])[1]) == 1
    assert apply_baseline([new], known, ["STR001"])[1] == (), "the rule was not run"


def test_an_empty_baseline_is_a_baseline() -> None:
    assert read_baseline(write_baseline([])) == ()


@pytest.mark.parametrize("schema", ["irtool.lint.baseline/1", "irtool.linting.baseline/1"])
def test_a_baseline_of_other_fingerprints_is_to_be_written_anew(
    schema: str, tmp_path: Path, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps({"schema": schema, "findings": []}))
    asked = ["lint", str(samples / "mlp_rejected"), "--baseline", str(path)]
    assert main(asked) == 2
    assert "is of an earlier irtool" in capsys.readouterr().err
    assert main([*asked, "--update-baseline"]) == 0
    capsys.readouterr()
    assert main(asked) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "irtool.lint.baseline/2"}', "[" * 100_000,
             json.dumps({"schema": "irtool.lint.baseline/2", "findings": [{"code": "A"}]})],
)  # fmt: skip
def test_what_is_no_baseline_is_refused(text: str) -> None:
    with pytest.raises(BaselineError):
        read_baseline(text)


def test_a_baseline_of_a_compiled_network_tells_what_a_later_commit_took_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """MindSpore compiled all three: with a Print, without, and with a layer more and without."""
    evidence = Path(__file__).parent / "evidence" / "gate"
    dump, baseline = tmp_path / "20_validate_0080.ir.xz", str(tmp_path / "known.json")
    told: dict[str, str] = {}
    for name in ("print_dense", "golden_dense", "layer_more_dense"):
        dump.write_bytes((evidence / f"{name}.validate.ir.xz").read_bytes())
        if not told:
            main(["lint", str(dump), "--baseline", baseline, "--update-baseline"])
        assert main(["lint", str(dump), "--baseline", baseline, "--fail-on", "info"]) == 0
        told[name] = capsys.readouterr().out
    assert "1 known in the baseline" in told["print_dense"]
    assert "gone:" not in told["print_dense"]
    for name in ("golden_dense", "layer_more_dense"):
        assert "gone: OPS001 Default/network-Network: Print is left in the graph" in told[name]
