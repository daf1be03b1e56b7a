"""Attention, caches, expert routing, sequences, the dataset, layouts of one's own."""

from __future__ import annotations

import pytest

from irtool.operators.call import OperatorCall, Strategy
from irtool.operators.judgement import Context, Judgement
from irtool.operators.layout import UserLayout
from irtool.sharding.judge import judge
from tests.sharding.calls import call, collectives, context, judged, reason

TAIL = (1.0, 1.0, 2147483647, 2147483647, 0)


def flash(layout: int, query: list[int], key: list[int], mask: object = None) -> OperatorCall:
    statistics = [4, 32, 4096, 8]
    return call(
        "FlashAttentionScore", query, key, key, None, None, None, mask, None, None, None,
        32, *TAIL, layout, 0, out=(statistics, statistics, [1], query),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("layout", "query", "key", "strategy", "matrix"),
    [
        (0, [4, 4096, 4096], [4, 4096, 4096], ((2, 1, 4), (2, 1, 4), (2, 1, 4)), (2, 1, 4)),
        (1, [4, 32, 4096, 128], [4, 32, 4096, 128],
         ((2, 2, 2, 1), (2, 2, 1, 1), (2, 2, 1, 1)), (2, 2, 2)),
        (2, [4096, 4, 4096], [4096, 4, 4096], ((1, 2, 4), (1, 2, 4), (1, 2, 4)), (1, 2, 4)),
        # one head of key and value for all heads of the query
        (1, [4, 32, 4096, 128], [4, 1, 4096, 128],
         ((4, 2, 1, 1), (4, 1, 1, 1), (4, 1, 1, 1)), (4, 2, 1)),
        (3, [4, 4096, 32, 128], [4, 4096, 1, 128],
         ((4, 1, 2, 1), (4, 1, 1, 1), (4, 1, 1, 1)), (4, 1, 2)),
        (0, [4, 4096, 4096], [4, 4096, 128], ((4, 1, 2), (4, 1, 1), (4, 1, 1)), (4, 1, 2)),
        # two heads are split as those of the query are
        (3, [4, 4096, 32, 128], [4, 4096, 2, 128],
         ((4, 1, 2, 1), (4, 1, 2, 1), (4, 1, 2, 1)), (4, 1, 2)),
    ],
)  # fmt: skip
def test_flash_attention(
    layout: int, query: list[int], key: list[int], strategy: Strategy, matrix: object
) -> None:
    legal = judged(flash(layout, query, key), strategy)
    assert legal.verdict == "legal", legal.findings
    assert legal.device_matrix == matrix
    assert legal.output_maps[3] == legal.input_maps[0]
    assert legal.collectives == ()


def test_masks_follow_the_query() -> None:
    what = flash(1, [4, 32, 4096, 128], [4, 32, 4096, 128], [4, 1, 4096, 4096])
    strategy = ((2, 2, 2, 1), (2, 2, 1, 1), (2, 2, 1, 1), (2, 1, 2, 1))
    assert judged(what, strategy).input_maps[3] == (2, -1, 0, -1)
    assert reason(judged(what, (*strategy[:3], (2, 1, 1, 1)))) == (
        "strategy-expected",
        "flash_attention_score_info.cc:CheckStrategyExpected",
    )


def test_the_sequence_of_the_key_is_whole() -> None:
    what = flash(0, [4, 4096, 4096], [4, 4096, 4096])
    assert reason(judged(what, ((1, 2, 1), (1, 2, 1), (1, 2, 1))))[0] == "axis-split"
    ring = OperatorCall(what.op, what.inputs, what.outputs, {"enable_ring_attention": True})
    legal = judged(ring, ((1, 2, 1), (1, 2, 1), (1, 2, 1)))
    assert legal.input_slices[1] == (4, 2048, 4096)


def ring(splits: int, *attributes: str) -> Judgement:
    """Attention along a sequence that is split, on 8 devices."""
    what = flash(0, [4, 4096, 4096], [4, 4096, 4096])
    given = OperatorCall(what.op, what.inputs, what.outputs, dict.fromkeys(attributes, True))
    return judged(given, ((1, splits, 1),) * 3)


