"""What statistics do not show is said: the same numbers in another order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irtool.compare.runs.comparison import RunComparison, compare_runs, first_case
from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import Settings
from irtool.report.diff.runs.sentences import sentences
from irtool.syntax.run import load_run
from tests.compare.dumps import Entry, msprobe, network
from tests.compare.test_judging import numbers

UNTOLD = "cannot be told from statistics: whether numbers come in another order (dump tensors)"


def calls(is_permuted: bool, epsilon: float = 1e-5) -> list[Entry]:
    """A product, whose first operand comes in another order of rows where it is permuted."""
    x, w = numbers(12, 16), numbers(16, 16, seed=1)
    given = np.ascontiguousarray(x.T.reshape(12, 16)) if is_permuted else x
    return [*network(epsilon), ("Functional.linear.2.forward", (given, w), given @ w.T)]


def compared(folder: Path, right: list[Entry], tensors: bool) -> RunComparison:
    paths = msprobe(folder / "a", calls(False), tensors), msprobe(folder / "b", right, tensors)
    sides = [side_of_run(load_run(str(path)), None) for path in paths]
    return compare_runs(sides[0], sides[1], Settings())


def told(found: RunComparison) -> list[str]:
    return sentences(found, first_case(found))


def test_a_product_of_permuted_numbers_is_it_or_the_order(tmp_path: Path) -> None:
    found = compared(tmp_path, calls(True), tensors=False)
    assert found.first is not None
    assert found.first.may_be_order
    text = told(found)
    assert "or an input of it has the same numbers in another order" in text[0]
    assert UNTOLD in text


def test_values_show_the_order(tmp_path: Path) -> None:
    found = compared(tmp_path, calls(True), tensors=True)
    assert found.first is not None
    assert not found.first.may_be_order
    assert UNTOLD not in told(found)


def test_other_arguments_are_reason_enough(tmp_path: Path) -> None:
    found = compared(tmp_path, calls(False, 1e-1), tensors=False)
    assert found.first is not None
    assert found.first.attributes
    assert not found.first.may_be_order


@pytest.mark.parametrize("tensors", [True, False])
def test_that_statistics_agree_does_not_say_that_tensors_are_equal(
    tmp_path: Path, tensors: bool
) -> None:
    text = told(compared(tmp_path, calls(False), tensors))
    wanted = "all tensors are equal" if tensors else "the figures of all tensors are equal"
    assert text[0] == wanted
    assert (UNTOLD in text) != tensors
