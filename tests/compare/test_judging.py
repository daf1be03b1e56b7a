"""Who is accused, and above all who is not: what numbers of healthy runs look like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from irtool.compare.runs.comparison import compare_runs
from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import Settings
from irtool.compare.tensors.comparison import TensorComparison, compare_tensors
from irtool.compare.tensors.model import TensorRun
from irtool.syntax.run import load_run
from tests.compare.dumps import Entry, msprobe

Array = NDArray[np.float32]


def unit(path: Path) -> TensorRun:
    (only,) = side_of_run(load_run(str(path)), None).units.values()
    return only if isinstance(only, TensorRun) else only.read()


def compared(
    folder: Path, left: list[Entry], right: list[Entry], tensors: bool = True
) -> TensorComparison:
    a, b = (
        unit(msprobe(folder / name, entries, tensors))
        for name, entries in (("a", left), ("b", right))
    )
    return compare_tensors(a, b)


def single(values: Any) -> Array:
    return np.ascontiguousarray(values, np.float32)


def numbers(*shape: int, seed: int = 0) -> Array:
    return single(np.random.default_rng(seed).standard_normal(shape))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return single(e / e.sum(-1, keepdims=True))


def attention(offset: int, value: float = -np.inf) -> list[Entry]:
    """Scores, a mask, their softmax."""
    scores = numbers(12, 12)
    mask = np.triu(np.ones((12, 12), bool), offset)
    masked = np.where(mask, np.float32(value), scores)
    return [
        ("Tensor.masked_fill.0.forward", (scores, mask, value), masked),
        ("Torch.softmax.0.forward", (masked, -1), softmax(masked)),
    ]


@pytest.mark.filterwarnings("error")
def test_infinity_that_both_sides_mask_with_is_no_fault(tmp_path: Path) -> None:
    found = compared(tmp_path, attention(1), attention(1))
    assert found.is_equal
    assert not found.origins


def test_another_mask_is_named_though_it_is_infinite(tmp_path: Path) -> None:
    found = compared(tmp_path, attention(1), attention(2))
    assert found.first is not None
    assert found.first.pair.left.type == "masked_fill"


def test_masks_of_one_size_at_other_places_are_told_apart(tmp_path: Path) -> None:
    """As many infinite elements on both sides, and every finite one the same."""
    masked = [np.zeros((8, 8), np.float32) for _ in range(2)]
    masked[0][:, 0] = masked[1][:, 1] = -np.inf
    calls = [[("Tensor.add.0.forward", (numbers(8, 8),), each)] for each in masked]
    found = compared(tmp_path, calls[0], calls[1])
    assert found.first is not None


def test_a_gradient_that_jumps_may_differ_where_the_input_is_near_the_jump(tmp_path: Path) -> None:
    """Half precision tips a few elements of a rectifier over; each changes its gradient wholly."""
    x, gradient = numbers(100, 100), numbers(100, 100, seed=1)
    near = (x + 4e-4 * numbers(100, 100, seed=2)).astype(np.float16)
    calls: list[list[Entry]] = [
        [
            ("Functional.linear.0.forward", (x,), z),
            ("Functional.relu.0.forward", (z,), np.maximum(z, 0)),
            ("Functional.relu.0.backward", (gradient,), single(gradient * (z > 0))),
        ]
        for z in (x, near)
    ]
    found = compared(tmp_path, *calls)
    (jumping,) = (item for item in found.judged if item.pair.left.phase == "backward")
    assert jumping.error_out > 3 * jumping.error_in
    assert found.first is None


@pytest.mark.parametrize("wide", [8, 12])
def test_a_weight_that_matmul_takes_the_other_way_round_is_the_same(
    tmp_path: Path, wide: int
) -> None:
    x, w = numbers(16, 8), numbers(wide, 8, seed=1)
    y = single(x @ w.T)
    found = compared(
        tmp_path,
        [("Functional.linear.0.forward", (x, w), y)],
        [("Torch.matmul.0.forward", (x, single(w.T)), y)],
    )
    assert found.first is None


def in_half(x: Array, w: Array, at_once: int) -> Array:
    """A product that is rounded to Float16 after so many terms."""
    total = np.zeros((x.shape[0], w.shape[1]), np.float16)
    for k in range(0, x.shape[1], at_once):
        total = (total + (x[:, k : k + at_once] @ w[k : k + at_once]).astype(np.float16)).astype(
            np.float16
        )
    return single(total)


@pytest.mark.parametrize(("at_once", "is_accused"), [(1, True), (4, True), (128, False)])
def test_a_sum_that_is_rounded_on_its_way_is_more_than_lower_precision(
    tmp_path: Path, at_once: int, is_accused: bool
) -> None:
    x, w = numbers(64, 128), numbers(128, 64, seed=1)
    exact, rounded = single(x @ w), in_half(x, w, at_once)
    found = compared(
        tmp_path,
        [("Torch.matmul.0.forward", (x, w), exact), ("Torch.tanh.0.forward", (exact,), exact)],
        [("Torch.tanh.0.forward", (rounded,), rounded)],
    )
    assert (found.first is not None) == is_accused
    if found.first is not None:
        assert found.first.maker_left is not None
        assert found.first.maker_left.type == "matmul"


def test_a_loss_that_is_scaled_is_told_and_nobody_is_accused(tmp_path: Path) -> None:
    x, gradients = numbers(16, 16), [numbers(16, 16, seed=n) for n in range(3)]

    def calls(scale: float) -> list[Entry]:
        made: list[Entry] = [("Functional.linear.0.forward", (x,), x)]
        made += [
            (f"Functional.gelu.{n}.backward", (single(scale * g),), single(scale * g * 0.5))
            for n, g in enumerate(gradients)
        ]
        return made

    for name, scale in (("a", 1.0), ("b", 1024.0)):
        msprobe(tmp_path / name, calls(scale), True)
    sides = [side_of_run(load_run(str(tmp_path / name)), None) for name in ("a", "b")]
    found = compare_runs(sides[0], sides[1], Settings())
    assert found.first is None
    (row,) = (row for row in found.told_differently)
    assert (row.name, row.right) == ("loss scale (right over left)", "1024")


def test_a_factor_that_no_loss_scale_has_is_a_fault(tmp_path: Path) -> None:
    g = numbers(16, 16)
    calls = [[("Functional.gelu.0.backward", (single(f * g),), single(f * g))] for f in (1.0, 0.5)]
    assert compared(tmp_path, calls[0], calls[1]).first is not None


def test_a_reduction_over_another_axis_is_named_by_its_result(tmp_path: Path) -> None:
    x = numbers(6, 5, 7)
    calls = [
        [("Tensor.mean.0.forward", (x, axis), single(x.mean(axis, keepdims=True)))]
        for axis in (-1, 1)
    ]
    found = compared(tmp_path, calls[0], calls[1])
    assert found.first is not None
    assert "result is [6, 5, 1]" in found.first.why


@pytest.mark.parametrize(("probability", "is_accused"), [(0.5, False), (0.1, True)])
def test_other_random_numbers_are_nobodys_fault_other_probabilities_are(
    tmp_path: Path, probability: float, is_accused: bool
) -> None:
    x = numbers(50, 50)
    masks = [np.random.default_rng(n).random((50, 50)) for n in range(2)]
    calls = [
        [("Functional.dropout.0.forward", (x, p), single(x * (mask > p) / (1 - p)))]
        for mask, p in zip(masks, (0.5, probability), strict=True)
    ]
    assert (compared(tmp_path, calls[0], calls[1]).first is not None) == is_accused


def test_a_few_whole_numbers_may_be_tipped_over_by_rounding(tmp_path: Path) -> None:
    """The nearest expert, token or bucket of numbers that differ by half precision."""
    x = numbers(400, 4)
    values = numbers(4, 8, seed=2)
    calls: list[list[Entry]] = []
    for z in (x, x.astype(np.float16)):
        chosen = z.astype(np.float32).argmax(1)
        if z.dtype == np.float16:
            chosen[::100] = (chosen[::100] + 1) % 4
        calls.append(
            [
                ("Functional.linear.0.forward", (x,), z),
                ("Tensor.__getitem__.0.forward", (values, chosen), values[chosen]),
            ]
        )
    found = compared(tmp_path, *calls)
    assert found.judged[-1].error_out != 0.0
    assert found.first is None


def test_labels_that_differ_are_the_fault(tmp_path: Path) -> None:
    x = numbers(40, 6)
    labels = np.arange(40) % 6
    calls = [
        [("Functional.cross_entropy.0.forward", (x, each), single([1.0 + n]))]
        for n, each in enumerate((labels, labels[::-1].copy()))
    ]
    found = compared(tmp_path, calls[0], calls[1])
    assert found.first is not None
    assert found.first.entered == "input.1 is not the same on both sides"


def test_half_of_a_product_is_no_partner_of_the_whole(tmp_path: Path) -> None:
    x, w = numbers(8, 16), numbers(4, 16, seed=1)
    y = single(x @ w.T)
    halves = [(single(x[:, k : k + 8]), single(w[:, k : k + 8])) for k in (0, 8)]
    parts = [single(a @ b.T) for a, b in halves]
    split: list[Entry] = [
        (f"Functional.linear.{n}.forward", operands, part)
        for n, (operands, part) in enumerate(zip(halves, parts, strict=True))
    ]
    total = single(parts[0] + parts[1])
    split += [
        ("Tensor.__add__.0.forward", (parts[0], parts[1]), total),
        ("Functional.relu.0.forward", (total,), single(np.maximum(total, 0))),
    ]
    whole: list[Entry] = [
        ("Functional.linear.0.forward", (x, w), y),
        ("Functional.relu.0.forward", (y,), single(np.maximum(y, 0))),
    ]
    found = compared(tmp_path, whole, split)
    assert found.first is None
    assert [op.type for op in found.only_left] == ["linear"]


def test_the_calls_of_an_optimizer_tell_what_it_was_told(tmp_path: Path) -> None:
    one, g = numbers(4, 4), numbers(4, 4, seed=1)
    calls: list[Entry] = [
        ("Functional.relu.0.backward", (g,), g),
        ("Tensor.__iadd__.0.forward", (single(0.0), 1), single(1.0)),
        ("Tensor.mul_.0.forward", (one, 0.9999), one),
        ("Tensor.lerp_.0.forward", (one, g, 0.1), one),
        ("Tensor.mul_.1.forward", (one, 0.95), one),
        ("Tensor.addcmul_.0.forward", (one, g, g), one),
        ("Tensor.add_.0.forward", (one, 1e-8), one),
        ("Tensor.addcdiv_.0.forward", (one, g, g, -0.01), one),
    ]
    from irtool.compare.runs.hyperparameters import Evidence, hyperparameters

    told = Evidence(tensors=unit(msprobe(tmp_path, calls)))
    values = {row.name: row.left for row in hyperparameters(told, told)}
    assert (
        values.items()
        >= {
            "learning rate": "0.001",
            "weight decay": "0.1",
            "beta1": "0.9",
            "beta2": "0.95",
            "optimizer epsilon": "1e-08",
        }.items()
    )


@pytest.mark.parametrize(("step", "is_accused"), [(0, True), (7, False)])
def test_weights_that_were_trained_may_differ(tmp_path: Path, step: int, is_accused: bool) -> None:
    x, w = numbers(16, 8), numbers(8, 8, seed=1)
    moved = single(w * (1 + 1e-3 * numbers(8, 8, seed=2)))
    for name, each in (("a", w), ("b", moved)):
        call: Entry = ("Functional.linear.0.forward", (x, each), single(x @ each.T))
        folder = msprobe(tmp_path / name, [call], True)
        (folder / "step0").rename(folder / f"step{step}")
    sides = [side_of_run(load_run(str(tmp_path / name)), None) for name in ("a", "b")]
    found = compare_runs(sides[0], sides[1], Settings())
    assert (found.first is not None) == is_accused


def modules(between: Array | None = None, within: float = 0.0) -> list[Entry]:
    """A layer, what happens to its result before the next one, and a module of the network's."""
    x, w = numbers(16, 8), numbers(8, 8, seed=1)
    y = single(x @ w.T)
    read = y if between is None else between
    last = single(np.tanh(read) * (1 + within * numbers(16, 8, seed=3)))
    return [
        ("Module.a.Linear.forward.0", (x,), y),
        ("Module.b.Mixture.forward.0", (read,), last),
    ]


