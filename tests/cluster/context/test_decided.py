"""Who is believed: what is given, what dumps and logs show, and MindSpore's defaults.

What dumps show is stated here, not read: each rule stands beside its opposite.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from irtool.cluster.context import find
from irtool.cluster.context.find import find_context
from irtool.cluster.context.given import ContextError, Given
from irtool.cluster.context.model import DEFAULT, Contradiction, Entry, Origin, RunContext
from irtool.cluster.context.optimizer import Threshold
from irtool.cluster.machine import default_machine

FILE = Origin("file", "case.json")
OPTION = Origin("option", what="--option")
LOG = Origin("logs", "rank_0.log")


def dump(path: str = "later.ir", **more: Any) -> Any:
    """What one dump shows: nothing, but for what is stated."""
    nothing: dict[str, Any] = {
        "path": path, "target": None, "communications": (), "alltoall": None, "mean": None,
        "divides_loss": None, "micro_batches": None, "chunks": None, "borders": None,
        "has_pipeline": False, "searches": None, "shards_functions": False, "weighs_costs": None,
        "has_dataset": False, "fusions": {}, "dump": SimpleNamespace(graphs=()),
    }  # fmt: skip
    return SimpleNamespace(**{**nothing, **more})


@dataclass
class Shows:
    """All that the dumps and logs of a run show."""

    begin: Any = None
    end: Any = None
    those_later: tuple[Any, ...] = ()
    logged: Mapping[str, Entry] = field(default_factory=dict[str, Entry])
    devices: Entry | None = None
    stages: Any = None
    rank: Entry | None = None
    dataset: Entry | None = None
    optimizer: Any = None

    @property
    def later(self) -> Any:
        return iter(self.those_later)


@pytest.fixture(autouse=True)
def stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read from whole dumps elsewhere is what a test states."""
    monkeypatch.setattr(find, "seen_devices", lambda shows, thorough: shows.devices)
    monkeypatch.setattr(find, "seen_stages", lambda shows: shows.stages)
    monkeypatch.setattr(find, "seen_rank", lambda shows: shows.rank)
    monkeypatch.setattr(find, "seen_dataset", lambda shows, size: shows.dataset)
    monkeypatch.setattr(find, "seen_optimizer", lambda shows, size: shows.optimizer)


def found(
    shows: Shows | None = None,
    asked: Mapping[str, object] | None = None,
    *,
    as_run: bool = False,
    machine: Any = None,
    **file: object,
) -> RunContext:
    """The context, with what a file says and what is asked for on the command line."""
    values = {**file, **(asked or {})}
    origins = {**dict.fromkeys(file, FILE), **dict.fromkeys(asked or {}, OPTION)}
    given = Given(values, origins, frozenset(asked or {}))
    return find_context(given, shows or Shows(), machine, as_run=as_run)  # type: ignore[arg-type]


def said(context: RunContext, key: str) -> tuple[object, str]:
    entry = context.entries[key]
    return entry.value, entry.origin.source


def assumed(context: RunContext) -> dict[str, tuple[object, bool]]:
    return {item.key: (item.value, item.decides) for item in context.assumptions}


# -- nothing is known ----------------------------------------------------------------------------


def test_of_nothing_everything_is_assumed_and_there_are_no_devices() -> None:
    context = found()
    assert context.parallel is None
    assert (context.devices, context.stages) == (None, 1)
    assert assumed(context) == {
        "pipeline_stages": (1, True),
        "global_rank": (0, False),
        "parallel_mode": ("semi_auto_parallel", False),
        "search_mode": ("recursive_programming", False),
        "device_target": ("Ascend", False),
        "soc": ("Ascend910B", False),
        "dataset_strategy": ("data_parallel", False),
        "enable_parallel_optimizer": (False, False),
        "enable_alltoall": (False, True),
        "gradients_mean": (False, False),
        "loss_repeated_mean": (True, False),
    }
    assert context.contradictions == ()
    assert set(context.entries) == set(assumed(context))
    assert not any(context.is_known(key) for key in context.entries)
    whys = {item.key: item.why for item in context.assumptions}
    assert whys.pop("soc") == f"that of the machine {default_machine('Ascend').name}"
    assert set(whys.values()) == {DEFAULT.what}


