"""Each number that decides who is accused, with a case on either side of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from irtool.compare.tensors.comparison import TensorComparison
from irtool.compare.tensors.judging.verdict import Judged
from tests.compare.dumps import Entry
from tests.compare.test_judging import compared, numbers, single

X, W = numbers(64, 64), numbers(64, 64, seed=1)
Y = single(X @ W)


def judged_with_noise(folder: Path, noise: float, tensors: bool) -> Judged:
    """An operator of an unknown kind, with equal inputs and an output that is off by so much."""

    def calls(factor: float) -> list[Entry]:
        output = single(Y * (1 + factor * numbers(64, 64, seed=5)))
        return [
            ("Functional.linear.0.forward", (X, W), Y),
            ("Functional.mystery.0.forward", (Y, W), output),
        ]

    folder.mkdir()
    return compared(folder, calls(0.0), calls(noise), tensors).judged[1]


@pytest.mark.parametrize(
    ("tensors", "times_its_budget", "verdict"),
    [
        (True, 2.9, "carries error"),
        (True, 3.1, "introduces error"),
        (False, 9.0, "carries error"),
        (False, 11.0, "introduces error"),
    ],
)
def test_values_accuse_from_three_times_the_budget_and_figures_from_ten(
    tmp_path: Path, tensors: bool, times_its_budget: float, verdict: str
) -> None:
    probe = judged_with_noise(tmp_path / "probe", 1e-5, tensors)
    found = judged_with_noise(tmp_path / "run", 1e-5 * times_its_budget / probe.z, tensors)
    assert found.z == pytest.approx(times_its_budget, rel=0.03)
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("dtypes", "verdict"),
    [
        ((np.float32, np.float32), "carries error"),
        ((np.float32, np.float16), "lower precision, explained"),
        ((np.float16, np.float16), "carries error"),
    ],
)
def test_only_types_that_differ_are_lower_precision(
    tmp_path: Path, dtypes: tuple[type, type], verdict: str
) -> None:
    """Error within the budget is explained by precision only where one side has less of it."""
    calls: list[list[Entry]] = []
    for number, dtype in enumerate(dtypes):
        output = (Y * (1 + (2.0**-22 if dtype is np.float32 else 2.0**-11) * number)).astype(dtype)
        calls.append([("Functional.mystery.0.forward", (X, W), output)])
    (found,) = compared(tmp_path, *calls).judged
    assert found.error_out > 0
    assert found.verdict == verdict


def broken(places: int) -> np.ndarray:
    values = Y.copy()
    values.reshape(-1)[:places] = np.nan
    return values


@pytest.mark.parametrize(
    ("ours", "theirs", "wrong"),
    [(0, 0, ""), (3, 3, ""), (0, 1, "right"), (1, 0, "left"), (3, 4, "right"), (4, 3, "left")],
)
def test_nan_accuses_the_side_that_has_more_of_it(
    tmp_path: Path, ours: int, theirs: int, wrong: str
) -> None:
    calls: list[list[Entry]] = [
        [("Functional.mystery.0.forward", (X, W), broken(places))] for places in (ours, theirs)
    ]
    (found,) = compared(tmp_path, *calls).judged
    assert (found.verdict == "introduces error", found.wrong) == (bool(wrong), wrong)


def test_nan_that_both_sides_have_alike_accuses_nobody_beside_rounding(tmp_path: Path) -> None:
    """A mask: as many elements on both sides, and the others differ as rounding makes them."""
    calls: list[list[Entry]] = [
        [("Functional.mystery.0.forward", (X, W), single(broken(3) * (1 + noise)))]
        for noise in (0.0, 2.0**-22)
    ]
    (found,) = compared(tmp_path, *calls).judged
    assert found.error_out > 0
    assert (found.verdict, found.wrong) == ("carries error", "")


@pytest.mark.parametrize("output", [0, 5])
def test_nan_that_came_in_on_one_side_is_not_this_operators_fault(
    tmp_path: Path, output: int
) -> None:
    """Whoever let it in is accused; what it was given on one side only, an operator carries on."""
    calls: list[list[Entry]] = [
        [
            ("Functional.mystery.0.forward", (X, W), given),
            ("Functional.mystery.1.forward", (given, W), broken(places)),
        ]
        for given, places in ((Y, 0), (broken(2), 2 + output))
    ]
    maker, reader = compared(tmp_path, *calls).judged
    assert (maker.verdict, maker.wrong) == ("introduces error", "right")
    assert reader.verdict != "introduces error"


@pytest.mark.parametrize(("more", "is_accused"), [(0, False), (1, True)])
def test_nan_both_were_given_alike_accuses_who_makes_more_of_it_on_one_side(
    tmp_path: Path, more: int, is_accused: bool
) -> None:
    given = broken(2)
    calls: list[list[Entry]] = [
        [("Functional.mystery.0.forward", (given, W), broken(places))] for places in (2, 2 + more)
    ]
    (found,) = compared(tmp_path, *calls).judged
    assert (found.verdict == "introduces error") == is_accused
    if is_accused:
        assert "equally finite inputs" in found.why


def scaled(folder: Path, powers: Sequence[int]) -> TensorComparison:
    """Gradients that the right side has times powers of two, one operator each."""
    gradients = [numbers(16, 16, seed=number) for number in range(len(powers))]

    def calls(factors: Sequence[float]) -> list[Entry]:
        made: list[Entry] = [("Functional.linear.0.forward", (X, W), Y)]
        for number, (gradient, factor) in enumerate(zip(gradients, factors, strict=True)):
            given = single(factor * gradient)
            made.append((f"Functional.gelu.{number}.backward", (given,), single(given * 0.5)))
        return made

    return compared(folder, calls([1.0] * len(powers)), calls([2.0**power for power in powers]))


@pytest.mark.parametrize(
    ("powers", "scale"),
    [
        ([5, 5, 5, 5], 1),
        ([6, 6, 6, 6], 64),
        ([-6, -6, -6, -6], 1 / 64),
        ([10, 10, 10, 10, 3], 1024),
        ([10, 10, 10, 3], 1),
        ([10, 10, 10, 10, 0], 1024),
    ],
)
def test_a_loss_scale_is_64_at_least_and_that_of_four_in_five_gradients(
    tmp_path: Path, powers: Sequence[int], scale: float
) -> None:
    found = scaled(tmp_path, powers)
    assert found.gradient_scale == scale
    accused = {item.pair.left.name for item in found.judged if item.verdict == "introduces error"}
    ours = {
        f"Functional.gelu.{number}.backward"
        for number, power in enumerate(powers)
        if 2.0**power not in (scale, 1.0)
    }
    assert bool(accused & ours) == bool(ours)
    assert accused <= ours


@pytest.mark.parametrize(("factor", "differs"), [(1 + 0.9e-5, False), (1 + 1.1e-5, True)])
def test_arguments_are_the_same_within_what_printing_leaves_of_them(
    tmp_path: Path, factor: float, differs: bool
) -> None:
    calls: list[list[Entry]] = [
        [("Functional.mystery.0.forward", (X, value), Y)] for value in (0.5, 0.5 * factor)
    ]
    (found,) = compared(tmp_path, *calls).judged
    assert bool(found.attributes) == differs
    assert found.verdict == ("attribute differs" if differs else "equal bits")
