"""Work in other processes and on a cluster, and what comes of it when one of them dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from irtool.compare.tensors.measuring.schedule import Processes, chunks, here


def squares(items: Sequence[int]) -> list[int]:
    return [item * item for item in items]


def deadly(items: Sequence[int]) -> list[int]:
    """Kills the process at 13, always."""
    if 13 in items:
        os.kill(os.getpid(), signal.SIGKILL)
    return squares(items)


def deadly_once(items: Sequence[str]) -> list[str]:
    """Kills the process that is first to see the file of an item that there is not yet."""
    for item in items:
        if item and not Path(item).exists():
            Path(item).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return list(items)


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def processes(told: list[str]) -> Iterator[Processes]:
    made = Processes(2, told.append)
    yield made
    made.close()


def test_results_come_in_the_order_of_the_items(processes: Processes) -> None:
    items = list(range(100))
    assert list(processes(squares, items)) == list(here(squares, items)) == squares(items)


def test_every_worker_gets_something_to_do() -> None:
    assert max(map(len, chunks(range(40), 4))) <= 3
    assert [len(chunk) for chunk in chunks(range(3), 4)] == [1, 1, 1]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_what_a_dead_process_had_in_hand_is_done_again(
    tmp_path: Path, processes: Processes, told: list[str]
) -> None:
    items = ["", "", str(tmp_path / "a"), "", ""]
    assert list(processes(deadly_once, items)) == items
    assert told == ["a process died (killed, or out of memory): its part is done again"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_an_item_that_kills_whoever_takes_it_is_given_up_alone(
    processes: Processes, told: list[str]
) -> None:
    items = list(range(20))
    expected = [None if item == 13 else item * item for item in items]
    assert list(processes(deadly, items)) == expected
    assert "given up: 1 that no process survived, first 13" in told