# -- a file, the command line, a dump ------------------------------------------------------------

EXCHANGES = Shows(those_later=(dump(alltoall=object()),))
FROM_DUMP = Entry(True, Origin("dump", "later.ir", "a redistribution by AlltoAll"))


def test_a_dump_goes_before_a_file_and_says_so() -> None:
    context = found(EXCHANGES, enable_alltoall=False)
    assert context.entries["enable_alltoall"] == FROM_DUMP
    assert context.contradictions == (
        Contradiction("enable_alltoall", FROM_DUMP, Entry(False, FILE)),
    )


def test_who_asks_goes_before_a_dump_and_says_so() -> None:
    asked = {"enable_alltoall": False}
    context = found(EXCHANGES, asked)
    assert context.entries["enable_alltoall"] == Entry(False, OPTION)
    assert context.contradictions == (
        Contradiction("enable_alltoall", Entry(False, OPTION), FROM_DUMP),
    )
    as_it_is = found(EXCHANGES, asked, as_run=True)
    assert as_it_is.entries["enable_alltoall"] == FROM_DUMP
    assert len(as_it_is.contradictions) == 1
    # Whichever counts, the dump is the place to look at.
    for one in (*context.contradictions, *as_it_is.contradictions):
        assert one.path == "later.ir"
    said = Contradiction("soc", Entry("a", FILE), Entry("b", OPTION))
    assert said.path == FILE.path


def test_what_both_say_was_given() -> None:
    context = found(EXCHANGES, enable_alltoall=True)
    assert context.entries["enable_alltoall"] == Entry(True, FILE)
    assert context.contradictions == ()


def test_a_dump_alone_is_believed() -> None:
    context = found(EXCHANGES)
    assert context.entries["enable_alltoall"] == FROM_DUMP
    assert "enable_alltoall" not in assumed(context)
    assert "enable_alltoall" not in assumed(found(enable_alltoall=False))


def test_where_a_later_dump_shows_nothing_the_default_decides_nothing() -> None:
    assert assumed(found(Shows(those_later=(dump(),))))["enable_alltoall"] == (False, False)
    # The first of the later dumps is asked, the most telling one.
    both = Shows(those_later=(dump(), dump(alltoall=object())))
    assert assumed(found(both))["enable_alltoall"] == (False, False)


# -- logs ----------------------------------------------------------------------------------------


def test_a_log_is_believed_where_no_dump_shows_it() -> None:
    logged = Entry(True, LOG)
    context = found(Shows(logged={"gradients_mean": logged}))
    assert context.entries["gradients_mean"] == logged
    end = dump("end.ir", mean=False)
    context = found(Shows(end=end, logged={"gradients_mean": logged}))
    shown = Entry(False, Origin("dump", "end.ir", "what stands for the sums of gradients"))
    assert context.entries["gradients_mean"] == shown
    assert context.contradictions == (Contradiction("gradients_mean", shown, logged),)


def test_a_log_that_says_what_a_dump_shows_is_no_contradiction() -> None:
    shows = Shows(end=dump(mean=True), logged={"gradients_mean": Entry(True, LOG)})
    context = found(shows)
    assert said(context, "gradients_mean") == (True, "dump")
    assert context.contradictions == ()


def test_only_a_division_shows_how_a_repeated_loss_is_divided() -> None:
    context = found(Shows(end=dump("end.ir", divides_loss=True)), loss_repeated_mean=False)
    shown = Entry(True, Origin("dump", "end.ir", "_VirtualDiv"))
    assert context.contradictions == (
        Contradiction("loss_repeated_mean", shown, Entry(False, FILE)),
    )
    context = found(Shows(end=dump("end.ir", divides_loss=False)), loss_repeated_mean=True)
    assert context.entries["loss_repeated_mean"] == Entry(True, FILE)
    assert context.contradictions == ()


