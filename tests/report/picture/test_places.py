"""Names in the order in which people count."""

from __future__ import annotations

from irtool.report.picture.places import natural


def test_numbers_in_names_are_sorted_as_numbers() -> None:
    assert sorted(["10-Block", "2-Block", "1-Block"], key=natural) == [
        "1-Block", "2-Block", "10-Block",
    ]  # fmt: skip


def test_numbers_of_many_digits_are_sorted_as_text() -> None:
    assert natural("a" + "9" * 18) == ((0, "a"), (int("9" * 18), ""))
    assert natural("a" + "9" * 19) == ((0, "a"), (0, "9" * 19))
