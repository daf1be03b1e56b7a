"""Which parameters two strategy files say lie otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irtool.artefacts.strategies.model import SavedLayout, SavedStrategy, StrategyFile
from irtool.planning.files.saved_strategies import file_changes, layout_changes

ROWS = SavedLayout("w", "w", None, (4, 2), (1, -1), (64, 32))


def differs(one: SavedLayout | None, other: SavedLayout | None) -> bool:
    """Whether the two say something else of one key."""
    saved, others = ({} if each is None else {"w": each} for each in (one, other))
    return bool(layout_changes(saved, others))


def test_the_same_layout_is_no_change() -> None:
    assert not differs(ROWS, ROWS)


@pytest.mark.parametrize(
    "other",
    [
        replace(ROWS, device_matrix=(2, 4)),
        replace(ROWS, tensor_map=(0, -1)),
        replace(ROWS, shape=(64, 64)),
        replace(ROWS, shard_size=2),
        None,
    ],
)
def test_what_lies_otherwise_is_a_change(other: SavedLayout | None) -> None:
    assert differs(ROWS, other)
    assert differs(other, ROWS)


def test_names_and_stages_of_keys_are_no_layout() -> None:
    assert not differs(ROWS, replace(ROWS, key="1-w", name="other.w", stage=1))


@pytest.mark.parametrize("left", [True, False])
def test_a_side_without_shapes_says_nothing_of_them(left: bool) -> None:
    """Protobuf knows no shapes, and keeps several axes of a dimension together."""
    plain = replace(ROWS, device_matrix=(2, 2, 2), tensor_map=(2, 1, -1), shape=(2, 32, 32))
    packed = replace(plain, tensor_map=((2, 1), -1), shape=None)
    pair = (packed, plain) if left else (plain, packed)
    assert not differs(*pair)
    assert differs(packed, replace(plain, tensor_map=(1, 2, -1)))


def test_with_both_shapes_axes_of_one_dimension_are_told_apart() -> None:
    plain = replace(ROWS, device_matrix=(2, 2, 2), tensor_map=(2, 1, -1), shape=(2, 32, 32))
    assert differs(plain, replace(plain, tensor_map=((2, 1), -1)))


def test_changes_come_in_the_order_of_the_keys() -> None:
    saved = {"b": ROWS, "a": ROWS, "same": ROWS}
    other = {"same": ROWS, "c": ROWS}
    assert [each.name for each in layout_changes(saved, other)] == ["b", "a", "c"]


def file(
    strategies: dict[str, tuple[tuple[int, ...], ...]], **layouts: SavedLayout
) -> StrategyFile:
    rows = {key: SavedStrategy(key, 0, each) for key, each in strategies.items()}
    return StrategyFile("f.json", "json", "operators", rows, {}, frozenset(), layouts)


def test_two_files_differ_in_keys_strategies_and_layouts() -> None:
    before = file({"a": ((8, 1),), "b": ((1, 8),), "gone": ((1,),)}, w=ROWS)
    turned = replace(ROWS, tensor_map=(0, -1))
    after = file({"a": ((8, 1),), "b": ((4, 2),), "new": ((2,),)}, w=turned)
    found = file_changes(before, after)
    assert [(each.key, each.before, each.after) for each in found.strategies] == [
        ("b", ((1, 8),), ((4, 2),)), ("gone", ((1,),), None), ("new", None, ((2,),)),
    ]  # fmt: skip
    (layout,) = found.layouts
    assert (layout.name, layout.saved, layout.other) == ("w", ROWS, turned)


def test_a_file_is_no_other_than_itself() -> None:
    same = file({"a": ((8, 1),)}, w=ROWS)
    found = file_changes(same, same)
    assert (found.strategies, found.layouts) == ((), ())
