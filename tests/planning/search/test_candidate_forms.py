"""Forms: what they say of all strategies is what the rules say of each."""

from __future__ import annotations

from math import prod

import pytest

import irtool.planning.search.candidates as module
from irtool.cluster.machine import default_machine
from irtool.operators.call import Operand, OperatorCall, constant, tensor
from irtool.operators.judgement import Context, Judgement
from irtool.planning.cost.costs import compute_seconds, operator_communications, seconds_of
from irtool.planning.search.alike import alike
from irtool.planning.search.candidates import Candidates, candidates_of

DEVICES = Context(tuple(range(32)), 32, soc="Ascend910B")


def call(
    op: str, inputs: tuple[Operand, ...], output: Operand, **attributes: object
) -> OperatorCall:
    return OperatorCall(op, inputs, (output,), attributes)


CALLS = {
    "product": call("MatMul", (tensor(64, 32), tensor(48, 32)), tensor(64, 48),
                    transpose_a=False, transpose_b=True),
    "batched product": call("BatchMatMul", (tensor(4, 8, 64, 32), tensor(4, 8, 32, 64)),
                            tensor(4, 8, 64, 64), transpose_a=False, transpose_b=False),
    "broadcast": call("Add", (tensor(8, 1, 64), tensor(16, 1)), tensor(8, 16, 64)),
    "softmax": call("Softmax", (tensor(8, 16, 64),), tensor(8, 16, 64), axis=(-1,)),
    "mean": call("ReduceMean", (tensor(32, 64), constant((0,))), tensor(64), keep_dims=False),
    "transpose": call("Transpose", (tensor(4, 8, 16), constant((0, 2, 1))), tensor(4, 16, 8)),
    "table": call("Gather", (tensor(64, 32), tensor(8, 16), constant(0), constant(0)),
                  tensor(8, 16, 32)),
}  # fmt: skip


def no_form(*_: object) -> None:
    """Stands for ``form_of`` and ``form_from``."""


def one_by_one(of: OperatorCall, monkeypatch: pytest.MonkeyPatch) -> Candidates:
    with monkeypatch.context() as patch:
        patch.setattr(module, "form_of", no_form)
        patch.setattr(module, "form_from", no_form)
        return candidates_of(of, DEVICES)


@pytest.mark.parametrize("name", CALLS)
def test_a_form_allows_what_the_rule_allows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_form = candidates_of(CALLS[name], DEVICES)
    assert by_form.families
    asked = one_by_one(CALLS[name], monkeypatch)
    assert not asked.families
    assert {(item.strategy, item.out_strategy) for item in by_form.items} == {
        (item.strategy, item.out_strategy) for item in asked.items
    }


@pytest.mark.parametrize("name", CALLS)
def test_a_form_says_what_the_rule_says(name: str) -> None:
    found = candidates_of(CALLS[name], DEVICES)
    at = 0
    for family in found.families:
        items = found.items[at : at + len(family.values)]
        values = [tuple(row) for row in family.values.tolist()]
        assert family.form.agrees(values, [item.judgement for item in items])
        at += len(family.values)


@pytest.mark.parametrize("name", CALLS)
def test_strategies_that_are_said_to_cost_alike_do(name: str) -> None:
    def cost(judgement: Judgement) -> tuple[float, float, list[int]]:
        of, machine = CALLS[name], default_machine()
        moved = operator_communications(of, judgement, machine, gradient=True)
        slices = [prod(shape) for shape in judgement.output_slices]
        return compute_seconds(of, judgement, machine, gradient=True), seconds_of(moved), slices

    found = candidates_of(CALLS[name], DEVICES)
    for family in found.families:
        first, which = alike(family.form, family.values)
        costs = [cost(sketch) for sketch in family.form.sketches(family.values)]
        assert costs == [costs[first[at]] for at in which]
        assert len(first) < len(costs) or name in ("product", "batched product", "mean")


def test_an_operator_whose_axes_are_not_alike_has_no_form() -> None:
    halo = call(
        "Conv2D", (tensor(8, 8, 32, 32), tensor(16, 8, 3, 3)), tensor(8, 16, 32, 32),
        pad_mode="same", kernel_size=(3, 3), stride=(1, 1, 1, 1), dilation=(1, 1, 1, 1), group=1,
        out_channel=16, mode=1, format="NCHW", pad=(0, 0, 0, 0), pad_list=(1, 1, 1, 1),
    )  # fmt: skip
    found = candidates_of(halo, DEVICES)
    assert all(item.judgement.verdict == "legal" for item in found.items)
