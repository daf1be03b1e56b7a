"""A step as a timeline: when each operator computes and each communication runs, by hand.

Seconds are powers of two, so that every sum of them is exact and tells what it is made of.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from irtool.planning.plans.timeline import Span, timeline

Row = tuple[str, str, str, float, float]


def communication(op: str, phase: str, seconds: float) -> Any:
    return SimpleNamespace(op=op, phase=phase, seconds=seconds)


def item(kind: str, name: str, node: object, *communications: Any, **seconds: float) -> Any:
    """A part of the step's cost; ``backward`` is the part of ``compute`` that gradients take."""
    backward = seconds.pop("backward", 0.0)
    return SimpleNamespace(
        kind=kind, name=name, node=node, communications=communications, seconds=seconds,
        backward=backward,
    )  # fmt: skip


def rows(*items: Any) -> list[Row]:
    found: tuple[Span, ...] = timeline(SimpleNamespace(items=items))  # type: ignore[arg-type]
    for span in found:
        assert span.item in items
    return [(span.name, span.stream, span.phase, span.start, span.seconds) for span in found]


def test_operators_follow_each_other_and_gradients_come_in_the_opposite_order() -> None:
    assert rows(
        item("operator", "a", "A", compute=5.0, backward=4.0),
        item("operator", "b", "B", compute=2.0),
        item("operator", "c", "C", compute=16.0, backward=16.0),
    ) == [
        ("a", "compute", "forward", 0, 1),
        ("b", "compute", "forward", 1, 2),
        ("c", "compute", "backward", 3, 16),
        ("a", "compute", "backward", 19, 4),
    ]


def test_what_an_operator_communicates_is_waited_for_in_its_phase() -> None:
    both = (
        communication("AllReduce", "forward", 2.0),
        communication("AllGather", "backward", 8.0),
        communication("Broadcast", "forward", 0.0),
    )
    assert rows(
        item("operator", "a", "A", *both, compute=5.0, backward=4.0),
        item("operator", "b", "B", compute=16.0),
    ) == [
        ("a", "compute", "forward", 0, 1),
        ("AllReduce of a", "communication", "forward", 1, 2),
        ("b", "compute", "forward", 3, 16),
        ("a", "compute", "backward", 19, 4),
        ("AllGather of a", "communication", "backward", 23, 8),
    ]


@pytest.mark.parametrize(("rest", "is_seen"), [(4.0, True), (1e-11, True), (1e-13, False)])
def test_an_edge_is_redistributed_before_the_operator_that_reads_it(
    rest: float, is_seen: bool
) -> None:
    """What is no communication of it (slices, joins) is computed, both directions together."""
    edge = item(
        "edge", "x to a", "A", communication("AllGather", "forward", 1.0),
        communication("ReduceScatter", "backward", 2.0), redistribution=3.0 + rest,
    )  # fmt: skip
    found = rows(item("operator", "a", "A", compute=8.0, backward=4.0), edge)
    names = [
        "AllGather of x to a", "rearrange for x to a", "a", "a", "ReduceScatter of x to a",
    ]  # fmt: skip
    assert [row[0] for row in found] == [
        name for name in names if is_seen or not name.startswith("rearrange")
    ]
    if rest == 4.0:
        assert [row[3:] for row in found] == [(0, 1), (1, 4), (5, 4), (9, 4), (13, 2)]
        assert [row[1] for row in found] == [
            "communication", "compute", "compute", "compute", "communication",
        ]  # fmt: skip
        assert [row[2] for row in found] == ["forward"] * 3 + ["backward"] * 2


def test_an_edge_into_no_operator_comes_between_the_phases() -> None:
    edge = item(
        "edge", "a to the result", "Return", communication("AllGather", "forward", 2.0),
        communication("AllSplit", "backward", 4.0), redistribution=14.0,
    )  # fmt: skip
    assert rows(edge, item("operator", "a", "A", compute=17.0, backward=16.0)) == [
        ("a", "compute", "forward", 0, 1),
        ("AllGather of a to the result", "communication", "forward", 1, 2),
        ("AllSplit of a to the result", "communication", "backward", 3, 4),
        ("rearrange for a to the result", "compute", "forward", 7, 8),
        ("a", "compute", "backward", 15, 16),
    ]


def weight(name: str, node: object, *seconds: float, optimizer: float = 0.0) -> Any:
    sums = [communication("AllReduce", "backward", one) for one in seconds]
    return item("weight", name, node, *sums, optimizer=optimizer)


def test_sums_of_gradients_run_beside_computing_and_the_optimizer_waits_for_the_last() -> None:
    assert rows(
        item("operator", "a", "A", compute=3.0, backward=2.0),
        item("operator", "b", "B", compute=5.0, backward=4.0),
        weight("v", "A", 1.0, optimizer=64.0),
        weight("w", "B", 32.0, 0.0, optimizer=128.0),
        weight("u", "gone", 8.0),
    ) == [
        ("a", "compute", "forward", 0, 1),
        ("b", "compute", "forward", 1, 1),
        ("b", "compute", "backward", 2, 4),
        ("AllReduce of w", "communication", "backward", 6, 32),
        ("a", "compute", "backward", 6, 2),  # beside it
        ("AllReduce of v", "communication", "backward", 38, 1),  # behind it
        ("AllReduce of u", "communication", "backward", 39, 8),
        ("update v", "compute", "optimizer", 47, 64),
        ("update w", "compute", "optimizer", 111, 128),
    ]


def test_what_is_waited_for_is_behind_what_already_runs() -> None:
    """One stream communicates: what an operator waits for has to wait for a sum before it."""
    assert rows(
        item("operator", "a", "A", communication("AllGather", "backward", 2.0)),
        item("operator", "b", "B", compute=1.0, backward=1.0),
        weight("w", "B", 16.0),
        weight("v", "A", 4.0),
    ) == [
        ("b", "compute", "backward", 0, 1),
        ("AllReduce of w", "communication", "backward", 1, 16),
        ("AllGather of a", "communication", "backward", 17, 2),
        ("AllReduce of v", "communication", "backward", 19, 4),
    ]


def test_updates_wait_for_computing_too() -> None:
    assert rows(
        item("operator", "a", "A", compute=8.0, backward=8.0),
        weight("w", "gone", 0.0, optimizer=1.0),
        weight("v", "gone"),
    ) == [("a", "compute", "backward", 0, 8), ("update w", "compute", "optimizer", 8, 1)]
