"""Rooflines fitted to measured operators: what was put in comes out, with its error."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irtool.artefacts.damage import Damage
from irtool.artefacts.kernels import step_times
from irtool.cli.main import main
from irtool.cluster.calibrated_operators import (
    TimedOperator,
    fitted_rooflines,
    measured_overlap,
)
from irtool.cluster.flops_seconds import LAUNCH_SECONDS, roofline_seconds
from irtool.cluster.machine import (
    ANY_KIND,
    MeasuredTime,
    Roofline,
    built_in,
    machine_from,
    slices_key,
)
from irtool.report.calibrate import machine_lines

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
RUN = ROOT / "samples/artefacts/run"
BEGIN = ROOT / "samples/mlp_recursive_search/step_parallel_begin_0019.ir"
BASE = built_in("ascend_910b")


def timed(op: str, line: Roofline, sizes: list[tuple[int, int]]) -> list[TimedOperator]:
    return [TimedOperator(op, *size, line.seconds(*size)) for size in sizes]


@given(
    launch=st.floats(1e-6, 1e-4),
    flops=st.floats(1e9, 1e15),
    bandwidth=st.floats(1e9, 1e13),
)
@settings(max_examples=40, deadline=None)
def test_what_was_put_in_comes_out(launch: float, flops: float, bandwidth: float) -> None:
    line = Roofline(launch, flops, bandwidth)
    sizes = [(0, 1 << 10), (1 << 20, 1 << 12), (1 << 40, 1 << 30), (1 << 36, 1 << 34)]
    found = fitted_rooflines(timed("MatMul", line, sizes))["MatMul"]
    for size in [*sizes, (1 << 30, 1 << 28)]:
        assert found.seconds(*size) == pytest.approx(line.seconds(*size), rel=1e-4)


def test_a_kind_of_one_size_takes_the_figures_of_all_times_a_factor() -> None:
    line = Roofline(1e-6, 1e12, 1e11)
    rows = timed("Add", line, [(10, 1 << 10), (1 << 10, 1 << 20), (1 << 30, 1 << 24)])
    rows.append(TimedOperator("Odd", 1 << 20, 1 << 20, 3 * line.seconds(1 << 20, 1 << 20)))
    found = fitted_rooflines(rows)
    assert found["Odd"].seconds(1 << 20, 1 << 20) == pytest.approx(rows[-1].seconds, rel=1e-9)
    ratio = found["Odd"].seconds(0, 1 << 28) / found[ANY_KIND].seconds(0, 1 << 28)
    assert ratio == pytest.approx(found["Odd"].launch / found[ANY_KIND].launch)


def test_a_fitted_kind_goes_before_all_others_and_these_before_the_machine() -> None:
    add, others = Roofline(1e-3), Roofline(2e-3)
    machine = replace(BASE, rooflines={"Add": add, ANY_KIND: others})
    assert roofline_seconds("Add", "Float32", 1, 1, machine) == 1e-3
    assert roofline_seconds("Mul", "Float32", 1, 1, machine) == 2e-3
    assert roofline_seconds("Mul", "Float32", 1, 1, BASE) == LAUNCH_SECONDS


def test_the_file_is_the_machine() -> None:
    machine = replace(
        BASE,
        overlap=0.25,
        rooflines={"MatMul": Roofline(1e-6, 2e12, 0.0), ANY_KIND: Roofline(1e-6, 0.0, 3e9)},
        measured={
            slices_key("MatMul", "Float32", [(8, 16), (16, 4)]): MeasuredTime(1e-5, 2e-5),
            slices_key("Neg", "Float32", [()]): MeasuredTime(1e-6),
        },
    )
    assert machine_from(tomllib.loads("\n".join(machine_lines(machine)))) == machine


# -- plans ---------------------------------------------------------------------------------------


def operators(capsys: pytest.CaptureFixture[str], machine: Path | str) -> dict[str, Any]:
    """The operators of a step by the number of their node."""
    main(["cost", str(BEGIN), "--devices", "8", "--machine", str(machine), "-f", "json"])
    found = json.loads(capsys.readouterr().out)
    return {each["node"]: each for each in found["operators"] if each["op"] == "MatMul"}


def test_slices_that_were_measured_take_what_they_took(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Operators with other slices of that kind take what is fitted to it."""
    main(["check", str(BEGIN), "--devices", "8", "-f", "json"])
    checked = json.loads(capsys.readouterr().out)["operators"]
    first = next(each for each in checked if each["op"] == "MatMul")
    shapes = first["input_slices"]
    key = slices_key("MatMul", "Float32", shapes)
    machine = replace(
        BASE,
        rooflines={"MatMul": Roofline(0.5)},
        measured={key: MeasuredTime(1.0, 4.0)},
    )
    path = tmp_path / "machine.toml"
    path.write_text("\n".join(machine_lines(machine)), encoding="utf-8")
    found = operators(capsys, path)
    same = [
        each["node"] for each in checked
        if each["op"] == "MatMul" and each["input_slices"] == shapes
    ]  # fmt: skip
    for node, each in found.items():
        assert each["seconds"]["compute"] == (5.0 if node in same else pytest.approx(1.5))
    assert {True, False} == {node in same for node in found}


