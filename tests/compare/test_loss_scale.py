"""A scaled loss makes every gradient larger by a power of two, and no operator wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from irtool.compare.tensors.judging.scaling import gradient_scale
from irtool.compare.tensors.pairing.slots import pair_tensors
from tests.compare.dumps import msprobe
from tests.compare.steps import Given, Steps
from tests.compare.test_injected_faults import compared
from tests.compare.test_tensors import unit
from tests.compare.training_step import Change, Values, training_step

LOSS = "Functional.cross_entropy.0.backward"


def times(factor: float) -> Change:
    def change(values: Values) -> Values:
        return values * np.float32(factor)

    return change


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("factor", [64.0, 1024.0, 2.0**-10])
def test_a_scale_of_64_or_more_is_taken_out(tmp_path: Path, factor: float, tensors: bool) -> None:
    right = training_step({LOSS: times(factor)})
    found = compared(tmp_path, training_step(), right, tensors)
    assert found.gradient_scale == factor
    assert found.first is None
    # All gradients are those of the other side but for it, to the last bit.
    assert all(measure.error < 1e-6 for measure in found.measures.values())


@pytest.mark.parametrize("factor", [2.0, 32.0, 100.0])
def test_a_smaller_factor_or_no_power_of_two_is_a_fault(tmp_path: Path, factor: float) -> None:
    right = training_step({LOSS: times(factor)})
    found = compared(tmp_path, training_step(), right, tensors=True)
    assert found.gradient_scale == 1.0
    assert found.first is not None
    assert found.first.pair.left.name == LOSS


def test_a_fault_behind_a_scaled_loss_is_named(tmp_path: Path) -> None:
    wrong = "Functional.linear.4.backward"
    right = training_step({LOSS: times(1024), wrong: times(1.5)})
    found = compared(tmp_path, training_step(), right, tensors=True)
    assert found.gradient_scale == 1024
    assert found.first is not None
    assert found.first.pair.left.name == wrong


def scale_of(*ratios: float, phase: str = "backward") -> float:
    """What is found where the gradients on the right are so many times those on the left."""
    steps = Steps()
    for ratio in ratios:
        given = Given(norm=2.0, right_norm=2.0 * ratio, error=0.5)
        steps.add("linear", [Given()], [given], phase=phase)  # type: ignore[arg-type]
    slots = [pair_tensors(pair, steps.left, steps.right) for pair in steps.pairs]
    return gradient_scale(steps.pairs, slots, dict(steps.measures))


@pytest.mark.parametrize(
    ("ratios", "scale"),
    [
        ((64.0,), 64.0),
        ((1 / 64,), 1 / 64),
        ((32.0,), 1.0),
        ((1.0, 1.0), 1.0),
        # Four fifths have to agree, of those that have a factor at all.
        ((64.0,) * 4 + (256.0,), 64.0),
        ((64.0,) * 7 + (256.0,) * 2, 1.0),
        # What has none may be as many and a quarter more: values below the scale's place.
        ((64.0,) * 4 + (1.0,) * 5, 64.0),
        ((64.0,) * 4 + (1.0,) * 6, 1.0),
        # A quarter of a power of two off is near, more is another number.
        ((64.0 * 2**0.24,), 64.0),
        ((64.0 * 2**0.26,), 1.0),
        # The first gradient with any factor has the scale of the loss.
        ((1.0, 64.0, 100.0), 64.0),
        ((100.0, 64.0), 1.0),
        ((math.inf,), 1.0),
        ((0.0,), 1.0),
    ],
)
def test_which_factor_is_believed(ratios: Sequence[float], scale: float) -> None:
    assert scale_of(*ratios) == scale


def test_only_gradients_tell_of_a_scale() -> None:
    assert scale_of(64.0, 64.0, phase="forward") == 1.0


def test_what_the_factor_multiplies_is_told_by_its_argument(tmp_path: Path) -> None:
    """The loss itself, times 1 on the left and times 256 on the right, is no fault either."""

    def scaled(factor: float) -> Path:
        entries = training_step({LOSS: times(factor)})
        place = [name for name, _, _ in entries].index("Functional.cross_entropy.0.forward")
        loss = np.asarray(entries[place][2], np.float32)
        product = (
            "Tensor.__mul__.0.forward",
            (loss, factor),
            np.asarray(loss * factor, np.float32),
        )
        entries.insert(place + 1, product)
        return msprobe(tmp_path / str(factor), entries, tensors=True)

    from irtool.compare.tensors.comparison import compare_tensors

    found = compare_tensors(unit(scaled(1.0)), unit(scaled(256.0)))
    assert found.gradient_scale == 256
    multiplied = next(item for item in found.judged if item.pair.left.type == "__mul__")
    assert multiplied.verdict != "introduces error"
