"""Links fitted to measured collectives: what was put in comes out, with its error."""

from __future__ import annotations

import json
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irtool.cli.main import main
from irtool.cluster.calibration import Sample, calibrate
from irtool.cluster.machine import Machine, built_in, machine_from
from irtool.report.calibrate import machine_lines

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BASE = built_in("ascend_910b")
SIZES = [1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 28]


def measured(machine: Machine, groups: list[tuple[str, int]], noise: float = 0.0) -> list[Sample]:
    """What a machine like this would measure, with noise of a seed."""
    rng = random.Random(20)
    found: list[Sample] = []
    for op, ranks in groups:
        for size in SIZES:
            seconds = machine.seconds(op, size, range(ranks)) * rng.uniform(1 - noise, 1 + noise)
            found.append(Sample(op, ranks, size, seconds))
    return found


@given(
    bandwidth=st.floats(1e9, 1e12),
    latency=st.floats(1e-6, 1e-4),
    start=st.floats(1e-6, 1e-4),
    level=st.sampled_from([0, 1]),
)
@settings(max_examples=40, deadline=None)
def test_what_was_put_in_comes_out(
    bandwidth: float, latency: float, start: float, level: int
) -> None:
    true = replace(BASE.levels[level], bandwidth=bandwidth, latency=latency, start=start)
    levels = (*BASE.levels[:level], true, *BASE.levels[level + 1 :])
    ranks = 8 if level == 0 else 16
    groups = [("AllReduce", ranks), ("AllGather", ranks), ("Broadcast", ranks)][:2]
    found = calibrate(measured(replace(BASE, levels=levels), groups), BASE)
    (fit,) = found.fits
    assert fit.level.bandwidth == pytest.approx(bandwidth, rel=1e-6)
    assert fit.separates
    assert fit.level.start == pytest.approx(start, rel=1e-3, abs=1e-9)
    assert fit.level.latency == pytest.approx(latency, rel=1e-3, abs=1e-9)
    assert fit.error == pytest.approx(0, abs=1e-6)


def test_noise_is_told_as_error() -> None:
    groups = [("AllReduce", 8), ("AllGather", 4), ("ReduceScatter", 8)]
    (fit,) = calibrate(measured(BASE, groups, noise=0.05), BASE).fits
    assert fit.error is not None
    assert 0.005 < fit.error < 0.08
    assert fit.level.bandwidth == pytest.approx(BASE.levels[0].bandwidth, rel=0.1)


def test_one_collective_tells_no_step_from_the_start() -> None:
    (fit,) = calibrate(measured(BASE, [("AllReduce", 8)]), BASE).fits
    assert not fit.separates
    assert fit.level.latency == 0
    whole = BASE.seconds("AllReduce", 0, range(8))
    assert fit.level.start == pytest.approx(whole)


def test_one_size_is_not_used() -> None:
    found = calibrate([Sample("AllReduce", 8, 1 << 20, 1e-4)] * 3, BASE)
    assert found.fits == ()
    assert found.left == ("AllReduce of 8 ranks: one size tells no start from pace",)
    assert found.machine.levels == BASE.levels


def test_links_that_were_not_measured_stay() -> None:
    found = calibrate(measured(BASE, [("AllReduce", 8)]), BASE)
    assert found.machine.levels[1] == BASE.levels[1]


@pytest.mark.parametrize("name", ["ascend_910b", "gpu_a100", "gpu_h100"])
def test_the_file_is_the_machine(name: str) -> None:
    machine = built_in(name)
    assert machine_from(tomllib.loads("\n".join(machine_lines(machine)))) == machine


# -- the command ---------------------------------------------------------------------------------


def written(path: Path, op: str = "AllReduce", ranks: int = 8) -> Path:
    """An output of hccl_test by its own format strings; the times are the model's."""
    lines = ["data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:"]
    for size in SIZES:
        seconds = 2 * BASE.seconds(op, size, range(ranks))
        cells = (f"{size:<17d}", f"{seconds * 1e6:<14.2f}", f"{size / seconds / 1e9:<20.5f}")
        lines.append(" | ".join((*cells, "success")))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def asked(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    main(["calibrate", *map(str, words), "-f", "json"])
    return json.loads(capsys.readouterr().out)


def test_a_machine_that_is_half_as_fast(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "all_reduce_8ranks.txt")
    (links,) = asked(capsys, path)["levels"]
    assert links["bandwidth"] == pytest.approx(BASE.levels[0].bandwidth / 2, rel=0.01)
    machine = tmp_path / "machine.toml"
    assert main(["calibrate", str(path), "-o", str(machine)]) == 0
    found = machine_from(tomllib.loads(machine.read_text(encoding="utf-8")))
    slow = found.seconds("AllReduce", 1 << 24, range(8))
    assert slow == pytest.approx(2 * BASE.seconds("AllReduce", 1 << 24, range(8)), rel=0.01)


def test_what_a_file_does_not_say_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "run.txt")
    assert main(["calibrate", str(path)]) == 2
    assert "which collective" in capsys.readouterr().err
    assert main(["calibrate", str(path), "--op", "AllReduce"]) == 2
    assert "how many ranks" in capsys.readouterr().err
    assert main(["calibrate", str(path), "--op", "AllReduce", "--ranks", "8"]) == 0


def test_a_damaged_row_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "all_reduce_8ranks.txt")
    with path.open("a", encoding="utf-8") as stream:
        stream.write("rank id 3, check result failed\nnonsense\n")
    assert main(["calibrate", str(path)]) == 1
    assert f"{path}:8" in capsys.readouterr().err


def test_no_output_of_a_test(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", __file__]) == 2
    assert "is no output of hccl_test or nccl-tests" in capsys.readouterr().err
