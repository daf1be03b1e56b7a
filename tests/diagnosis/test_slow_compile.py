"""Loops of Python are told by their line, however many layers have them."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from irtool.cli.main import main

KIND = "<Tensor[Float32], (4, 4)>"


def network(layers: int, rounds: int, others: int = 0) -> str:
    """Layers that each go ``rounds`` times round a loop of one operator, and other operators."""
    lines = ["# Total subgraphs: 1", "", f"%para1_x: {KIND}", "", "subgraph @G() {"]
    number = 0

    def add(op: str, scope: str, line: int, instance: str) -> None:
        nonlocal number
        source = f"%{number - 1}" if number else "%para1_x"
        lines.append(f"  %{number}(CNode_{number}) = PrimFunc_{op}({source}) "
                     f"{{instance name: {instance}}}")  # fmt: skip
        lines.append(f"      : ({KIND}) -> ({KIND})")
        lines.append(f"      # Fullname with scope: ({scope}/{op}-op{number})")
        lines.append(f"      # In file /home/u/net.py:{line}, 8~20/        x = self.{instance}(x)/")
        number += 1

    for layer in range(layers):
        for _ in range(rounds):
            add("ReLU", f"Default/layers-CellList/{layer}-Block", 12, "act")
    for place in range(others):
        add("Tanh", "Default/head", 100 + place, f"out{place}")
    lines += [f"  Return(%{number - 1})", f"      : ({KIND})", "}"]
    return "\n".join(lines) + "\n"


def told(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    place = folder / "rank_0"
    place.mkdir(parents=True)
    (place / "20_validate_0080.ir").write_text(text)
    main(["doctor", str(folder), "--task", "slow-compile", "--format", "json"])
    return json.loads(capsys.readouterr().out)["findings"]


def test_equal_loops_of_layers_are_one_finding_with_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = told(tmp_path, network(4, 60), capsys)
    assert found["cause"] == (
        "a loop of Python in layers.0 and 3 other layers is unrolled 60 times: "
        "240 of 240 forward statements; they take 1.65 s of the front end (MindSpore 2.7 and 2.10, "
        "one core), up to 10.4 s with a backend (1.8)"
    )
    assert found["source"] == {"file": "/home/u/net.py", "line": 12}
    assert found["gain"]["seconds"] == pytest.approx(236 * 0.007)


@pytest.mark.parametrize(("layers", "severity"), [(20, "warning"), (19, "info")])
def test_a_loop_of_few_statements_is_a_chance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], layers: int, severity: str
) -> None:
    (found,) = told(tmp_path, network(layers, 10), capsys)
    assert found["severity"] == severity


@pytest.mark.parametrize(("layers", "is_told"), [(5, True), (4, False)])
def test_a_short_loop_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], layers: int, is_told: bool
) -> None:
    assert bool(told(tmp_path, network(layers, 10), capsys)) is is_told


@pytest.mark.parametrize(("others", "is_told"), [(400, True), (401, False)])
def test_a_small_part_of_the_network_is_not_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], others: int, is_told: bool
) -> None:
    assert bool(told(tmp_path, network(2, 50, others), capsys)) is is_told


def functions(text: str) -> str:
    """The same made by functions and signs, which have no name of an instance."""
    return text.replace(" {instance name: act}", "")


def test_a_loop_of_functions_is_told_by_the_chain_that_it_makes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = told(tmp_path, functions(network(1, 60)), capsys)
    assert "layers.0 is unrolled 60 times: 60 of 60 forward statements" in found["cause"]


def test_functions_of_one_scope_that_do_not_follow_one_another_are_no_loop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = re.sub(r"ReLU\(%\d+\)", "ReLU(%para1_x)", functions(network(1, 60)))
    assert told(tmp_path, text, capsys) == []


@pytest.mark.parametrize("weights", [1, 60])
def test_layers_of_functions_that_take_weights_of_their_own_are_no_loop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], weights: int
) -> None:
    text = functions(network(1, 60))
    names = [f"%para{n + 2}_layers.{n}.w" for n in range(weights)]
    taken = itertools.cycle(names)
    text = re.sub(r"ReLU\((%\w+)\)", lambda found: f"ReLU({found[1]}, {next(taken)})", text)
    held = "".join(f"{name}: <Ref[Tensor[Float32]], (4, 4)>  :  has_default\n" for name in names)
    found = told(tmp_path, text.replace("subgraph @G", f"{held}\nsubgraph @G"), capsys)
    assert len(found) == (weights == 1)