# -- devices, stages, rank -----------------------------------------------------------------------


def stages(**more: Any) -> Any:
    nothing = {"has_pipeline": True, "path": "v.ir", "size": None, "what": "", "taken_rank": None}
    return SimpleNamespace(**{**nothing, **more})


EIGHT = Entry(8, Origin("dump", "v.ir", "the group of all"))


def test_stages_are_as_many_as_their_size_goes_into_the_devices() -> None:
    context = found(Shows(devices=EIGHT, stages=stages(size=4)))
    what = "each sends to ranks 4 away"
    assert context.entries["pipeline_stages"] == Entry(2, Origin("dump", "v.ir", what))
    assert (context.devices, context.stages) == (8, 2)
    own = found(Shows(devices=EIGHT, stages=stages(size=2, what="stages by name")))
    assert own.entries["pipeline_stages"] == Entry(4, Origin("dump", "v.ir", "stages by name"))


def test_a_size_that_does_not_go_into_the_devices_says_nothing() -> None:
    context = found(Shows(devices=EIGHT, stages=stages(size=3)))
    assert "pipeline_stages" not in context.entries
    assert context.parallel is None


def test_stages_by_a_rank_that_was_only_taken_are_assumed() -> None:
    context = found(Shows(devices=EIGHT, stages=stages(size=4, taken_rank=0)))
    what = "the dump taken for one of rank 0"
    assert context.entries["pipeline_stages"] == Entry(2, Origin("assumed", "v.ir", what))
    assert assumed(context)["pipeline_stages"] == (2, True)
    guessed = Entry(8, Origin("assumed"))
    assert said(found(Shows(devices=guessed, stages=stages(size=4))), "pipeline_stages") == (
        2, "assumed",
    )  # fmt: skip


def test_an_assumed_value_contradicts_nobody() -> None:
    context = found(Shows(devices=EIGHT, stages=stages(size=4, taken_rank=0)), pipeline_stages=4)
    assert context.entries["pipeline_stages"] == Entry(4, FILE)
    assert context.contradictions == ()


def test_without_transfers_there_is_one_stage() -> None:
    context = found(Shows(devices=EIGHT, stages=stages(has_pipeline=False)), pipeline_stages=2)
    shown = Entry(1, Origin("dump", "v.ir", "nothing is sent to another stage"))
    assert context.contradictions == (Contradiction("pipeline_stages", shown, Entry(2, FILE)),)
    assert context.stages == 1


def test_the_rank_is_given_shown_logged_or_assumed() -> None:
    shown = Entry(3, Origin("folder"))
    logged = {"global_rank": Entry(5, LOG)}
    assert said(found(Shows(rank=shown), device_num=8, global_rank=2), "global_rank") == (2, "file")
    assert said(found(Shows(rank=shown, logged=logged)), "global_rank") == (3, "folder")
    assert said(found(Shows(logged=logged)), "global_rank") == (5, "logs")


def test_more_stages_than_devices_are_refused_by_who_gave_them() -> None:
    with pytest.raises(ContextError) as caught:
        found(device_num=8, pipeline_stages=3)
    assert caught.value.origin == FILE


@pytest.mark.parametrize(
    ("devices", "count", "size"), [(8, 2, 4), (8, 1, 8), (8, None, 8), (None, 2, None)]
)
def test_the_dataset_and_weights_are_looked_at_by_stage(
    monkeypatch: pytest.MonkeyPatch, devices: int | None, count: int | None, size: int | None
) -> None:
    asked: list[int | None] = []
    for reader in ("seen_dataset", "seen_optimizer"):
        monkeypatch.setattr(find, reader, lambda shows, size: asked.append(size))
    values = {"device_num": devices, "pipeline_stages": count}
    found(**{key: value for key, value in values.items() if value is not None})
    assert asked == [size, size]


