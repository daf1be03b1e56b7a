"""Names of groups as dumps print them."""

from __future__ import annotations

import pytest

from irtool.sharding.group_names import decode, group_name


@pytest.mark.parametrize(
    ("ranks", "name"),
    [
        ((0, 1), "2-5004544844489628105"),
        ((0, 2), "2-5208665662337742843"),
        ((0, 4), "2-16453000547691086251"),
        ((0, 8), "2-16557109384257890687"),
        ((0, 1, 2, 3), "4-6301172352641561019"),
        ((0, 2, 4, 6), "4-5226697808808137312"),
        ((0, 2, 4, 6, 8, 10, 12, 14), "8-3623860843225039737"),
    ],
)
def test_names_seen_in_dumps(ranks: tuple[int, ...], name: str) -> None:
    assert group_name(reversed(ranks)) == name
    assert decode(name, 16) == ranks


def test_the_world_has_a_name_of_its_own() -> None:
    assert group_name(range(8), 8) == "hccl_world_group"
    assert group_name(range(8), 8, "GPU") == "nccl_world_group"
    assert decode("hccl_world_group", 4) == (0, 1, 2, 3)


def test_names_that_say_nothing() -> None:
    assert decode("2-5004544844489628105_all2all", 8) == (0, 1)
    assert decode("my_group", 8) is None
    assert decode("2-1", 8) is None
    odd = group_name((0, 3, 5))
    assert decode(odd, 8) is None
    assert decode(odd, 8, [(0, 3, 5)]) == (0, 3, 5)
