"""Numbers that decide what becomes of a network, each with a case on either side of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from irtool.sharding.network.context import ParallelContext
from tests.sharding.network.test_check import report_of


@pytest.mark.parametrize(
    ("name", "kilobytes"),
    [("mid.weight", 512 * 512 * 4 // 1024), ("down.weight", 16 * 512 * 4 // 1024)],
)
@pytest.mark.parametrize("above", [0, 1])
def test_a_weight_as_large_as_the_threshold_is_shared_and_a_smaller_one_is_not(
    samples: Path, name: str, kilobytes: int, above: int
) -> None:
    """The whole weight counts, not the slice that operators see."""
    report = report_of(
        samples / "mlp_semi_auto", parallel_optimizer=True, threshold=kilobytes + above
    )
    weight = next(item for item in report.parameters if item.name == name)
    assert bool(weight.gather_ranks) == (above == 0)
    assert weight.base is not None
    assert weight.slice is not None
    parts = len(weight.gather_ranks or (0,))
    assert weight.slice == (weight.base[0] // parts, *weight.base[1:])
    assert (weight.mirror_ranks is None) == (above == 0)


def test_weights_below_64_kilobytes_are_not_shared_by_default(samples: Path) -> None:
    report = report_of(samples / "mlp_semi_auto", parallel_optimizer=True)
    shared = {item.name for item in report.parameters if item.gather_ranks}
    assert "mid.weight" in shared
    assert "down.weight" not in shared
    assert ParallelContext(devices=8).threshold == 64


@pytest.mark.parametrize(
    ("devices", "is_possible"),
    [(0, False), (1, True), (2, True), (3, False), (4, True), (6, False), (8, True), (12, False),
     (16, True), (4096, True), (4104, False)],
)  # fmt: skip
def test_numbers_of_devices_that_there_are(devices: int, is_possible: bool) -> None:
    if is_possible:
        assert ParallelContext.from_mapping({"device_num": devices}).devices == devices
        return
    with pytest.raises(ValueError, match="device_num must be"):
        ParallelContext.from_mapping({"device_num": devices})


@pytest.mark.parametrize(
    ("stages", "is_possible"), [(0, False), (1, True), (2, True), (3, False), (8, True)]
)
def test_stages_divide_the_devices(stages: int, is_possible: bool) -> None:
    table = {"device_num": 8, "pipeline_stages": stages}
    if is_possible:
        assert ParallelContext.from_mapping(table).stages == stages
        return
    with pytest.raises(ValueError, match="pipeline_stages"):
        ParallelContext.from_mapping(table)


@pytest.mark.parametrize(("rank", "is_possible"), [(0, True), (7, True), (8, False), (-1, False)])
def test_ranks_are_those_of_the_devices(rank: int, is_possible: bool) -> None:
    table = {"device_num": 8}
    if is_possible:
        assert ParallelContext.from_mapping(table, rank=rank).rank == rank
        return
    with pytest.raises(ValueError, match="rank"):
        ParallelContext.from_mapping(table, rank=rank)
