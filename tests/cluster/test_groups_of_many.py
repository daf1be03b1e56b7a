"""Rows of thousands of ranks share the tuple of a group's members: it is looked through once."""

from __future__ import annotations

from typing import Any, cast

import pytest

from irtool.cluster.groups import _Groups
from irtool.cluster.matching import _own_groups

MEMBERS = range(0, 64, 2)


class Counted(tuple[int, ...]):
    """Members of a group that count how often somebody reads all of them."""

    read = 0

    def __hash__(self) -> int:
        self.read += 1
        return super().__hash__()

    def __contains__(self, value: object) -> bool:
        self.read += 1
        return super().__contains__(value)


class Stub:
    """Any object with the attributes that are asked for."""

    def __init__(self, **values: object) -> None:
        self.__dict__.update(values)


def row(bytes_: int | None, axis: str) -> Any:
    return Stub(axis=axis, collective=Stub(bytes=bytes_, ranks_from="dump"))


def party(group: str | None, ranks: tuple[int, ...] | None) -> Any:
    return Stub(group=group, ranks=ranks)


def test_a_group_is_looked_up_once_for_all_of_its_rows() -> None:
    groups = _Groups(cast(Any, Stub(level_of=lambda ranks: Stub(name="link"))))
    members = Counted(MEMBERS)
    for turn in range(100):
        groups.add(row(8 if turn else None, "data" if turn % 2 else "model"), party("g", members))
    assert members.read == 1
    (group,) = groups.made()
    assert (group.name, group.ranks, group.level) == ("g", tuple(MEMBERS), "link")
    assert group.axes == ("model", "data")
    assert (group.count, group.bytes) == (100, 792)


def test_equal_members_are_one_group_whichever_object_holds_them() -> None:
    groups = _Groups(cast(Any, Stub(level_of=lambda ranks: Stub(name="link"))))
    for turn in range(3):
        groups.add(row(turn, "data"), party("g", tuple(MEMBERS)))
        groups.add(row(1, "data"), party("g", None))
        groups.add(row(1, "data"), party("h", tuple(MEMBERS)))
        groups.add(row(1, "data"), party(None, tuple(MEMBERS)))
    made = {(group.name, group.ranks): (group.count, group.bytes) for group in groups.made()}
    assert made == {
        ("g", tuple(MEMBERS)): (3, 3),
        ("g", None): (3, 3),
        ("h", tuple(MEMBERS)): (3, 3),
    }


def test_members_are_looked_through_once_for_all_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irtool.cluster.matching.place", lambda one, number: (one.rank, number))
    members = Counted(MEMBERS)
    shared = party("pp", members)
    ranks = {rank: Stub(rank=rank, parties=[shared] * 5) for rank in range(64)}
    said = list(_own_groups(cast(Any, Stub(ranks=ranks))))
    assert [one.right_rank for one in said] == [rank for rank in range(64) if rank % 2]
    assert {one.kind for one in said} == {"not a member"}
    assert members.read <= 1