# -- modes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("searches", "mode", "expected", "contradicts"),
    [
        (True, "semi_auto_parallel", ("auto_parallel", "dump"), True),
        (True, "auto_parallel", ("auto_parallel", "file"), False),
        (True, None, ("auto_parallel", "dump"), False),
        (False, "auto_parallel", ("semi_auto_parallel", "dump"), True),
        (False, "data_parallel", ("data_parallel", "file"), False),
        (None, "auto_parallel", ("auto_parallel", "file"), False),
        (None, None, ("semi_auto_parallel", "assumed"), False),
    ],
)
def test_strategies_behind_statements_show_a_search(
    searches: bool | None, mode: str | None, expected: tuple[str, str], contradicts: bool
) -> None:
    given = {} if mode is None else {"parallel_mode": mode}
    context = found(Shows(begin=dump("begin.ir", searches=searches)), **given)
    assert said(context, "parallel_mode") == expected
    assert [item.key for item in context.contradictions] == ["parallel_mode"] * contradicts


def test_who_asks_for_a_mode_asks_what_it_would_make_of_the_network() -> None:
    context = found(Shows(begin=dump(searches=True)), {"parallel_mode": "semi_auto_parallel"})
    assert said(context, "parallel_mode") == ("semi_auto_parallel", "option")
    assert context.contradictions == ()


def test_a_function_with_layouts_is_searched_in_semi_auto_mode() -> None:
    shows = Shows(begin=dump("begin.ir", searches=True, shards_functions=True))
    context = found(shows, parallel_mode="semi_auto_parallel")
    what = "mindspore.shard of a function searches, in semi-auto mode too"
    assert context.entries["parallel_mode"] == Entry(
        "auto_parallel", Origin("dump", "begin.ir", what)
    )
    assert context.contradictions == ()


@pytest.mark.parametrize(
    ("weighs", "given", "expected", "contradicts"),
    [
        (False, None, ("recursive_programming", "dump"), False),
        (False, "sharding_propagation", ("recursive_programming", "dump"), True),
        (True, None, ("sharding_propagation", "assumed"), False),
        (True, "dynamic_programming", ("dynamic_programming", "file"), False),
        (True, "recursive_programming", ("sharding_propagation", "dump"), True),
        (None, None, ("recursive_programming", "assumed"), False),
    ],
)
def test_marks_of_costs_show_which_search_it_was(
    weighs: bool | None, given: str | None, expected: tuple[str, str], contradicts: bool
) -> None:
    shows = Shows(begin=dump("begin.ir", searches=True, weighs_costs=weighs))
    context = found(shows, **({} if given is None else {"search_mode": given}))
    assert said(context, "search_mode") == expected
    if weighs and given is None:
        what = (
            "marks of a search that weighs operators' costs, which dynamic_programming leaves, too"
        )
        assert context.entries["search_mode"].origin == Origin("assumed", "begin.ir", what)
    assert [item.key for item in context.contradictions] == ["search_mode"] * contradicts


def test_which_search_it_would_be_decides_where_there_is_one() -> None:
    assert assumed(found(parallel_mode="auto_parallel"))["search_mode"][1]
    assert not assumed(found())["search_mode"][1]
    # Nobody searched in the dump itself: no marks are looked for.
    assert not found(Shows(begin=dump(weighs_costs=False))).is_known("search_mode")


# -- hardware ------------------------------------------------------------------------------------


def test_the_group_of_all_devices_shows_their_kind() -> None:
    context = found(Shows(those_later=(dump(target="GPU"),)), device_target="Ascend")
    shown = Entry("GPU", Origin("dump", "later.ir", "its group of all devices"))
    assert context.contradictions == (Contradiction("device_target", shown, Entry("Ascend", FILE)),)
    assert "soc" not in context.entries


