"""Both sides compute the same in other parts: nobody is wrong where they agree again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irtool.compare.tensors.judging.attributes import changed_attributes
from tests.compare.dumps import Entry
from tests.compare.test_judging import Array, compared, numbers, single

LEVELS = [True, False]


def rows_of_length_one(
    is_inverse: bool, factor: float = 1.0, reads_length: bool = False
) -> list[Entry]:
    """``x / sqrt(s)``, or ``x * rsqrt(s)``: the results of the calls before the last differ."""
    x, w = numbers(12, 16), numbers(16, 8, seed=1)
    s = single((x * x).sum(-1, keepdims=True))
    root = single(np.sqrt(s) * factor)
    entries: list[Entry] = [("Tensor.sum.0.forward", (single(x * x), -1, True), s)]
    if is_inverse:
        inverse = single(1 / root)
        result = single(x * inverse)
        entries += [
            ("Tensor.rsqrt.0.forward", (s,), inverse),
            ("Tensor.__mul__.0.forward", (x, inverse), result),
        ]
        last = inverse
    else:
        result = single(x / root)
        entries += [
            ("Tensor.sqrt.0.forward", (s,), root),
            ("Tensor.__truediv__.0.forward", (x, root), result),
        ]
        last = root
    entries.append(("Torch.matmul.0.forward", (result, w), single(result @ w)))
    if reads_length:
        entries.append(("Torch.exp.0.forward", (last,), single(np.exp(-last))))
    return entries


@pytest.mark.parametrize("tensors", LEVELS)
def test_a_root_and_its_inverse_are_no_fault(tmp_path: Path, tensors: bool) -> None:
    found = compared(tmp_path, rows_of_length_one(False), rows_of_length_one(True), tensors)
    assert found.first is None
    why = {item.pair.left.name: item.why for item in found.judged}
    agreed = "both sides agree again at Tensor.__truediv__.0.forward"
    assert why["Tensor.sqrt.0.forward"] == f"computed in other parts: {agreed}"


@pytest.mark.parametrize("tensors", LEVELS)
@pytest.mark.parametrize(("factor", "is_accused"), [(1.0, False), (1.01, True)])
def test_other_parts_hide_no_fault(
    tmp_path: Path, factor: float, is_accused: bool, tensors: bool
) -> None:
    """The result that both sides should have is off: nothing agrees again."""
    sides = rows_of_length_one(False), rows_of_length_one(True, factor)
    found = compared(tmp_path, *sides, tensors)
    assert (found.first is not None) == is_accused


def test_another_reader_that_does_not_agree_is_enough(tmp_path: Path) -> None:
    sides = [rows_of_length_one(is_inverse, reads_length=True) for is_inverse in (False, True)]
    found = compared(tmp_path, *sides)
    assert found.first is not None
    assert found.first.pair.left.name == "Tensor.sqrt.0.forward"


def test_a_value_that_nobody_is_seen_to_read_tells_nothing(tmp_path: Path) -> None:
    """Indexing is in no dump: who reads the root may be behind it."""
    sides = [rows_of_length_one(is_inverse)[:2] for is_inverse in (False, True)]
    found = compared(tmp_path, *sides)
    assert found.first is not None


def activated(is_other: bool, damped: float) -> list[Entry]:
    """One function that makes something else of the same, of which little is added."""
    x, y = numbers(12, 16), numbers(12, 16, seed=1)
    made = single(np.tanh(x) * (1.3 if is_other else 1.0))
    total = single(y + damped * made)
    return [
        ("Torch.tanh.0.forward", (x,), made),
        ("Tensor.__add__.0.forward", (y, made), total),
        ("Torch.sin.0.forward", (total,), single(np.sin(total))),
    ]


def test_one_function_that_gives_something_else_is_at_fault_wherever_that_leads(
    tmp_path: Path,
) -> None:
    found = compared(tmp_path, activated(False, 1e-8), activated(True, 1e-8))
    assert found.first is not None
    assert found.first.pair.left.name == "Torch.tanh.0.forward"


def mixed(is_shares: bool) -> list[Entry]:
    """``x + w (y - x)``, or ``(1 - w) x + w y``."""
    x, y = numbers(12, 16), numbers(12, 16, seed=1)
    w = single(abs(numbers(16, seed=2)) / 4)
    if is_shares:
        rest = single(1 - w)
        parts = single(rest * x), single(w * y)
        return [
            ("Tensor.__rsub__.0.forward", (w, 1), rest),
            ("Tensor.__mul__.0.forward", (rest, x), parts[0]),
            ("Tensor.__mul__.1.forward", (w, y), parts[1]),
            ("Tensor.__add__.0.forward", parts, single(parts[0] + parts[1])),
        ]
    apart = single(y - x)
    part = single(w * apart)
    return [
        ("Tensor.__sub__.0.forward", (y, x), apart),
        ("Tensor.__mul__.0.forward", (w, apart), part),
        ("Tensor.__add__.0.forward", (x, part), single(x + part)),
    ]


@pytest.mark.parametrize("is_left", [True, False])
def test_shares_and_differences_of_two_tensors_are_no_fault(tmp_path: Path, is_left: bool) -> None:
    assert compared(tmp_path, mixed(is_left), mixed(not is_left)).first is None


def padded(has_other_axes: bool, factor: float = 1.0) -> list[Entry]:
    """Rows that are padded before they are read, or after their axes changed places."""
    x = numbers(3, 5, 4)
    given, pad = (x, ((0, 0), (2, 0), (0, 0)))
    arguments: tuple[int, ...] = (0, 0, 2, 0)
    if has_other_axes:
        given, pad = np.ascontiguousarray(x.swapaxes(1, 2)), ((0, 0), (0, 0), (2, 0))
        arguments = (2, 0)
    made: Array = single(factor * np.pad(given, pad))
    return [("Functional.pad.0.forward", (given, *arguments), made)]


@pytest.mark.parametrize("tensors", LEVELS)
@pytest.mark.parametrize(("factor", "is_seen"), [(1.0, False), (1.02, True)])
def test_axes_in_another_order_are_no_difference(
    tmp_path: Path, tensors: bool, factor: float, is_seen: bool
) -> None:
    """Nor are the arguments, which say the axes; another result is one."""
    found = compared(tmp_path, padded(False), padded(True, factor), tensors)
    verdicts = {item.verdict for item in found.judged}
    assert bool(verdicts & {"introduces error", "attribute differs"}) == is_seen


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ({"input.1": -1, "input.2": True}, {"input.1": -1, "input.keepdim": True}, []),
        ({"input.dim": 1}, {"input.1": 1}, []),
        ({"input.dim": 1}, {"input.1": 2}, ["input.dim: 1 → (none)", "input.1: (none) → 2"]),
        ({"input.dim": 1}, {"input.axis": 1}, ["input.dim: 1 → (none)", "input.axis: (none) → 1"]),
        ({"input.p": 2, "input.q": 2}, {"input.1": 2}, ["input.q: 2 → (none)"]),
    ],
)
def test_an_argument_may_be_given_by_name_or_by_place(
    left: dict[str, object], right: dict[str, object], expected: list[str]
) -> None:
    assert [str(change) for change in changed_attributes(left, right)] == expected


def pairs_of_rows(upper: bool, factor: float = 1.0) -> list[Entry]:
    """Products of all pairs of rows, of which one side of the diagonal is read: its gradients."""
    x = numbers(9, 16)
    g = np.triu(numbers(9, 9, seed=1), 1)
    given = single(g if upper else g.T)
    one, other = single(given @ x), single(given.T @ x)
    both = single((one + other) * factor)
    entries: list[Entry] = [
        ("Torch.bmm.0.forward", (x[None], single(x.T)[None]), single(x @ x.T)[None]),
        ("Torch.bmm.0.backward", (given[None],), [one[None], single(other.T)[None]]),
    ]
    for place in range(3):
        w = numbers(16, 16, seed=2 + place)
        after = single(both @ w)
        entries.append((f"Functional.tanh.{place}.backward", (both,), after))
        both = after
    return entries


@pytest.mark.parametrize("tensors", LEVELS)
@pytest.mark.parametrize(("factor", "is_accused"), [(1.0, False), (1.05, True)])
def test_the_other_side_of_a_diagonal_is_no_fault_if_all_gradients_behind_it_agree(
    tmp_path: Path, factor: float, is_accused: bool, tensors: bool
) -> None:
    found = compared(tmp_path, pairs_of_rows(True), pairs_of_rows(False, factor), tensors)
    assert (found.first is not None) == is_accused
