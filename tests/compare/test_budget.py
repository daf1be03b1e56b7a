"""How much error an operator may have: worked out by hand for each way of adding up.

``U``: roundoff of Float32, in which sums are kept. An output that is stored in a type of roundoff
``u`` after sums of ``k`` terms may be off by ``m · sqrt(k) · U + 2 · u · m``, ``m`` being how much
larger relative errors leave than they came, and by 1.42 times what its inputs bring.
"""

from __future__ import annotations

import math

import pytest

from irtool.compare.tensors.judging.budget import Account, budget
from irtool.compare.tensors.measuring.measure import Measure
from irtool.compare.tensors.model import Columns, Phase, Shape
from irtool.compare.tensors.pairing.operators import OpPair
from tests.compare.operators import operator

U = 2.0**-24
HALF = 2.0**-11


def allowed(
    type_: str,
    inputs: list[tuple[Shape, float]],
    output: tuple[Shape, float],
    errors: tuple[float, ...] = (),
    *,
    dtype: str = "Float32",
    phase: Phase = "forward",
    call: str = "",
    is_module: bool = False,
    exact: bool = True,
    parts: float = 0.0,
    scalars: float = 0.0,
    before: float = 0.0,
    mean: float = math.nan,
    resolution: float = 0.0,
) -> tuple[float, float]:
    """The budget of an output, both sides being of these shapes and norms."""
    columns = Columns(resolution=resolution)
    op = operator(columns, type_, inputs, output, dtype, phase, call, is_module)
    for place in op.inputs:
        columns.mean[place] = mean
    given = [*errors, *(0.0 for _ in inputs[len(errors) :])]
    measured = [
        ((place, place), Measure(error, norm, norm, not error))
        for place, error, (_, norm) in zip(op.inputs, given, inputs, strict=True)
    ]
    place = op.outputs[0]
    out = Measure(0.0, output[1], output[1], True, exact=exact)
    pair = OpPair(op, op, "order")
    return budget(
        Account(pair, columns, columns, (place, place), out, measured, (), parts, scalars, before)
    )


def rounding(magnified: float, terms: float, unit: float = U, times: float = 1.0) -> float:
    return times * (magnified * math.sqrt(terms) * U + 2 * unit * magnified)


def test_a_product_of_matrices_adds_up_its_inner_dimension() -> None:
    """Random signs: norms 8 and 8 over 64 terms give a result of norm 8."""
    found, floor = allowed("MatMul", [((8, 64), 8.0), ((64, 8), 8.0)], ((8, 8), 8.0))
    assert found == pytest.approx(rounding(1.0, 64))
    assert floor == pytest.approx(3 * math.sqrt(64) * U * 64 * 0.8)


def test_what_cancels_magnifies() -> None:
    """The result is a quarter of what random signs give: errors are four times as large."""
    inputs = [((8, 64), 8.0), ((64, 8), 8.0)]
    found, _ = allowed("MatMul", inputs, ((8, 8), 2.0), (1e-3, 2e-3))
    assert found == pytest.approx(1.42 * 4 * 2e-3 + rounding(4.0, 64))


def test_half_precision_is_allowed_its_roundings_on_both_sides() -> None:
    inputs = [((8, 64), 8.0), ((64, 8), 8.0)]
    found, _ = allowed("MatMul", inputs, ((8, 8), 8.0), dtype="Float16")
    assert found == pytest.approx(rounding(1.0, 64, HALF))


def test_double_precision_adds_up_in_double_precision() -> None:
    inputs = [((8, 64), 8.0), ((64, 8), 8.0)]
    found, _ = allowed("MatMul", inputs, ((8, 8), 8.0), dtype="Float64")
    assert found == pytest.approx(math.sqrt(64) * 2.0**-53 + 2 * 2.0**-53, rel=1e-9, abs=0)


def test_a_gradient_of_a_product_doubles_what_its_inputs_have_together() -> None:
    inputs = [((8, 64), 8.0), ((64, 8), 8.0)]
    found, floor = allowed(
        "linear", inputs, ((8, 64), 8.0), (3e-3, 4e-3), phase="backward", call="linear.0"
    )
    assert found == pytest.approx(1.42 * 5e-3 * 2 + rounding(2.0, 64))
    assert floor == 0.0


def test_a_gradient_of_a_bias_adds_up_rows() -> None:
    """Norm 12 in, norm 4 out, 64 rows of 8."""
    found, floor = allowed(
        "linear", [((64, 8), 12.0)], ((8,), 4.0), (1e-3,), phase="backward", call="linear.0"
    )
    assert found == pytest.approx(1.42 * 3 * 1e-3 + rounding(3.0, 64))
    assert floor == pytest.approx(3 * math.sqrt(64) * U * 12 * math.sqrt(64))