def test_a_machine_that_was_named_brings_its_kind_and_soc() -> None:
    machine = default_machine("Ascend")
    context = found(machine=machine)
    assert said(context, "device_target") == ("Ascend", "option")
    named = Origin("option", what=f"the machine {machine.name}")
    assert context.entries["soc"] == Entry(machine.soc, named)
    assert said(found(machine=machine, soc="Ascend910A"), "soc") == ("Ascend910A", "file")
    shows = Shows(those_later=(dump(target="Ascend"),))
    assert said(found(shows, machine=default_machine("GPU")), "device_target")[0] == "Ascend"


@pytest.mark.parametrize(
    ("ranks", "peer", "is_shown"),
    [((0, 1, 2), None, True), ((0, 1), None, False), ((0, 1, 2), 2, False)],
)
def test_a_group_that_no_first_generation_server_forms_shows_another_generation(
    ranks: tuple[int, ...], peer: int | None, is_shown: bool
) -> None:
    item = SimpleNamespace(ranks=ranks, peer=peer)
    context = found(Shows(those_later=(dump(communications=(item,)),)), soc="Ascend910A")
    assert said(context, "soc") == (("Ascend910B", "dump") if is_shown else ("Ascend910A", "file"))


# -- dataset -------------------------------------------------------------------------------------


def test_the_default_split_decides_where_several_devices_read_a_dataset() -> None:
    reads = Shows(begin=dump(has_dataset=True))
    assert assumed(found(reads, device_num=8))["dataset_strategy"] == ("data_parallel", True)
    assert assumed(found(reads, device_num=1))["dataset_strategy"] == ("data_parallel", False)
    assert assumed(found(Shows(begin=dump()), device_num=8))["dataset_strategy"][1] is False


def test_one_device_has_the_whole_batch() -> None:
    assert found(device_num=1).parallel is not None
    assert found(device_num=1).parallel.full_batch  # type: ignore[union-attr]
    assert not found(device_num=8).parallel.full_batch  # type: ignore[union-attr]


ROWS = Entry(((4, 1),), Origin("dump", "v.ir", "its dataset"))


def test_a_split_that_a_dump_shows_contradicts_another_not_the_same_in_other_words() -> None:
    context = found(Shows(dataset=ROWS), device_num=8, full_batch=True)
    assert context.contradictions == (
        Contradiction("dataset_strategy", ROWS, Entry("full_batch", FILE)),
    )
    same = found(Shows(dataset=ROWS), device_num=4, full_batch=False)
    assert same.entries["dataset_strategy"] == Entry("data_parallel", FILE)
    assert same.contradictions == ()


def test_who_asks_for_whole_batches_asks_for_a_split() -> None:
    context = found(Shows(dataset=ROWS), {"full_batch": True}, device_num=8)
    assert context.entries["dataset_strategy"] == Entry("full_batch", OPTION)


def test_a_search_may_have_split_the_dataset_itself() -> None:
    context = found(
        Shows(dataset=ROWS), device_num=8, full_batch=True, parallel_mode="auto_parallel"
    )
    assert context.entries["dataset_strategy"] == Entry("full_batch", FILE)
    assert context.contradictions == ()
    keeps = found(
        Shows(dataset=ROWS), device_num=8, full_batch=True,
        parallel_mode="auto_parallel", search_mode="sharding_propagation",
    )  # fmt: skip
    assert keeps.entries["dataset_strategy"] == ROWS


# -- optimizer parallel --------------------------------------------------------------------------


class Optimizer:
    """What weights show: who is gathered, who is whole though as large."""

    def __init__(self, **more: Any) -> None:
        self.path = "v.ir"
        self.gathers: Mapping[str, object] = {"w": object()}
        self.threshold: Threshold | None = None
        self.smallest = 0
        self.shard_size: int | None = None
        self.accumulated: bool | None = None
        self.left: tuple[str, ...] = ()
        self.sure: tuple[str, ...] = ()
        self.__dict__.update(more)

    def excluded(self, threshold: int) -> tuple[str, ...]:
        return self.left

    def surely_excluded(self) -> tuple[str, ...]:
        return self.sure


