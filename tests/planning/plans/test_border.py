"""What a frozen border costs: items inside a region, across its border, and outside."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from irtool.planning.plans.border import Border, Share, share_of


def item(node: str, total: float, producer: str | None = None, kind: str = "operator") -> Any:
    return SimpleNamespace(kind=kind, node=node, producer=producer, total=total)


def test_an_edge_is_inside_with_both_ends_and_on_the_border_with_one() -> None:
    cost: Any = SimpleNamespace(
        items=(
            item("a", 1.0),
            item("x", 2.0),
            item("b", 4.0, "a", "edge"),  # inside
            item("a", 8.0, "x", "edge"),  # comes in
            item("y", 16.0, "b", "edge"),  # goes out
            item("y", 32.0, "x", "edge"),  # outside
            item("b", 64.0, None, "edge"),  # of nobody known: where it ends counts
            item("b", 128.0, "x", "gradient"),  # no edge: where it is counts
        ),
        seconds=500.0,
    )
    region: Any = {"a", "b"}
    found = share_of(cost, region)
    assert found == Share(1.0 + 4.0 + 64.0 + 128.0, 8.0 + 16.0, 500.0, 2)
    assert found.own == 197.0 + 24.0


def test_the_border_costs_what_the_region_takes_more_than_in_the_plan_of_all() -> None:
    one = Border(2, Share(5.0, 3.0, 20.0, 2), Share(4.0, 1.0, 14.0, 1))
    assert one.seconds == (5.0 + 3.0) - (4.0 + 1.0)
    assert one.step_seconds == 6.0
