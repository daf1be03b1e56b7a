"""Reuse of communication subgraphs: values of the variable, choices, streams, labels, logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import irtool
from irtool.cluster.ranks import single
from irtool.cluster.reuse import ReuseReport, reuse_report
from irtool.cluster.reuse.graph import Graph, Target
from irtool.cluster.reuse.later_versions import later
from irtool.cluster.reuse.limit import Limit, has_feature, read_limit
from irtool.cluster.reuse.log import ReuseLog, check_log, expected_lines, read_log
from irtool.cluster.reuse.plan import best_choice, ideal_streams
from irtool.cluster.reuse.streams import LABEL_LIMIT, tasks
from tests.cluster.rank_dumps import Do, all_reduce, rank_dump, send

SIXTEEN = tuple(range(16))


def report(steps: Sequence[Do], value: str | None = None, **target: object) -> ReuseReport:
    cluster = single(rank_dump(*steps), 0, 32)
    return reuse_report(cluster, 0, value, Target(**target))  # type: ignore[arg-type]


def kinds(*counts: int) -> list[Do]:
    """Kinds with so many operators each; their keys are in this order."""
    return [
        all_reduce(SIXTEEN, shape=(1, 1 + place))
        for place, count in enumerate(counts)
        for _ in range(count)
    ]


# -- the variable --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "has"), [((1, 7), False), ((1, 8), True), ((2, 2), True), ((2, 3), False)]
)
def test_the_variable_is_read_from_1_8_to_2_2(version: tuple[int, int], has: bool) -> None:
    assert has_feature(version) == has


@pytest.mark.parametrize(
    ("text", "enabled", "cap"),
    [
        (None, False, 0),
        ("", False, 0),
        ("-1", True, 1000),
        ("7", True, 7),
        (" +7", True, 7),
        ("12abc", True, 12),
        ("0", False, 0),
        ("-2", False, 0),
    ],
)
@pytest.mark.parametrize("version", [(2, 0), (2, 1), (2, 2)])
def test_a_value_from_2_0_on(
    text: str | None, enabled: bool, cap: int, version: tuple[int, int]
) -> None:
    found = read_limit(text, version)
    assert (found.enabled, found.cap, found.error) == (enabled, cap, "")


@pytest.mark.parametrize("text", ["on", "-", " ", "abc12", "1" * 30])
def test_what_is_no_number_raises(text: str) -> None:
    assert read_limit(text, (2, 0)).error
    assert read_limit(text, (1, 9)).error


def test_zero_and_negatives_are_warned_of_from_2_0_on() -> None:
    assert "should be -1 or a positive integer" in read_limit("0", (2, 1)).warning
    assert read_limit("-1", (2, 1)).warning == ""


def test_before_2_0_there_is_no_default() -> None:
    assert read_limit("0", (1, 8)) == Limit(True, 0)
    assert read_limit("30", (1, 10)) == Limit(True, 30)
    assert read_limit("-1", (1, 8)).error


@given(st.text(max_size=12))
def test_any_value_is_read(text: str) -> None:
    for version in ((1, 8), (2, 2)):
        found = read_limit(text, version)
        assert found.cap >= 0
        assert not (found.enabled and found.error)


# -- tasks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "ranks", "devices", "expected"),
    [
        ("AllReduce", SIXTEEN, 32, 300),
        ("AllReduce", (0, 1), 32, 125),
        ("AllReduce", (7, 8), 32, 300),
        ("AllReduce", tuple(range(1024)), 1024, 350),
        ("Send", (0, 1), 32, 15),
    ],
)
def test_tasks_of_a_collective(
    op: str, ranks: tuple[int, ...], devices: int, expected: int
) -> None:
    assert tasks(op, "some", ranks, devices) == expected


def test_task_optimisation_needs_neighbours() -> None:
    assert tasks("AllGather", "g", (0, 1), 8, (2, 0), optimised=True) == 20
    assert tasks("AllGather", "g", (0, 2), 8, (2, 0), optimised=True) == 125
    assert tasks("AllGather", "g", (0, 1), 8, (1, 9), optimised=True) == 125


# -- choices -------------------------------------------------------------------------------------


def test_thirty_alike_go_from_ten_streams_to_one() -> None:
    found = report(kinds(30), "-1")
    (group,) = found.groups
    assert group.candidate.capacity == 3
    assert (group.streams_before, group.streams_after) == (10, 1)
    assert found.before.communication_streams == 10
    assert found.after.communication_streams == 1
    assert (found.before.streams, found.after.streams) == (40, 4)
    assert found.after.labels == 32
    assert (found.communications, found.communications_after) == (30, 1)


def test_kinds_are_taken_in_the_order_of_their_keys_as_wholes() -> None:
    graph = Graph(single(rank_dump(*kinds(600, 500, 300)), 0, 32).ranks[0], 32, Target())
    at_1000, at_599, at_1400 = (graph.choose(cap) for cap in (1000, 599, 1400))
    assert (at_1000.reused, at_1000.labels) == (900, 903)
    assert at_599.reused == 500
    assert (at_1400.reused, at_1400.labels) == (1400, 1404)


def test_the_best_cap_keeps_the_labels() -> None:
    graph = Graph(single(rank_dump(*kinds(600, 500, 300)), 0, 32).ranks[0], 32, Target())
    best = best_choice(graph)
    assert best is not None
    assert (best.reused, best.cap, best.labels) == (900, 900, 903)
    assert ideal_streams(graph) <= best.streams


def test_no_other_cap_is_better_than_the_best() -> None:
    graph = Graph(single(rank_dump(*kinds(40, 200, 90)), 0, 32).ranks[0], 32, Target())
    best = best_choice(graph)
    assert best is not None
    for cap in range(1, LABEL_LIMIT):
        choice = graph.choose(cap)
        if choice.labels <= LABEL_LIMIT:
            assert (best.streams, best.labels) <= (choice.streams, choice.labels)


def test_what_fits_on_one_stream_is_left_alone() -> None:
    found = report(kinds(3), "-1")
    assert found.after.reused == 0
    assert found.groups[0].reason == "3 fit on one stream"
    assert found.recommended is None


def test_two_that_become_alltoallv_are_enough() -> None:
    steps = [Do("AlltoAll", SIXTEEN, more="split_count: I64(16)")] * 2
    assert report(steps, "-1").after.reused == 2


def test_a_cap_that_holds_no_kind_does_nothing() -> None:
    found = report(kinds(30), "29")
    assert found.limit.enabled
    assert found.after.streams == found.before.streams
    assert found.groups[0].reason == "the cap of 29 does not hold 30 more"


def test_an_unset_variable_leaves_everything_but_recommends() -> None:
    found = report(kinds(30))
    assert not found.limit.enabled
    assert found.after == found.before
    assert found.recommended is not None
    assert found.recommended.cap == 30


def test_transfers_and_fused_collectives_are_never_reused() -> None:
    fused = Do("AllReduce", SIXTEEN, more="")
    steps = [*[send(1, n) for n in range(80)], *[fused] * 4]
    reasons = {group.candidate.op: group.reason for group in report(steps, "-1").groups}
    assert reasons["Send"] == "Send is never reused"


def test_the_reduction_tells_kinds_apart() -> None:
    steps = [*kinds(4), *[Do("AllReduce", SIXTEEN, shape=(1, 1), group="other")] * 4]
    assert len(report(steps, "-1").groups) == 2


def test_version_2_2_tags_barriers_too() -> None:
    steps = [Do("Reduce", SIXTEEN)] * 8
    assert report(steps, "-1", version=(2, 1)).after.reused == 0
    assert report(steps, "-1", version=(2, 2)).after.reused == 8


def test_streams_kept_free_count_against_the_limit() -> None:
    assert Target(version=(2, 0)).usable_streams == 2048
    assert Target(version=(2, 2)).usable_streams == 2008


@pytest.mark.parametrize(
    ("limit", "verdict"), [(2048, "not needed"), (60, "needed"), (42, "not enough")]
)
def test_the_verdict_goes_by_the_stream_limit(limit: int, verdict: str) -> None:
    assert report(kinds(30), stream_limit=limit).verdict == verdict


def test_hidden_memory_is_a_group_for_each_subgraph() -> None:
    found = report(kinds(30, 30), "-1")
    assert found.after.buffer_bytes == 2 * (200 << 20)


def test_a_pipeline_of_64_micro_batches_goes_from_272_streams_to_20(samples: Path) -> None:
    dump = irtool.load(samples / "pipeline_64_micro" / "20_validate_0080.ir.xz")
    cluster = single(dump, 0, 8)
    short, enough = (reuse_report(cluster, 0, value, Target()) for value in ("511", "512"))
    assert (short.before.streams, short.after.streams) == (272, 272)
    assert (enough.after.streams, enough.after.labels, enough.after.reused) == (20, 514, 512)
    assert enough.recommended is not None
    assert enough.recommended.cap == 512
    assert enough.largest_micro is not None
    assert enough.largest_micro.reusing == 127


# -- logs ----------------------------------------------------------------------------------------


def test_a_log_that_says_what_was_predicted_agrees() -> None:
    found = report(kinds(30), "-1")
    lines = [
        f"[INFO] DEVICE(1,x): {line.replace('<graph id>', '3')}" for line in expected_lines(found)
    ]
    checks = check_log(found, read_log(lines))
    assert all(check.agrees for check in checks)
    assert len(checks) == 6


def test_a_log_that_says_otherwise_is_found_out() -> None:
    found = report(kinds(30), "-1")
    log = read_log(["MAX_COMM_OP_REUSE_NUM: 1000", "Label list size: 40, label id: 3"])
    facts = {check.fact: check.agrees for check in check_log(found, log)}
    assert facts["cap"] is True
    assert facts["labels"] is False
    assert facts["streams"] is None


def test_the_lines_of_an_unset_variable_are_none() -> None:
    assert expected_lines(report(kinds(30))) == ()


def test_a_value_that_is_refused_or_doubted_is_all_that_is_logged() -> None:
    found = report(kinds(30), "-1")
    refused = Limit(False, 0, error="invalid_argument")
    assert expected_lines(replace(found, limit=refused)) == ("exception: invalid_argument",)
    doubted = Limit(True, 7, warning="too large")
    assert expected_lines(replace(found, limit=doubted)) == ("WARNING: too large",)
    assert expected_lines(replace(found, limit=Limit(False, 0))) == ()


# -- 2.3 and later -------------------------------------------------------------------------------


def test_later_versions_have_a_stream_a_group() -> None:
    steps = [*kinds(30), all_reduce((0, 1))]
    found = later(single(rank_dump(*steps), 0, 32).ranks[0])
    assert found.streams == {"group": 3, "true": 2, "false": 1}
    assert found.tagged == 31


@pytest.mark.parametrize(
    "said", [{"cap": 1}, {"groups": ((2, "key"),)}, {"reused": 0}, {"warnings": ("odd",)}]
)
def test_a_log_with_any_line_of_reuse_says_something(said: dict[str, object]) -> None:
    assert ReuseLog().is_empty
    assert ReuseLog(labels=3, streams=7, stream_limit=9).is_empty  # lines of every graph
    assert not ReuseLog(**said).is_empty  # type: ignore[arg-type]  # one of its fields
