"""Whichever call of a step goes wrong, it is named, and nothing before or beside it is."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from irtool.compare.tensors.comparison import TensorComparison, compare_tensors
from tests.compare.dumps import Entry, msprobe
from tests.compare.test_tensors import unit
from tests.compare.training_step import Change, Values, training_step

SOUND = training_step()
CALLS = [name for name, _, _ in SOUND]
COMPUTED_AGAIN = re.compile(
    r"Functional\.(linear|relu|softmax)|Torch\.matmul|Tensor\.__(add|truediv)__\.\d\.forward"
)
"""Calls whose results follow from what the dump holds of them."""


def scaled(values: Values) -> Values:
    return values * np.float32(1.02)


def shifted(values: Values) -> Values:
    return values + np.float32(0.05) * np.sqrt((values * values).mean())


def first_row_lost(values: Values) -> Values:
    """The first row is that of the last token; of a single number, it is a little more."""
    found = values * np.float32(1 if values.ndim else 1.05)
    if values.ndim:
        found[0] = found[-1]
    return found


def one_is_nan(values: Values) -> Values:
    return np.where(np.arange(values.size).reshape(values.shape) == 0, np.nan, values)


CHANGES: dict[str, Change] = {
    "scaled": scaled, "shifted": shifted, "first row lost": first_row_lost, "nan": one_is_nan,
}  # fmt: skip


@cache
def broken(call: str, change: str) -> list[Entry]:
    return training_step({call: CHANGES[change]})


def compared(
    tmp_path: Path, left: list[Entry], right: list[Entry], tensors: bool
) -> TensorComparison:
    sides = [msprobe(tmp_path / name, each, tensors) for name, each in (("a", left), ("b", right))]
    return compare_tensors(*map(unit, sides))


def results(entry: Entry) -> list[Values]:
    _, inputs, result = entry
    arrays = [value for value in inputs if isinstance(value, np.ndarray)]
    return [*arrays, *([result] if isinstance(result, np.ndarray) else result)]


def is_alike(entry: Entry, other: Entry) -> bool:
    """Whether all that two calls take and give is the same."""
    return all(map(np.array_equal, results(entry), results(other)))


@pytest.mark.parametrize(
    ("change", "tensors"), [("scaled", True), ("first row lost", False), ("nan", True)]
)
@pytest.mark.parametrize("call", CALLS)
def test_the_wrong_call_is_named(tmp_path: Path, call: str, change: str, tensors: bool) -> None:
    wrong = broken(call, change)
    found = compared(tmp_path, SOUND, wrong, tensors)
    assert found.first is not None
    assert found.first.pair.left.name == call
    assert found.first.pair.right.name == call
    if change == "nan":
        assert found.first.wrong == "right"
        assert "NaN or infinity on the right side, from finite inputs" in found.first.why
        return
    alike = {ours[0]: is_alike(ours, theirs) for ours, theirs in zip(SOUND, wrong, strict=True)}
    for item in found.judged:
        name = item.pair.left.name
        if name == call or (not alike[name] and not tensors):
            continue  # from figures alone, what reads the wrong one may be accused as well
        equal = "equal bits" if tensors else "equal figures"
        assert item.verdict == (equal if alike[name] else "carries error"), name
    assert len(found.judged) == len(SOUND)
    assert found.only_left == found.only_right == []
    if tensors and COMPUTED_AGAIN.match(call):
        assert found.first.wrong == "right"
        assert "the right output is not what its inputs give" in found.first.why


@pytest.mark.parametrize("call", CALLS[::5])
def test_the_left_side_may_be_the_wrong_one(tmp_path: Path, call: str) -> None:
    found = compared(tmp_path, broken(call, "scaled"), SOUND, tensors=True)
    assert found.first is not None
    assert found.first.pair.left.name == call
    assert found.first.wrong in ("left", "")


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("call", CALLS[2::7])
def test_a_shift_of_a_twentieth_is_no_rounding(tmp_path: Path, call: str, tensors: bool) -> None:
    found = compared(tmp_path, SOUND, broken(call, "shifted"), tensors)
    assert found.first is not None
    assert found.first.pair.left.name == call


def test_of_two_wrong_calls_the_first_is_named_first(tmp_path: Path) -> None:
    early, late = "Torch.matmul.0.forward", "Functional.linear.5.forward"
    wrong = training_step({early: scaled, late: first_row_lost})
    found = compared(tmp_path, SOUND, wrong, tensors=True)
    assert found.first is not None
    assert found.first.pair.left.name == early
    accused = [each.pair.left.name for each in found.judged if each.verdict == "introduces error"]
    assert accused[:2] == [early, late]


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("heads", [("value", "query", "key"), ("key", "value", "query")])
def test_calls_that_do_not_need_one_another_may_change_places(
    tmp_path: Path, heads: tuple[str, ...], tensors: bool
) -> None:
    """Their names are counted, so another call has each name: what it gives says which it is."""
    found = compared(tmp_path, SOUND, training_step(heads=heads), tensors)
    assert found.first is None
    products = [
        (item.pair.left.name, item.pair.right.name)
        for item in found.judged
        if "linear" in item.pair.left.name and item.pair.left.phase == "forward"
    ]
    names = ("query", "key", "value")
    expected = {
        f"Functional.linear.{names.index(head)}.forward": f"Functional.linear.{place}.forward"
        for place, head in enumerate(heads)
    }
    assert dict(products[:3]) == expected


def rounding(size: float) -> Change:
    chance = np.random.default_rng(3)

    def rounded(values: Values) -> Values:
        noise = chance.standard_normal(values.shape).astype(np.float32)
        return values * (1 + noise * np.float32(size))

    return rounded


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize(("size", "is_rounding"), [(2.0**-25, True), (2.0**-12, False)])
def test_rounding_of_the_stated_type_accuses_nobody(
    tmp_path: Path, size: float, is_rounding: bool, tensors: bool
) -> None:
    """Half a unit in the last place of Float32 is rounding; four thousand times as much is not."""
    found = compared(tmp_path, SOUND, training_step(rounded=rounding(size)), tensors)
    assert (found.first is None) == is_rounding
    assert not found.is_equal


def test_the_same_step_is_equal(tmp_path: Path) -> None:
    found = compared(tmp_path, SOUND, training_step(), tensors=True)
    assert found.is_equal
    assert found.counts == {"equal bits": len(SOUND)}
    assert found.gradient_scale in (None, 1.0)


def test_other_weights_are_no_error_of_an_operator(tmp_path: Path) -> None:
    found = compared(tmp_path, SOUND, training_step(seed=1), tensors=True)
    assert found.first is not None
    assert found.first.pair.left.name == CALLS[0]
    assert found.first.entered
