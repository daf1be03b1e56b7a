"""What small dumps show of their context, each figure worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

import irtool
from irtool.cluster.context.dataset import (
    _ratios,  # pyright: ignore[reportPrivateUsage]
    given_dataset,
    named,
    same_split,
    seen_dataset,
)
from irtool.cluster.context.evidence import Evidence
from irtool.cluster.context.given import ContextError, Layer, merged
from irtool.cluster.context.model import Assumption, Origin
from irtool.cluster.context.optimizer import SeenOptimizer, Threshold, seen_optimizer
from irtool.cluster.context.placement import (
    least_devices,
    seen_devices,
    seen_rank,
    seen_stages,
)
from irtool.cluster.context.shown import Borders, Gather, Shown
from irtool.cluster.context.weigh import weighed

KB = 1024
Weights = Mapping[str, tuple[int, ...]]


def floats(shape: Sequence[int]) -> str:
    return f"<Tensor[Float32], ({', '.join(map(str, shape))})>"


def statement(
    number: int,
    op: str,
    source: str = "%para1_x",
    *,
    name: str = "",
    attributes: str = "",
    primal: str = "",
) -> str:
    text = f"  %{number}(v{number}) = {op}({source})"
    text += f" {{instance name: {name}}}" if name else ""
    text += f" primitive_attrs: {{{attributes}}}" if attributes else ""
    text += f" cnode_primal_attrs: {{{primal}}}" if primal else ""
    return f"{text}\n      : ({floats((8, 4))}) -> ({floats((8, 4))})\n"


def shown(
    kind: str, *lines: str, weights: Weights | None = None, rank: int | None = None,
    inputs: Sequence[str] = ("%para1_x: <Tensor[Float32], (8, 4)> : [8, 4]",), whole: bool = True,
    dtype: str = "Float32",
) -> Shown:  # fmt: skip
    """A dump of these inputs, weights and statements."""
    head = ["# IR entry: @main", "# Params:", *inputs]
    for place, (name, shape) in enumerate((weights or {}).items(), 50):
        size = ", ".join(map(str, shape))
        head.append(
            f"%para{place}_{name}: <Ref[Tensor[{dtype}]], ({size}), ref_key={name}>  :  has_default"
        )
    numbered = [line for line in lines if line]
    text = "\n".join([*head, "subgraph @main() {", ""])
    text += "".join(numbered) + "  Return(%para1_x)\n}\n"
    return Shown(irtool.load(text.encode()), kind, rank, whole)  # type: ignore[arg-type]


def ranks_of(*ranks: int) -> str:
    return f'group: "g{len(ranks)}-{ranks[0]}", rank_list: ({", ".join(map(str, ranks))})'


def mirror(number: int, weight: str, *ranks: int) -> str:
    return statement(number, "AllReduce", name="grad_mirror_MirrorOperator",
                     attributes=ranks_of(*ranks),
                     primal=f'forward_unique_id: "1", mirror_user_id: "{weight}"')  # fmt: skip


def gather(number: int, weight: str, *ranks: int, mean: str = "") -> str:
    more = f', mirror_user_id: "{weight}"' + (f", mean_flag: Bool({mean})" if mean else "")
    return statement(number, "AllGather", name="parallel_optimizer_allgather_1",
                     attributes=ranks_of(*ranks) + more)  # fmt: skip


def transfer(
    number: int, op: str, peer: int, *, stage: str = "", more: str = "", primal: str = ""
) -> str:
    end = "dest_rank" if op == "Send" else "src_rank"
    place = "dst_global_rank" if op == "Send" else "src_global_rank"
    group = "" if stage else 'group: "hccl_world_group", '
    ends = f"{end}: I64({peer})" if not stage else f"{end}: I64({stage}), {place}: I64({peer})"
    return statement(
        number,
        op,
        attributes=f"{group}sr_tag: I64(0), {ends}{more}",
        primal=primal,
    )


@dataclass
class Dumps:
    """Evidence as its readers see it."""

    begin: Shown | None = None
    end: Shown | None = None
    those_later: Sequence[Shown] = ()
    sibling_dumps: Sequence[Shown] = ()
    ranks: tuple[int, ...] = ()
    rank: int | None = None
    taken_rank: int | None = None

    @property
    def later(self) -> Iterator[Shown]:
        return iter(self.those_later)


def evidence(*later: Shown, **more: Any) -> Evidence:
    return Dumps(those_later=later, **more)  # type: ignore[return-value]  # all that is asked of it


# -- the dataset -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "size", "word"),
    [
        (((1, 1), (1,)), 8, "full_batch"),
        (((1, 1), ()), 8, "full_batch"),
        (((8, 1), (8,)), 8, "data_parallel"),
        (((8, 1), ()), 8, "data_parallel"),  # a scalar is whole everywhere
        (((8, 1), (4,)), 8, None),
        (((8, 1), (1, 8)), 8, None),
        (((4, 1), (4,)), 8, None),
        (((8, 1), (8,)), None, None),
        (((1, 1), (1,)), 1, "full_batch"),
    ],
)
def test_a_strategy_is_called_by_the_word_that_says_the_same(
    rows: Any, size: int | None, word: str | None
) -> None:
    assert named(rows, size) == (rows if word is None else word)


def test_words_stay_words() -> None:
    assert named("data_parallel", 8) == "data_parallel"


@pytest.mark.parametrize(
    ("one", "other", "size", "same"),
    [
        ("full_batch", "full_batch", 8, True),
        ("full_batch", "data_parallel", 8, False),
        ("full_batch", "data_parallel", 1, True),  # one device has it all
        ("full_batch", ((1, 1),), 8, True),
        ("data_parallel", ((8, 1),), 8, True),
        ("data_parallel", ((4, 1),), 8, False),
        ("data_parallel", ((1, 1),), 1, True),
        ("unknown", ((4, 1),), 8, True),
        (((4, 1),), ((4, 1),), 8, True),
        (((4, 1),), ((4, 2),), 8, False),
    ],
)
def test_two_ways_to_say_one_split(one: Any, other: Any, size: int, same: bool) -> None:
    assert same_split(one, other, size) is same
    assert same_split(other, one, size) is same


def test_what_the_keys_of_a_context_say_of_the_dataset() -> None:
    assert given_dataset({}) is None
    assert given_dataset({"full_batch": True}) == "full_batch"
    assert given_dataset({"full_batch": False}) == "data_parallel"
    assert given_dataset({"dataset_strategy": "full_batch"}) == "full_batch"
    assert given_dataset({"dataset_strategy": ((4, 1), (4,))}) == ((4, 1), (4,))


def inputs(*lines: str) -> Shown:
    return shown("validate", inputs=lines)


FIRST = "%para1_x: <Tensor[Float32], (8, 4)> : "


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((FIRST + "[64, 4]",), "data_parallel"),
        ((FIRST + "[8, 4]",), "full_batch"),
        ((FIRST + "[32, 8]",), ((4, 2),)),
        ((FIRST + "[s1<[8,inf]>, 4]",), None),  # a size that nobody knows
        ((FIRST + "[60, 4]",), None),  # eight do not divide it
        ((FIRST + "[64, 4, 1]",), None),
        ((FIRST,), None),
        # two inputs cut alike are the dataset; another may be the gradient of the loss
        ((FIRST + "[64, 4]", "%para2_y: <Tensor[Float32], (2)> : [16]"), "data_parallel"),
        ((FIRST + "[64, 4]", "%para2_y: <Tensor[Float32], (2)> : [8]"), None),
    ],
)
def test_inputs_show_how_the_dataset_is_split(lines: tuple[str, ...], expected: object) -> None:
    found = seen_dataset(evidence(inputs(*lines)), 8)
    assert (None if found is None else found.value) == expected


def test_as_many_inputs_as_the_dataset_has_are_the_dataset() -> None:
    two = (FIRST + "[64, 4]", "%para2_y: <Tensor[Float32], (2)> : [8]")
    begin = shown("begin", statement(0, "_VirtualDataset", "%para1_x, %para1_x"))
    found = seen_dataset(evidence(inputs(*two), begin=begin), 8)
    assert found is not None
    assert found.value == ((8, 1), (4,))
    begin = shown("begin", statement(0, "_VirtualDataset", "%para1_x"))
    assert seen_dataset(evidence(inputs(*two), begin=begin), 8) is None


@pytest.mark.parametrize(
    ("line", "dataset", "expected"),
    [
        ("[64, 4]", "seen", "data_parallel"),  # it is what the dataset's operator takes
        ("[64, 4]", "none", None),  # a stage that reads no batch: cut whatever the dataset's split
        ("[64, 4]", "unknown", None),
        ("[32, 4]", "unknown", ((4, 1),)),  # no stage cuts so what it doesn't read
        ("[8, 4]", "none", "full_batch"),  # only then inputs that nobody reads are whole
        ("[8, 4]", "unknown", "full_batch"),
    ],
)
def test_inputs_of_a_stage_show_the_split_where_it_reads_them(
    line: str, dataset: str, expected: object
) -> None:
    begin = {
        "seen": shown("begin", statement(0, "_VirtualDataset", "%para1_x"), transfer(1, "Send", 8)),
        "none": shown("begin", transfer(0, "Receive", 0), transfer(1, "Send", 16)),
        "unknown": None,
    }[dataset]
    later = shown("validate", transfer(0, "Receive", 0), inputs=(FIRST + line,), rank=8)
    found = seen_dataset(evidence(later, begin=begin), 8)
    assert (None if found is None else found.value) == expected


# -- optimizer parallel ----------------------------------------------------------------------------


def test_weights_that_are_cut_and_whole_bound_the_threshold() -> None:
    """Of 64, 32 and 16 KB in whole, on four replicas each, those of 64 and 32 are cut.

    So the threshold is above 16 KB (17 at least) and 32 KB at most.
    """
    begin = shown("begin", weights={"a": (128, 128), "b": (64, 128), "c": (32, 128)})
    later = shown(
        "validate", gather(0, "a", 0, 1, 2, 3), gather(1, "b", 0, 1, 2, 3),
        mirror(2, "c", 0, 1, 2, 3),
        weights={"a": (32, 128), "b": (16, 128), "c": (32, 128)},
    )  # fmt: skip
    found = seen_optimizer(evidence(later, begin=begin), 4)
    assert found is not None
    assert found.gathers == {"a": Gather((0, 1, 2, 3), None), "b": Gather((0, 1, 2, 3), None)}
    assert found.uncut == {"c": 16 * KB}
    assert found.threshold == Threshold(17, 32)
    assert found.smallest == 32 * KB
    assert found.shard_size is None
    assert found.surely_excluded() == ()
    assert found.excluded(16) == ("c",)
    assert found.excluded(17) == ()


@pytest.mark.parametrize(("value", "allowed"), [(16, False), (17, True), (32, True), (33, False)])
def test_a_threshold_between_the_bounds_would_cut_them_so(value: int, allowed: bool) -> None:
    assert Threshold(17, 32).allows(value) is allowed


def test_a_larger_weight_that_is_whole_was_excluded() -> None:
    begin = shown("begin", weights={"a": (128, 128), "b": (64, 128)})
    later = shown(
        "validate", mirror(0, "a", 0, 1, 2, 3), gather(1, "b", 0, 1, 2, 3),
        weights={"a": (128, 128), "b": (16, 128)},
    )  # fmt: skip
    found = seen_optimizer(evidence(later, begin=begin), 4)
    assert found is not None
    assert found.surely_excluded() == ("a",)
    assert found.threshold == Threshold(0, 32)


@pytest.mark.parametrize(
    ("shape", "could"),
    [((128, 128), True), ((126, 128), False), ((2, 128), False), ((4, 128), True)],
)
def test_a_weight_whose_rows_the_replicas_do_not_divide_says_nothing(
    shape: tuple[int, int], could: bool
) -> None:
    begin = shown("begin", weights={"a": shape, "b": (64, 128)})
    later = shown(
        "validate", mirror(0, "a", 0, 1, 2, 3), gather(1, "b", 0, 1, 2, 3),
        weights={"a": shape, "b": (16, 128)},
    )  # fmt: skip
    found = seen_optimizer(evidence(later, begin=begin), 4)
    assert found is not None
    assert bool(found.uncut) is could


def test_a_weight_without_replicas_says_nothing() -> None:
    """On a stage of four, a weight that is cut in four is held by one rank each."""
    begin = shown("begin", weights={"a": (128, 128), "b": (64, 128)})
    later = shown(
        "validate", mirror(0, "a", 0, 1), gather(1, "b", 0, 1, 2, 3),
        weights={"a": (32, 128), "b": (16, 128)},
    )  # fmt: skip
    found = seen_optimizer(evidence(later, begin=begin), 4)
    assert found is not None
    assert found.uncut == {}
    # of a larger stage, two hold each slice
    more = seen_optimizer(evidence(later, begin=begin), 8)
    assert more is not None
    assert more.uncut == {"a": 64 * KB}


@pytest.mark.parametrize(("dtype", "size"), [("Float32", 64), ("Float16", 32), ("Float64", 128)])
def test_bytes_of_a_whole_weight_are_those_of_its_type(dtype: str, size: int) -> None:
    begin = shown("begin", weights={"a": (128, 128)}, dtype=dtype)
    later = shown("validate", gather(0, "a", 0, 1, 2, 3), weights={"a": (32, 128)}, dtype=dtype)
    found = seen_optimizer(evidence(later, begin=begin), 4)
    assert found is not None
    assert found.smallest == size * KB


def test_groups_smaller_than_the_replicas_are_the_shard_size() -> None:
    """Two of four replicas share ``a``: ``optimizer_weight_shard_size`` is 2."""
    begin = shown("begin", weights={"a": (128, 128), "b": (64, 128)})
    later = shown(
        "validate", gather(0, "a", 0, 1), gather(1, "b", 0, 1),
        weights={"a": (64, 128), "b": (32, 128)},
    )  # fmt: skip
    for size, expected in ((4, 2), (2, None), (None, None)):
        found = seen_optimizer(evidence(later, begin=begin), size)
        assert found is not None
        assert found.shard_size == expected
    other = shown(
        "validate", gather(0, "a", 0, 1), gather(1, "b", 0, 1, 2, 3),
        weights={"a": (64, 128), "b": (16, 128)},
    )  # fmt: skip
    found = seen_optimizer(evidence(other, begin=begin), 8)
    assert found is not None
    assert found.shard_size is None  # they do not agree


@pytest.mark.parametrize(
    ("sums", "accumulated"), [((16, 128), True), ((64, 128), False), (None, None)]
)
def test_accumulated_gradients_are_slices_or_whole(
    sums: tuple[int, int] | None, accumulated: bool | None
) -> None:
    weights: dict[str, tuple[int, ...]] = {"b": (16, 128)}
    if sums is not None:
        weights["accu_grads.b"] = sums
    later = shown("validate", gather(0, "b", 0, 1, 2, 3), weights=weights)
    found = seen_optimizer(evidence(later), 4)
    assert found == SeenOptimizer(
        later.path, {"b": Gather((0, 1, 2, 3), None)}, {}, None, None, accumulated, None
    )
    assert found is not None
    assert found.surely_excluded() == ()


def test_without_later_dumps_or_weights_nothing_is_seen() -> None:
    assert seen_optimizer(evidence(), 4) is None
    assert seen_optimizer(evidence(shown("validate")), 4) is None


# -- one dump --------------------------------------------------------------------------------------


def test_a_gather_of_one_or_of_no_optimizer_is_none() -> None:
    plain = gather(0, "a", 0, 1).replace("parallel_optimizer_allgather_1", "redistribution_op")
    alone = gather(1, "b", 3)
    found = shown("validate", plain, alone, gather(2, "c", 0, 1, mean="1"), gather(3, "c", 0, 1, 2))
    assert found.gathers == {"c": Gather((0, 1), True)}  # the first of one weight


def test_what_stands_for_mirrors_says_whether_gradients_are_means() -> None:
    def virtual(number: int, mean: str) -> str:
        return statement(
            number, "_MirrorOperator", attributes=f"{ranks_of(0, 1)}, mean_flag: Bool({mean})"
        )

    assert shown("begin", virtual(0, "1")).mean is True
    assert shown("begin", virtual(0, "0")).mean is False
    assert shown("begin", virtual(0, "1"), virtual(1, "0")).mean is None
    assert shown("begin", gather(0, "a", 0, 1, mean="1")).mean is None


def test_a_dump_is_of_a_rank_that_is_in_all_of_its_groups_and_no_peer() -> None:
    def plain(number: int, *ranks: int) -> str:
        return statement(number, "AllReduce", name="mine", attributes=ranks_of(*ranks))

    assert shown("validate").possible_ranks is None
    assert shown("validate", plain(0, 0, 1, 2), plain(1, 1, 2, 5)).possible_ranks == {1, 2}
    assert shown("validate", plain(0, 0, 1, 2), plain(1, 7)).possible_ranks == {0, 1, 2}
    sends = shown("validate", plain(0, 0, 1, 2), transfer(1, "Send", 2))
    assert sends.possible_ranks == {0, 1}
    assert sends.ranks == {0, 1, 2}
    assert sends.peers == {2}
    assert sends.has_pipeline
    assert not shown("validate", plain(0, 0, 1)).has_pipeline


def test_the_only_rank_is_known_and_the_lowest_of_several_assumed() -> None:
    def at(*groups: tuple[int, ...]) -> Any:
        lines = [
            statement(n, "AllReduce", name="mine", attributes=ranks_of(*ranks))
            for n, ranks in enumerate(groups)
        ]
        return seen_rank(evidence(shown("validate", *lines)))

    one, several = at((2, 3), (3, 5)), at((2, 3))
    assert (one.value, one.origin.source) == (3, "dump")
    assert (several.value, several.origin.source) == (2, "assumed")
    assert at((0, 1)) is None  # rank 0 is what is taken anyway
    assert at() is None
    assert at((0, 1), (0, 2)).value == 0
    assert seen_rank(evidence()) is None


def test_peers_show_how_far_stages_are_apart() -> None:
    both = shown("validate", transfer(0, "Receive", 0), transfer(1, "Send", 8), rank=4)
    assert both.stage_size == both.distance_from(4) == 4
    assert both.distance_from(0) == 8  # itself is no peer
    # without a rank, the stages before and after are two apart
    unknown = shown("validate", transfer(0, "Receive", 0), transfer(1, "Send", 8))
    assert unknown.stage_size == 4
    assert shown("validate", transfer(0, "Send", 8)).stage_size is None
    assert shown("validate", rank=4).stage_size is None


def test_transfers_that_name_stages_show_their_size() -> None:
    """Stage 1 is rank 5 and stage 2 rank 9: four apart, and the first has rank 1."""
    lines = (transfer(0, "Receive", 5, stage="1"), transfer(1, "Send", 9, stage="2"))
    said = "stages and ranks that its transfers name"
    assert shown("validate", *lines).borders == Borders(4, None, said)
    # a whole begin dump sends and receives over each border: as many stages as the last says
    assert shown("begin", *lines).borders == Borders(4, 3, said)
    assert shown("begin", *lines, transfer(2, "Send", 13, stage="3")).borders == Borders(
        4, None, said
    )
    # ranks 5 and 10 are no multiple apart; 20 cannot be of stage 1 if stages have four
    two = (transfer(0, "Receive", 5, stage="1"), transfer(1, "Send", 10, stage="3"))
    assert shown("validate", *two).borders is None
    far = (transfer(0, "Receive", 20, stage="1"), transfer(1, "Send", 24, stage="2"))
    assert shown("validate", *far).borders is None
    assert shown("validate", lines[0]).borders is None  # one stage has no distance


@pytest.mark.parametrize(("rank", "is_one"), [(4, True), (7, True), (8, False)])
def test_a_rank_lies_within_its_stage(rank: int, is_one: bool) -> None:
    """Stages of four: the first of them has ranks 4 to 7 behind that of rank 0."""
    lines = (transfer(0, "Receive", rank, stage="1"), transfer(1, "Send", rank + 4, stage="2"))
    assert (shown("validate", *lines).borders is not None) is is_one


def test_listed_ranks_of_one_place_count_the_stages() -> None:
    more = ", group_rank_ids: (1, 5, 9)"
    found = shown("validate", transfer(0, "Send", 9, stage="2", more=more)).borders
    assert found == Borders(4, 3, "the ranks with one place in all stages")


def test_numbers_of_micro_batches_chunks_and_fusions() -> None:
    lines = (
        transfer(0, "Send", 1, more=", fusion: I64(3)", primal="micro: I64(2), chunk: I64(1)"),
        statement(1, "ReLU", primal="micro: I64(7)"),
        statement(2, "AllReduce", name="m", attributes=ranks_of(0, 1) + ", fusion: I64(2)"),
        statement(3, "AllReduce", name="m", attributes=ranks_of(0, 1) + ", fusion: I64(1)"),
        statement(4, "_MirrorOperator", attributes=ranks_of(0, 1) + ", fusion: I64(9)"),
    )
    assert shown("validate", *lines).micro_batches == 8
    assert shown("validate", *lines, whole=False).micro_batches == 3  # an excerpt lacks the rest
    assert shown("validate", *lines).chunks == 2
    assert shown("validate", *lines).fusions == {"AllReduce": (1, 2), "Send": (3,)}
    assert shown("validate").micro_batches is None
    assert shown("validate").chunks is None


# -- devices and stages ----------------------------------------------------------------------------


def world(number: int, group: str = "hccl_world_group", count: int = 8) -> str:
    return statement(
        number, "AllReduce", name="m", attributes=f'group: "{group}", rank_size: I64({count})'
    )


def test_the_group_of_all_says_how_many_devices_there_are_and_of_which_kind() -> None:
    found = shown("validate", world(0))
    assert found.world is not None
    assert found.world[0] == 8
    assert found.target == "Ascend"
    assert shown("validate", world(0, "nccl_world_group")).target == "GPU"
    other = shown("validate", statement(0, "AllReduce", attributes=ranks_of(0, 1)))
    assert (other.world, other.target) == (None, None)


def test_devices_are_sought_in_later_dumps_then_in_the_begin_dump_and_those_of_other_ranks() -> (
    None
):
    silent = shown("validate", statement(0, "AllReduce", attributes=ranks_of(0, 1)))
    says = [shown("validate", world(0, count=count)) for count in (8, 16, 32)]
    found = seen_devices(evidence(silent, says[0]), thorough=True)
    assert found is not None
    assert found.value == 8
    brief = seen_devices(evidence(silent, says[0]), thorough=False)
    assert brief is not None
    assert brief.value == 8  # what is said otherwise contradicts it
    first = seen_devices(evidence(says[0], says[1]), thorough=False)
    assert first is not None
    assert first.value == 8
    begin = seen_devices(evidence(silent, begin=says[1], sibling_dumps=says[2:]), thorough=True)
    assert begin is not None
    assert begin.value == 16
    sibling = seen_devices(evidence(silent, sibling_dumps=says[2:]), thorough=True)
    assert sibling is not None
    assert sibling.value == 32
    assert seen_devices(evidence(silent), thorough=True) is None


@pytest.mark.parametrize(
    ("folders", "highest", "count"),
    [((0, 1, 2, 3), 3, 4), ((0, 1, 2, 3), 4, None), ((0, 1, 3), 1, None), ((1, 2), 1, None),
     ((0,), 0, None)],
)  # fmt: skip
def test_folders_of_all_ranks_count_if_nobody_else_is_seen(
    folders: tuple[int, ...], highest: int, count: int | None
) -> None:
    later = shown("validate", statement(0, "AllReduce", attributes=ranks_of(0, highest)))
    found = seen_devices(evidence(later, ranks=folders), thorough=True)
    assert (None if found is None else found.value) == count


def test_slices_times_the_ranks_that_hold_each_are_all_devices() -> None:
    """A weight in two halves, each held by four: eight. One that is cut over replicas is silent."""
    begin = shown("begin", weights={"a": (128, 128), "b": (64, 128)})
    halves = {"a": (64, 128), "b": (64, 128)}
    found = seen_devices(
        evidence(shown("validate", mirror(0, "a", 0, 2, 4, 6), weights=halves), begin=begin),
        thorough=True,
    )
    assert found is not None
    assert found.value == 8
    assert found.origin.what.startswith("slices of a,")
    both = (mirror(0, "a", 0, 2, 4, 6), mirror(1, "b", 0, 1, 2, 3))
    unclear = evidence(shown("validate", *both, weights=halves), begin=begin)
    assert seen_devices(unclear, thorough=True) is None  # one says eight, the other four
    cut = (*both, gather(2, "b", 0, 1))
    clear = evidence(shown("validate", *cut, weights=halves), begin=begin)
    found = seen_devices(clear, thorough=True)
    assert found is not None
    assert found.value == 8
    assert seen_devices(evidence(shown("validate", both[0], weights=halves)), thorough=True) is None
    odd = shown("validate", both[0], weights={"a": (48, 128)})
    assert seen_devices(evidence(odd, begin=begin), thorough=True) is None
    piped = shown("validate", both[0], transfer(1, "Send", 8), weights=halves)
    assert seen_devices(evidence(piped, begin=begin), thorough=True) is None


def test_stages_by_what_is_sent() -> None:
    assert seen_stages(evidence()) is None
    none = seen_stages(evidence(shown("validate")))
    assert none is not None
    assert (none.has_pipeline, none.size) == (False, None)
    sized = seen_stages(evidence(shown("validate", transfer(0, "Send", 8), rank=4)))
    assert sized is not None
    assert (sized.has_pipeline, sized.size, sized.taken_rank) == (True, 4, None)
    # one peer of an unknown rank: counted from the rank that the folder is taken for
    taken = evidence(shown("validate", transfer(0, "Send", 8)), taken_rank=0)
    found = seen_stages(taken)
    assert found is not None
    assert (found.size, found.taken_rank) == (8, 0)
    begin = seen_stages(evidence(begin=shown("begin", transfer(0, "Send", 8), rank=0)))
    assert begin is not None
    assert begin.size == 8


@pytest.mark.parametrize(("rank", "peer", "least"), [(4, 8, 12), (8, 4, 12), (0, 4, 8), (3, 7, 8)])
def test_the_ranks_seen_need_so_many_whole_stages(rank: int, peer: int, least: int) -> None:
    """Stages of four: the highest rank seen is in the last stage that there must be."""
    of = evidence(shown("validate", transfer(0, "Send", peer), rank=rank), rank=rank)
    stages = seen_stages(of)
    assert stages is not None
    found = least_devices(of, stages)
    assert found is not None
    assert (found.value, found.origin.source) == (least, "assumed")
    no = seen_stages(evidence(shown("validate")))
    assert no is not None
    assert least_devices(of, no) is None


# -- what is given ---------------------------------------------------------------------------------

FILE, OPTION = Origin("file", "case.json"), Origin("option")


def test_stronger_layers_go_over_weaker_ones_key_by_key() -> None:
    found = merged(
        [
            Layer({"devices": 8, "stages": 2, "gradients_mean": None}, FILE),
            Layer({"device_num": 16, "rank": None}, OPTION, is_asked=True),
        ]
    )
    assert found.values == {"device_num": 16, "pipeline_stages": 2}
    assert found.origins == {"device_num": OPTION, "pipeline_stages": FILE}
    assert found.asked == {"device_num"}
    # who speaks last says whether it was asked for
    back = merged([Layer({"devices": 8}, OPTION, is_asked=True), Layer({"devices": 4}, FILE)])
    assert back.asked == frozenset()


def test_full_batch_takes_the_place_of_a_weaker_dataset_strategy() -> None:
    weak = Layer({"dataset_strategy": "data_parallel"}, FILE)
    over = merged([weak, Layer({"full_batch": True}, OPTION)])
    assert over.values == {"full_batch": True}
    assert "dataset_strategy" not in over.origins
    both = merged([weak, Layer({"full_batch": True, "dataset_strategy": ((2, 1),)}, OPTION)])
    assert both.values["dataset_strategy"] == ((2, 1),)


def test_parts_of_a_table_are_joined() -> None:
    found = merged(
        [
            Layer({"parallel_optimizer_config": {"parallel_optimizer_threshold": 8, "x": 1}}, FILE),
            Layer({"parallel_optimizer_threshold": 24}, OPTION, is_asked=True),
            Layer({"optimizer_weight_shard_size": 2}, OPTION, is_asked=True),
        ]
    )
    assert found.values == {
        "parallel_optimizer_config": {
            "parallel_optimizer_threshold": 24, "x": 1, "optimizer_weight_shard_size": 2,
        }
    }  # fmt: skip
    assert found.origins["parallel_optimizer_threshold"] is OPTION
    assert found.origins["x"] is FILE
    assert {"parallel_optimizer_threshold", "optimizer_weight_shard_size"} <= found.asked
    environment = merged(
        [
            Layer({"environment": {"A": "1", "B": "1"}}, FILE),
            Layer({"environment": {"B": "2"}}, FILE),
        ]
    )
    assert environment.values == {"environment": {"A": "1", "B": "2"}}


@pytest.mark.parametrize("text", ['{"x": 1}', "{'x': 1}"])
def test_a_table_may_be_written_as_text(text: str) -> None:
    found = merged([Layer({"parallel_optimizer_config": text}, FILE)])
    assert found.values == {"parallel_optimizer_config": {"x": 1}}


@pytest.mark.parametrize("value", ["7", "nothing", (1, 2)])
def test_what_must_be_a_table_and_is_none_is_refused(value: object) -> None:
    with pytest.raises(ContextError, match="parallel_optimizer_config must be a table") as caught:
        merged([Layer({"parallel_optimizer_config": value}, FILE)])
    assert (caught.value.key, caught.value.origin) == ("parallel_optimizer_config", FILE)


# -- which assumptions decide ----------------------------------------------------------------------


def report(**parts: Any) -> Any:
    nothing: dict[str, Any] = {
        "accepted": True, "operators": (), "parameters": (), "redistributions": (), "dataset": (),
    }  # fmt: skip
    return SimpleNamespace(**{**nothing, **parts})


def edge(*ops: str, ranks: tuple[int, ...] = ()) -> Any:
    return SimpleNamespace(operators=tuple(SimpleNamespace(op=op, ranks=ranks) for op in ops))


def weight(size: int | None, rows: int = 128, ranks: tuple[int, ...] = (0, 1, 2, 3)) -> Any:
    declared = SimpleNamespace(size=size)
    return SimpleNamespace(
        mirror_ranks=ranks, gather_ranks=None, base=(rows, 128),
        parameter=SimpleNamespace(declaration=declared),
    )  # fmt: skip


@dataclass(frozen=True)
class Context:
    assumptions: tuple[Assumption, ...]


def decides(key: str, found: Any, decides: bool = True) -> bool:
    context = Context((Assumption(key, "value", "why", decides),))
    (one,) = weighed(context, found).assumptions  # type: ignore[arg-type]
    return one.decides


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        (weight(64 * KB), True),
        (weight(64 * KB - 1), False),
        (weight(64 * KB, rows=126), False),
        (weight(64 * KB, ranks=()), False),
        (weight(None), False),
    ],
)
def test_optimizer_parallel_decides_where_a_weight_could_be_cut(
    parameter: Any, expected: bool
) -> None:
    found = report(parameters=(parameter,))
    assert decides("enable_parallel_optimizer", found) is expected
    assert not decides("enable_parallel_optimizer", found, decides=False)


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        (("AlltoAll",), True),
        (("AllGather", "Split"), True),
        (("StridedSlice", "AllGather"), True),
        (("AllGather",), False),
        (("Split",), False),
        ((), False),
    ],
)
def test_alltoall_decides_where_a_tensor_moves_between_dimensions(
    ops: tuple[str, ...], expected: bool
) -> None:
    assert decides("enable_alltoall", report(redistributions=(edge(*ops),))) is expected


def test_a_refused_network_leaves_nothing_to_decide() -> None:
    refused = report(accepted=False, dataset=(1,), parameters=(weight(64 * KB),))
    assert not decides("enable_parallel_optimizer", refused)
    assert not decides("dataset_strategy", refused)
    assert decides("dataset_strategy", report(dataset=(1,)))
    assert not decides("dataset_strategy", report())
    assert decides("gradients_mean", report())
    assert not decides("gradients_mean", report(), decides=False)


def test_the_soc_decides_where_a_group_fits_no_first_generation_server() -> None:
    """There, groups inside a server hold 1, 2, 4 or 8; three ranks of one are none."""
    assert decides("soc", report(redistributions=(edge("AllGather", ranks=(0, 1, 2)),)))
    assert not decides("soc", report(redistributions=(edge("AllGather", ranks=(0, 1)),)))
    assert decides("soc", report(parameters=(weight(1, ranks=(0, 1, 2)),)), decides=False)
    assert decides("soc", report(accepted=False, parameters=(weight(1, ranks=(0, 1, 2)),)))


# -- transfers that name no stage ------------------------------------------------------------------


@pytest.mark.parametrize(
    "ends",
    [
        "dest_rank: I64(1), dst_global_rank: I64(4)",
        "dest_rank: I64(1)",
        "dst_global_rank: I64(4)",
        "dest_rank: I64(-1), dst_global_rank: I64(4)",
        "dest_rank: I64(1), dst_global_rank: I64(-4)",
    ],
)
def test_stages_are_named_by_transfers_that_say_stage_and_rank(ends: str) -> None:
    """From rank 0 of stage 0: the other end as given here, and one in stage 2."""
    known = transfer(0, "Receive", 8, stage="2")
    sent = statement(1, "Send", attributes=f"sr_tag: I64(0), {ends}")
    found = shown("validate", known, sent).borders
    assert (found is not None) is ("dest_rank: I64(1), dst_global_rank: I64(4)" in ends)
    assert found is None or found.size == 4


# -- inputs whose whole size is not told -----------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "whole", "split"),
    [
        (" : [16, 4]", None, ((2, 1),)),
        ("", (32, 4), ((4, 1),)),
        ("", None, None),
        (" : [16]", None, None),
        (" : [12, 4]", None, None),
        ("", (32,), None),
    ],
)
def test_the_split_of_an_input_is_that_of_its_whole_size(
    told: str, whole: tuple[int, ...] | None, split: tuple[tuple[int, ...], ...] | None
) -> None:
    """A slice of (8, 4); the whole size stands behind it, or in the begin dump."""
    begin = None
    if whole is not None:
        begin = shown("begin", inputs=(f"%para1_x: {floats(whole)} : {list(whole)}",))
    later = shown("validate", inputs=(f"%para1_x: {floats((8, 4))}{told}",))
    assert _ratios(later, begin) == split
