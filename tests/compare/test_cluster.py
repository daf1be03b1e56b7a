"""Tensors measured by the workers of a Dask cluster, one of which dies in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from irtool.cli.main import main
from irtool.compare.tensors.measuring.cluster import Cluster, NoDask
from tests.compare.dumps import msprobe, network
from tests.compare.test_schedule import deadly_once, squares

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    cluster: Any = distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, dashboard_address=None, silence_logs=50
    )
    yield cluster.scheduler_address
    cluster.close()


def test_results_come_in_the_order_of_the_items(address: str) -> None:
    told: list[str] = []
    cluster = Cluster(address, told.append)
    assert list(cluster(squares, range(50))) == squares(range(50))
    cluster.close()
    assert told == [f"3 workers at {address}"]


def test_the_work_of_a_worker_that_dies_is_done_by_another(address: str, tmp_path: Path) -> None:
    cluster = Cluster(address, lambda text: None)
    items = ["", "", str(tmp_path / "a"), "", "", ""]
    assert list(cluster(deadly_once, items)) == items
    cluster.close()


def test_a_cluster_gives_the_same_answer(address: str, tmp_path: Path) -> None:
    sides = [str(msprobe(tmp_path / side, network(noise=noise), tensors=True))
             for side, noise in (("a", 0.0), ("b", 1e-7))]  # fmt: skip
    alone, together = tmp_path / "alone.json", tmp_path / "together.json"
    assert main(["diff", *sides, "-f", "json", "-o", str(alone)]) == 0
    options = ["-f", "json", "-o", str(together), "--scheduler", address]
    assert main(["diff", *sides, *options]) == 0
    assert together.read_text() == alone.read_text()


def test_an_address_that_nobody_answers_at_is_a_message() -> None:
    with pytest.raises(NoDask, match="no scheduler answers at nowhere"):
        Cluster("nowhere", lambda text: None)