@pytest.mark.parametrize(
    ("dtype", "unit", "output", "is_added"),
    [
        ("Float16", HALF, (8,), True),
        ("BFloat16", 2.0**-8, (8,), True),
        ("Float32", U, (8,), False),
        ("Float16", HALF, (1, 8), False),
    ],
)
def test_a_gradient_of_a_bias_in_half_precision_is_added_up_in_it(
    dtype: str, unit: float, output: Shape, is_added: bool
) -> None:
    """Kernels keep the sum of 64 rows in what they store: 0.4 roundings for its root more."""
    given = [((64, 8), 12.0)]
    found, _ = allowed(
        "linear", given, (output, 4.0), dtype=dtype, phase="backward", call="linear.0"
    )
    if is_added:
        assert found == pytest.approx(rounding(3.0, 64, unit) + 0.4 * math.sqrt(64) * unit)
    elif dtype == "Float32":
        assert found == pytest.approx(rounding(3.0, 64))
    else:
        assert found < 6.1 * unit


def test_a_sum_over_an_axis() -> None:
    found, floor = allowed("ReduceSum", [((100, 4), 10.0)], ((4,), 5.0), (1e-4,))
    assert found == pytest.approx(1.42 * 2 * 1e-4 + rounding(2.0, 100))
    assert floor == pytest.approx(3 * 10 * U * 10 * 10)


def test_a_mean_is_a_sum_that_was_divided() -> None:
    """Norm 10 in; the mean's norm 0.05 is a sum's norm 5."""
    found, _ = allowed("ReduceMean", [((100, 4), 10.0)], ((4,), 0.05), (1e-4,))
    assert found == pytest.approx(1.42 * 2 * 1e-4 + rounding(2.0, 100))


def test_an_addition_carries_distances() -> None:
    """3e-3 of 10 and nothing of 5 make 0.03 on a result of norm 3; errors grow fivefold."""
    inputs = [((4, 4), 10.0), ((4, 4), 5.0)]
    found, floor = allowed("Add", inputs, ((4, 4), 3.0), (3e-3,))
    assert found == pytest.approx(1.42 * 0.03 / 3 + rounding(5.0, 4))
    assert floor == pytest.approx(3 * 2 * U * 15)


def test_terms_of_lerp_are_smaller_than_they_look() -> None:
    inputs = [((4, 4), 10.0), ((4, 4), 5.0)]
    plain = allowed("add", inputs, ((4, 4), 15.0), (3e-3,))[0]
    lerp = allowed("lerp", inputs, ((4, 4), 15.0), (3e-3,))[0]
    assert lerp - plain == pytest.approx(1.42 * 0.03 / 15)


def test_a_norm_takes_the_mean_away() -> None:
    """16 elements of mean 3 and mean square 10: 9 tenths of it are taken away."""
    x = ((4, 4), math.sqrt(160.0))
    found, _ = allowed("LayerNorm", [x], ((4, 4), 4.0), (1e-4,), mean=3.0)
    assert found == pytest.approx(1.42 * math.sqrt(10) * 1e-4 + rounding(math.sqrt(10), 4))
    centred, _ = allowed("LayerNorm", [x], ((4, 4), 4.0), (1e-4,), mean=0.0)
    unknown, _ = allowed("LayerNorm", [x], ((4, 4), 4.0), (1e-4,))
    alike, _ = allowed("LayerNorm", [x], ((4, 4), 4.0), (1e-4,), mean=math.sqrt(10.0))
    assert centred == unknown == alike == pytest.approx(1.42 * 1.5e-4 + rounding(1.5, 4))


def test_gradients_of_a_norm() -> None:
    x = [((4, 16), 8.0)]
    named = {"phase": "backward", "call": "layer_norm.0"}
    of_input, _ = allowed("layer_norm", x, ((4, 16), 8.0), (1e-4,), **named)  # type: ignore[arg-type]
    assert of_input == pytest.approx(1.42 * 4e-4 + rounding(4.0, 16))
    of_scale, floor = allowed("layer_norm", x, ((16,), 2.0), (1e-4,), **named)  # type: ignore[arg-type]
    assert of_scale == pytest.approx(1.42 * 4e-4 + rounding(4.0, 16))
    assert floor == pytest.approx(3 * 4 * U * 8 * 4)


def test_exponentials_magnify_by_the_size_of_their_arguments() -> None:
    """Root mean square 5 over 16 elements."""
    found, _ = allowed("Softmax", [((4, 4), 20.0)], ((4, 4), 2.0), (1e-4,))
    assert found == pytest.approx(1.42 * 10 * 1e-4 + rounding(10.0, 4))
    small, _ = allowed("Softmax", [((4, 4), 2.0)], ((4, 4), 2.0), (1e-4,))
    assert small == pytest.approx(1.42 * 2 * 1e-4 + rounding(2.0, 4))


