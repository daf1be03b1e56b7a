"""``irtool rules --operators``, and rules for custom operators from ``irtool.toml``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from irtool.cli.main import main
from irtool.operators.table import forget_declared, operators

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "custom_rules"


@pytest.fixture(autouse=True)
def shipped_rules_only() -> None:
    forget_declared()


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_every_operator_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "rules", "--operators")
    assert status == 0
    lines = out.splitlines()
    for op in operators():
        assert any(line.split()[:1] == [op] for line in lines), op


def test_json_has_every_operator(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "rules", "--operators", "--format", "json")
    assert status == 0
    found = json.loads(out)
    assert found["schema"] == "irtool.rules.operators/1"
    by_op = {item["op"]: item for item in found["operators"]}
    assert set(by_op) == set(operators())
    assert by_op["MatMul"]["rule"].startswith("[m k] swap transpose_a")
    assert not any(item["unknown"] for item in by_op.values() if item["kind"] != "unknown")


def test_markdown_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "rules", "--format", "markdown", "MatMul", "ReLU")[1]
    rows = out.splitlines()
    assert rows[0] == "| operator | attributes | rule |"
    assert len(rows) == 4


def test_one_operator_by_any_of_its_names(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "rules", "PrimFunc_Reshape")
    assert status == 0
    assert "function reshape" in out


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["MatMull"], "did you mean MatMul?"),
        (["--operators", "Nonsense"], "MindSpore has none either"),
    ],
)
def test_nothing_to_show(
    arguments: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, errors = run(capsys, "rules", *arguments)
    assert (status, out) == (2, "")
    assert hint in errors


# -- custom operators ----------------------------------------------------------------------------


def test_worked_example(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SAMPLE)
    status, out, _ = run(capsys, "check", "step_parallel_begin_0001.ir", "--format", "json")
    assert status == 0
    norm, product, _ = json.loads(out)["operators"]
    assert (norm["input_slices"], norm["repeated"]) == ([[32, 512], [512]], 4)
    assert product["output_slices"] == [[32, 2048]]
    assert product["collectives"][0]["ranks"] == [0, 1, 2, 3]
    assert "MyRowNorm *" in run(capsys, "rules", "--operators")[1]


def test_worked_example_refuses(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = (SAMPLE / "step_parallel_begin_0001.ir").read_text()
    path = tmp_path / "step_parallel_begin_0001.ir"
    path.write_text(text.replace("((2, 4), (4, 1), (1))", "((2, 4), (2, 1), (1))"))
    status, out, _ = run(capsys, "check", str(path), "--config", str(SAMPLE / "irtool.toml"))
    assert status == 1
    assert "x and weight split the dimension that is summed up differently" in out
    assert "instead    in_strategy ((2, 4), (4, 1), (1,))" in out


def test_rules_of_one_run_do_not_reach_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "rules", "MyRowNorm", "--config", str(SAMPLE / "irtool.toml"))
    assert run(capsys, "rules", "MyRowNorm")[0] == 2


@pytest.mark.parametrize(
    ("rules", "place", "message"),
    [
        ("My: [a] -> [a", "1:14", "the file ends within a rule"),
        ("My: [a ?] -> [a]", "1:8", "a rule cannot go on with '?' here"),
        ("# c\nMy: [a] ->\n  [a] )", "3:7", "a rule cannot go on with ')' here"),
        ("My: [a] -> [b]", "1:13", "b is no axis of an input"),
        ("My(axis): [*a] -> [*a] whole axes", "1:30", "axes is no attribute of the rule"),
        ("# c\nMy: [a] -> [a] via gathr", "2:20", "there is no function gathr"),
        ("My: function nothing", "1:14", "there is no function nothing"),
        ("My: [a b] -> [a] reduce c", "1:25", "c is no axis of an input"),
        ("My: [a b] -> [a] reduce b with mean", "1:32", "there is no reduction mean"),
        ("My: [a b] -> [a b] order (a c)", "1:29", "c is no axis of an input"),
        ('My: [a] -> [a] batch "frist"', "1:22", "there is no way 'frist' to split a batch"),
        ("My: [a] -> [a]\nMy: [b] -> [b]", "2:1", "there is a rule for My already"),
    ],
)
def test_mistakes_in_rules(
    rules: str, place: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my.rules").write_text(rules)
    config = tmp_path / "irtool.toml"
    config.write_text('rules = "my.rules"\n')
    status, out, errors = run(capsys, "rules", "My", "--config", str(config))
    assert (status, out) == (2, "")
    assert f"my.rules:{place}: error[RUL" in errors
    assert message in errors


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("rules = 3", "rules must be a list of files"),
        ("rules = [3]", "rules must be a list of files"),
        ('rules = ["none.rules"]', "none.rules: error[CLI001]: cannot be read: no such file"),
        ("context = 3", "context must be a table"),
        ("rules = [", "irtool.toml:1:10: error[CLI002]: no TOML"),
    ],
)
def test_mistakes_in_the_configuration(
    content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "irtool.toml"
    config.write_text(content)
    status, out, errors = run(capsys, "rules", "MatMul", "--config", str(config))
    assert (status, out) == (2, "")
    assert message in errors
