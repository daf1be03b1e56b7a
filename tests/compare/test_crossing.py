"""Two frameworks, one of which computes in parts: what pairs, who is named, what is not seen."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from irtool.compare.tensors.case import case_of, checksum_agreement
from irtool.compare.tensors.comparison import TensorComparison, compare_tensors
from irtool.compare.tensors.pairing.flow import Flow
from irtool.report.diff.runs.sentences import checksum_text, stretch_text, why_text
from tests.compare.dumps import Entry, msprobe
from tests.compare.test_judging import numbers, single, unit

Array = NDArray[np.float32]
X, W, B = numbers(16, 8), numbers(12, 8, seed=1), numbers(12, seed=2)
V, C = numbers(8, 12, seed=3), numbers(8, seed=4)
ROOT, CUBE = 0.7978845608, 0.044715


class Step:
    """Two products with a gelu between, and the mean square of what comes out; both ways."""

    def __init__(self, cube: float = CUBE, factor: float = 1.0) -> None:
        self.h = single(X @ W.T + B)
        self.third = single(self.h * self.h * self.h)
        self.inner = single(ROOT * (self.h + cube * self.third))
        self.bent = single(np.tanh(self.inner))
        self.half, self.more = single(0.5 * self.h), single(1 + self.bent)
        self.a = single(self.half * self.more)
        self.y = single(self.a @ V.T + C)
        self.loss = np.array((self.y * self.y).mean(), np.float32)
        self.dy = single(2 * self.y / self.y.size)
        self.da = single(self.dy @ V)
        slope = 0.5 * self.more + self.half * (1 - self.bent**2) * ROOT * (
            1 + 3 * cube * self.h * self.h
        )
        self.dh = single(factor * self.da * slope)
        self.dv, self.dc = single(self.dy.T @ self.a), single(self.dy.sum(0))
        self.dw, self.db, self.dx = (
            single(self.dh.T @ X),
            single(self.dh.sum(0)),
            single(self.dh @ W),
        )


def pytorch(folder: Path, tensors: bool = True) -> Path:
    s = Step()
    one = np.array(1, np.float32)
    entries: list[Entry] = [
        ("Functional.linear.0.forward", (X, W, B), s.h),
        ("Functional.gelu.0.forward", (s.h,), s.a),
        ("Functional.linear.1.forward", (s.a, V, C), s.y),
        ("Functional.mse_loss.0.forward", (s.y,), s.loss),
        ("Functional.mse_loss.0.backward", (one,), s.dy),
        ("Functional.linear.1.backward", (s.dy,), (s.da, s.dv, s.dc)),
        ("Functional.gelu.0.backward", (s.da,), s.dh),
        ("Functional.linear.0.backward", (s.dh,), (s.dx, s.dw, s.db)),
    ]
    return msprobe(folder, entries, tensors)


def mindspore(folder: Path, s: Step, tensors: bool = True, stopped: bool = False) -> Path:
    product, square = single(X @ W.T), single(s.y * s.y)
    wt, vt = np.ascontiguousarray(W.T), np.ascontiguousarray(V.T)
    part, even = single(s.da * s.half), np.full(s.y.shape, 1 / s.y.size, np.float32)
    entries: list[Entry] = [
        ("Tensor.transpose.0.forward", (W,), wt),
        ("Functional.matmul.0.forward", (X, wt), product),
        ("Tensor.__add__.0.forward", (product, B), s.h),
        ("Tensor.__mul__.0.forward", (s.h, s.h), single(s.h * s.h)),
        ("Tensor.__mul__.1.forward", (single(s.h * s.h), s.h), s.third),
        ("Tensor.__rmul__.0.forward", (s.third, CUBE), single(CUBE * s.third)),
        ("Tensor.__add__.1.forward", (s.h, single(CUBE * s.third)), single(s.inner / ROOT)),
        ("Tensor.__rmul__.1.forward", (single(s.inner / ROOT), ROOT), s.inner),
        ("Functional.tanh.0.forward", (s.inner,), s.bent),
        ("Tensor.__radd__.0.forward", (s.bent, 1.0), s.more),
        ("Tensor.__rmul__.2.forward", (s.h, 0.5), s.half),
        ("Tensor.__mul__.2.forward", (s.half, s.more), s.a),
        ("Functional.matmul.1.forward", (s.a, vt), single(s.a @ V.T)),
        ("Tensor.__add__.2.forward", (single(s.a @ V.T), C), s.y),
        ("Functional.square.0.forward", (s.y,), square),
        ("Tensor.mean.0.forward", (square,), s.loss),
        ("Tensor.mean.0.backward", (np.array(1, np.float32),), even),
        ("Functional.square.0.backward", (even,), s.dy),
        ("Tensor.__add__.2.backward", (s.dy,), (s.dy, s.dc)),
        ("Functional.matmul.1.backward", (s.dy,), (s.da, np.ascontiguousarray(s.dv.T))),
        ("Tensor.__mul__.2.backward", (s.da,), (single(s.da * s.more), part)),
        ("Functional.tanh.0.backward", (part,), single(part * (1 - s.bent**2))),
    ]
    if not stopped:
        entries += [
            ("Tensor.__add__.0.backward", (s.dh,), (s.dh, s.db)),
            ("Functional.matmul.0.backward", (s.dh,), (s.dx, np.ascontiguousarray(s.dw.T))),
        ]
    return msprobe(folder, entries, tensors, "mindspore")


def compared(folder: Path, tensors: bool = True, **fault: float) -> TensorComparison:
    left, right = pytorch(folder / "pt", tensors), mindspore(folder / "ms", Step(**fault), tensors)
    return compare_tensors(unit(left), unit(right))


@pytest.mark.parametrize("tensors", [True, False])
def test_calls_pair_with_the_parts_that_compute_the_same(tmp_path: Path, tensors: bool) -> None:
    found = compared(tmp_path, tensors)
    assert found.first is None
    assert found.crossing is not None
    assert found.crossing.forward == (4, 4)
    assert found.crossing.backward == (9, 9)
    pairs = {item.pair.left.name: item.pair.right.name for item in found.judged}
    assert pairs["Functional.gelu.0.forward"] == "Tensor.__mul__.2.forward"
    assert pairs["Functional.linear.0.forward"] == "Tensor.__add__.0.forward"


def test_the_order_of_the_sides_makes_no_difference(tmp_path: Path) -> None:
    left, right = mindspore(tmp_path / "ms", Step()), pytorch(tmp_path / "pt")
    found = compare_tensors(unit(left), unit(right))
    assert found.first is None
    assert found.crossing is not None
    assert found.crossing.forward == (4, 4)
    assert not found.crossing.is_left


@pytest.mark.parametrize("tensors", [True, False])
def test_a_fault_among_the_parts_is_put_down_to_the_stretch(tmp_path: Path, tensors: bool) -> None:
    found = compared(tmp_path, tensors, cube=0.2)
    assert found.first is not None
    assert found.first.pair.left.name == "Functional.gelu.0.forward"
    case = case_of(found, found.first)
    assert stretch_text(case.left) == ""
    assert stretch_text(case.right).endswith(
        "from Tensor.__mul__.0.forward to Tensor.__mul__.2.forward"
    )


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("factor", [0.5, 1.1])
def test_a_fault_of_a_gradient_alone_is_named(tmp_path: Path, factor: float, tensors: bool) -> None:
    found = compared(tmp_path, tensors, factor=factor)
    assert found.first is not None
    assert found.first.pair.left.name == "Functional.gelu.0.backward"
    assert all(item.verdict != "introduces error" for item in found.judged
               if item.pair.left.phase == "forward")  # fmt: skip


def test_gradients_that_one_side_does_not_have_are_said_to_be_unseen(tmp_path: Path) -> None:
    left, right = pytorch(tmp_path / "pt"), mindspore(tmp_path / "ms", Step(), stopped=True)
    found = compare_tensors(unit(left), unit(right))
    assert found.first is None
    assert found.crossing is not None
    assert [op.name for op in found.crossing.unseen_gradients] == ["Functional.linear.0.forward"]


def test_views_and_other_layouts_of_a_tensor_are_one_value(tmp_path: Path) -> None:
    flow = Flow(unit(mindspore(tmp_path, Step())))
    assert "Tensor.transpose.0.forward" not in [op.name for op in flow.calls]
    product = next(op for op in flow.calls if op.name == "Functional.matmul.0.forward")
    weights = [value for value in flow.inputs(product) if value.size == W.size]
    assert [value.maker for value in weights] == [None]


def test_a_permutation_is_not_put_down_to_who_reads_it(tmp_path: Path) -> None:
    h = single(X @ W.T + B)
    turned = single(h[::-1])
    sides = [
        msprobe(
            tmp_path / name,
            [
                ("Functional.linear.0.forward", (X, W, B), h),
                ("Functional.linear.1.forward", (given, V, C), single(given @ V.T + C)),
            ],
            True,
        )
        for name, given in (("a", h), ("b", turned))
    ]
    found = compare_tensors(*map(unit, sides))
    assert found.first is not None
    assert found.first.is_permuted
    assert found.first.since is not None
    assert found.first.since.name == "Functional.linear.0.forward"
    assert "in another order" in why_text(found.first)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (None, "3 of 3 pairs of tensors are equal"),
        (
            "output",
            "result that differs is that of Tensor.relu.0.forward, whose inputs are equal",
        ),
        ("both", "Tensor.relu.0.forward, whose inputs differ already"),
    ],
)
def test_checksums_tell_where_they_first_differ(
    tmp_path: Path, other: str | None, told: str
) -> None:
    def side(name: str, changed: str | None) -> Path:
        folder = msprobe(tmp_path / name, [("Tensor.relu.0.forward", (X, W), np.abs(X))])
        file = next(folder.rglob("dump.json"))
        document = json.loads(file.read_text())
        entry = document["data"]["Tensor.relu.0.forward"]
        for leaf in (*entry["input_args"], *entry["output"]):
            for figure in ("Max", "Min", "Mean", "Norm"):
                del leaf[figure]
            leaf["md5"] = "0011aabb"
        for place in {"output": ("output",), "both": ("input_args", "output")}.get(
            changed or "", ()
        ):
            entry[place][0]["md5"] = "00000000"
        file.write_text(json.dumps(document))
        return folder

    found = compare_tensors(unit(side("a", None)), unit(side("b", other)))
    agreement = checksum_agreement(found)
    assert agreement is not None
    assert told in checksum_text(agreement)
