"""Stages whose operators and seconds a test states: work, layers, waiting, limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from irtool.cluster import pipeline as module
from irtool.cluster.memory.layers import NETWORK
from irtool.cluster.pipeline import Pipeline, StageInput, Work, layer_times, pipeline, stage_of
from irtool.cluster.pipeline.cut import Layer
from irtool.cluster.schedule import (
    Schedule,
    StageTimes,
    gpipe,
    interleaved,
    one_forward_one_backward,
)


@dataclass(eq=False)
class Node:
    op: str
    seconds: float
    operations: int | None
    scope: str
    unique_id: str | None
    forward_unique_id: str | None


@dataclass
class Stated:
    """One stage's memory, as far as a pipeline asks for it."""

    schedule: Schedule | None = None
    launched: list[Any] = field(default_factory=list[Any])
    phases: dict[Node, str] = field(default_factory=dict[Node, str])
    collectives: dict[Node, Any] = field(default_factory=dict[Node, Any])
    static: list[Any] = field(default_factory=list[Any])
    static_by_cause: dict[str, int] = field(default_factory=lambda: {"parameters": 5})
    static_bytes: int = 50
    dynamic_bytes: int = 500
    path: str = "stage.ir"
    notes: tuple[str, ...] = ()

    def do(
        self,
        op: str,
        phase: str | None,
        seconds: float,
        operations: int | None = 0,
        layer: str = "layers.0",
        uid: str | None = None,
        of: str | None = None,
        **sent: Any,
    ) -> Stated:
        """One more operator; ``sent``: it communicates."""
        scope = f"Default/network-Net/{layer.replace('.', '-CellList/')}-Block/" if layer else ""
        node = Node(op, seconds, operations, scope, uid, of)
        self.launched.append(SimpleNamespace(node=node, op=op))
        if phase is not None:
            self.phases[node] = phase
        if sent:
            found = {"op": op, "origin": "", "ranks": (0, 1), "peer": None, "seconds": seconds}
            self.collectives[node] = SimpleNamespace(**{**found, **sent})
        return self


