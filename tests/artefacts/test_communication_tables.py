"""Collectives and links as profiles and Galvatron's tables have them, and machines fitted to them.

No file of MindSpore on Ascend was there: those here are made in the structure that its viewer
writes.  Galvatron's are its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from irtool.artefacts.collective_tests import collective_test
from irtool.artefacts.communication import (
    array_bytes,
    communicator_hash,
    communicators,
    measured_collectives,
    measured_links,
    primitive_of,
)
from irtool.artefacts.damage import Damage
from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.galvatron import galvatron_tables
from irtool.cli.main import main
from irtool.cluster.machine import Machine, built_in, machine_from

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

GALVATRON = Path(__file__).parents[2] / "samples/artefacts/galvatron"
BASE = built_in("ascend_910b")
GROUP = "hccl_world_group"
NUMBER = communicator_hash(GROUP)


def operation(op: str, index: int, sent: float, milliseconds: float) -> tuple[str, dict[str, Any]]:
    """An operation that sent so many decimal megabytes over HCCS."""
    links = {
        link: {"Transit Size(MB)": sent, "Transit Time(ms)": milliseconds, "Bandwidth(GB/s)": 1.0}
        for link in ("HCCS", "SDMA")
    }
    times = {"Elapse Time(ms)": milliseconds + 5, "Transit Time(ms)": milliseconds}
    name = f"{op}__{NUMBER % 1000}_{index}@{NUMBER}"
    return name, {"Communication Time Info": times, "Communication Bandwidth Info": links}


def profile(folder: Path, ranks: list[int]) -> Path:
    """All-reduces of 8 and 80 decimal MB among some ranks: 0.1 ms, and 10 GB/s of the array."""
    count = len(ranks)
    table = dict(
        operation("hcom_allReduce_", index, 2 * (count - 1) / count * size, 0.1 + size / 10)
        for index, size in enumerate((8.0, 80.0))
    )
    folder.mkdir()
    path = folder / "communication.json"
    path.write_text(json.dumps({"step1": {"p2p": {}, "collective": table}}), encoding="utf-8")
    metadata = {"parallel_group_info": {GROUP: {"group_name": "dp", "global_ranks": ranks}}}
    (folder / "profiler_metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    return path


def calibrated(*words: str, folder: Path) -> Machine:
    path = folder / "machine.toml"
    assert main(["calibrate", *words, "-o", str(path)]) == 0
    return machine_from(tomllib.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("ranks", [[0, 1, 2, 3], [0, 8], list(range(16)), [3, 2]])
def test_a_profile_and_its_metadata_tell_what_groups_of_that_shape_take(
    ranks: list[int], tmp_path: Path
) -> None:
    path = profile(tmp_path / "profile", ranks)
    machine = calibrated(str(path), folder=tmp_path)
    assert machine.seconds("AllReduce", 40_000_000, ranks) == pytest.approx(0.1e-3 + 4e-3)
    other = [rank + 32 for rank in ranks]
    assert machine.seconds("AllReduce", 40_000_000, other) == pytest.approx(0.1e-3 + 4e-3)


def test_a_group_of_another_shape_is_not_taken_for_the_measured_one(tmp_path: Path) -> None:
    machine = calibrated(str(profile(tmp_path / "profile", [0, 8])), folder=tmp_path)
    across = machine.seconds("AllReduce", 1 << 24, [0, 8])
    assert machine.seconds("AllReduce", 1 << 24, [0, 1]) == BASE.seconds(
        "AllReduce", 1 << 24, [0, 1]
    )
    assert machine.measured_group("AllReduce", [1, 9]) is not None
    assert machine.measured_group("AllGather", [0, 8]) is None
    assert across == machine.seconds("AllReduce", 1 << 24, [1, 9])


def test_without_metadata_nobody_knows_who_took_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = profile(tmp_path / "profile", [0, 1])
    (path.parent / "profiler_metadata.json").unlink()
    assert main(["calibrate", str(path)]) == 2
    assert "who took part is said in profiler_metadata.json alone" in capsys.readouterr().err
    assert main(["calibrate", str(path), "--ranks", "2"]) == 0


def test_the_array_of_a_collective_from_what_it_sent(tmp_path: Path) -> None:
    path = tmp_path / "communication.json"
    table = dict([
        operation("hcom_allReduce_", 0, 6.0, 1.0), operation("hcom_allGather_", 1, 3.0, 1.0),
        operation("hcom_broadcast_", 2, 3.0, 1.0), operation("hcom_send_", 3, 3.0, 1.0),
    ])  # fmt: skip
    path.write_text(json.dumps({"step0": {"collective": table}}), encoding="utf-8")
    found = list(measured_collectives(str(path), Damage(str(path))))
    assert [array_bytes(each, 4) for each in found] == [4e6, 4e6, None, 3e6]
    assert [primitive_of(each) for each in found] == ["AllReduce", "AllGather", "Broadcast", "Send"]


def test_who_took_part_damaged(tmp_path: Path) -> None:
    path = tmp_path / "profiler_metadata.json"
    groups = {GROUP: {"global_ranks": [0, 1]}, "b": {"global_ranks": [0, "x"]}, "c": 3}
    path.write_text(json.dumps({"parallel_group_info": groups}), encoding="utf-8")
    damage = Damage(str(path))
    (found,) = communicators(str(path), damage)
    assert (found.hash, found.ranks) == (NUMBER, (0, 1))
    assert damage.count == 2


# -- links -----------------------------------------------------------------------------------------


def matrix(path: Path, inside: float, across: float) -> Path:
    """Totals of an all-reduce whose links run at some decimal GB/s."""
    links = {
        f"{a}-{b}": {
            "Transport Type": "HCCS" if a // 2 == b // 2 else "RDMA",
            "Transit Size(MB)": 10.0,
            "Transit Time(ms)": 10.0 / (inside if a // 2 == b // 2 else across),
            "Bandwidth(GB/s)": 1.0,
            "op_name": "hcom_allReduce__1_0",
        }
        for a in range(4)
        for b in range(4)
        if a != b
    }
    links["0-0"] = {"Transport Type": "LOCAL", "Transit Size(MB)": 9.0, "Transit Time(ms)": 0.001}
    single = {"0-1": {"Transport Type": "HCCS", "Transit Size(MB)": 1, "Transit Time(ms)": 100}}
    table = {"allreduce-total@1": links, "allreduce-top1@1": single}
    path.write_text(json.dumps({"step1": {"collective": table, "p2p": {}}}), encoding="utf-8")
    return path


def test_links_give_the_bandwidth_of_their_kind(tmp_path: Path) -> None:
    path = matrix(tmp_path / "communication_matrix.json", 20, 5)
    damage = Damage(str(path))
    assert len(list(measured_links(str(path), damage))) == 14
    assert damage.count == 0
    machine = calibrated(str(path), folder=tmp_path)
    assert [level.bandwidth for level in machine.levels] == pytest.approx([20e9, 5e9])
    assert [level.start for level in machine.levels] == [level.start for level in BASE.levels]


def test_damaged_links_are_told(tmp_path: Path) -> None:
    path = tmp_path / "communication_matrix.json"
    table = {"a-total@1": {"0-1": {"Transit Size(MB)": 1}, "x": {}, "1-0": 7}}
    path.write_text(json.dumps({"step1": {"collective": table}, "step2": []}), encoding="utf-8")
    damage = Damage(str(path))
    assert list(measured_links(str(path), damage)) == []
    assert damage.count == 3


# -- Galvatron -------------------------------------------------------------------------------------


def test_times_by_size_are_fitted_by_collective_and_group(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = GALVATRON / "sp_time_1nodes_8gpus_per_node.json"
    assert main(["calibrate", str(path), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["op"], each["ranks"]) for each in found["groups"]] == [
        ("AllReduce", 8), ("AllReduce", 4), ("AllReduce", 2),
        ("AlltoAll", 8), ("AlltoAll", 4), ("AlltoAll", 2),
    ]  # fmt: skip
    assert all(each["error"] < 0.13 for each in found["groups"])
    (links,) = found["levels"]
    assert links["error"] > 0.3
    machine = calibrated(str(path), folder=tmp_path)
    measured = 2.3584e-3  # 256 MiB among eight
    assert machine.seconds("AllReduce", 256 << 20, range(8)) == pytest.approx(measured, rel=0.05)


def test_bandwidths_without_a_size_are_the_pace_of_their_groups(tmp_path: Path) -> None:
    path = GALVATRON / "allreduce_bandwidth_2nodes_8gpus_per_node.json"
    machine = calibrated(str(path), folder=tmp_path)
    size = 1 << 30
    # 2 (n - 1) / n of the array at 155.658 MiB a millisecond
    assert machine.seconds("AllReduce", size, range(8)) == pytest.approx(1.75 * 1024 / 155.658e3)
    assert machine.seconds("AllReduce", size, [0, 8]) == pytest.approx(1024 / 8.13007e3)
    pairs = calibrated(str(GALVATRON / "p2p_bandwidth_2nodes_8gpus_per_node.json"), folder=tmp_path)
    assert pairs.seconds("Receive", size, [1, 9]) == pytest.approx(1024 / 7.65998e3)


def test_the_overlap_that_is_left_when_both_are_slowed(tmp_path: Path) -> None:
    machine = calibrated(str(GALVATRON / "overlap_coefficient.json"), folder=tmp_path)
    assert machine.overlap == pytest.approx(2 - 1.125552573612729)


@pytest.mark.parametrize(
    "text", ["{}", "[]", '{"layernum[2]_bsz4_seq2048": 3.5}', "{", '{"overlap_coe": -1}']
)
def test_what_is_no_table_of_bandwidths_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "computation_profiling_bf16.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ArtefactError):
        galvatron_tables(str(path), Damage(str(path)))
    assert main(["calibrate", str(path)]) == 2


def test_the_json_output_of_nccl_tests(tmp_path: Path) -> None:
    path = tmp_path / "all_reduce_perf_8gpus.json"
    rows = [
        {"size": size, "out_of_place": {"time": time, "nwrong": 0}}
        for size, time in ((1024, 20.0), (1 << 20, 60.0))
    ]
    path.write_text(json.dumps({"results": [*rows, {"size": 1}]}), encoding="utf-8")
    damage = Damage(str(path))
    found = collective_test(str(path), damage)
    assert (found.op, found.ranks, damage.count) == ("AllReduce", 8, 1)
    assert [(row.bytes, row.seconds, row.passed) for row in found.rows] == [
        (1024, pytest.approx(20e-6), True), (1 << 20, pytest.approx(60e-6), True),
    ]  # fmt: skip