def test_half_precision_between_modules_cannot_be_told_from_a_fault(tmp_path: Path) -> None:
    rounded = single(modules()[0][2] * (1 + 2e-4 * numbers(16, 8, seed=5)))
    found = compared(tmp_path, modules(), modules(rounded), False)
    assert found.first is None
    assert found.judged[1].verdict == "not comparable"
    assert "level L0" in found.judged[1].untold


def test_half_precision_within_a_module_cannot_be_told_from_a_fault(tmp_path: Path) -> None:
    found = compared(tmp_path, modules(), modules(within=2e-4), False)
    assert found.first is None
    assert "within the module" in found.judged[1].untold


@pytest.mark.parametrize(("factor", "is_accused"), [(1.0, False), (20.0, True)])
def test_rectifiers_between_modules_let_gradients_jump(
    tmp_path: Path, factor: float, is_accused: bool
) -> None:
    """A layer off by e tips the mask behind it over at a share e of the elements."""
    x, w = numbers(64, 32), numbers(32, 32, seed=1)
    gradient = numbers(64, 32, seed=2)

    def network(error: float, jump: float) -> list[Entry]:
        y = single(x @ w.T * (1 + error * numbers(64, 32, seed=3)))
        entering = single(gradient * (1 + jump * numbers(64, 32, seed=4)))
        return [
            ("Module.a.Linear.forward.0", (x,), y),
            ("Module.a.Linear.backward.0", (entering,), single(entering @ w)),
        ]

    jump = factor * float(np.sqrt(1e-3))
    found = compared(tmp_path, network(0, 0), network(1e-3, jump))
    assert found.judged[1].verdict == ("introduces error" if is_accused else "carries error")


