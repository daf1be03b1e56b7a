"""Options put together: the peak is recounted launch by launch, and every set is tried."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from irtool.cluster.memory import Memory
from irtool.cluster.what_if import (
    Change,
    Combination,
    Option,
    Saving,
    Traffic,
    Trial,
    combinations_within,
    savings,
)


@dataclass
class Device:
    """What trials look at of a device's memory."""

    curve: tuple[int, ...]
    static_bytes: int = 0

    @property
    def peak_bytes(self) -> int:
        return self.static_bytes + max(self.curve, default=0)


def device(*curve: int, static: int = 0) -> Memory:
    return Device(curve, static)  # type: ignore[return-value]  # nothing else is asked of it


def option(switch: str, saved: int, target: str = "", flops: int = 0, last: int = 3) -> Option:
    """Frees bytes from the first launch to the last; its price is its operations."""
    return Option(switch, target, "", (Change(0, last, -saved),), flops=flops)


def price(one: Option) -> float:
    return float(one.flops)


CHANGES = st.lists(
    st.builds(Change, st.integers(0, 5), st.integers(0, 5), st.integers(-9, 9)), max_size=4
)
OPTIONS = st.lists(
    st.builds(
        Option, st.just("x"), st.just(""), st.just(""), CHANGES.map(tuple), st.integers(-9, 9)
    ),
    max_size=3,
)


@given(st.lists(st.integers(0, 50), min_size=6, max_size=6), st.integers(0, 30), OPTIONS)
def test_the_peak_is_that_of_the_changed_curve(
    curve: list[int], static: int, options: list[Option]
) -> None:
    """A change lasts from its first launch to its last, both included; none if they are turned."""
    changed = list(curve)
    for one in options:
        for change in one.changes:
            for launch in range(change.first, change.last + 1):
                changed[launch] += change.bytes
    stays = static + sum(one.static for one in options)
    assert Trial(device(*curve, static=static)).peak(options) == stays + max(changed)


def test_a_device_that_launches_nothing_has_what_stays() -> None:
    assert Trial(device(static=7)).peak([Option("x", "", "", static=2)]) == 9


# -- ranking ---------------------------------------------------------------------------------------


def test_what_costs_nothing_is_first_and_what_saves_nothing_last() -> None:
    """By seconds a byte; of equals the larger; a gain of time counts as no price."""
    options = {
        "dear": option("dear", 20, flops=40),  # 2 s a byte
        "cheap": option("cheap", 10, flops=10),  # 1 s a byte
        "free": option("free", 5),
        "faster": option("faster", 8, flops=-100),
        "nothing": option("nothing", 0),
        "worse": option("worse", -3),
        "large and cheap": option("large and cheap", 30, flops=30),
    }
    found = savings(device(100, 100, 100, 100), options.values(), price)
    assert [(one.option.switch, one.saved) for one in found] == [
        ("faster", 8), ("free", 5), ("large and cheap", 30), ("cheap", 10), ("dear", 20),
        ("nothing", 0), ("worse", -3),
    ]  # fmt: skip
    assert [one.seconds for one in found] == [-100, 0, 30, 10, 40, 0, 0]


def test_what_another_tensor_takes_up_saves_nothing() -> None:
    (found,) = savings(device(10, 9), [option("x", 5, last=0)], price)
    assert found.saved == 1


def test_bytes_for_each_operation_and_for_each_byte_moved() -> None:
    base = option("x", 1, flops=4)
    moving = replace(base, traffic=(Traffic("host", 3), Traffic("group", 5)))
    assert moving.traffic_bytes == 8
    assert Saving(moving, 16, 0.0).per_flop == 4.0
    assert Saving(moving, 16, 0.0).per_byte == 2.0
    back = replace(base, flops=0, traffic=(Traffic("group", -5),))
    assert Saving(back, 16, 0.0).per_flop is None
    assert Saving(back, 16, 0.0).per_byte is None
    assert Saving(replace(back, traffic=()), 16, 0.0).per_byte is None


# -- sets below a limit ----------------------------------------------------------------------------

