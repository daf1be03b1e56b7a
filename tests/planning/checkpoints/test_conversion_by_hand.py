"""How much of a checkpoint comes from other ranks, summed by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from irtool.planning.checkpoints.conversion import (
    Conversion,
    KnownParameter,
    Moved,
    ParameterSources,
    RankSources,
)
from irtool.planning.checkpoints.sources import Source

ROWS = {
    name: (Fraction(begin), Fraction(end))
    for name, begin, end in (
        ("first", "0", "1/2"), ("second", "1/2", "1"), ("quarter", "0", "1/4"), ("all", "0", "1"),
    )
}  # fmt: skip


def source(rank: int, rows: str) -> Source:
    return Source(rank, (ROWS[rows], ROWS["all"]))


def rank_sources(
    rank: int, mindspore: tuple[int, ...] | None = (0,), **parameters: tuple[Source, ...] | str
) -> RankSources:
    """What a rank needs, by parameter; a text says why nobody knows."""
    found = tuple(
        ParameterSources(name, (), given)
        if isinstance(given, str)
        else ParameterSources(name, given)
        for name, given in parameters.items()
    )
    return RankSources(rank, mindspore, "" if mindspore is not None else "refused", found)


KNOWN = {"w": KnownParameter((8, 3), 2.0), "v": KnownParameter((4, 5), 4.0)}


def conversion(*ranks: RankSources, known: dict[str, KnownParameter] = KNOWN) -> Conversion:
    return Conversion(None, None, ranks, known)


@pytest.mark.parametrize(
    ("sources", "part", "needed"),
    [
        ((source(0, "all"),), "0", (0,)),  # its own
        ((source(1, "all"),), "1", (1,)),
        ((source(0, "first"), source(1, "second")), "1/2", (0, 1)),
        ((source(2, "quarter"), source(1, "second")), "3/4", (1, 2)),
        ((), "0", ()),
    ],
)
def test_what_other_ranks_give_is_moved(
    sources: tuple[Source, ...], part: str, needed: tuple[int, ...]
) -> None:
    one = rank_sources(0, w=sources)
    assert one.moved_part(one.parameters[0]) == Fraction(part)
    assert one.needed == needed


def test_elements_and_bytes_are_those_of_the_parts_that_move() -> None:
    """Half of 8 x 3 of two bytes, and of 4 x 5 of four bytes a quarter and all."""
    found = conversion(
        rank_sources(0, w=(source(0, "first"), source(1, "second")), v=(source(2, "quarter"),)),
        rank_sources(1, w=(source(1, "all"),), v=(source(0, "all"),)),
    )
    assert found.moved() == Moved(12 + 5 + 20, 24 + 20 + 80)
    assert found.moved(found.ranks[1:]) == Moved(20, 80)
    assert found.moved([]) == Moved(0, 0)


@pytest.mark.parametrize(
    ("sources", "known", "moved"),
    [
        ((source(1, "all"),), {}, Moved(None, None)),
        ((source(0, "all"),), {}, Moved(0, 0)),  # what does not move need not be known
        ((source(1, "all"),), {"w": KnownParameter((8, 3), None)}, Moved(24, None)),
        ((source(0, "all"),), {"w": KnownParameter((8, 3), None)}, Moved(0, 0)),
        ("cut unevenly", KNOWN, Moved(None, None)),
    ],
)
def test_what_is_not_known_is_not_summed(
    sources: tuple[Source, ...] | str, known: dict[str, KnownParameter], moved: Moved
) -> None:
    assert conversion(rank_sources(0, w=sources), known=known).moved() == moved


def test_the_share_of_a_parameter_is_of_what_all_ranks_hold_of_it() -> None:
    shared = (source(1, "first"),)  # of both: what rank 0 fetches, rank 1 has
    found = conversion(
        rank_sources(0, w=shared, v=(source(0, "all"),), u="cut unevenly"),
        rank_sources(1, w=shared, v=(source(0, "quarter"), source(1, "second"))),
    )
    assert found.moved_shares() == {"w": 0.5, "v": pytest.approx(0.25 / 1.75)}


@pytest.mark.parametrize(
    ("mindspore", "unknown", "more", "severities"),
    [
        ((0,), False, {}, ()),
        (None, False, {}, ("error",)),
        ((0,), False, {"misplaced": ("w",)}, ("error",)),
        ((0,), False, {"added": ("u",)}, ("warning",)),
        ((0,), False, {"dropped": ("u",)}, ()),
        ((0,), True, {}, ("info",)),
        (None, True, {"added": ("u",)}, ("error", "warning", "info")),
    ],
)
def test_how_grave_it_is(
    mindspore: tuple[int, ...] | None,
    unknown: bool,
    more: dict[str, tuple[str, ...]],
    severities: tuple[str, ...],
) -> None:
    good = rank_sources(0, w=(source(0, "all"),))
    given = "cut unevenly" if unknown else (source(0, "all"),)
    found = Conversion(None, None, (good, rank_sources(1, mindspore, w=given)), KNOWN, **more)
    assert found.severities == severities


def test_whole_checkpoints_are_one_device() -> None:
    assert (conversion().old_devices, conversion().new_devices) == (1, 1)


def test_a_region_in_elements() -> None:
    known = KnownParameter((8, 3), 2.0)
    assert known.elements_of((ROWS["second"], ROWS["all"])) == [(4, 8), (0, 3)]
    assert known.elements_of((ROWS["second"],)) is None
