"""Types of tuples: as long as they say, without being unfolded."""

from __future__ import annotations

from irtool.ir.types import MOST_UNFOLDED, Abstract, ScalarType, SequenceType
from irtool.sharding.network.calls import computed

INT = ScalarType("Int64")


def numbers(count: int | None) -> SequenceType:
    return SequenceType("Tuple", ((ScalarType("Bool"), None), (INT, count)))


def test_a_tuple_tells_its_items_one_by_one() -> None:
    assert [item.name for item in numbers(3).elements if isinstance(item, ScalarType)] == [
        "Bool", "Int64", "Int64", "Int64",
    ]  # fmt: skip
    assert Abstract(numbers(3)).short() == "Tuple[Bool,Int64,Int64,Int64]"
    assert Abstract(numbers(None)).short() == "Tuple[Bool,Int64]"


def test_a_tuple_of_very_many_numbers_costs_nothing() -> None:
    huge = numbers(300_000_000_000)
    assert len(huge.elements) == MOST_UNFOLDED
    assert huge.length == 300_000_000_001
    assert Abstract(huge).short().endswith(",Int64*299999999000]")
    assert Abstract(huge).size == 0
    assert computed(huge, None).shape == (300_000_000_001,)
