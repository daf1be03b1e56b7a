"""Quantities as people read them: one text for each unit, on both sides of every border."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.ir.units import (
    Unit,
    bandwidth_text,
    bytes_text,
    numbered_text,
    operations_text,
    part_text,
    plural,
    quantity_text,
    ranks_text,
    ratio,
    seconds_text,
    share_text,
    speed_text,
    tuple_text,
)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "?"), (0, "0 B"), (1, "1 B"), (1023, "1023 B"), (1024, "1.0 KiB"),
        (1536, "1.5 KiB"), (1023 * 1024 + 972, "1023.9 KiB"), (1023 * 1024 + 973, "1.0 MiB"),
        (3 << 30, "3.0 GiB"), (1 << 60, "1024.0 PiB"), (-1023, "-1023 B"), (-2048, "-2.0 KiB"),
    ],
)  # fmt: skip
def test_bytes_have_binary_units(number: int | None, text: str) -> None:
    assert bytes_text(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "?"), (0.0, "0 s"), (2.5e-9, "2.5 ns"), (1e-12, "0.001 ns"),
        (999.4e-9, "999 ns"), (999.6e-9, "1 µs"), (455.4e-6, "455 µs"),
        (999.4e-6, "999 µs"), (999.6e-6, "1 ms"), (1.25e-3, "1.25 ms"), (0.9996, "1 s"),
        (62.1, "62.1 s"), (119.9, "120 s"), (119.95, "2 min"), (3540.0, "59 min"),
        (7190.0, "120 min"), (7200.0, "2 h"),
        (1.8e4, "5 h"), (3.6e7, "10000 h"), (-0.002, "-2 ms"),
    ],
)  # fmt: skip
def test_times_never_have_an_exponent(seconds: float | None, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("bandwidth", "text"),
    [
        (None, "?"), (0.0, "0 B/s"), (999.4, "999 B/s"), (999.6, "1 kB/s"), (16e9, "16 GB/s"),
        (22.54e9, "22.5 GB/s"), (999.6e9, "1 TB/s"), (1.6e12, "1.6 TB/s"),
    ],
)  # fmt: skip
def test_bandwidths_are_decimal_as_data_sheets_have_them(
    bandwidth: float | None, text: str
) -> None:
    assert bandwidth_text(bandwidth) == text


def test_speeds_are_operations_a_second() -> None:
    assert [speed_text(speed) for speed in (None, 312e12, 999.4e9, 999.6e9)] == [
        "?", "312 TFLOPS", "999 GFLOPS", "1 TFLOPS",
    ]  # fmt: skip


@given(st.floats(1e-9, 1e12))
def test_a_time_reads_back_to_what_it_was(seconds: float) -> None:
    number, unit = seconds_text(seconds).split()
    scale = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}[unit]
    assert float(number) * scale == pytest.approx(seconds, rel=6e-3)
    assert "e" not in number


def test_shares_have_one_decimal() -> None:
    assert share_text(0.375, signed=True) == "+37.5 %"
    assert share_text(-0.01, signed=True) == "-1.0 %"
    texts = [share_text(share) for share in (None, 0.0, 0.0004, 0.0006, 0.375, 1.0)]
    assert texts == ["?", "0.0 %", "0.0 %", "0.1 %", "37.5 %", "100.0 %"]


def test_operations_have_decimal_prefixes() -> None:
    assert [operations_text(n) for n in (None, 0, 999, 1000, 2.5e6, 1.25e12, 4e18)] == [
        "?", "0 FLOP", "999 FLOP", "1 kFLOP", "2.5 MFLOP", "1.25 TFLOP", "4000 PFLOP",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (12345, "number", "12,345"), (0.123456789, "number", "0.123457"), (None, "bytes", "?"),
        (1536, "bytes", "1.5 KiB"), (0.002, "seconds", "2 ms"), (0.25, "share", "25.0 %"),
        (1e9, "operations", "1 GFLOP"), (0.000139, "error", "0.00014"),
        (3.61e-7, "error", "3.6e-07"), (405.12, "factor", "405"), (1.234, "factor", "1.23"),
        (math.inf, "seconds", "∞"), (-math.inf, "number", "-∞"),
        (math.nan, "share", "not a number"), (7, "text", "7"),
    ],
)  # fmt: skip
def test_a_quantity_is_written_in_its_unit(value: float | None, unit: Unit, text: str) -> None:
    assert quantity_text(value, unit) == text


def test_parts_and_ratios() -> None:
    assert part_text(13, 94) == "13 of 94 (13.8 %)"
    assert part_text(0, 0) == "0 of 0"
    assert ratio(1, 4) == 0.25
    assert ratio(1, 0) is None


def test_nouns_follow_their_number() -> None:
    assert [plural(n, "node") for n in (0, 1, 2, 1200)] == [
        "0 nodes", "1 node", "2 nodes", "1,200 nodes",
    ]  # fmt: skip
    assert [plural(2, noun) for noun in ("pass", "class", "micro-batch", "box")] == [
        "2 passes", "2 classes", "2 micro-batches", "2 boxes",
    ]  # fmt: skip
    assert [plural(2, noun) for noun in ("entry", "key")] == ["2 entries", "2 keys"]
    assert plural(1, "pass") == "1 pass"


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        (None, "?"), ([], ""), ([3], "3"), ([0, 1], "0,1"), ([0, 1, 2], "0-2"),
        ([0, 4, 8], "0,4,8"), ([0, 4, 8, 12], "0,4…12"), ([9, 0, 1, 8, 2, 3], "0-3,8,9"),
        ([0, 0, 1, 2], "0-2"),
    ],
)  # fmt: skip
def test_ranks_are_folded(ranks: list[int] | None, text: str) -> None:
    assert ranks_text(ranks) == text


def test_tuples_are_written_as_python_writes_them() -> None:
    assert tuple_text(((4, 1), (1,), ())) == "((4, 1), (1,), ())"
    assert tuple_text([2]) == "(2,)"
    assert tuple_text(None) == ""
    assert tuple_text("data_parallel") == "data_parallel"


@pytest.mark.parametrize(
    ("noun", "numbers", "text"),
    [
        ("rank", [3], "rank 3"),
        ("rank", [3, 3], "rank 3"),
        ("rank", (2, 0), "ranks 0,2"),
        ("stage", {1, 2, 3}, "stages 1-3"),
    ],
)
def test_what_is_numbered_has_its_noun_in_the_right_number(
    noun: str, numbers: Iterable[int], text: str
) -> None:
    assert numbered_text(noun, numbers) == text
