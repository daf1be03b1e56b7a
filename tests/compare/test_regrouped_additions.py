"""Biases and residuals that the two runs add to a product in another order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from irtool.compare.layouts.alignment import same_operators_of
from irtool.compare.layouts.declared import SideLayout
from irtool.compare.layouts.proposal import proposed
from irtool.compare.runs.comparison import RunComparison
from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import read_unit
from irtool.compare.tensors.model import Columns, Op, TensorRun
from irtool.syntax.run import load_run
from tests.compare.dumps import Entry, leaf
from tests.compare.test_declared_layouts import compared, normed, written

Values = NDArray[Any]
ONE, TWO = SideLayout(), SideLayout(2)
WIDTH, INNER = 8, 16


def values() -> dict[str, Values]:
    draw = np.random.default_rng(5)
    shapes = {"x": (4, 6, WIDTH), "w": (WIDTH, INNER), "h": (4, 6, INNER), "b": (WIDTH,)}
    return {name: draw.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def summed(*terms: Values) -> Values:
    return np.sum([term.astype(np.float64) for term in terms], axis=0).astype(np.float32)


def single(order: str = "bias in the product") -> list[list[Entry]]:
    """A product with its bias, and the residual."""
    v = values()
    h, norm = np.tanh(v["h"]), np.ones(WIDTH, np.float32)
    product = h @ v["w"].T
    entries: list[Entry] = [("Torch.tanh.0.forward", [v["h"]], h)]
    if order == "bias in the product":
        y = product + v["b"]
        entries += [("Functional.linear.0.forward", [h, v["w"], v["b"]], y),
                    ("Tensor.__add__.0.forward", [v["x"], y], v["x"] + y)]  # fmt: skip
    else:
        y = v["x"] + product
        entries += [("Functional.linear.0.forward", [h, v["w"]], product),
                    ("Tensor.__add__.0.forward", [v["x"], product], y),
                    ("Tensor.__add__.1.forward", [y, v["b"]], y + v["b"])]  # fmt: skip
    out = entries[-1][2]
    entries.append(("Functional.layer_norm.0.forward", [out, norm], normed(out, norm)))
    return [entries]


def cut(order: str) -> list[list[Entry]]:
    """The same on two ranks, each with half of what the product adds up."""
    v = values()
    norm = np.ones(WIDTH, np.float32)
    hs, ws = np.split(v["h"], 2, -1), np.split(v["w"], 2, 1)
    parts = [np.tanh(h) @ w.T for h, w in zip(hs, ws, strict=True)]
    given: list[Values | None] = [None, None]
    if order == "on the first rank":
        given = [v["b"], None]
    elif order == "a share on each rank":
        given = [v["b"] / 2, v["b"] / 2]
    elif order == "all of it on each rank":
        given = [v["b"], v["b"]]
    parts = [p if b is None else p + b for p, b in zip(parts, given, strict=True)]
    total = summed(*parts)
    ranks: list[list[Entry]] = []
    for h, w, bias, part in zip(hs, ws, given, parts, strict=True):
        biases = [] if bias is None else [bias]
        entries: list[Entry] = [
            ("Torch.tanh.0.forward", [h], np.tanh(h)),
            ("Functional.linear.0.forward", [np.tanh(h), w, *biases], part),
        ]
        if order != "nothing summed":
            entries.append(("Distributed.all_reduce.0.forward", [part], total))
        start = part if order == "nothing summed" else total
        if order == "after the residual":
            y = v["x"] + start
            entries += [("Tensor.__add__.0.forward", [v["x"], start], y),
                        ("Tensor.__add__.1.forward", [y, v["b"]], y + v["b"])]  # fmt: skip
        elif order in ("before the residual", "nothing summed"):
            y = start + v["b"]
            entries += [("Tensor.__add__.0.forward", [start, v["b"]], y),
                        ("Tensor.__add__.1.forward", [y, v["x"]], y + v["x"])]  # fmt: skip
        else:
            entries.append(("Tensor.__add__.0.forward", [v["x"], start], v["x"] + start))
        out = entries[-1][2]
        entries.append(("Functional.layer_norm.0.forward", [out, norm], normed(out, norm)))
        ranks.append(entries)
    return ranks


def answer(folder: Path, left: list[list[Entry]], right: list[list[Entry]],
           tensors: bool = True) -> RunComparison:  # fmt: skip
    sides = [written(folder / name, ranks, tensors) for name, ranks in (("a", left), ("b", right))]
    return compared(sides[0], sides[1], ONE, TWO if len(right) == 2 else ONE)


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("whole", ["bias in the product", "bias last"])
@pytest.mark.parametrize(
    "order",
    ["after the residual", "before the residual", "on the first rank", "a share on each rank"],
)
def test_another_order_of_the_same_additions_accuses_nobody(
    tmp_path: Path, whole: str, order: str, tensors: bool
) -> None:
    found = answer(tmp_path, single(whole), cut(order), tensors)
    assert found.first is None
    assert not found.is_suspicious


@pytest.mark.parametrize("whole", ["bias in the product", "bias last"])
def test_a_bias_that_every_rank_adds_is_named(tmp_path: Path, whole: str) -> None:
    first = answer(tmp_path, single(whole), cut("all of it on each rank")).first
    assert first is not None
    assert first.pair.right.name == "Functional.linear.0.forward"


def test_terms_that_nobody_added_up_are_named_where_they_are_read(tmp_path: Path) -> None:
    first = answer(tmp_path, single(), cut("nothing summed")).first
    assert first is not None
    assert first.between == "sum"
    assert first.pair.right.name == "Tensor.__add__.0.forward"


def test_a_factor_before_the_bias_is_named(tmp_path: Path) -> None:
    ranks = cut("before the residual")
    for rank in ranks:
        names = [name for name, _, _ in rank]
        place = names.index("Tensor.__add__.0.forward")
        _, (total, bias), _ = rank[place]
        half = total / 2
        y, x = half + bias, rank[place + 1][1][1]
        rank[place:] = [
            ("Tensor.__truediv__.0.forward", [total], half),
            ("Tensor.__add__.0.forward", [half, bias], y),
            ("Tensor.__add__.1.forward", [y, x], y + x),
            ("Functional.layer_norm.0.forward", [y + x, rank[-1][1][1]],
             normed(y + x, rank[-1][1][1])),
        ]  # fmt: skip
    first = answer(tmp_path, single(), ranks).first
    assert first is not None
    names = [op.name for op in (first.pair.right, first.maker_right) if op is not None]
    assert {"Tensor.__truediv__.0.forward", "Tensor.__add__.0.forward"} & set(names)


def calls(*types: str) -> TensorRun:
    counts: dict[str, int] = {}
    ops: list[Op] = []
    for index, type_ in enumerate(types):
        number = counts[type_] = counts.get(type_, -1) + 1
        name = f"Tensor.{type_}.{number}.forward"
        ops.append(Op(index, name, type_, "forward", [], [], call=name))
    return TensorRun("run", "msprobe", "tensors", "pytorch", Columns(), ops)


def test_a_call_more_in_one_layer_does_not_shift_the_layers_behind_it() -> None:
    layer = ("linear", "matmul", "mul", "softmax", "matmul", "linear", "add", "norm")
    extra = ("linear", "mul", "matmul", "mul", "softmax", "matmul", "linear", "add", "add", "norm")
    pairs = same_operators_of(calls(*layer * 4), calls(*layer, *extra, *layer, *layer))
    products = [n for n, type_ in enumerate(layer * 4) if type_ in ("linear", "softmax", "norm")]
    right = (*layer, *extra, *layer, *layer)
    expected = [n for n, type_ in enumerate(right) if type_ in ("linear", "softmax", "norm")]
    assert [pairs[n] for n in products] == expected


def test_additions_behind_the_last_common_sum_are_compared_as_they_stand(tmp_path: Path) -> None:
    """The sum over ranks rounded: no call is seen to hand it on, so the chain ends there."""
    ranks = cut("before the residual")
    for rank in ranks:
        place = [name for name, _, _ in rank].index("Tensor.__add__.0.forward")
        total, bias = rank[place][1]
        rounded = total.astype(np.float16).astype(np.float32)
        y, x = rounded + bias, rank[place + 1][1][1]
        norm = rank[-1][1][1]
        rank[place:] = [
            ("Tensor.__add__.0.forward", [rounded, bias], y),
            ("Tensor.__add__.1.forward", [y, x], y + x),
            ("Functional.layer_norm.0.forward", [y + x, norm], normed(y + x, norm)),
        ]
    v = values()
    h = np.tanh(v["h"])
    product = h @ v["w"].T
    biased = product + v["b"]
    out, norm = biased + v["x"], np.ones(WIDTH, np.float32)
    whole: list[list[Entry]] = [[
        ("Torch.tanh.0.forward", [v["h"]], h),
        ("Functional.linear.0.forward", [h, v["w"]], product),
        ("Tensor.__add__.0.forward", [product, v["b"]], biased),
        ("Tensor.__add__.1.forward", [biased, v["x"]], out),
        ("Functional.layer_norm.0.forward", [out, norm], normed(out, norm)),
    ]]  # fmt: skip
    found = answer(tmp_path, whole, ranks)
    assert found.is_suspicious
    (unit,) = found.units
    assert [name for name, _ in unit.lowered] == ["Tensor.__add__.0.forward"]


def test_a_weight_that_a_function_reads_on_several_ranks_is_proposed(tmp_path: Path) -> None:
    v = values()
    h = np.tanh(v["h"])
    y, name = h @ v["w"].T, "Module.down.Linear.forward.0"
    one = written(
        tmp_path / "one",
        [[("Functional.linear.0.forward", [h, v["w"]], y), (name, [h], y)]],
    )
    path = one / "step0" / "rank0" / "dump.json"
    dump = json.loads(path.read_text())
    dump["data"][name]["parameters"] = {"weight": leaf(v["w"])}
    path.write_text(json.dumps(dump))
    parts = zip(np.split(h, 2, -1), np.split(v["w"], 2, 1), strict=True)
    ranks: list[list[Entry]] = [
        [("Functional.linear.0.forward", [part, w], part @ w.T)] for part, w in parts
    ]
    several = written(tmp_path / "two", ranks)
    runs = [
        {key[0]: read_unit(unit) for key, unit in side_of_run(load_run(str(p)), None).units.items()}
        for p in (one, several)
    ]
    left, right = proposed(runs[0], runs[1])
    assert right.parameters == {"down.weight": 1}
    assert not left.parameters