def test_more_than_half_precision_between_modules_is_a_fault(tmp_path: Path) -> None:
    found = compared(tmp_path, modules(), modules(single(modules()[0][2] * 1.02)), False)
    assert found.first is not None
    assert found.first.pair.left.name == "Module.b.Mixture.forward.0"


@pytest.mark.parametrize("tensors", [False, True])
def test_nan_that_appears_between_modules_is_seen(tmp_path: Path, tensors: bool) -> None:
    broken = modules()[0][2].copy()
    broken[0, 0] = np.nan
    found = compared(tmp_path, modules(), modules(broken), tensors)
    assert found.first is not None
    assert found.first.pair.left.name == "Module.b.Mixture.forward.0"
    assert "NaN" in found.first.entered


@pytest.mark.parametrize("tensors", [False, True])
def test_nan_is_traced_to_the_added_call_that_makes_it(tmp_path: Path, tensors: bool) -> None:
    x = numbers(16, 8)
    with np.errstate(invalid="ignore"):
        logarithm = single(np.log(x))
    chosen = single(np.where(x > 1, x, logarithm))
    plain: list[Entry] = [
        ("Functional.relu.0.forward", (x,), single(np.maximum(x, 0))),
        ("Tensor.__add__.0.forward", (x, 1.0), single(x + 1)),
    ]
    broken: list[Entry] = [
        plain[0],
        ("Torch.log.0.forward", (x,), logarithm),
        ("Torch.where.0.forward", (x > 1, x, logarithm), chosen),
        ("Tensor.__add__.0.forward", (chosen, 1.0), single(chosen + 1)),
    ]
    found = compared(tmp_path, plain, broken, tensors)
    assert found.first is not None
    assert found.first.maker_right is not None
    assert found.first.maker_right.name == "Torch.log.0.forward"


