"""Fusion of collectives: ids by size and index, buckets, and better ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import irtool
from irtool.cluster.computing import clock_of, is_gradient_sum
from irtool.cluster.fuse import (
    Tensor,
    buckets_of,
    fusion,
    ids_by_index,
    ids_by_size,
    in_parameter_order,
)
from irtool.cluster.fuse_plan import plan
from irtool.cluster.machine import Level, Machine, default_machine
from irtool.cluster.ranks import RankProgram, single
from tests.cluster.rank_dumps import all_reduce, rank_text

WEIGHT = 2048 * 2048

SUM = 'group: "nccl_world_group", fusion: I64(1), op: "sum", group_ranks: (0, 1)'
"""Attributes of a sum over both ranks."""


def first(path: Path, devices: int = 8) -> RankProgram:
    (file,) = path.glob("*validate*.ir")
    return single(irtool.load(file), 0, devices).ranks[0]


# -- ids -----------------------------------------------------------------------------------------


def test_size_counts_elements_and_does_not_charge_what_opens_a_bucket() -> None:
    # What MindSpore 2.7 gives twelve weights of 2048 x 2048, in half and in single precision.
    assert ids_by_size([WEIGHT] * 12, 64) == [1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4]
    assert ids_by_size([WEIGHT] * 12, 16) == list(range(1, 13))


def test_the_first_tensor_always_fits() -> None:
    assert ids_by_size([10 * WEIGHT, 1, 1], 1) == [1, 2, 2]


@given(st.lists(st.integers(0, 10**8), max_size=40), st.integers(1, 512))
def test_ids_by_size_grow_in_steps_of_one(elements: list[int], megabytes: int) -> None:
    ids = ids_by_size(elements, megabytes)
    assert len(ids) == len(elements)
    assert ids[:1] in ([], [1])
    assert all(b - a in (0, 1) for a, b in pairwise(ids))


def test_index_cuts_where_it_says_and_skips_what_is_beyond() -> None:
    assert ids_by_index(6, [2, 4]) == ([1, 1, 2, 2, 3, 3], [])
    assert ids_by_index(3, [2, 9]) == ([1, 1, 2], [9])


def test_positions_must_increase() -> None:
    with pytest.raises(ValueError, match="increase"):
        ids_by_index(6, [4, 4])


# -- buckets -------------------------------------------------------------------------------------


def test_equal_ids_of_one_group_are_a_bucket(samples: Path) -> None:
    found = fusion(first(samples / "gpt"))
    assert [(bucket.op, bucket.ranks, len(bucket.tensors)) for bucket in found.buckets] == [
        ("AllReduce", (0, 4), 13),
        ("AllReduce", tuple(range(8)), 11),
    ]
    assert found.separate == {"AllReduce": 9, "AllGather": 1, "ReduceScatter": 1}


def test_a_fused_tensor_is_padded_member_by_member(samples: Path) -> None:
    (bucket,) = fusion(first(samples / "data_parallel")).buckets
    assert bucket.bytes == 65536
    assert bucket.fused_bytes == sum((tensor.bytes // 1024 + 1) * 1024 for tensor in bucket.tensors)


def test_thresholds_count_one_ranks_slice_of_gathered_weights(samples: Path) -> None:
    buckets = fusion(first(samples / "optimizer_parallel")).buckets
    gathered = next(bucket for bucket in buckets if bucket.op == "AllGather")
    for tensor in gathered.tensors:
        assert tensor.elements is not None
        assert tensor.elements * 4 * len(gathered.ranks or ()) == tensor.bytes


def test_parameters_are_numbered_from_the_front_of_the_network(samples: Path) -> None:
    one = first(samples / "gpt")
    tensors = [tensor for bucket in fusion(one).buckets for tensor in bucket.tensors]
    names = [tensor.parameter for tensor in in_parameter_order(one, tensors)]
    declared = [item.name for item in one.program.dump.parameters]
    assert names == sorted(names, key=lambda name: declared.index(name or ""))
    assert names != [tensor.parameter for tensor in tensors]


def test_the_ids_of_a_dump_are_those_of_its_configuration(corpus: Path) -> None:
    # comm_fusion by size in these: the simulated ids make the buckets of the dump.
    for path in sorted((corpus / "verdicts").glob("test_comm_fusion.test_fusion_size*")):
        one = first(path)
        tensors = [tensor for bucket in fusion(one).buckets for tensor in bucket.tensors]
        reduces = [tensor for tensor in tensors if tensor.collective.op == "AllReduce"]
        ordered = in_parameter_order(one, reduces)
        ids = ids_by_size([tensor.elements or 0 for tensor in ordered], 64)
        assert ids == [tensor.collective.fusion for tensor in ordered]


# -- better buckets ------------------------------------------------------------------------------


def machine(bandwidth: float, start: float) -> Machine:
    level = Level("link", None, bandwidth, 0.0, start)
    return Machine("m", "Ascend", (level,), 1, {"Float32": 1e9}, (), 1e9)


def test_without_start_up_time_many_buckets_hide_most(samples: Path) -> None:
    (channel,) = plan(first(samples / "data_parallel"), machine(1e7, 0.0)).channels
    assert len(channel.recommended) == 2
    assert 0 < channel.exposed[1] < channel.exposed[0]


def test_with_a_long_start_up_one_bucket_is_best(samples: Path) -> None:
    for channel in plan(first(samples / "gpt"), machine(1e12, 10.0)).channels:
        assert len(channel.recommended) == 1


@pytest.mark.parametrize("sample", ["data_parallel", "optimizer_parallel", "gpt"])
def test_recommended_buckets_hold_the_same_and_never_end_later(samples: Path, sample: str) -> None:
    for channel in plan(first(samples / sample), default_machine()).channels:
        before, after = (
            {tensor.place for bucket in buckets for tensor in bucket.tensors}
            for buckets in (channel.configured, channel.recommended)
        )
        assert before == after
        assert channel.gain >= 0


def test_no_partition_into_neighbours_ends_earlier(samples: Path) -> None:
    # Brute force over all cuts of the eleven tensors of one group.
    one = first(samples / "gpt")
    slow = machine(2e7, 1e-4)
    channel = next(item for item in plan(one, slow).channels if len(item.ranks or ()) == 8)
    tensors = [tensor for bucket in channel.configured for tensor in bucket.tensors]
    ready, total, ordered = _readiness(one, slow, tensors)
    best = min(_end(slow, ordered, ready, cuts) for cuts in range(2 ** (len(ordered) - 1)))
    assert channel.exposed[1] == pytest.approx(max(0.0, best - total))


def test_no_fewer_buckets_hide_as_much(samples: Path) -> None:
    # Long computing hides all but the last gradient, however the first ones are cut.
    one = first(samples / "gpt")
    slow = machine(2e8, 1e-6)
    channel = next(item for item in plan(one, slow).channels if len(item.ranks or ()) == 8)
    tensors = [tensor for bucket in channel.configured for tensor in bucket.tensors]
    ready, total, ordered = _readiness(one, slow, tensors)
    ends = {
        cuts: max(total, _end(slow, ordered, ready, cuts))
        for cuts in range(2 ** (len(ordered) - 1))
    }
    best = min(ends.values())
    fewest = min(cuts.bit_count() + 1 for cuts, end in ends.items() if end <= best * (1 + 1e-9))
    assert 1 < len(channel.recommended) == fewest


def _readiness(
    one: RankProgram, slow: Machine, tensors: Sequence[Tensor]
) -> tuple[list[float], float, list[Tensor]]:
    """When each tensor is there, and when computing is through that waits for none of them."""
    clock = clock_of(one, slow)
    when = {item.place: clock.when(item.collective.node, False) for item in tensors}
    ordered = sorted(tensors, key=lambda item: (when[item.place], item.place))
    return [when[item.place] for item in ordered], clock.before_updates, ordered


def test_updates_wait_for_gradients_and_hide_none_of_them(samples: Path) -> None:
    one = first(samples / "data_parallel")
    clock = clock_of(one, default_machine())
    assert clock.before_updates < clock.total
    for step in one.program.steps:
        if is_gradient_sum(step.collective):
            assert clock.when(step.collective.node, False) <= clock.before_updates


def test_one_bucket_waits_for_the_last_gradient(samples: Path) -> None:
    found = plan(first(samples / "data_parallel"), default_machine())
    assert found.sums.hideable > 0
    (channel,) = found.channels
    assert found.sums.exposed == pytest.approx(channel.exposed[0])


def _end(slow: Machine, ordered: Sequence[Tensor], ready: Sequence[float], cuts: int) -> float:
    parts: list[list[int]] = [[]]
    for place in range(len(ordered)):
        if place and cuts >> (place - 1) & 1:
            parts.append([])
        parts[-1].append(place)
    end = 0.0
    for part in parts:
        size = sum(ordered[place].bytes for place in part)
        end = max(end, ready[part[-1]]) + slow.seconds("AllReduce", size, range(8))
    return end


def test_the_size_that_makes_the_best_buckets_is_named(samples: Path) -> None:
    (channel,) = plan(first(samples / "data_parallel"), machine(1e12, 10.0)).channels
    assert channel.size is not None
    assert channel.reproduces
    one = first(samples / "data_parallel")
    tensors = in_parameter_order(one, [t for b in channel.configured for t in b.tensors])
    ids = ids_by_size([tensor.elements or 0 for tensor in tensors], channel.size)
    numbers = {tensor.collective.node: i for tensor, i in zip(tensors, ids, strict=True)}
    assert len(buckets_of(tensors, numbers)) == len(channel.recommended)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_depends_on_one_another_is_kept_apart(count: int) -> None:
    """Of sums with one fusion id that need each other each starts alone; others start together."""
    for chained, sizes in ((True, [1] * count), (False, [count])):
        steps = [all_reduce((0, 1))] * count
        text = rank_text(*steps, chained=chained).replace("fusion: I64(0)", "fusion: I64(1)")
        (one,) = single(irtool.load(text.encode()), 0, 2).ranks.values()
        assert [len(bucket.tensors) for bucket in fusion(one).buckets] == sizes


@pytest.mark.parametrize(("taken", "sizes"), [(0, [1, 1]), (1, [2])])
def test_of_what_a_tuple_holds_only_what_is_taken_out_is_waited_for(
    taken: int, sizes: list[int]
) -> None:
    """A called graph hands out a sum and something else: who reads the other needs no sum."""
    text = f"""# IR entry: @main