# -- the command ---------------------------------------------------------------------------------


def test_a_profile_makes_a_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "machine.toml"
    assert main(["calibrate", str(RUN), "-o", str(path)]) == 0
    machine = machine_from(tomllib.loads(path.read_text(encoding="utf-8")))
    assert machine.levels == BASE.levels
    capsys.readouterr()
    main(["cost", str(RUN), "--machine", str(path), "-f", "json"])
    measured = json.loads(capsys.readouterr().out)["measured"]
    by_op: dict[str, list[float]] = {}
    for each in measured["operators"]:
        sums = by_op.setdefault(each["op"], [0.0, 0.0])
        sums[0] += each["seconds"]
        sums[1] += each["modelled"]
    assert measured["scale"] == pytest.approx(1, rel=0.1)
    assert by_op["GeLUGrad"][1] == pytest.approx(by_op["GeLUGrad"][0], rel=0.05)


def test_gradients_count_for_their_operators(tmp_path: Path) -> None:
    path = tmp_path / "machine.toml"
    main(["calibrate", str(RUN), "-o", str(path)])
    measured = machine_from(tomllib.loads(path.read_text(encoding="utf-8"))).measured
    product = measured[slices_key("MatMul", "Float32", [(128, 64), (256, 64)])]
    assert product.backward is not None
    assert product.backward > product.forward
    assert all(not key.startswith("GeLUGrad") for key in measured)


def test_sizes_that_were_held_back_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    main(["calibrate", str(RUN), "-f", "json"])
    answer = json.loads(capsys.readouterr().out)
    kinds = {each["op"]: each for each in answer["operators"]}
    assert kinds["MatMul"]["sizes"] > 1
    assert kinds["MatMul"]["error"] > 0
    assert answer["operator_error"] > 0
    assert answer["overlap"] is None


def test_overlap_of_a_real_table(capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / "samples/artefacts/ascend/cluster_step_trace_time.csv"
    steps = [(each.exposed, each.hidden) for each in step_times(str(path), Damage(str(path)))]
    found = measured_overlap(steps)
    assert found is not None
    assert 0 < found < 0.1


@pytest.mark.parametrize(
    ("steps", "overlap"),
    [
        ([(9.0, 1.0), (3.0, 1.0), (1.0, 1.0)], 0.375),
        ([(3.0, 1.0), (1.0, 1.0)], 0.375),
        ([(0.0, 0.0)], None),
        ([], None),
    ],
)
def test_the_first_step_of_three_warms_up(
    steps: list[tuple[float, float]], overlap: float | None
) -> None:
    assert measured_overlap(steps) == overlap


def test_a_folder_without_a_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", str(tmp_path)]) == 2
    assert "profile" in capsys.readouterr().err


@pytest.mark.parametrize("sizes", [1, 2, 3])
def test_a_kind_measured_in_several_sizes_has_a_roofline_of_its_own(sizes: int) -> None:
    """One that starts slowly and then computes fast, beside others that do the opposite."""
    others = [TimedOperator("Exp", 0, n * 10**6, 1e-6 + n * 1e-5) for n in (1, 2, 4, 8)]
    own = [TimedOperator("MatMul", n * 10**9, n * 10**6, 5e-5 + n * 1e-6) for n in (1, 5, 9)]
    found = fitted_rooflines([*others, *own[:sizes]])
    for row in own[:sizes]:
        assert found["MatMul"].seconds(*row.size) == pytest.approx(row.seconds, rel=1e-3)