KEY = "enable_parallel_optimizer"


@pytest.mark.parametrize(
    ("gathers", "left", "given", "expected", "contradicts"),
    [
        (2, (), None, (True, "dump"), False),
        (2, (), False, (True, "dump"), True),
        (2, (), True, (True, "file"), False),
        (0, ("w",), True, (False, "dump"), True),
        (0, (), True, (True, "file"), False),  # nothing was large enough
        (0, ("w",), None, (False, "assumed"), False),
        (0, ("w",), False, (False, "file"), False),
    ],
)
def test_gathered_weights_show_that_the_optimizer_is_parallel(
    gathers: int, left: tuple[str, ...], given: bool | None, expected: object, contradicts: bool
) -> None:
    weights = {str(number): object() for number in range(gathers)}
    shows = Shows(optimizer=Optimizer(gathers=weights, left=left))
    context = found(shows, **({} if given is None else {KEY: given}))
    assert said(context, KEY) == expected
    assert [item.key for item in context.contradictions] == [KEY] * contradicts
    if expected == (True, "dump"):
        assert context.entries[KEY].origin.what == "2 weights gathered from slices"


def test_one_weight_is_one_weight() -> None:
    context = found(Shows(optimizer=Optimizer()))
    assert context.entries[KEY].origin.what == "1 weight gathered from slices"


def test_without_later_dumps_the_default_decides_for_who_trains() -> None:
    def graph(training: str) -> Any:
        graphs = (
            SimpleNamespace(attributes={}),
            SimpleNamespace(attributes={"training": training}),
        )
        return dump(dump=SimpleNamespace(graphs=graphs))

    assert assumed(found(Shows(begin=graph("1"))))[KEY] == (False, True)
    assert assumed(found(Shows(begin=graph("0"))))[KEY] == (False, False)
    whole = Shows(begin=graph("1"), optimizer=Optimizer(gathers={}))
    assert assumed(found(whole))[KEY] == (False, False)


@pytest.mark.parametrize(
    ("low", "high", "given", "expected", "contradicts"),
    [
        (64, 64, None, (64, "assumed"), False),  # the default, which fits
        (32, 32, None, (32, "dump"), False),
        (32, 48, None, (48, "assumed"), False),
        (32, 48, 40, (40, "file"), False),
        (32, 48, 56, (48, "dump"), True),
        (32, 32, 32, (32, "file"), False),
        (32, 32, 56, (32, "dump"), True),
        (32, 96, None, (64, "assumed"), False),
    ],
)
def test_the_smallest_weight_that_is_cut_bounds_the_threshold(
    low: int, high: int, given: int | None, expected: object, contradicts: bool
) -> None:
    key = "parallel_optimizer_threshold"
    values = {} if given is None else {"parallel_optimizer_config": {key: given}, key: given}
    shows = Shows(optimizer=Optimizer(threshold=Threshold(low, high), smallest=1))
    context = found(shows, **values)
    assert said(context, key) == expected
    assert [item.key for item in context.contradictions] == [key] * contradicts


def test_settings_of_the_optimizer_are_shown() -> None:
    context = found(Shows(optimizer=Optimizer(shard_size=2, accumulated=True)), device_num=8)
    size = "weights are gathered from 2 of their replicas"
    assert context.entries["optimizer_weight_shard_size"] == Entry(2, Origin("dump", "v.ir", size))
    assert said(context, "gradient_accumulation_shard") == (True, "dump")
    assert context.parallel is not None
    assert context.parallel.weight_shard_size == 2
    assert context.parallel.accumulation_shard is True
    assert context.parallel.parallel_optimizer is True
    none = found(Shows(optimizer=Optimizer()))
    assert assumed(none)["optimizer_weight_shard_size"] == (-1, False)
    assert "gradient_accumulation_shard" not in none.entries


