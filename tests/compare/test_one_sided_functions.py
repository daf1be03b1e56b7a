"""Functions that one side alone has: what half precision hides of them, and what indexing does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irtool.report.diff.runs.sentences import why_text
from tests.compare.dumps import Entry
from tests.compare.test_judging import Array, compared, numbers, single, softmax


def half(values: Array) -> Array:
    return values.astype(np.float16)


def scores(cap: float | None, noise: float = 0.0) -> list[Entry]:
    """Scores in half precision, capped or not, and the product that reads them."""
    x, w = half(numbers(64, 32)), half(numbers(64, 32, seed=1) / 6)
    made = x @ w.T
    made = half(made * (1 + noise * numbers(64, 64, seed=2)))
    entries: list[Entry] = [("Tensor.__matmul__.0.forward", (x, w), made)]
    read = made
    if cap is not None:
        part = half(made / np.float16(cap))
        bent = half(np.tanh(part.astype(np.float32)))
        read = half(bent * np.float16(cap))
        entries += [
            ("Tensor.__truediv__.0.forward", (made, cap), part),
            ("Torch.tanh.0.forward", (part,), bent),
            ("Tensor.__rmul__.0.forward", (bent, cap), read),
        ]
    return [*entries, ("Torch.softmax.0.forward", (read, -1), half(softmax(single(read))))]


@pytest.mark.parametrize("is_left", [True, False])
@pytest.mark.parametrize(("cap", "is_accused"), [(50.0, True), (256.0, False)])
def test_a_soft_cap_of_one_side_shows_by_its_bias(
    tmp_path: Path, cap: float, is_accused: bool, is_left: bool
) -> None:
    """In single elements both caps are less than rounding; the small one shortens all of them."""
    sides = scores(cap), scores(None, noise=2e-4)
    found = compared(tmp_path, *(sides if is_left else sides[::-1]))
    assert (found.first is not None) == is_accused
    if found.first is not None:
        assert "Tensor.__truediv__.0.forward to Tensor.__rmul__.0.forward" in found.first.entered
        assert f"on the {'left' if is_left else 'right'} alone" in found.first.entered


def expert(is_normalised: bool, picked: int = 9) -> list[Entry]:
    """Shares of two experts, which one side divides by their sum; indexing picks some of them."""
    shares = softmax(numbers(12, 8))[:, :2]
    shares = np.sort(shares, 1)[:, ::-1].copy()
    total = shares.sum(1, keepdims=True)
    entries: list[Entry] = [("Torch.topk.0.forward", (softmax(numbers(12, 8)), 2), shares)]
    weights = shares
    if is_normalised:
        weights = single(shares / total)
        entries += [
            ("Tensor.sum.0.forward", (shares, -1), total),
            ("Tensor.__truediv__.0.forward", (shares, total), weights),
        ]
    part, rows = numbers(picked, 16), weights[:picked, :1].copy()
    return [*entries, ("Tensor.__mul__.0.forward", (part, rows), part * rows)]


@pytest.mark.parametrize("tensors", [True, False])
def test_a_call_whose_numbers_indexing_picks_is_named(tmp_path: Path, tensors: bool) -> None:
    found = compared(tmp_path, expert(True), expert(False), tensors)
    assert found.first is not None
    assert found.first.maker_left is not None
    assert found.first.maker_left.name == "Tensor.__truediv__.0.forward"
    assert found.first.maker_right is None
    text = why_text(found.first)
    assert "the left one holds numbers of Tensor.__truediv__.0.forward" in text


@pytest.mark.parametrize(("picked", "is_named"), [(3, False), (4, True)])
def test_a_few_numbers_may_stand_in_a_tensor_by_chance(
    tmp_path: Path, picked: int, is_named: bool
) -> None:
    """Of fewer than four the extremes decide, which the nearest call without a partner has."""
    sides = expert(True, picked), expert(False, picked)
    other = numbers(30, seed=5) * 3  # has their extremes, not their numbers
    sides[0].insert(-1, ("Torch.mystery.0.forward", (other, 1.0), other * 2))
    found = compared(tmp_path, *sides)
    assert found.first is not None
    assert found.first.maker_left is not None
    assert (found.first.maker_left.name == "Tensor.__truediv__.0.forward") == is_named


def test_behind_a_cast_only_calls_without_a_partner_are_looked_at(tmp_path: Path) -> None:
    """Half precision has so few numbers that a tensor with many elements holds most of them."""
    sides = expert(True), expert(False)
    many = np.abs(numbers(64, 64, seed=7)) / 4
    for entries in sides:
        name, (part, rows), _ = entries.pop()
        entries.append(("Functional.mystery.0.forward", (many, 1.0), many))
        entries.append((name, (half(part), half(rows)), half(part * rows)))
    found = compared(tmp_path, *sides)
    assert found.first is not None
    assert found.first.maker_left is not None
    assert found.first.maker_left.name == "Tensor.__truediv__.0.forward"


def moved_factor(is_before: bool, wrong: float = 1.0) -> list[Entry]:
    """Scores times a factor, before or after the product, and the gradients of both."""
    q, k, g = numbers(12, 16), numbers(12, 16, seed=1), numbers(12, 12, seed=2)
    factor = np.float32(0.25)
    entries: list[Entry]
    if is_before:
        small = single(q * factor)
        result = single(small @ k.T)
        entries = [
            ("Tensor.__mul__.0.forward", (q, 0.25), small),
            ("Tensor.__matmul__.0.forward", (small, k), result),
        ]
        inner = g
        first = single(inner @ k)
        last = single(first * factor)
    else:
        product = single(q @ k.T)
        result = single(product * factor)
        entries = [
            ("Tensor.__matmul__.0.forward", (q, k), product),
            ("Tensor.__mul__.0.forward", (product, 0.25), result),
        ]
        inner = single(g * factor)
        first = last = single(inner @ k)
    entries.append(("Torch.softmax.0.forward", (result, -1), softmax(result)))
    entries.append(("Torch.softmax.0.backward", (single(g * 2),), g))
    if not is_before:
        entries.append(("Tensor.__mul__.0.backward", (g,), inner))
    other = single(inner.T @ (single(q * factor) if is_before else q))
    entries.append(("Tensor.__matmul__.0.backward", (inner,), [first, other]))
    if is_before:
        entries.append(("Tensor.__mul__.0.backward", (first,), last))
    last = single(last * np.float32(wrong))
    return [*entries, ("Functional.linear.0.backward", (last,), single(last @ numbers(16, 16)))]


@pytest.mark.parametrize(("wrong", "is_accused"), [(1.0, False), (0.5, True)])
def test_gradients_of_a_product_whose_factor_moved_are_as_innocent_as_the_product(
    tmp_path: Path, wrong: float, is_accused: bool
) -> None:
    found = compared(tmp_path, moved_factor(False), moved_factor(True, wrong))
    assert (found.first is not None) == is_accused
    if found.first is not None:
        assert found.first.pair.left.name == "Functional.linear.0.backward"
    else:
        words = {item.pair.left.name: item.why for item in found.judged}
        assert "computed in other parts" in words["Tensor.__matmul__.0.backward"]


def gradients(factor: float, is_left: bool, hidden: float = 2e-3) -> tuple[list[Entry], ...]:
    """Gradients in half precision; one side multiplies one by a number that no call shows."""
    first, weight = half(numbers(32, 16)), half(numbers(16, 16, seed=1))
    sides: list[list[Entry]] = []
    for which in (0, 1):
        given = half(single(first) * (1 + which * hidden * numbers(32, 16, seed=2)))
        made = half(single(given) @ single(weight))
        read = half(single(made) * np.float32(factor if which != is_left else 1.0))
        sides.append([
            ("Functional.linear.1.backward", (given,), made),
            ("Functional.silu.0.backward", (read,), half(read * np.float16(0.5))),
        ])  # fmt: skip
    return tuple(sides)


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("is_left", [True, False])
@pytest.mark.parametrize(("factor", "is_accused"), [(0.9, True), (1.0, False)])
def test_a_hook_on_a_gradient_shows_in_half_precision(
    tmp_path: Path, factor: float, is_accused: bool, is_left: bool, tensors: bool
) -> None:
    found = compared(tmp_path, *gradients(factor, is_left), tensors)
    assert (found.first is not None) == is_accused
    if found.first is not None:
        assert found.first.pair.left.name == "Functional.silu.0.backward"


def turned(angle: float) -> tuple[list[Entry], ...]:
    """A gradient in half precision whose elements one side mixes, so that no factor shows it."""
    sides = gradients(1.0, False)
    name, (read,), _ = sides[1][1]
    mixed = single(read) * np.cos(angle) + single(read)[::-1] * np.sin(angle)
    mixed = half(mixed * (np.linalg.norm(single(read)) / np.linalg.norm(mixed)))
    sides[1][1] = (name, (mixed,), half(mixed * np.float16(0.5)))
    return sides


@pytest.mark.parametrize(("angle", "is_accused"), [(0.0125, True), (0.0015, False)])
def test_a_result_that_one_side_alone_hands_on_is_held_against_itself(
    tmp_path: Path, angle: float, is_accused: bool
) -> None:
    """Four units of Float16 are 0.2 %; eight times what came before would be 1.6 %."""
    found = compared(tmp_path, *turned(angle))
    assert (found.first is not None) == is_accused
    if found.first is not None:
        assert found.first.entered == (
            "input.0 is what Functional.linear.1.backward gives on the left, and not so on the "
            "right"
        )


def added(*, is_cut: bool) -> list[Entry]:
    """The gradient of a sum, of which one side gives that of one operand alone."""
    x, g = numbers(8, 8), numbers(8, 8, seed=1)
    return [
        ("Tensor.__add__.0.forward", (x, x), x + x),
        ("Tensor.__add__.0.backward", (g,), [None if is_cut else g, g]),
    ]


@pytest.mark.parametrize(("left", "right", "side"), [
    (False, True, "right"), (True, False, "left"), (True, True, ""), (False, False, ""),
])  # fmt: skip
def test_a_gradient_that_one_side_does_not_give_is_named(
    tmp_path: Path, left: bool, right: bool, side: str
) -> None:
    found = compared(tmp_path, added(is_cut=left), added(is_cut=right))
    assert (found.first is not None) == bool(side)
    if found.first is not None:
        assert found.first.pair.left.name == "Tensor.__add__.0.backward"
        assert found.first.why == f"it gives no gradient for its input 0 on the {side}"


def through(*, is_contiguous: bool, is_cut: bool = False) -> list[Entry]:
    """A product with a bias, whose gradients are those of the last function that it is made of."""
    x, weight, bias = numbers(4, 6, 8), numbers(5, 8, seed=1), numbers(5, seed=2)
    g = numbers(4, 6, 5, seed=3)
    given = [g.reshape(24, 5)] if is_contiguous else [g, None if is_cut else g.sum((0, 1))]
    return [
        ("Functional.linear.0.forward", (x, weight, bias), x @ weight.T + bias),
        ("Functional.linear.0.backward", (g,), given),
    ]


@pytest.mark.parametrize(("left", "right"), [(True, False), (False, True)])
def test_gradients_of_another_function_that_the_call_is_made_of_are_not_missing(
    tmp_path: Path, left: bool, right: bool
) -> None:
    sides = through(is_contiguous=left), through(is_contiguous=right)
    found = compared(tmp_path, *sides)
    assert found.first is None
    assert not found.counts.get("attribute differs")


def test_a_gradient_that_is_missing_of_the_same_function_is_named(tmp_path: Path) -> None:
    sides = (through(is_contiguous=False, is_cut=cut) for cut in (False, True))
    found = compared(tmp_path, *sides)
    assert found.first is not None
    assert found.first.why == "it gives no gradient for its input 1 on the right"


def activated(way: str, share: float) -> list[Entry]:
    """A function that no table knows in half precision, a share of whose elements is a unit off."""
    x = half(numbers(64, 64))
    result = half(np.tanh(single(x)))
    flat = result.ravel().view(np.uint16)
    flat[: int(share * flat.size)] += 1
    return [("Functional.mystery.0.forward", (x, way), result)]


@pytest.mark.parametrize(("ways", "share", "verdict"), [
    (("none", "tanh"), 0.1, "introduces error"),
    (("none", "tanh"), 0.001, "attribute differs"),
    (("none", "none"), 0.1, "carries error"),
])  # fmt: skip
def test_half_precision_of_equal_inputs_differs_in_few_elements_unless_arguments_do(
    tmp_path: Path, ways: tuple[str, str], share: float, verdict: str
) -> None:
    found = compared(tmp_path, activated(ways[0], 0), activated(ways[1], share))
    assert found.judged[0].verdict == verdict


def called(scale: float, noise: float) -> list[Entry]:
    """A product in half precision of another kernel, and a multiple of it."""
    x, w = half(numbers(64, 32) / 4), half(numbers(64, 32, seed=1) / 6)
    made = half(single(x) @ single(w).T * (1 + noise * numbers(64, 64, seed=2)))
    result = half(single(made) * np.float32(scale))
    return [
        ("Tensor.__matmul__.0.forward", (x, w), made),
        ("Tensor.__mul__.0.forward", (made, scale), result),
    ]


@pytest.mark.parametrize(("scale", "is_accused"), [(1.0003, True), (1.00003, False)])
def test_other_arguments_show_where_both_are_computed_of_one_input(
    tmp_path: Path, scale: float, is_accused: bool
) -> None:
    """Inputs are further apart than the results: only on one side's inputs does it show."""
    found = compared(tmp_path, called(1.0, 0.0), called(scale, 5e-4))
    assert (found.first is not None) is is_accused
    if found.first is not None:
        assert "both, computed in double precision" in found.first.why