@pytest.mark.parametrize(
    ("splits", "neighbours"), [(1, None), (2, (0, 4)), (4, (0, 2, 6)), (8, (0, 1, 7))]
)
def test_pieces_go_round_once_less_than_there_are(
    splits: int, neighbours: tuple[int, ...] | None
) -> None:
    """Keys and values behind one another, to the next rank of the ring from the one before."""
    found = ring(splits, "enable_ring_attention").collectives
    assert len(found) == splits - 1
    assert {item.op for item in found} <= {"NeighborExchange"}
    assert {item.ranks for item in found} == ({neighbours} if neighbours else set())
    assert {item.shape for item in found} <= {(8, 4096 // splits, 4096)}


def test_what_a_ring_sends_and_receives_is_not_worked_out() -> None:
    assert ring(2, "enable_ring_attention", "enable_ra_send_recv").unsure
    assert not ring(2, "enable_ring_attention").unsure
    assert not ring(1, "enable_ring_attention", "enable_ra_send_recv").unsure


def test_attention_over_a_cache() -> None:
    what = call("IncreFlashAttention", [4, 1, 4096], [4, 1024, 2048], [4, 1024, 2048], [4, 1, 1024],
                *((None,) * 11), 32, 0, 1.0, 16, 0, 1, out=[4, 1, 4096])  # fmt: skip
    good = ((4, 1, 2), (4, 1, 2), (4, 1, 2), (4, 1, 1))
    assert judged(what, good).output_slices == ((1, 1, 2048),)
    assert reason(judged(what, (*good[:3], (2, 1, 1)))) == (
        "axis-mismatch",
        "incre_flash_attention_info.cc:CheckAttenMaskStrategy",
    )


def test_paged_attention() -> None:
    what = call(
        "PagedAttentionMask",
        [8, 1, 5120],
        [1024, 16, 40, 128],
        [1024, 16, 40, 128],
        [8, 64],
        [8],
        [8, 40, 1, 64],
        None,
        None,
        40,
        0.1,
        40,
        0,
        out=[8, 1, 5120],
    )
    good = ((2, 1, 4), (1, 1, 4, 1), (1, 1, 4, 1), (2, 1), (2,), (2, 4, 1, 1))
    assert judged(what, good).output_slices == ((4, 1, 1280),)
    heads = ((2, 1, 4), (1, 1, 2, 1), *good[2:])
    check = "paged_attention_mask_info.cc:CheckStrategy"
    assert reason(judged(what, heads)) == ("axis-mismatch", check)
    tables = (*good[:3], (2, 2), *good[4:])
    assert reason(judged(what, tables)) == ("axis-split", check)


def test_caches_and_rotary_embedding() -> None:
    cache = call("ReshapeAndCache", [8, 1, 5120], [8, 1, 5120], [1024, 16, 40, 128],
                 [1024, 16, 40, 128], [8], out=[8, 1, 5120])  # fmt: skip
    good = ((1, 1, 4), (1, 1, 4), (1, 1, 4, 1), (1, 1, 4, 1), (1,))
    assert judged(cache, good).output_slices == ((8, 1, 1280),)
    assert reason(judged(cache, (*good[:4], (2,))))[0] == "axis-split"
    rotary = call("ApplyRotaryPosEmb", [4, 1024, 16, 128], [4, 1024, 16, 128], [4, 1024, 1, 128],
                  [4, 1024, 1, 128], [4], 1,
                  out=([4, 1024, 16, 128], [4, 1024, 16, 128]))  # fmt: skip
    legal = judged(rotary, ((2, 1, 4, 1), (2, 1, 4, 1), (1, 1, 1, 1), (1, 1, 1, 1), (1,)))
    assert legal.input_slices == (
        (2, 1024, 4, 128), (2, 1024, 4, 128), (2, 1024, 1, 128), (2, 1024, 1, 128), (4,),
    )  # fmt: skip


def test_a_cache_split_along_its_sequence_is_combined() -> None:
    what = call("FusedInferAttentionScore", [4, 1, 4096], [[4, 1024, 4096]], [[4, 1024, 4096]],
                *((None,) * 21), 32, 1.0, 2147483647, 0, 0, 0, 0, 1, 0, 0, True, 0, 0,
                out=([4, 1, 4096], [1]))  # fmt: skip
    legal = judged(what, ((2, 1, 2), (2, 2, 2), (2, 2, 2)))
    assert [c[0] for c in collectives(legal)] == ["AllGather", "AllReduce", "AllReduce"]
    assert legal.collectives[0].ranks == (0, 2)


@pytest.mark.parametrize(
    ("sums", "verdict"),
    [([1], "legal"), ([4, 32, 1, 1], "legal"), ([4, 32], "unknown"), ([4, 32, 1], "unknown")],
)
def test_sums_of_an_attention_have_no_form_or_four_axes(sums: list[int], verdict: str) -> None:
    what = call("FusedInferAttentionScore", [4, 1, 4096], [[4, 1024, 4096]], [[4, 1024, 4096]],
                *((None,) * 21), 32, 1.0, 2147483647, 0, 0, 0, 0, 1, 0, 0, True, 0, 0,
                out=([4, 1, 4096], sums))  # fmt: skip
    assert judged(what, ((2, 1, 2), (2, 1, 2), (2, 1, 2))).verdict == verdict


def test_routing() -> None:
    what = call("TopKRouter", [4, 16, 2], 3, 4, 0, out=([4, 4, 3], [4, 16, 2]))
    assert judged(what, ((2, 1, 1),)).output_slices == ((2, 4, 3), (2, 16, 2))
    assert reason(judged(what, ((1, 2, 1),))) == ("axis-split", "topkrouter_info.cc:CheckStrategy")


def test_sequences() -> None:
    line = call("LinSpace", [], [], 8, out=[8])
    assert judged(line, ((4,),)).output_slices == ((2,),)
    six = call("LinSpace", [], [], 6, out=[6])
    assert reason(judged(six, ((4,),))) == ("not-divisible", "lin_space_info.cc:CheckStrategy")
    noise = call("StandardNormal", (16, 8), out=[16, 8])
    assert judged(noise, ((2, 4),)).output_slices == ((8, 2),)


DATASET = call("_VirtualDataset", [64, 32], [64], out=([64, 32], [64]))


def test_the_dataset() -> None:
    def strategy(**options: object) -> tuple[Strategy, object]:
        made = judge(DATASET, None, Context(tuple(range(8)), soc="910B", **options))  # type: ignore[arg-type]
        assert made.verdict == "legal", made.findings
        return made.strategy, made.output_maps

    assert strategy() == (((8, 1), (8,)), ((1, -1), (1,)))
    assert strategy(full_batch=True)[0] == ((1, 1), (1,))
    assert strategy(dataset_strategy=((1, 4), (4,))) == (((1, 4), (4,)), ((-1, 1), (1,)))


@pytest.mark.parametrize("given", [((2, 2), (1,)), ((4, 1), (2,)), ((1, 1), (2,))])
def test_a_dataset_is_split_once(given: Strategy) -> None:
    assert reason(judge(DATASET, given, context(8))) == (
        "dataset",
        "virtual_dataset_info.cc:CheckStrategy",
    )


def test_layouts_of_ones_own() -> None:
    rows = UserLayout((4, 2), (1, -1))
    what = call("TensorScatterUpdate", [8, 8], [2, 2], [2], out=[8, 8], self_define_shard=True)
    whole = UserLayout((4, 2), (-1,))
    inputs = (rows, UserLayout((4, 2), (-1, -1)), whole)
    assert judged(what, None, layouts=inputs, out_layouts=(rows,)).output_slices == ((2, 8),)
    assert reason(judged(what, ((4, 1), (1, 1), (1,)))) == (
        "layout",
        "self_define_shard_info.cc:CheckStrategy",
    )
    short = (UserLayout((4, 2), ((1, 0), -1)), *inputs[1:])
    assert reason(judged(call("Custom", [4, 8], [2, 2], [2], out=[4, 8]), None, layouts=short)) == (
        "layout",
        "tensor_layout.cc:TensorShapeDimensionIsDividedBySplitDeviceDimension",
    )


def test_custom_operators_may_give_layouts_for_constants() -> None:
    rows = UserLayout((4, 2), (1, -1))
    what = call("Custom", [8, 8], 2, [8, 8], out=[8, 8])
    legal = judged(what, None, layouts=(rows, UserLayout((4, 2), ()), rows), out_layouts=(rows,))
    assert legal.input_slices == ((2, 8), (2, 8))


def test_only_the_gradient_of_the_query_is_summed() -> None:
    what = call(
        "FlashAttentionScore", [4, 64, 128], [4, 64, 128], [4, 64, 128], *(None,) * 7,
        8, *TAIL, 0, 0, out=([4, 8, 64, 8], [4, 8, 64, 8], [1], [4, 64, 128]),
    )  # fmt: skip
    legal = judged(what, ((2, 1, 2), (2, 1, 2), (2, 1, 2)))
    assert legal.mirrors == ((0, 1), (0,), (0,))
