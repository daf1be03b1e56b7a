"""What a profile's seconds say beside the model's, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from irtool.cluster.measured import MeasuredOperator, MeasuredStep


def operator(
    op: str,
    seconds: float,
    modelled: float | None,
    *,
    phase: str | None = "forward",
    layer: str = "",
    cause: str = "compute",
    axis: str | None = None,
) -> MeasuredOperator:
    node: Any = SimpleNamespace(op=op)
    return MeasuredOperator(node, seconds, modelled, phase, layer, cause, axis)  # type: ignore[arg-type]


MATMUL = operator("MatMul", 6.0, 2.0, layer="layers.0")
OTHER = operator("MatMul", 3.0, 2.0, layer="layers.1", phase="backward")
CAST = operator("Cast", 1.0, 1.0, layer="layers.1", phase=None)
SUM = operator("AllReduce", 8.0, None, cause="mirror", axis="data", phase="backward")
VIEW = operator("Reshape", 0.5, 0.0)


def step(*operators: MeasuredOperator, **profile: Any) -> MeasuredStep:
    given: dict[str, Any] = {"steps": [], "by_step": {}, "seconds": {}, **profile}
    parts: list[Any] = [SimpleNamespace(**given), SimpleNamespace(nodes={"a": "node of a"})]
    return MeasuredStep(parts[0], parts[1], operators, None, None, None)  # type: ignore[arg-type]


ALL = step(MATMUL, OTHER, CAST, SUM, VIEW)


def test_what_is_not_priced_counts_as_measured_and_not_for_the_scale() -> None:
    assert ALL.total == 18.5
    assert ALL.modelled == 5.0
    assert ALL.scale == (6 + 3 + 1 + 0.5) / 5
    assert step(SUM).scale is None
    assert step(SUM).furthest == ()


def test_the_furthest_is_most_seconds_from_the_scaled_model() -> None:
    """Scaled by 2.1 they would take 4.2, 4.2 and 2.1 s."""
    assert ALL.furthest == (MATMUL, OTHER, CAST)
    assert [ALL.ratio(one) for one in (MATMUL, OTHER, CAST)] == [
        pytest.approx(6 / 4.2),
        pytest.approx(3 / 4.2),
        pytest.approx(1 / 2.1),
    ]
    assert ALL.ratio(SUM) is None
    assert ALL.ratio(VIEW) is None
    far = operator("Add", 0.0, 3.0)
    assert step(far, operator("Sub", 6.0, 3.0), operator("Mul", 4.0, 4.0)).furthest[0] is far


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("operator", {"MatMul": (9.0, 4.0), "AllReduce": (8.0, None), "Cast": (1.0, 1.0),
                      "Reshape": (0.5, 0.0)}),
        ("layer", {"-": (8.5, 0.0), "layers.0": (6.0, 2.0), "layers.1": (4.0, 3.0)}),
        ("phase", {"backward": (11.0, 2.0), "forward": (6.5, 2.0), "-": (1.0, 1.0)}),
        ("cause", {"compute": (10.5, 5.0), "mirror": (8.0, None)}),
        ("axis", {"data": (8.0, None)}),
    ],
)  # fmt: skip
def test_sums_are_told_the_dearest_first(
    kind: str, expected: dict[str, tuple[float, float | None]]
) -> None:
    assert list(ALL.by(kind).items()) == list(expected.items())


def walls(*seconds: float) -> list[Any]:
    return [SimpleNamespace(wall=one) for one in seconds]


@pytest.mark.parametrize(
    ("seconds", "slowest"),
    [
        ((), None),
        ((1.0,), None),
        ((2.0, 1.0), 0),  # of two both count
        ((9.0, 1.0, 2.0), 2),  # of more the first one only warms up
        ((9.0, 3.0, 2.0, 1.0), 1),
    ],
)
def test_the_slowest_of_those_that_count(seconds: tuple[float, ...], slowest: int | None) -> None:
    assert step(steps=walls(*seconds)).slowest == slowest


def test_what_took_longer_than_usual_in_a_step_comes_by_seconds() -> None:
    measured = step(
        steps=walls(1.0, 1.0),
        by_step={"a": [1e6, 3e6], "b": [1e6, 5e6], "c": [4e6, 2e6], "d": [9e6], "e": [2e6, 2e6]},
        seconds={"a": 1.0, "b": 2.0, "c": 3.0, "d": 1.0, "e": 2.0},
    )
    found = measured.slower_in(1)
    assert [(one.name, one.node, one.seconds, one.usual) for one in found] == [
        ("b", None, 5.0, 2.0),
        ("a", "node of a", 3.0, 1.0),
    ]
    assert [one.name for one in measured.slower_in(0)] == ["c"]
