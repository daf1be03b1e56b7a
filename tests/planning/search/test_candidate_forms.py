"""Forms: what they say of all strategies is what the rules say of each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import pytest

import irtool.planning.search.candidates as module
from irtool.cluster.machine import default_machine
from irtool.operators.call import Operand, OperatorCall, Strategy, constant, tensor
from irtool.operators.judgement import Context, Judgement
from irtool.planning.cost.costs import (
    compute_seconds,
    operations_of,
    operator_communications,
    seconds_of,
)
from irtool.planning.cost.layout_bits import layout_from
from irtool.planning.search.alike import alike
from irtool.planning.search.candidates import Candidates, Family, candidates_of
from irtool.sharding.judge import judge

DEVICES = Context(tuple(range(32)), 32, soc="Ascend910B")


WITHOUT_FORM = {"expert", "all or nothing", "stacked from behind"}
"""Calls all of whose axes are left to a function."""

LOOKED_AT_IN_PART = {"all or nothing", "expert", "sums of squares"}
"""Calls of which MindSpore does not look at all entries: inputs that belong together may differ."""


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
    "batched table": call("Gather", (tensor(4, 64, 8), tensor(4, 16), constant(1), constant(1)),
                          tensor(4, 16, 8)),
    "image": call(
        "Conv2D", (tensor(8, 8, 32, 32), tensor(16, 8, 3, 3)), tensor(8, 16, 32, 32),
        pad_mode=1, kernel_size=(3, 3), stride=(1, 1, 1, 1), dilation=(1, 1, 1, 1), group=1,
        out_channel=16, mode=1, format="NCHW", pad=(0, 0, 0, 0), pad_list=(1, 1, 1, 1),
    ),
    "rows normalised": OperatorCall(
        "RmsNorm", (tensor(8, 16, 64), tensor(64), constant(1e-6)),
        (tensor(8, 16, 64), tensor(8, 16, 1)),
    ),
    "layer normalised": OperatorCall(
        "LayerNorm", (tensor(8, 16, 64), tensor(64), tensor(64), constant(2), constant(2)),
        (tensor(8, 16, 64), tensor(8, 16, 1), tensor(8, 16, 1)),
    ),
    "attention": OperatorCall(
        "FlashAttentionScore",
        (tensor(8, 64, 128), tensor(8, 64, 128), tensor(8, 64, 128), constant(None), constant(None),
         constant(None), tensor(8, 1, 64, 64), constant(None), constant(None), constant(None),
         constant(4)),
        (tensor(8, 4, 64, 8), tensor(8, 4, 64, 8), tensor(1), tensor(8, 64, 128)),
        {"input_layout": "BSH", "sparse_mode": 0},
    ),
    "copies": call("Tile", (tensor(8, 16), constant((4, 1))), tensor(32, 16)),
    "classes": call("OneHot", (tensor(64), constant(32), tensor(), tensor(), constant(-1)),
                    tensor(64, 32)),
    "rows added": call("ScatterAdd", (tensor(64, 32), tensor(8), tensor(8, 32)), tensor(64, 32)),
    "elements added": call("TensorScatterAdd", (tensor(64, 32, 4), tensor(8, 2), tensor(8, 4)),
                           tensor(64, 32, 4)),
    "segments": call("UnsortedSegmentSum", (tensor(64, 32), tensor(64), constant(8)),
                     tensor(8, 32)),
    "slice": call("StridedSlice", (tensor(8, 64), constant((0, 0)), constant((8, 32)),
                                   constant((1, 1)), constant(0), constant(0), constant(0),
                                   constant(0), constant(0)), tensor(8, 32)),
    "squeezed": call("Squeeze", (tensor(8, 1, 64), constant(())), tensor(8, 64)),
    "stacked from behind": OperatorCall(
        "Stack", (Operand(items=(tensor(8, 16), tensor(8, 16))),), (tensor(8, 16, 2),),
        {"axis": -1},
    ),
    "sums of squares": OperatorCall(
        "SquareSumAll", (tensor(8, 16), tensor(8, 16)), (tensor(), tensor())
    ),
    "divergence": call("KLDivLoss", (tensor(8, 16), tensor(8, 16)), tensor(), reduction="mean"),
    "contraction": call("TensorDot", (tensor(8, 16, 4), tensor(16, 4, 8)), tensor(8, 8), axes=2),
    "random": call("StandardNormal", (constant((8, 16)),), tensor(8, 16)),
    "channels": call("PReLU", (tensor(8, 16, 4), tensor(16)), tensor(8, 16, 4)),
    "rows by number": call("GatherD", (tensor(64, 8), constant(0), tensor(16, 8)), tensor(16, 8)),
    "elements by number": call("GatherNd", (tensor(64, 32, 8), tensor(16, 4, 2)),
                               tensor(16, 4, 8)),
    "broadcast to": call("BroadcastTo", (tensor(8, 1, 4), constant((2, 8, 16, 4))),
                         tensor(2, 8, 16, 4)),
    "padded": call("PadV3", (tensor(8, 16), constant((0, 2)), constant(0)), tensor(8, 18)),
    "expert": OperatorCall(
        "GroupedMatmul",
        (Operand(items=(tensor(16, 8),)), Operand(items=(tensor(4, 8, 32),)), constant(None),
         constant(None), constant(None), constant(None), constant(None), tensor(4),
         constant(3), constant(0)),
        (Operand(items=(tensor(16, 32),)),),
    ),
    "all or nothing": call("SparseSoftmaxCrossEntropyWithLogits", (tensor(32, 10), tensor(32)),
                           tensor()),
}  # fmt: skip


def no_form(*_: object) -> None:
    """Stands for ``form_from``."""


def facts(judged: Judgement) -> object:
    collectives = [(c.op, c.ranks, c.reduce, c.output, c.shape) for c in judged.collectives]
    return (
        judged.input_slices, judged.output_slices, judged.raw_inputs, judged.raw_outputs,
        judged.repeats, judged.parts, collectives,
    )  # fmt: skip


def assert_agrees(family: Family, judgements: Sequence[Judgement]) -> None:
    """The form says what the rule says: slices, layouts, collectives, mirrors."""
    form, values = family.form, family.values
    for sketch, judged in zip(form.sketches(values), judgements, strict=True):
        assert judged.verdict == "legal"
        assert facts(sketch) == facts(judged)
    for side, count in (("input", len(form.inputs)), ("output", len(form.outputs))):
        for index in range(count):
            place, cuts = form.places(values, side, index)
            for row, judged in enumerate(judgements):
                layouts = judged.input_layouts if side == "input" else judged.output_layouts
                standard = layouts[index].standard()
                made = layout_from(place[row].tolist(), int(cuts[row]), standard.tensor_shape)
                assert made == standard
                if side == "input":
                    assert judged.mirrors[index] == form.mirror(index, made)


def one_by_one(of: OperatorCall, monkeypatch: pytest.MonkeyPatch) -> Candidates:
    with monkeypatch.context() as patch:
        patch.setattr(module, "form_from", no_form)
        return candidates_of(of, DEVICES)


@pytest.mark.parametrize("name", CALLS)
def test_a_form_allows_what_the_rule_allows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_form = candidates_of(CALLS[name], DEVICES)
    assert bool(by_form.families) != (name in WITHOUT_FORM)
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
        assert_agrees(family, [item.judgement for item in items])
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
        same = alike(family.form, family.values)
        first, which = same.first, same.which
        costs = [cost(sketch) for sketch in family.form.sketches(family.values)]
        assert costs == [costs[first[at]] for at in which]
        if same.operations is not None:
            few = family.form.sketches(family.values[first])
            assert list(same.operations) == [operations_of(CALLS[name], item) for item in few]
        assert len(first) < len(costs) or name not in ("broadcast", "softmax", "transpose")


@pytest.mark.parametrize("name", CALLS)
def test_no_legal_strategy_is_left_out(name: str) -> None:
    """Whatever the axes are said to be: all strategies of a few devices, asked one by one."""
    of, devices = CALLS[name], Context(tuple(range(4)), 4, soc="Ascend910B")
    found = {item.strategy for item in candidates_of(of, devices).items}
    rows = [len(row) for row in next(iter(found)) or ()]
    if sum(rows) > 8 or name in LOOKED_AT_IN_PART:
        pytest.skip("too many strategies, or entries that MindSpore does not look at")
    legal: dict[Strategy, Judgement] = {}
    for numbers in product((1, 2, 4), repeat=sum(rows)):
        left = iter(numbers)
        strategy = tuple(tuple(next(left) for _ in range(count)) for count in rows)
        judgement = judge(of, strategy, devices)
        if judgement.verdict == "legal":
            legal[strategy] = judgement
    assert found == set(legal)
