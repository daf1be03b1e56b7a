"""Checks that every operator passes through, the device-list rule, and generated strategies."""

from __future__ import annotations

import pytest

from irtool.operators import checks
from irtool.operators.call import Operand, Strategy, constant
from irtool.operators.judgement import Context
from tests.sharding.calls import call, context, judged, reason

VECTOR = "operator_info.cc:CheckStrategyByVector"


@pytest.mark.parametrize(
    ("strategy", "code"),
    [
        (((1, 4), (1,)), "strategy-size"),
        (((1, 2, 1),), "strategy-length"),
        (((0, 2),), "strategy-value"),
        (((1, 16),), "not-divisible"),
        (((3, 1),), "not-power-of-two"),
    ],
)
def test_the_form_of_a_strategy(strategy: Strategy, code: str) -> None:
    assert reason(judged(call("ReLU", [12, 8], out=[12, 8]), strategy)) == (code, VECTOR)


def test_the_first_bad_value_decides() -> None:
    relu = call("ReLU", [12, 8], out=[12, 8])
    assert reason(judged(relu, ((3, 5),)))[0] == "not-power-of-two"
    assert reason(judged(relu, ((5, 3),)))[0] == "not-divisible"


def test_any_divisor_where_the_devices_are_no_power_of_two() -> None:
    assert judged(call("ReLU", [12, 8], out=[12, 8]), ((3, 8),), 24).verdict == "legal"


def test_devices_must_divide() -> None:
    relu = call("ReLU", [32, 32], out=[32, 32])
    assert reason(judged(relu, ((4, 4),))) == ("device-count", checks.REPEATED)
    legal = judged(relu, ((4, 1),))
    assert (legal.device_matrix, legal.input_maps, legal.repeats) == ((4, 1, 2), ((2, 1),), 2)


def test_dynamic_dimensions_divide_by_what_is_known() -> None:
    def relu(divisors: tuple[int, ...] | None) -> Operand:
        return Operand((-1, 128), divisors=divisors)

    for divisors, verdict in (((8, 128), "legal"), ((1, 128), "illegal"), (None, "illegal")):
        operand = relu(divisors)
        assert judged(call("ReLU", operand, out=operand), ((4, 1),)).verdict == verdict


def test_no_output_strategy() -> None:
    judgement = judged(call("ReLU", [8, 8], out=[8, 8]), ((8, 1),), out_strategy=((8, 1),))
    assert reason(judgement) == ("out-strategy", checks.OUT_STRATEGY)
    shard = call("Add", [8, 8], [8, 8], out=[8, 8], cell_shard_op=1)
    assert judged(shard, ((4, 1), (4, 1)), out_strategy=((1, 4),)).verdict == "legal"


def test_a_matrix_product_on_24_devices_of_the_first_ascend() -> None:
    # the mirror group of the input is (0, 1, 2): devices of one server that make no ring
    product = call("MatMul", [64, 96], [96, 96], False, False, out=[64, 96])
    strategy = ((8, 1), (1, 3))
    assert judged(product, strategy, 24).verdict == "legal"
    assert reason(judged(product, strategy, 24, soc=""))[0] == "device-list"


@pytest.mark.parametrize(
    ("ranks", "fits"),
    [
        ((0, 1), True),
        ((2, 6), True),
        ((3, 4), False),
        ((0, 1, 2), False),
        ((4, 5, 6, 7), True),
        ((0, 2, 4, 6), True),
        ((0, 2, 4, 7), False),
        ((0, 8), True),
        ((0, 9), False),
        (tuple(range(16)), True),
    ],
)
def test_devices_of_one_server(ranks: tuple[int, ...], fits: bool) -> None:
    problem = checks.group_problem(ranks, context(16, soc=""))
    assert (problem is None) is fits
    assert checks.group_problem(ranks, context(16, soc="Ascend910B")) is None


def test_stages_have_groups_of_their_own() -> None:
    from irtool.sharding.judge import judge

    product = call("MatMul", [32, 32], [32, 32], False, False, out=[32, 32])
    stage = Context((4, 5, 6, 7), device_num=8, rank=6, soc="Ascend910B")
    legal = judge(product, ((2, 2), (2, 1)), stage)
    assert [c.ranks for c in legal.collectives] == [(6, 7)]
    assert legal.mirrors == ((6,), (4, 6))


# strategies that MindSpore 2.7 made for these calls on 8 devices
@pytest.mark.parametrize(
    ("what", "made"),
    [
        (call("Add", [16, 8], [1, 8], out=[16, 8]), ((8, 1), (1, 1))),
        (call("Add", [16, 8], [8], out=[16, 8]), ((8, 1), (1,))),
        (call("Add", [12, 8], [12, 8], out=[12, 8]), ((4, 1), (4, 1))),
        (call("MatMul", [16, 8], [8, 4], False, False, out=[16, 4]), ((8, 1), (1, 1))),
        (call("BatchMatMul", [8, 4, 8], [8, 8, 4], False, False, out=[8, 4, 4]),
         ((8, 1, 1), (8, 1, 1))),
        (call("Gather", [16, 8], [16], 0, 0, out=[16, 8]), ((1, 1), (8,))),
        (call("GatherD", [16, 8], 1, [16, 8], out=[16, 8]), ((8, 1), (8, 1))),
        (call("GatherNd", [16, 8], [8, 4, 1], out=[8, 4, 8]), ((1, 1), (8, 1, 1))),
        (call("IOU", [16, 4], [8, 4], out=[8, 16]), ((8, 1), (1, 1))),
        (call("BoundingBoxEncode", [16, 4], [16, 4], out=[16, 4]), ((8, 1), (8, 1))),
        (call("UnsortedSegmentSum", [16, 8], [16], 16, out=[16, 8]), ((8, 1), (8,))),
        (call("TensorScatterAdd", [16, 8, 4], [3, 1], [3, 8, 4], out=[16, 8, 4]),
         ((1, 1, 1), (1, 1), (1, 1, 1))),
        (call("PReLU", [16, 8, 4], [8], out=[16, 8, 4]), ((8, 1, 1), (1,))),
        (call("Outer", [16], [8], out=[16, 8]), ((8,), (1,))),
        (call("CumSum", [16, 8], 0, out=[16, 8]), ((1, 1),)),
        (call("Slice", [16, 8], (0, 0), (16, 4), out=[16, 4]), ((8, 1),)),
        (call("Slice", [16, 8], (0, 0), (8, 8), out=[8, 8]), ((1, 1),)),
        (call("FillV2", constant((64, 64)), [], out=[64, 64]), ((8, 1), ())),
        (call("Tile", [16, 8], (1, 2), out=[16, 16]), ((8, 1),)),
    ],
)  # fmt: skip
def test_strategies_that_mindspore_makes(what: object, made: Strategy) -> None:
    judgement = judged(what, None)  # type: ignore[arg-type]
    assert judgement.verdict == "legal", judgement.reasons
    assert judgement.generated
    assert judgement.strategy == made


def test_operators_without_rule() -> None:
    batch = judged(call("Flatten", [16, 4, 4], out=[16, 16]), ((1, 2, 1),))
    assert (batch.kind, batch.strategy, batch.input_slices) == (
        "batch-parallel",
        ((8, 1, 1),),
        ((2, 4, 4),),
    )
    alone = judged(call("Flatten", [15, 4], out=[15, 4]), None)
    assert (alone.kind, alone.input_slices, alone.mirrors) == (
        "stand-alone",
        ((15, 4),),
        (tuple(range(8)),),
    )