@pytest.mark.parametrize("type_", [np.float16, np.float32])
def test_figures_show_values_that_have_been_rounded_on_their_way(
    tmp_path: Path, type_: type[np.generic]
) -> None:
    x = numbers(16, 8)
    read = single(x.astype(np.float16).astype(type_) * (1 if type_ is np.float16 else 1.001))
    calls: list[list[Entry]] = [
        [
            ("Functional.relu.0.forward", (x,), single(np.maximum(x, 0))),
            ("Functional.silu.0.forward", (each,), single(each / (1 + np.exp(-each)))),
        ]
        for each in (x, read)
    ]
    found = compared(tmp_path, calls[0], calls[1], False)
    assert (found.first is None) == (type_ is np.float16)


@pytest.mark.parametrize(("norm", "is_fault"), [(1e-9, False), (1e-1, True)])
def test_a_gradient_of_a_bias_that_cancels_is_rounding(
    tmp_path: Path, norm: float, is_fault: bool
) -> None:
    draw = np.random.default_rng(11)
    x, w, g = (single(draw.normal(size=size)) for size in ((32, 8), (8, 8), (32, 8)))
    forward: Entry = ("Functional.linear.0.forward", [x, w, single(np.zeros(8))], x @ w.T)
    sides: list[list[Entry]] = []
    for _ in range(2):
        rest = draw.normal(size=8)
        bias = single(rest / np.linalg.norm(rest) * norm)
        made = [g @ w, g.T @ x, bias]
        sides.append([forward, ("Functional.linear.0.backward", [g], made)])
    judged = compared(tmp_path, *sides).judged[-1]
    assert judged.pair.left.phase == "backward"
    assert (judged.verdict == "introduces error") == is_fault


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize(("least", "is_accused"), [(0.8, False), (1.2, True)])
def test_a_gradient_of_a_bias_whose_terms_cancel_is_rounding_residue(
    tmp_path: Path, least: float, is_accused: bool, tensors: bool
) -> None:
    """200 terms an element leave 2**-11 of the norm of what is added up, times the root of 100."""
    given = numbers(200, 4).astype(np.float16)
    weights = numbers(4, 8).astype(np.float16)
    floor = 2.0**-11 * 10 * float(np.linalg.norm(given.astype(np.float64)))
    sides = [single([1, -1, 1, 1]), single([-1, 1, 1, -1])]
    calls: list[list[Entry]] = [
        [
            ("Functional.linear.0.forward", (given, weights), (given @ weights)),
            (
                "Functional.linear.0.backward",
                (given,),
                [(given @ weights), (side * least * floor / 2).astype(np.float16)],
            ),
        ]
        for side in sides
    ]
    found = compared(tmp_path, calls[0], calls[1], tensors)
    said = {item.pair.left.name: item.verdict for item in found.judged}
    accused = said["Functional.linear.0.backward"] == "introduces error"
    assert accused == (is_accused and tensors)