SINGLES = st.lists(
    st.tuples(st.integers(1, 20), st.integers(0, 9), st.sets(st.integers(0, 4))), max_size=5
)


@given(SINGLES, st.integers(0, 60))
def test_every_set_that_needs_all_its_options_is_found(
    drawn: list[tuple[int, int, set[int]]], limit: int
) -> None:
    """Against all subsets: below the limit, without options that exclude each other."""
    options = [
        replace(
            option(f"s{number}", saved, flops=flops), excludes=frozenset(f"s{n}" for n in excluded)
        )
        for number, (saved, flops, excluded) in enumerate(drawn)
    ]
    memory = device(60, 60, 60, 60)
    ranked = savings(memory, options, price)

    def fits(chosen: tuple[Option, ...]) -> bool:
        saved = sum(-change.bytes for one in chosen for change in one.changes)
        return 60 - saved <= limit

    def clash(chosen: tuple[Option, ...]) -> bool:
        return any(a.switch in b.excludes for a in chosen for b in chosen if a is not b)

    expected = {
        frozenset(one.switch for one in chosen)
        for count in range(len(options) + 1)
        for chosen in combinations(options, count)
        if fits(chosen)
        and not clash(chosen)
        and not any(fits(tuple(o for o in chosen if o is not left)) for left in chosen)
    }
    found = combinations_within(memory, ranked, limit, price, most=100)
    assert {frozenset(one.switch for one in each.options) for each in found} == expected
    assert len(found) == len(expected)
    for each in found:
        assert each.seconds == sum(one.flops for one in each.options)
        assert each.peak == 60 - sum(-change.bytes for o in each.options for change in o.changes)
    keys = [(each.seconds, len(each.options), each.peak) for each in found]
    assert keys == sorted(keys)
    assert combinations_within(memory, ranked, limit, price) == found[:3]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), max_size=6), st.integers(0, 60))
def test_of_one_switch_on_several_cells_as_many_as_needed_in_their_order(
    cells: list[tuple[int, int]], limit: int
) -> None:
    options = [
        option("recompute", saved, target=str(number), flops=flops)
        for number, (saved, flops) in enumerate(cells)
    ]
    memory = device(60, 60, 60, 60)
    ranked = savings(memory, options, price)
    found = combinations_within(memory, ranked, limit, price)
    order = [one.option for one in ranked]
    enough = next(
        (count for count in range(len(order) + 1)
         if 60 + sum(o.changes[0].bytes for o in order[:count]) <= limit),
        None,
    )  # fmt: skip
    if enough is None:
        assert found == ()
        return
    (one,) = found
    assert set(one.options) <= set(order[:enough])
    assert one.peak <= limit
    for left in one.options:
        assert Trial(memory).peak([o for o in one.options if o is not left]) > limit


def test_what_is_excluded_on_the_same_cell_may_be_on_another() -> None:
    """``recompute`` of a cell and ``offload`` of it free the same bytes; of two cells, others."""
    excludes = frozenset({"recompute", "offload"})
    whole = replace(option("whole", 5), excludes=excludes)
    cell = replace(option("recompute", 10, target="a", flops=1), excludes=excludes)
    memory = device(20, 20, 20, 20)

    def found(*options: Option) -> list[Combination]:
        ranked = savings(memory, options, price)
        return list(combinations_within(memory, ranked, 6, price))

    assert found(whole, cell) == []  # one for all cells goes with none of them
    other = replace(option("free", 5), excludes=frozenset({"elsewhere"}))
    assert [len(one.options) for one in found(other, cell)] == [2]


def test_an_option_that_saves_time_is_kept_though_it_is_not_needed() -> None:
    memory = device(20, 20, 20, 20)
    gift = option("gift", 6, flops=-1)
    need = option("need", 10, flops=5)
    found = combinations_within(memory, savings(memory, [gift, need], price), 10, price)
    sets = [[one.switch for one in each.options] for each in found]
    assert sets == [["gift", "need"], ["need"]]
    assert [each.seconds for each in found] == [4, 5]
