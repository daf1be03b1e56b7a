"""Who needs which slices: as MindSpore names them, and no more than is needed."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from irtool.artefacts.cuts import Refused, cuts_in_conversion, cuts_of
from irtool.artefacts.strategies import read_layouts
from irtool.artefacts.strategies.model import SavedLayout, StrategyFile
from irtool.planning.checkpoints.calls import conversion_lines
from irtool.planning.checkpoints.conversion import KnownParameter, _Pair, convert
from irtool.planning.checkpoints.rank_lists import mindspore_ranks
from irtool.planning.checkpoints.sources import slices_of, target_of

SAVED = Path(__file__).parents[3] / "samples/strategies"
CASES = json.loads((SAVED / "rank_lists.json").read_bytes())["cases"]


def saved(name: str | None) -> StrategyFile | None:
    return None if name is None else read_layouts(str(SAVED / name))


def test_every_answer_is_that_of_mindspore() -> None:
    for case in CASES:
        old, new = saved(case["source"]), saved(case["target"])
        found = [mindspore_ranks(old, new, rank) for rank in range(len(case["rank_list"]))]
        assert found == case["rank_list"], f"{case['source']} -> {case['target']}"


def test_what_is_needed_is_among_what_mindspore_names_or_the_ranks_own() -> None:
    for case in CASES[::5]:
        for one in convert(saved(case["source"]), saved(case["target"])).ranks:
            assert set(one.needed) <= {*(one.mindspore or ()), one.rank}


def test_less_is_read_than_mindspore_names() -> None:
    found = convert(saved("dp4tp2.json"), saved("dp2tp4.json"))
    assert [one.mindspore for one in found.ranks][:4] == [(0, 1), (0, 1), (2, 3), (2, 3)]
    assert [one.needed for one in found.ranks] == [(0,), (0, 1), (2, 3), (3,),
                                                   (4,), (4, 5), (6, 7), (7,)]  # fmt: skip


def a_file(layout: SavedLayout, stages: int = 1) -> StrategyFile:
    layouts = {
        f"{stage}-w": replace(layout, key=f"{stage}-w", stage=stage) for stage in range(stages)
    }
    if stages == 1:
        layouts = {"w": layout}
    return StrategyFile("f.json", "json", "parameters", {}, {}, frozenset(), layouts)


@st.composite
def layouts(draw: st.DrawFn, dimensions: int = 2) -> SavedLayout:
    matrix = tuple(draw(st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=4)))
    axes = draw(st.permutations(range(len(matrix))))
    entries: list[int | tuple[int, ...]] = []
    free = list(axes)
    for _ in range(dimensions):
        count = draw(st.integers(0, min(2, len(free))))
        mine, free = free[:count], free[count:]
        entries.append(tuple(mine) if len(mine) > 1 else (mine[0] if mine else -1))
    sizes = [matrix[len(matrix) - 1 - axis] for axis in free]
    shard = draw(st.booleans()) and prod(sizes) > 1
    return SavedLayout(
        "w", "w", None, matrix, tuple(entries), (64,) * dimensions, -1 if shard else 0, int(shard)
    )


@given(layouts(), layouts())
@settings(max_examples=150, deadline=None)
def test_sources_hold_what_they_give_and_make_up_the_whole_target(
    old: SavedLayout, new: SavedLayout
) -> None:
    files = a_file(old), a_file(new)
    held = [(slices_of(file) or {})["w"] for file in files]
    for one in convert(*files).ranks:
        target = target_of(held[1], one.rank, 2)
        assert target is not None
        sources = one.parameters[0].sources
        total = sum((each.part for each in sources), start=Fraction(0))
        assert total == prod((end - begin for begin, end in target), start=Fraction(1))
        for each in sources:
            source = target_of(held[0], each.rank, 2)
            assert source is not None
            for part, mine, theirs in zip(each.region, target, source, strict=True):
                assert mine[0] <= part[0] < part[1] <= mine[1]
                assert theirs[0] <= part[0] < part[1] <= theirs[1]
        for a, b in product(sources, sources):
            apart = [p[1] <= q[0] or q[1] <= p[0] for p, q in zip(a.region, b.region, strict=True)]
            assert a is b or any(apart)


@given(layouts(), layouts())
@settings(max_examples=150, deadline=None)
def test_mindspore_always_names_enough(old: SavedLayout, new: SavedLayout) -> None:
    files = a_file(old), a_file(new)
    for each in (old, new):
        try:
            assume(cuts_in_conversion(each) == cuts_of(each))
        except Refused:
            assume(False)
    for one in convert(*files).ranks:
        if one.mindspore is not None:
            assert set(one.needed) <= {*one.mindspore, one.rank}


def test_a_rank_takes_what_it_has_itself_first() -> None:
    whole = SavedLayout("w", "w", None, (4,), (-1,), (8,))
    found = convert(a_file(whole), a_file(replace(whole, tensor_map=(0,))))
    assert [one.needed for one in found.ranks] == [(0,), (1,), (2,), (3,)]
    assert found.moved().elements == 0


def test_moved_elements_are_those_of_other_ranks() -> None:
    cut = SavedLayout("w", "w", None, (4,), (0,), (8,))
    found = convert(a_file(cut), a_file(replace(cut, tensor_map=(-1,))))
    assert found.moved().elements == 4 * 6
    assert found.moved().bytes is None
    known = {"w": KnownParameter((8,), 2.0)}
    assert convert(a_file(cut), None, known).moved().bytes == 6 * 2


def test_what_a_manual_split_cuts_is_not_known() -> None:
    cut = SavedLayout("w", "w", None, (4,), (0,), (8,), field=3)
    found = convert(a_file(cut), None)
    assert "manual split" in found.ranks[0].parameters[0].unknown
    assert found.moved().elements is None


def test_device_numbers_that_do_not_divide_are_refused_by_mindspore_alone() -> None:
    three = SavedLayout("w", "w", None, (3,), (0,), (12,))
    four = SavedLayout("w", "w", None, (4,), (0,), (12,))
    one = convert(a_file(three), a_file(four)).ranks[1]
    assert one.mindspore is None
    assert one.refused == "cannot transform device_num from 3 to 4"
    assert one.needed == (0, 1)


def test_a_parameter_whose_map_is_in_another_order_is_misplaced_by_the_conversion() -> None:
    """``_construct_tensor_layout_for_opt_shard`` takes (0, 1) for (1, 0) there."""
    layout = SavedLayout("w", "w", None, (2, 2, 2), (0, 1), (8, 8), -1, 4)
    assert cuts_of(layout) != cuts_in_conversion(layout)
    assert convert(a_file(layout), None).misplaced == ("w",)
    in_order = replace(layout, tensor_map=(1, 0))
    assert convert(a_file(in_order), None).misplaced == ()


def test_added_and_dropped_parameters() -> None:
    found = convert(saved("merged/dp2tp2pp2.json"), saved("dp2tp2.json"))
    assert found.added == ()
    assert all(name.startswith("accu_grads.") for name in found.dropped)
    assert convert(saved("dp2tp2.json"), saved("merged/dp2tp2pp2.json")).added == found.dropped


@pytest.mark.parametrize(
    ("old", "line"),
    [
        ("stages", "mindspore.merge_pipeline_strategys("),
        ("dp2.json", "'converted', '"),
        (None, "'converted', None, '"),
    ],
)
def test_lines_call_mindspores_own_conversion(old: str | None, line: str) -> None:
    text = "\n".join(conversion_lines(convert(saved(old), saved("dp4tp2.json"))))
    assert line in text
    compile(text, "convert.py", "exec")


def test_files_of_several_stages_are_merged_and_one_alone_is_named() -> None:
    stages = saved("stages")
    assert stages is not None
    whole = saved("dp4tp2.json")
    for count, is_merged in ((1, False), (2, True)):
        old = replace(stages, parts=stages.parts[:count])
        text = "\n".join(conversion_lines(convert(old, whole)))
        assert ("merge_pipeline_strategys" in text) == is_merged
        assert (f"'converted', {stages.parts[0]!r}" in text) == (not is_merged)


def test_a_parameter_has_the_dimensions_of_the_layout_that_is_there() -> None:
    cut, whole = SimpleNamespace(dimensions=3), None
    pairs: list[tuple[Any, Any]] = [(cut, cut), (cut, whole), (whole, cut), (whole, whole)]
    assert [_Pair("w", old, new).dimensions for old, new in pairs] == [3, 3, 3, 0]