# Total subgraphs: 0
subgraph @main(%para1_x) {{
  %0(a) = AllReduce(%para1_x) primitive_attrs: {{{SUM}}}
      : (<Tensor[Float32], (8)>) -> (<Tensor[Float32], (8)>)
  %1(b) = MakeTuple(%0, %para1_x)
      : (<Tensor[Float32], (8)>, <Tensor[Float32], (8)>) -> (<Tuple[Tensor[Float32]*2]>)
  %2(c) = TupleGetItem(%1, I64({taken}))
      : (<Tuple[Tensor[Float32]*2]>, <Int64, NoShape>) -> (<Tensor[Float32], (8)>)
  %3(d) = AllReduce(%2) primitive_attrs: {{{SUM}}}
      : (<Tensor[Float32], (8)>) -> (<Tensor[Float32], (8)>)
  %4(e) = MakeTuple(%3, %0)
      : (<Tensor[Float32], (8)>, <Tensor[Float32], (8)>) -> (<Tuple[Tensor[Float32]*2]>)
  Return(%4)
      : (<Tuple[Tensor[Float32]*2]>)
}}
"""
    (one,) = single(irtool.load(text.encode()), 0, 2).ranks.values()
    assert [len(bucket.tensors) for bucket in fusion(one).buckets] == sizes