@pytest.mark.parametrize(("sure", "source"), [(("a", "b"), "dump"), (("a",), "assumed")])
def test_weights_left_whole_were_excluded(sure: tuple[str, ...], source: str) -> None:
    context = found(Shows(optimizer=Optimizer(left=("a", "b"), sure=sure)), device_num=8)
    assert said(context, find.EXCLUDED) == (("a", "b"), source)
    assert (find.EXCLUDED in assumed(context)) == (source == "assumed")
    assert context.parallel is not None
    assert context.parallel.excluded == ("a", "b")


# -- the rest ------------------------------------------------------------------------------------


def test_numbers_of_micro_batches_and_fusions_are_those_of_the_dumps() -> None:
    later = dump(micro_batches=4, fusions={"AllReduce": (1, 2)})
    context = found(Shows(begin=dump("begin.ir"), those_later=(later,)))
    what = "numbers of micro-batches"
    assert context.entries["micro_batches"] == Entry(4, Origin("dump", "later.ir", what))
    assert said(context, "fusion") == ({"AllReduce": (1, 2)}, "dump")
    first = Shows(begin=dump("begin.ir", micro_batches=2), those_later=(later,))
    assert said(found(first), "micro_batches") == (2, "dump")
    assert "micro_batches" not in found().entries
    assert "fusion" not in found(Shows(those_later=(dump(),))).entries


@pytest.mark.parametrize(
    ("chunks", "borders", "given", "expected", "contradicts"),
    [
        (None, None, None, (False, "dump"), False),
        (None, None, True, (False, "dump"), True),
        (2, None, None, (True, "dump"), False),
        (2, None, False, (True, "dump"), True),
        (1, None, True, (True, "file"), False),  # of one chunk both leave the same
        (None, object(), True, (True, "file"), False),
        (1, None, None, (False, "assumed"), False),
    ],
)
def test_chunks_of_layers_show_that_stages_take_turns(
    chunks: int | None, borders: object, given: bool | None, expected: object, contradicts: bool
) -> None:
    key = "pipeline_interleave"
    shows = Shows(
        devices=EIGHT,
        stages=stages(size=4),
        those_later=(dump(has_pipeline=True, chunks=chunks, borders=borders),),
    )
    context = found(shows, **({} if given is None else {key: given}))
    assert said(context, key) == expected
    assert [item.key for item in context.contradictions] == [key] * contradicts


def test_the_first_dump_that_shows_transfers_says_how_stages_take_turns() -> None:
    first, second = (dump(has_pipeline=True, chunks=chunks) for chunks in (1, 2))
    shows = Shows(devices=EIGHT, stages=stages(size=4), those_later=(first, second))
    assert said(found(shows), "pipeline_interleave") == (False, "assumed")


def test_a_table_of_the_pipeline_says_whether_stages_take_turns() -> None:
    context = found(pipeline_config={"pipeline_interleave": True}, device_num=8, pipeline_stages=2)
    assert context.entries["pipeline_interleave"] == Entry(True, FILE)
    assert context.parallel is not None
    assert context.parallel.interleave is True


def test_keys_stand_in_order() -> None:
    context = found(device_num=8, grad_accumulation_step=4)
    assert list(context.entries) == sorted(context.entries)


def test_one_stage_has_nothing_to_take_turns_with() -> None:
    assert "pipeline_interleave" not in found(device_num=8, pipeline_stages=1).entries
    assert assumed(found(device_num=8, pipeline_stages=2))["pipeline_interleave"] == (False, False)


def test_whatever_else_is_given_is_kept() -> None:
    context = found(device_num=8, grad_accumulation_step=4, gradient_fp32_sync=False)
    assert said(context, "grad_accumulation_step") == (4, "file")
    assert said(context, "gradient_fp32_sync") == (False, "file")
    assert context.parallel is not None
    assert context.parallel.accumulation_step == 4
