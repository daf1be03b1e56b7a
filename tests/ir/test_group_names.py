"""Group names are hashes of the ranks; they can be made and read."""

from __future__ import annotations

import pytest

from irtool.ir import group_names
from irtool.ir.group_names import decode, group_name, search, text_hash

KNOWN = {
    "2-5004544844489628105": (0, 1),
    "4-5226697808808137312": (0, 2, 4, 6),
    "2-16453000547691086251": (0, 4),
    "8-12158923167718251343": tuple(range(8)),
    "4-6301172352641561019": (0, 1, 2, 3),
}


@pytest.mark.parametrize(("name", "ranks"), KNOWN.items())
def test_names_seen_in_dumps(name: str, ranks: tuple[int, ...]) -> None:
    assert group_name(ranks) == name
    assert group_name(reversed(ranks)) == name
    assert decode(name, 8) == ranks
    assert search(name) == ranks


def test_the_world_has_its_own_name() -> None:
    assert group_name(range(8), 8) == "hccl_world_group"
    assert group_name(range(8), 8, "GPU") == "nccl_world_group"
    assert decode("hccl_world_group", 4) == (0, 1, 2, 3)


def test_suffixes_of_derived_groups_do_not_matter() -> None:
    assert search("2-17790617963278075814Send") == (0, 16)


@pytest.mark.parametrize(
    "ranks",
    [(0, 1, 8, 9), (3, 7, 11, 15), tuple(range(16, 32)), (5, 1029), (0, 1, 2, 3, 16, 17, 18, 19)],
)
def test_groups_of_device_matrices_are_found_in_worlds_of_unknown_size(
    ranks: tuple[int, ...],
) -> None:
    assert search(group_name(ranks)) == ranks


@pytest.mark.parametrize(
    "name",
    ["", "-", "2-", "2", "x-1", "2-99", "²-1", "0-5", "999999999-5", "64-12345678901234567890"],
)
def test_other_names_give_nothing_after_bounded_work(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[int] = []

    def counted(text: str) -> int:
        hashed.append(len(text))
        return text_hash(text)

    monkeypatch.setattr(group_names, "text_hash", counted)
    assert search(name) is None
    assert sum(hashed[:-1]) <= group_names._MOST_HASHED  # pyright: ignore[reportPrivateUsage]