def test_a_loss_is_as_uncertain_as_its_logits_are_large() -> None:
    """Logits of root mean square 5, a loss of 0.5."""
    found, _ = allowed("cross_entropy", [((4, 4), 20.0)], ((), 0.5), (1e-5,))
    terms = 16
    assert found == pytest.approx(1.42 * 20e-5 + 20 * math.sqrt(terms) * U + 2 * U)


def test_functions_of_one_element_double_and_products_hand_on() -> None:
    one = [((4, 4), 1.0)]
    found, floor = allowed("Tanh", one, ((4, 4), 1.0), (1e-3,))
    assert found == pytest.approx(1.42 * 2e-3 + 2 * 2 * U + 2 * U)
    assert floor == 0.0
    found, _ = allowed("Mul", [*one, *one], ((4, 4), 1.0), (1e-3, 2e-3))
    assert found == pytest.approx(1.42 * 2e-3 + 2 * U + 2 * U)


def test_what_jumps_carries_the_root_of_an_error() -> None:
    x = [((4, 4), 1.0)]
    named = {"phase": "backward", "call": "relu.0"}
    found, _ = allowed("relu", x, ((4, 4), 1.0), (1e-4,), **named)  # type: ignore[arg-type]
    assert found == pytest.approx(1.42 * 1e-2 + 2 * 2 * U + 2 * U)
    forward, _ = allowed("relu", x, ((4, 4), 1.0), (1e-4,))
    assert forward < 1e-3


def test_of_modules_what_their_parts_have_counts_four_times() -> None:
    x = [((4, 4), 1.0)]
    found, _ = allowed("Block", x, ((4, 4), 1.0), (1e-4,), is_module=True, parts=1e-2)
    assert found == pytest.approx(1.42 * 4e-2 + 4 * (3 * math.sqrt(8) * U + 2 * U))
    less, _ = allowed("Block", x, ((4, 4), 1.0), (1e-4,), is_module=True)
    assert less == pytest.approx(1.42 * 3e-4 + 4 * (3 * math.sqrt(8) * U + 2 * U))


def test_computed_arguments_count_as_inputs_do() -> None:
    x = [((4, 4), 1.0)]
    found, _ = allowed("Mul", x, ((4, 4), 1.0), (1e-4,), scalars=1e-2)
    assert found == pytest.approx(1.42 * 1e-2 + 4 * U)


def test_an_error_before_counts_only_where_figures_may_hide_it() -> None:
    x = [((4, 4), 1.0)]
    assert allowed("Mul", x, ((4, 4), 1.0), before=1e-2)[0] == pytest.approx(4 * U)
    hidden, _ = allowed("Mul", x, ((4, 4), 1.0), before=1e-2, exact=False)
    assert hidden == pytest.approx(1.42e-2 + 4 * U)
    nothing, _ = allowed("Mul", [], ((4, 4), 1.0), before=1e-2, exact=False)
    assert nothing == pytest.approx(4 * U)


def test_few_digits_hide_what_they_hide() -> None:
    found, _ = allowed("Mul", [((4, 4), 1.0)], ((4, 4), 1.0), resolution=1e-3)
    assert found == pytest.approx(1e-3 + 4 * U)


def test_whole_numbers_bring_no_error() -> None:
    columns = Columns()
    op = operator(columns, "Mul", [((4, 4), 1.0)], ((4, 4), 1.0))
    columns.dtypes[op.inputs[0]] = "Int32"
    place = op.outputs[0]
    given = [((op.inputs[0], op.inputs[0]), Measure(0.5, 1.0, 1.0, False))]
    pair = OpPair(op, op, "order")
    out = Measure(0.0, 1.0, 1.0, True)
    found, _ = budget(Account(pair, columns, columns, (place, place), out, given, ()))
    assert found == pytest.approx(4 * U)


def test_tensors_of_the_forward_call_count_in_its_gradient() -> None:
    columns = Columns()
    op = operator(columns, "mul", [((4, 4), 1.0)], ((4, 4), 1.0), phase="backward", call="mul.0")
    kept = operator(columns, "mul", [((4, 4), 1.0)], ((4, 4), 1.0)).inputs[0]
    place, given = op.outputs[0], op.inputs[0]
    pair, out = OpPair(op, op, "order"), Measure(0.0, 1.0, 1.0, True)
    inputs = [((given, given), Measure(3e-3, 1.0, 1.0, False))]
    hidden = [((kept, kept), Measure(4e-3, 1.0, 1.0, False))]
    found, _ = budget(Account(pair, columns, columns, (place, place), out, inputs, hidden))
    assert found == pytest.approx(1.42 * 5e-3 + 4 * U)
    unknown = [((kept, kept), Measure(math.nan, 1.0, 1.0, False))]
    found, _ = budget(Account(pair, columns, columns, (place, place), out, inputs, unknown))
    assert found == pytest.approx(1.42 * 3e-3 + 4 * U)
