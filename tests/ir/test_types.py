"""Types of tuples: as long as they say, without being unfolded."""

from __future__ import annotations

import pytest

from irtool import dumps, loads
from irtool.ir.types import (
    LARGEST_SIZE,
    MOST_UNFOLDED,
    Abstract,
    ScalarType,
    SequenceType,
    Shape,
    TensorType,
)
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


@pytest.mark.parametrize("size", [LARGEST_SIZE // 8, LARGEST_SIZE // 8 + 1, 10**40])
@pytest.mark.parametrize("element", ["Tensor[Float32]", "Ref[Tensor[Float32]]"])
def test_a_size_beyond_64_bits_is_not_known_and_printed_back(size: int, element: str) -> None:
    line = f"  %0(a) = Relu(%1)\n      : (<{element}, (8, {size})>) -> (<{element}, (8, {size})>)\n"
    dump = loads(line)
    (node,) = dump.nodes()
    assert node.output_type is not None
    known = (8, size) if 8 * size <= LARGEST_SIZE else None
    assert node.output_type.dimensions == known
    assert node.output_type.size is None or known is None
    assert dumps(dump) == line


def test_more_bytes_than_64_bits_count_are_not_known() -> None:
    most = Abstract(TensorType(ScalarType("Int8")), Shape((LARGEST_SIZE,)))
    more = Abstract(TensorType(ScalarType("Int16")), Shape((LARGEST_SIZE,)))
    assert (most.size, more.size) == (LARGEST_SIZE, None)
