"""Charts: well-formed, to scale, and harmless."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.report.page.charts import (
    Lane,
    Mark,
    Series,
    Span,
    bars,
    heat_map,
    line_chart,
    timeline,
)
from irtool.report.page.svg import clean_svg

SVG = "{http://www.w3.org/2000/svg}"
numbers = st.floats(0, 1e18, allow_nan=False)
names = st.text(max_size=30)


def found(text: str, tag: str, name: str) -> list[ET.Element]:
    return [
        item
        for item in ET.fromstring(text).iter(SVG + tag)
        if name in (item.get("class") or "").split()
    ]


@given(st.lists(st.tuples(numbers, numbers), max_size=20), names)
def test_any_curve_is_well_formed(points: list[tuple[float, float]], name: str) -> None:
    points.sort()
    clean_svg(line_chart([Series(name, points)], name, name, "bytes", [Mark(0, name)], limit=3.0))


@given(st.lists(st.lists(st.tuples(numbers, numbers, names), max_size=4), max_size=4))
def test_any_timeline_is_well_formed(lanes: list[list[tuple[float, float, str]]]) -> None:
    spans = [
        Lane(str(index), [Span(min(a, b), max(a, b), name) for a, b, name in lane])
        for index, lane in enumerate(lanes)
    ]
    clean_svg(timeline(spans, names=["x", "y"]))


@given(st.lists(st.tuples(names, st.lists(numbers, max_size=3)), max_size=5))
def test_any_bars_are_well_formed(rows: list[tuple[str, list[float]]]) -> None:
    clean_svg(bars(rows, "seconds", ["a", "b"]))


def test_spans_are_to_scale() -> None:
    text = timeline([Lane("stage 0", [Span(0, 1, "F0"), Span(1, 4, "B0", 1)])])
    first, second = found(text, "rect", "fill")
    assert float(second.get("width", "")) == pytest.approx(
        3 * float(first.get("width", "")), rel=0.02
    )
    assert first.get("class") != second.get("class")


def test_bars_are_to_scale_and_say_their_sums() -> None:
    text = bars([("a", [1024, 2048]), ("b", [6144])], "bytes")
    widths = [float(item.get("width", "")) for item in found(text, "rect", "fill")]
    assert widths[2] == pytest.approx(2 * (widths[0] + widths[1]), rel=0.01)
    assert "3.0 KiB" in text
    assert "6.0 KiB" in text


def test_a_heat_map_is_darkest_where_there_is_most() -> None:
    text = heat_map(["a", "b"], ["x", "y"], [[1, 4], [None, 2]])
    assert [item.get("fill-opacity") for item in found(text, "rect", "heat")] == [
        "0.340", "1.000", "0.560",
    ]  # fmt: skip


def test_a_heat_map_needs_a_value_for_each_cell() -> None:
    with pytest.raises(ValueError, match="each row and column"):
        heat_map(["a"], ["x", "y"], [[1]])


@pytest.mark.parametrize("draw", [lambda: line_chart([]), lambda: timeline([])])
def test_nothing_is_drawn_as_nothing(draw: Callable[[], str]) -> None:
    assert "nothing to draw" in draw()


def test_bytes_are_round_in_powers_of_two() -> None:
    text = line_chart([Series("a", [(0, 0), (1, 3.5 * 2**30)])], kind="bytes")
    assert "1.0 GiB" in text
    assert "4.0 GiB" in text


def test_places_that_are_no_numbers_bear_their_names() -> None:
    points = [(1.0, 4.0), (2.0, 5.0), (3.0, 6.0)]
    text = line_chart([Series("all ranks", points)], names=["first", "ab" * 20, "<last>"])
    labels = [each.text for each in found(text, "text", "quiet")]
    assert {"first", "<last>"} <= set(labels)
    assert not any(each and len(each) > 12 for each in labels)
    told = [each.findtext(f"{SVG}title") for each in found(text, "circle", "fill")]
    assert told == ["first, all ranks: 4", f"{'ab' * 20}, all ranks: 5", "<last>, all ranks: 6"]
    clean_svg(text)