@pytest.fixture(autouse=True)
def stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds, operations and schedules are those that a test states."""
    monkeypatch.setattr(module, "operator_seconds", lambda node, machine: node.seconds)
    monkeypatch.setattr(module, "flops", lambda node: node.operations)
    monkeypatch.setattr(module, "launch_of", lambda found, ranks: (found, ranks))
    monkeypatch.setattr(
        module, "step_seconds", lambda launches, machine: [found.seconds for found, _ in launches]
    )
    monkeypatch.setattr(module, "transfers", lambda ends: list(ends))

    def recovered(launched: Any, phases: Any) -> Schedule | None:
        return next((one.schedule for one in STAGES if one.launched is launched), None)

    monkeypatch.setattr(module, "recovered", recovered)


STAGES: list[Stated] = []


def found(*stages: Stated | None, devices: int = 4, count: int = 0) -> Pipeline:
    """A pipeline of these stages; None where one left no dump."""
    count = count or len(stages)
    STAGES[:] = [one for one in stages if one is not None]
    size = devices // count
    inputs = [
        StageInput(at * size, tuple(range(at * size, (at + 1) * size)), one)  # type: ignore[arg-type]
        for at, one in enumerate(stages)
        if one is not None
    ]
    return pipeline(inputs, count, devices, None)  # type: ignore[arg-type]


MICRO = 4


def plain(
    stage: int,
    forward: float = 1.0,
    backward: float = 2.0,
    layers: int = 1,
    schedule: Schedule | None = None,
) -> Stated:
    """A stage whose micro-batches take so long, each layer the same."""
    made = Stated(schedule or one_forward_one_backward(stage, 2, MICRO))
    for layer in range(layers):
        name = f"layers.{stage * layers + layer}"
        made.do("MatMul", "forward", MICRO * forward / layers, 8, name, uid=name)
        made.do("MatMul", "backward", MICRO * backward / layers, 16, name, of=name)
    return made


# -- one stage -----------------------------------------------------------------------------------


def test_ranks_of_a_stage_stand_together() -> None:
    assert [stage_of(rank, 2, 8) for rank in range(8)] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert stage_of(9, 2, 8) == 1  # more ranks than anybody said
    assert stage_of(0, 2, 0) == 0
    assert stage_of(1, 4, 1) == 3


def test_work_is_what_layers_compute_and_communicate_in_a_micro_batch() -> None:
    first = Stated(one_forward_one_backward(0, 2, MICRO))
    first.do("MatMul", "forward", 4.0, 40, uid="1").do("Strange", "forward", 0.8, None)
    first.do("Strange", "backward", 0.4, None).do("MatMul", "backward", 8.0, 80, of="1")
    first.do("MatMul", "recompute", 2.0, 30).do("Adam", "optimizer", 99.0, 99)
    first.do("Nothing", None, 99.0, 99)
    first.do("AllReduce", "forward", 1.2, 0, origin="forward reduction")
    first.do("AllReduce", "backward", 99.0, 0, origin="mirror")
    first.do("AllGather", "forward", 99.0, 0, origin="optimizer parallel")
    first.do("Send", "forward", 0.3, 0, origin="pipeline", peer=2, ranks=None)
    first.do("Send", "backward", 0.5, 0, origin="pipeline", peer=2, ranks=None)
    first.do("Receive", "backward", 99.0, 0, origin="pipeline", peer=2, ranks=None)
    first.do("Send", "forward", 99.0, 0, origin="unknown", peer=2, ranks=None)
    stage = found(first, plain(1)).stages[0]
    assert stage.work == Work(
        40, 80, 30, StageTimes(6.0 / MICRO, 10.4 / MICRO, 0.5), {"Strange": 2}
    )
    assert stage.work.all_backward == 110
    assert stage.operators == {
        "forward": 6, "backward": 5, "recompute": 1, "optimizer": 1, "other": 1,
    }  # fmt: skip
    assert stage.launches == 14
    assert (stage.parameters, stage.static, stage.activations) == (5, 50, 500)
    assert (stage.index, stage.rank, stage.ranks, stage.path) == (0, 0, (0, 1), "stage.ir")
    assert (stage.micro_batches, stage.schedule_name) == (MICRO, "1f1b")


def test_transfers_are_asked_for_what_stages_send() -> None:
    first = plain(0).do("Send", "forward", 0.3, origin="pipeline", peer=2, ranks=None)
    first.do("Receive", "backward", 0.3, origin="unknown", peer=2, ranks=None)
    first.do("Send", "forward", 0.3, origin="user code", peer=2, ranks=None)
    first.do("AllReduce", "backward", 0.3, origin="pipeline")
    ends: Any = found(first, plain(1)).transfers
    assert [(one.rank, one.stage, one.ranks, len(one.items)) for one in ends] == [
        (0, 0, (0, 1), 2), (2, 1, (2, 3), 0),
    ]  # fmt: skip


def test_a_transfer_is_priced_between_its_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(module, "launch_of", lambda one, ranks: asked.append(ranks) or (one, ranks))
    second = plain(1).do("Send", "forward", 0.3, origin="pipeline", peer=0, ranks=(0, 1, 2, 3))
    second.do("Receive", "forward", 0.3, origin="pipeline", peer=None, ranks=(0, 1, 2, 3))
    second.do("AllReduce", "forward", 0.3, ranks=(2, 3))
    found(plain(0), second)
    assert set(asked) == {(0, 2), None, (2, 3)}


# -- layers --------------------------------------------------------------------------------------


def static(layer: str, cause: str, size: int | None) -> Any:
    return SimpleNamespace(layer=layer, cause=cause, bytes=size)


def test_layers_have_the_seconds_of_a_micro_batch_and_what_stays() -> None:
    first = plain(0, 1.0, 2.0, layers=2)
    first.do("AllReduce", "backward", 99.0, origin="mirror").do("Adam", "optimizer", 99.0)
    first.do("Send", "forward", 99.0, origin="pipeline", peer=2, ranks=None)
    first.static += [
        static("layers.0", "parameters", 100), static("layers.0", "optimizer state", 200),
        static("layers.1", "accumulated gradients", 30), static("layers.1", "inputs", 99),
        static("layers.1", "parameters", None),
    ]  # fmt: skip
    stage = found(first, plain(1)).stages[0]
    assert stage.layers == (Layer("layers.0", 1.5, 300), Layer("layers.1", 1.5, 30))
    assert stage.layer_seconds == 3.0


def test_the_work_of_layers_leaves_out_starts_and_communication(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "busy_seconds", lambda node, machine: node.operations)
    stages = [plain(0).do("AllReduce", "forward", 9.0, 99, origin="forward reduction"), plain(1)]
    for at, one in enumerate(stages):
        one.path = f"{at}.ir"
    pipe = found(*stages)
    inputs = [StageInput(at, (at,), one) for at, one in enumerate(stages)]  # type: ignore[arg-type]
    (layer,), _ = layer_times(inputs, pipe, None)  # type: ignore[arg-type]
    assert layer == Layer("layers.0", (8 + 16) / MICRO)


def test_a_gradient_is_its_forward_operators() -> None:
    """Whatever scope it stands in; one that is tied to nothing counts where it stands."""
    first = plain(0)
    first.do("Mul", "backward", 4.0, layer="layers.7", of="layers.0")
    first.do("Mul", "backward", 8.0, layer="layers.7", of="unheard of")
    first.do("Mul", "backward", 0.0, layer="layers.8")
    stage = found(first, plain(1)).stages[0]
    assert stage.layers == (Layer("layers.0", 4.0), Layer("layers.7", 2.0))


@pytest.mark.parametrize(("seconds", "is_apart"), [(0.62, False), (0.64, True)])
def test_a_twentieth_outside_of_layers_is_worth_a_place_of_its_own(
    seconds: float, is_apart: bool
) -> None:
    """12 seconds of layers: from 0.632 on it is a twentieth of all."""
    first = plain(0).do("Embedding", "forward", seconds, layer="")
    last = plain(1).do("Loss", "forward", seconds, layer="")
    result = found(first, last)
    names = [[layer.name for layer in stage.layers] for stage in result.stages]
    if is_apart:
        assert names == [[NETWORK, "layers.0"], ["layers.1", NETWORK]]
    else:
        assert names == [["layers.0"], ["layers.1"]]
        assert result.stages[0].layers[0].cost == pytest.approx((12 + seconds) / MICRO)


def test_however_long_its_layers_take_a_stage_has_no_work_outside_that_is_not_there() -> None:
    result = found(plain(0, 100.0, 200.0), plain(1, 100.0, 200.0))
    assert [stage.layers for stage in result.stages] == [
        (Layer("layers.0", 300.0),), (Layer("layers.1", 300.0),),
    ]  # fmt: skip


def test_a_stage_without_layers_is_the_network_itself() -> None:
    first = Stated(one_forward_one_backward(0, 2, MICRO)).do("X", "forward", 4.0, layer="")
    assert found(first, plain(1)).stages[0].layers == (Layer(NETWORK, 1.0),)


# -- waiting -------------------------------------------------------------------------------------


def test_equal_stages_wait_as_the_formula_says() -> None:
    """Two stages, four micro-batches: a quarter of the work, a fifth of the wall time."""
    result = found(plain(0), plain(1))
    assert result.micro_batches == MICRO
    assert result.imbalance == 0.0
    assert [(b.schedule, b.ideal, b.ratio, b.share, b.seconds) for b in result.bubbles] == [
        (name, 0.25, 0.25, pytest.approx(0.2), 15.0) for name in ("of the dumps", "gpipe", "1f1b")
    ]
    assert result.played is not None
    assert result.played.seconds == 15.0
    assert result.timeline == dict(enumerate(result.played.stages))
    assert result.timeline[1][0].start == 1.0  # the first stage's forward pass
    assert result.limits == ()
    # A tenth of the work is worth getting down to: ten micro-batches.
    assert [(item.switch, item.value) for item in result.advice] == [("micro_size", "10")]


def test_the_slowest_stage_decides() -> None:
    """3 and 6 seconds a micro-batch: 4 of the second, and one of the first before and after."""
    result = found(plain(0), plain(1, 2.0, 4.0))
    assert result.imbalance == pytest.approx(6 / 4.5 - 1)
    own = result.bubbles[0]
    assert own.seconds == 4 * 6 + 3
    assert own.ratio == pytest.approx(27 / (4.5 * 4) - 1)
    assert own.share == pytest.approx(1 - 36 / 54)
    assert result.cut is not None
    assert result.cut.stages == (("layers.0",), ("layers.1",))
    assert result.cut.costs == (3.0, 6.0)


@pytest.mark.parametrize(
    ("layers", "names"),
    [
        (1, []),
        (2, ["interleaved, 2 chunks"]),
        (3, ["interleaved, 2 chunks"]),
        (4, ["interleaved, 2 chunks", "interleaved, 4 chunks"]),
    ],
)
def test_stages_of_several_layers_could_take_turns(layers: int, names: list[str]) -> None:
    result = found(plain(0, layers=layers), plain(1, layers=layers))
    more = result.bubbles[3:]
    assert [bubble.schedule for bubble in more] == names
    assert [bubble.ideal for bubble in more] == [0.125, 0.0625][: len(names)]


def test_fewer_micro_batches_than_stages_cannot_take_turns() -> None:
    stages = [plain(at, layers=4, schedule=gpipe(at, 2, 1)) for at in range(2)]
    result = found(*stages)
    assert [bubble.schedule for bubble in result.bubbles] == ["of the dumps", "gpipe", "1f1b"]
    assert result.bubbles[0].ideal == 1.0


def test_schedules_that_block_each_other_have_no_seconds() -> None:
    backward_first = Schedule(tuple(reversed(gpipe(0, 2, MICRO).tasks)))
    result = found(plain(0, schedule=backward_first), plain(1))
    own = result.bubbles[0]
    assert (own.ideal, own.ratio, own.share, own.seconds) == (0.25, None, None, None)


def test_stages_that_compute_nothing_have_no_ratio() -> None:
    result = found(plain(0, 0.0, 0.0), plain(1, 0.0, 0.0))
    assert {(one.ratio, one.share, one.seconds) for one in result.bubbles} == {(None, None, None)}
    assert (result.imbalance, [stage.layers for stage in result.stages]) == (None, [(), ()])


def test_stages_that_take_turns_already_are_not_cut_again() -> None:
    stages = [plain(at, layers=2, schedule=interleaved(at, 2, MICRO, 2)) for at in range(2)]
    result = found(*stages)
    assert result.cut is None
    assert result.bubbles[0].ideal == 0.125
    assert "each stage holds 2 runs of layers: no best cut is looked for" in result.limits


# -- what could not be said ----------------------------------------------------------------------


def test_a_missing_stage_leaves_formulas() -> None:
    result = found(plain(0), None)
    assert result.missing == (1,)
    assert (result.imbalance, result.cut, result.played) == (None, None, None)
    assert [(b.schedule, b.ideal, b.ratio) for b in result.bubbles] == [
        ("gpipe", 0.25, None), ("1f1b", 0.25, None),
    ]  # fmt: skip
    told = "no dump of stage 1: balance, the simulated bubble and the best cut need all"
    assert result.limits == (told,)
    # What is there stands one after another: a backward pass takes twice a forward one.
    assert {at: tasks[-1].end for at, tasks in result.timeline.items()} == {0: 12.0}


def test_without_any_dump_nothing_is_known() -> None:
    result = found(None, None)
    assert (result.stages, result.missing, result.micro_batches) == ((), (0, 1), 1)
    assert (result.imbalance, result.cut, result.played, result.timeline) == (None, None, None, {})
    assert [(one.schedule, one.ideal) for one in result.bubbles] == [("gpipe", 1.0), ("1f1b", 1.0)]


def test_one_stage_is_no_pipeline() -> None:
    result = found(Stated().do("X", "forward", 4.0))
    assert (result.bubbles, result.played, result.advice) == ((), None, ())
    assert (result.micro_batches, result.imbalance) == (1, None)
    assert result.stages[0].schedule_name == "other"
    assert result.limits == ("there is one stage: no pipeline",)


def test_what_is_not_known_is_told_once() -> None:
    first = plain(0).do("Strange", "forward", 1.0, None).do("Odd", "forward", 1.0, None)
    last = plain(1).do("Strange", "backward", 1.0, None)
    first.notes, last.notes = ("one note",), ("one note", "another")
    first.schedule = None
    result = found(first, last)
    assert result.limits == (
        "operations of Odd, Strange are not known: timed by their bytes",
        "no operator names its micro-batch: the schedule is not in these dumps",
        "one note",
        "another",
    )
    assert [bubble.schedule for bubble in result.bubbles] == ["gpipe", "1f1b"]
    assert result.played is not None
    # Without a schedule a step is one micro-batch.
    assert result.stages[0].work.seconds == StageTimes(MICRO + 2.0, 2.0 * MICRO, 0.0)
    assert result.stages[0].layers == (Layer("layers.0", 3.0 * MICRO + 2.0),)


def test_of_several_dumps_of_a_stage_the_first_rank_counts() -> None:
    STAGES[:] = [first, second] = [plain(0), plain(1)]
    other = plain(0, 9.0)
    STAGES.append(other)
    inputs: Any = [
        StageInput(1, (1,), other), StageInput(0, (0,), first), StageInput(2, (2, 3), second),  # type: ignore[arg-type]
    ]  # fmt: skip
    result = pipeline(inputs, 2, 4, None)  # type: ignore[arg-type]
    assert [stage.rank for stage in result.stages] == [0, 2]
    assert result.stages[0].work.seconds.forward == 1.0


def test_one_dump_may_speak_for_ranks_of_several_stages() -> None:
    STAGES[:] = [only] = [plain(0)]
    inputs: Any = [StageInput(0, (0, 1, 2, 3), only)]  # type: ignore[arg-type]
    result = pipeline(inputs, 2, 4, None)  # type: ignore[arg-type]
    assert [(stage.index, stage.rank, stage.ranks) for stage in result.stages] == [
        (0, 0, (0, 1)), (1, 0, (2, 3)),
    ]  # fmt: skip
    assert result.missing == ()