def biased(way: str, noise: float = 0.0) -> list[Entry]:
    """A product in half precision with a bias that is added to it, fused into it, or left out."""
    x, w = half(numbers(64, 32) / 6), half(numbers(48, 32, seed=1) / 6)
    bias = half(numbers(48, seed=3) * 2.9e-4)
    exact = single(x) @ single(w).T * (1 + noise * numbers(64, 48, seed=2))
    if way == "fused":
        made = read = half(exact + single(bias))
    else:
        made = half(exact)
        read = half(single(made) + single(bias)) if way == "added" else made
    entries: list[Entry] = [("Functional.mystery.0.forward", (x, w), made)]
    if way == "added":
        entries.append(("Tensor.__add__.0.forward", (made, bias), read))
    return [*entries, ("Torch.softmax.0.forward", (single(read), -1), softmax(single(read)))]


@pytest.mark.parametrize(("way", "is_accused"), [("left out", True), ("fused", False)])
@pytest.mark.parametrize("is_left", [True, False])
def test_a_small_addition_of_one_side_shows_by_what_the_other_lacks(
    tmp_path: Path, way: str, is_accused: bool, is_left: bool
) -> None:
    """It is less than twice the noise before it; what reads it is in Float32 by then."""
    sides = biased("added"), biased(way, noise=1e-3)
    found = compared(tmp_path, *(sides if is_left else sides[::-1]))
    told = found.first.entered if found.first is not None else ""
    assert ("the other side lacks that change" in told) is is_accused
    assert (found.first is not None) is is_accused
