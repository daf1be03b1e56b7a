"""What to try next at the first wrong operator, and how far its elements are apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.compare.tensors.case import BINS, advice, histogram
from irtool.compare.tensors.judging.attributes import AttributeChange
from irtool.compare.tensors.judging.verdict import Judged
from irtool.compare.tensors.model import Op, Phase
from irtool.compare.tensors.pairing.operators import OpPair
from irtool.compare.tensors.pairing.slots import Slots

# -- units in the last place -----------------------------------------------------------------------


def counts(left: list[float], right: list[float], dtype: str = "Float32") -> dict[str, int]:
    kind = np.float16 if dtype == "Float16" else np.float32
    found, _ = histogram(np.array(left, kind), np.array(right, kind), dtype)
    assert sum(found) == len(left)
    return {name: count for name, count in zip(BINS, found, strict=True) if count}


def apart(value: float, units: int, dtype: str) -> float:
    """The number so many places above one, among those that a type has."""
    if dtype == "BFloat16":
        bits = np.array([value], np.float32).view(np.int32) + (units << 16)
        return float(bits.view(np.float32)[0])
    kind = {"Float16": (np.float16, np.int16), "Float32": (np.float32, np.int32)}[dtype]
    bits = np.array([value], kind[0]).view(kind[1]) + kind[1](units)
    return float(bits.view(kind[0])[0])


@pytest.mark.parametrize("dtype", ["Float16", "BFloat16", "Float32"])
@pytest.mark.parametrize("value", [1.0, -1.0, 0.125])
@pytest.mark.parametrize(
    ("units", "name"),
    [(0, "0"), (1, "1"), (2, "2 to 4"), (4, "2 to 4"), (5, "5 to 16"), (16, "5 to 16"),
     (17, "17 to 256"), (256, "17 to 256"), (257, "more")],
)  # fmt: skip
def test_elements_are_counted_by_the_places_between_them(
    dtype: str, value: float, units: int, name: str
) -> None:
    other = apart(value, units, dtype)
    assert counts([value], [other], dtype) == {name: 1}
    assert counts([other], [value], dtype) == {name: 1}


def test_signs_count_apart_unless_one_is_zero() -> None:
    assert counts([1.0, -2.0, 0.0], [-1.0, 2.0, -0.0]) == {"sign flips": 2, "0": 1}
    least = float(np.nextafter(np.float32(0), np.float32(1)))
    assert counts([0.0, 0.0], [least, -least]) == {"1": 2}


def test_what_is_not_finite_on_either_side_is_counted_only() -> None:
    nan, inf = float("nan"), float("inf")
    assert counts([nan, 1.0, inf, 1.0], [1.0, nan, inf, 1.0]) == {"NaN or infinite": 3, "0": 1}


@given(st.lists(st.floats(-8, 8, width=32), min_size=1, max_size=20), st.floats(-1, 1, width=32))
def test_the_bias_is_the_mean_difference_over_its_size(values: list[float], more: float) -> None:
    left = np.array(values, np.float32)
    right = left + np.float32(more)
    deltas = right.astype(np.float64) - left.astype(np.float64)
    spread = np.sqrt(np.mean(deltas**2))
    _, bias = histogram(left, right, "Float32")
    assert bias == pytest.approx(deltas.mean() / spread if spread else 0.0, abs=1e-9)


# -- advice ----------------------------------------------------------------------------------------


def judged(type_: str = "MatMul", phase: Phase = "forward", **found: object) -> Judged:
    op = Op(0, type_, type_, phase, [], [])
    return Judged(OpPair(op, op, "order"), Slots((), ()), **found)  # type: ignore[arg-type]


SOME = Op(1, "Cast", "Cast", "forward", [], [])


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (judged(parameter=True), "same checkpoint"),
        (judged(attributes=(AttributeChange("epsilon", "1e-5", "1e-6"),)), "the same arguments"),
        (judged(maker_left=SOME), "only one side has"),
        (judged(maker_right=SOME), "only one side has"),
        (judged(is_permuted=True), "the views before it"),
        (judged(entered="input 0"), "between this one and the one before"),
        (judged(broken="left"), "division by zero"),
        (judged("MatMul", "backward", error_in=0.0), "compare the loss"),
        (judged("MatMul", "backward", error_in=1e-3), "run this product in Float32"),
        (judged("MatMul"), "run this product in Float32"),
        (judged("LayerNorm"), "compare epsilon"),
        (judged("Softmax"), "compare the axis"),
        (judged("AllReduce"), "compare the group"),
        (judged("GeLU"), "exact or approximate"),
        (judged("Adam", "optimizer"), "learning rate"),
        (judged("FlashAttentionScore"), "replace the fused kernel"),
        (judged("CrossEntropyLoss"), "compare reduction"),
        (judged("Unheard"), "run this operator alone"),
    ],
)
def test_what_to_try_next(found: Judged, words: str) -> None:
    (text,) = advice(found)
    assert words in text


def test_the_side_that_is_off_is_named() -> None:
    assert advice(judged("MatMul", wrong="left"))[0].startswith("the left side is the one that")


def test_what_is_seen_goes_before_what_the_family_suggests() -> None:
    """A parameter first, then arguments, then who made it, then what came in."""
    change = (AttributeChange("epsilon", "1e-5", "1e-6"),)
    everything = {"attributes": change, "maker_left": SOME, "entered": "input 0", "broken": "left"}
    assert "checkpoint" in advice(judged(parameter=True, **everything))[0]
    assert "arguments" in advice(judged(**everything))[0]
    del everything["attributes"]
    assert "only one side has" in advice(judged(**everything))[0]
    del everything["maker_left"]
    assert "between this one" in advice(judged(**everything))[0]
    del everything["entered"]
    assert "overflow" in advice(judged(**everything))[0]
