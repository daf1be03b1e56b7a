"""Tasks, streams and labels of MindSpore 1.8 to 2.2, and the plans over them, recounted."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irtool.cluster.ranks import single
from irtool.cluster.reuse.graph import Candidate, Graph, Target
from irtool.cluster.reuse.plan import best_choice, ideal_streams, largest_micro
from irtool.cluster.reuse.streams import (
    LABEL_LIMIT,
    Communicated,
    communication_streams,
    compute_streams,
    in_one_server,
    queue_name,
    reserved_streams,
    tasks,
    total_streams,
)
from tests.cluster.rank_dumps import Do, rank_dump

TWO, FOUR, EIGHT = (0, 1), (0, 1, 2, 3), tuple(range(8))

# -- tasks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "ranks", "expected"),
    [
        ("AllReduce", TWO, 30), ("AllReduce", FOUR, 59), ("AllReduce", EIGHT, 107),
        ("AllGather", TWO, 20), ("AllGather", FOUR, 31), ("AllGather", EIGHT, 55),
        ("ReduceScatter", TWO, 21), ("ReduceScatter", FOUR, 48), ("ReduceScatter", EIGHT, 62),
        ("AlltoAll", EIGHT, 125),  # not optimised
        ("AllReduce", (0, 1, 2), 125),  # of three
        ("AllReduce", (2, 3), 30), ("AllReduce", (1, 2), 125),  # begins at a multiple of its size
        ("AllReduce", (4, 5, 6, 7), 59), ("AllReduce", (0, 1, 2, 4), 125),  # neighbours
        ("AllReduce", (6, 7, 8, 9), 300),  # two servers
    ],
)  # fmt: skip
def test_optimised_tasks(op: str, ranks: tuple[int, ...], expected: int) -> None:
    assert tasks(op, "g", ranks, 64, (2, 2), optimised=True) == expected
    plain = 125 if in_one_server(ranks) else 300
    assert tasks(op, "g", ranks, 64, (2, 2)) == plain
    assert tasks(op, "g", ranks, 64, (1, 10), optimised=True) == plain


@pytest.mark.parametrize(
    ("group", "ranks", "devices", "expected"),
    [
        ("hccl_world_group", tuple(range(1023)), 1023, 300),
        ("hccl_world_group", tuple(range(1024)), 1024, 350),
        ("hccl_world_group", TWO, 2, 300),  # the world group's own figure, however small
        ("nccl_world_group", None, 2048, 350),
        ("g", None, 2048, 300),
        (None, None, 2048, 300),
        ("g", tuple(range(512)), 2048, 300),  # not all of them
        ("g", tuple(range(2048)), 2048, 350),
        ("g", tuple(range(16)), 16, 300),
    ],
)
def test_tasks_across_servers(
    group: str | None, ranks: tuple[int, ...] | None, devices: int, expected: int
) -> None:
    assert tasks("AllReduce", group, ranks, devices) == expected
    assert tasks("Send", group, ranks, devices) == tasks("Receive", group, ranks, devices) == 15


def test_a_server_has_eight_devices() -> None:
    assert in_one_server((0, 7))
    assert not in_one_server((7, 8))
    assert in_one_server((8, 15))


@pytest.mark.parametrize(
    ("version", "kept"), [((1, 8), 0), ((2, 0), 0), ((2, 1), 40), ((2, 2), 40)]
)
def test_streams_that_a_version_keeps(version: tuple[int, int], kept: int) -> None:
    assert reserved_streams(version) == kept
    assert Target(version=version, stream_limit=100).usable_streams == 100 - kept


# -- streams ---------------------------------------------------------------------------------------


def test_which_groups_have_streams_of_their_own() -> None:
    across = (7, 8)
    assert queue_name("g", TWO, "all_group_parallel") == "g"
    assert queue_name("g", across, "all_group_parallel") == "g"
    assert queue_name("g", TWO, "same_server_group_parallel") == "g"
    assert queue_name("g", across, "same_server_group_parallel") == ""
    assert queue_name("g", None, "same_server_group_parallel") == ""
    assert queue_name("g", TWO, "no_group_parallel") == ""
    assert queue_name(None, TWO, "all_group_parallel") == ""


@given(
    st.lists(
        st.builds(Communicated, st.sampled_from(["a", "b"]), st.sampled_from([15, 125, 300, 512])),
        max_size=20,
    )
)
def test_each_queue_fills_streams_of_1024_tasks_in_order(found: list[Communicated]) -> None:
    count = 0
    for queue in ("a", "b"):
        streams: list[int] = []
        for item in found:
            if item.queue == queue:
                if not streams or streams[-1] + item.tasks > 1024:
                    streams.append(0)
                streams[-1] += item.tasks
        count += len(streams)
    assert communication_streams(found) == count


def test_operators_take_three_tasks_and_communication_three_secondary_streams() -> None:
    """341 operators of three tasks fit on a stream of 1024."""
    assert [compute_streams(n) for n in (0, 1, 341, 342, 682, 683)] == [0, 1, 1, 2, 2, 3]
    assert total_streams(5, 7) == 5 + 4 * 7


# -- plans -----------------------------------------------------------------------------------------


def candidate(key: str, count: int, capacity: int, barred: str = "", micros: int = 0,
              group: str = "g") -> Candidate:  # fmt: skip
    return Candidate(
        key, "AllReduce", "Float32", (1,), group, TWO, "sum", count, count, micros,
        1024 // capacity, capacity, barred, None,  # type: ignore[arg-type]  # no node is looked at
    )  # fmt: skip


def test_a_kind_is_reused_if_it_takes_more_than_one_stream() -> None:
    assert not candidate("a", 3, 3).eligible
    assert candidate("a", 4, 3).eligible
    assert not candidate("a", 4, 3, "not tagged").eligible
    assert not replace(candidate("a", 1, 3), op="AlltoAll").eligible
    assert replace(candidate("a", 2, 3), op="AlltoAll").eligible
    assert [candidate("a", count, 3).streams for count in (3, 4, 6, 7)] == [1, 2, 2, 3]


STEPS = st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=5)


def steps_of(drawn: list[tuple[int, bool]], micro: int = 0) -> list[Do]:
    """Kinds of so many collectives each, across servers or inside one, in groups of their own."""
    found: list[Do] = []
    for place, (count, inside) in enumerate(drawn):
        ranks = FOUR if inside else tuple(range(16))
        found += [Do("AllReduce", ranks, shape=(1, 1 + place), group=f"g{place}")] * count
    return found


def graph_of(drawn: list[tuple[int, bool]], **target: object) -> Graph:
    made = Target(**target)  # type: ignore[arg-type]
    return Graph(single(rank_dump(*steps_of(drawn)), 0, 32).ranks[0], 32, made)


@given(STEPS)
@settings(max_examples=25)
def test_the_streams_of_a_set_of_kinds_are_packed_again_without_it(
    drawn: list[tuple[int, bool]],
) -> None:
    """3 across servers (300 tasks) or 8 inside one (125) fit on a stream; each kind has its own."""
    graph = graph_of(drawn)
    streams = [-(-count // (8 if inside else 3)) for count, inside in drawn]
    eligible = [n for n, (count, inside) in enumerate(drawn) if count > (8 if inside else 3)]
    # All of them together, in any order: the best set saves most.
    assert [item.eligible for item in graph.candidates] == [
        n in eligible for n in range(len(drawn))
    ]
    totals = {
        chosen: 4 * (sum(streams) - sum(streams[n] - 1 for n in chosen))
        for size in range(len(eligible) + 1)
        for chosen in combinations(eligible, size)
    }
    assert graph.choose(0).streams == totals[()]
    assert ideal_streams(graph) == min(totals.values())
    best = best_choice(graph)
    if min(totals.values()) == totals[()]:
        assert best is None
    else:
        assert best is not None
        assert best.streams == min(totals.values())
        count = sum(drawn[n][0] for n in eligible if streams[n] > 1)
        assert best.reused >= count
        assert best.labels == 1 + len(best.taken) + best.reused


def test_the_labels_bound_what_can_be_reused() -> None:
    """1022 take 1024 labels, with their subgraph and the root graph; one more is refused."""
    fits = graph_of([(1022, False)])
    best = best_choice(fits)
    assert best is not None
    assert (best.labels, best.cap) == (LABEL_LIMIT, 1022)
    assert best.streams == 4
    assert best_choice(graph_of([(1023, False)])) is None
    assert ideal_streams(graph_of([(1022, False)])) == 4
    assert ideal_streams(graph_of([(1023, False)])) == 4 * 341


class Counted:
    """A graph of made-up counts."""

    def __init__(self, candidates: list[Candidate], micros: int, compute: int, inside: int,
                 limit: int) -> None:  # fmt: skip
        self.candidates, self.micros = candidates, micros
        self.compute, self.compute_in_micros = compute, inside
        self.control_labels = 0
        self.target = SimpleNamespace(usable_streams=limit)


@given(
    st.lists(st.tuples(st.integers(1, 8), st.booleans()), min_size=1, max_size=3),
    st.integers(8, 60),
    st.integers(0, 700),
)
@settings(max_examples=40, deadline=None)
def test_the_most_micro_batches_are_those_of_a_linear_search(
    drawn: list[tuple[int, bool]], limit: int, compute: int
) -> None:
    """Two micro-batches now: counts inside grow with their number, others stay."""
    kinds = [
        candidate(f"k{n}", 2 * count, 3, "" if able else "not tagged", 2 * count, f"g{n}")
        for n, (count, able) in enumerate(drawn)
    ]
    graph = Counted(kinds, 2, compute + 100, compute, limit)
    found = largest_micro(graph)  # type: ignore[arg-type]
    assert found is not None

    def without(micros: int) -> bool:
        streams = sum(-(-count * micros // 3) for count, _ in drawn)
        return -(-(100 + -(-compute * micros // 2)) // 341) + 4 * streams <= limit

    most = next(micros for micros in range(10_000) if not without(micros + 1))
    assert found.without == most
    assert found.with_reuse >= found.without
    smallest = min((count for count, able in drawn if able), default=0)
    # its collectives, its subgraph and the root graph each take a label
    assert found.reusing == ((LABEL_LIMIT - 2) // smallest if smallest else 0)


@pytest.mark.parametrize("control", [0, 24])
def test_labels_of_control_flow_leave_fewer_for_micro_batches(control: int) -> None:
    """One collective a micro-batch: each needs a label, beside the subgraph and the root graph."""
    graph = Counted([candidate("a", 2, 3, micros=2)], 2, 0, 0, 8)
    graph.control_labels = control
    found = largest_micro(graph)  # type: ignore[arg-type]
    assert found is not None
    assert found.without == 6  # two streams of three, four of the device each
    assert found.with_reuse == found.reusing == 1022 - control


def test_what_is_outside_of_micro_batches_does_not_grow() -> None:
    """Four collectives for two micro-batches, of which two are in them."""
    graph = Counted([candidate("a", 4, 3, "not tagged", micros=2)], 2, 0, 0, 12)
    found = largest_micro(graph)  # type: ignore[arg-type]
    assert found is not None
    assert found.without == found.with_reuse == 7  # 2 + 7 on three streams
    fused = Counted([candidate("a", 4, 3, "not tagged: fusion 1", micros=2)], 2, 0, 0, 12)
    grown = largest_micro(fused)  # type: ignore[arg-type]
    assert grown is not None
    assert grown.without > 1000  # however many are fused, it is one operator


def test_without_micro_batches_there_is_no_most() -> None:
    graph = Counted([candidate("a", 4, 3)], 0, 0, 0, 100)
    assert largest_micro(graph) is None  # type: ignore[arg-type]
