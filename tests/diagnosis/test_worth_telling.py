"""From how much on tasks tell of something, from both sides of each limit."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from irtool.cluster.repeated_code import Copies
from irtool.cluster.what_if import Option, Saving
from irtool.diagnosis.diagnosis import CannotJudge, Diagnosis
from irtool.diagnosis.tasks import (
    group,
    memory,
    recompute,
    redistribution,
    slow_compile,
    slow_step,
    stage_balance,
)
from irtool.ir.finding import SourceLine
from irtool.planning.plans.edits import NetworkEdit

GIB = 1 << 30


def subject_of(**parts: object) -> Any:
    """A run of which a task asks only this."""
    dump = SimpleNamespace(path="begin.ir")
    return SimpleNamespace(
        **{
            "command": lambda *words: ("irtool", *words),
            "picked": SimpleNamespace(rank=0),
            "checked": SimpleNamespace(dump=dump),
            "parallel": SimpleNamespace(stage_size=8, stages=1, threshold=64, devices=8),
            **parts,
        }
    )


# -- where a step goes -----------------------------------------------------------------------------


def step_told(
    monkeypatch: pytest.MonkeyPatch,
    shares: Mapping[str, float],
    saved: float = 0.0,
    devices: int = 8,
    seconds: float = 1.0,
) -> list[Diagnosis]:
    """What is told of a step of a second, by what its parts take."""
    causes = ("optimizer", "forward", "gradients")
    cost = SimpleNamespace(
        seconds=seconds,
        shares={"compute": 1 - sum(shares.values()), **dict.fromkeys(causes, 0.0), **shares},
    )
    monkeypatch.setattr(slow_step, "_optimizer_parallel", lambda _: saved)
    parallel = SimpleNamespace(stage_size=devices)
    return list(slow_step.examine(subject_of(cost=cost, parallel=parallel)))


@pytest.mark.parametrize(("share", "is_told"), [(0.59, False), (0.61, True)])
def test_a_step_is_told_of_from_three_fifths_without_computing(
    monkeypatch: pytest.MonkeyPatch, share: float, is_told: bool
) -> None:
    half = share / 2
    found = step_told(monkeypatch, {"forward": half, "gradients": half - 0.1, "optimizer": 0.1})
    assert bool(found) == is_told


@pytest.mark.parametrize(
    ("moved", "updates", "says"),
    [
        (0.61, 0.1, "61.0 % of the predicted step of 1 s is communication, most of it forward"),
        (0.59, 0.1, "69.0 % of the predicted step of 1 s is spent on weights and communication"),
    ],
)
def test_it_is_called_communication_where_that_alone_is_so_much(
    monkeypatch: pytest.MonkeyPatch, moved: float, updates: float, says: str
) -> None:
    (found,) = step_told(monkeypatch, {"forward": moved, "optimizer": updates})
    assert says in found.message


def test_one_device_and_a_step_of_nothing_are_not_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    assert step_told(monkeypatch, {"forward": 0.9}, devices=2)
    assert not step_told(monkeypatch, {"forward": 0.9}, devices=1)
    assert not step_told(monkeypatch, {"forward": 0.9}, seconds=0.0)


@pytest.mark.parametrize(
    ("updates", "saved", "is_advised"),
    [(0.21, 0.15, True), (0.19, 0.15, False), (0.3, 0.11, True), (0.3, 0.09, False)],
)
def test_optimizer_parallel_is_tried_for_a_fifth_and_told_for_a_tenth(
    monkeypatch: pytest.MonkeyPatch, updates: float, saved: float, is_advised: bool
) -> None:
    (found,) = step_told(monkeypatch, {"forward": 0.6, "optimizer": updates}, saved)
    assert (found.edit is not None, found.gain is not None) == (is_advised, is_advised)
    assert ("; optimizer parallel saves" in found.message) == is_advised
    assert found.share == pytest.approx(saved if is_advised else 0.1)


# -- groups across nodes ---------------------------------------------------------------------------


def spread_told(monkeypatch: pytest.MonkeyPatch, saved: float) -> list[Diagnosis]:
    """What is told of a group that costs so much of a step of a second by where it lies."""
    nodes = [SimpleNamespace(id=f"%{number}", line=number, location=()) for number in (1, 2)]
    apart = SimpleNamespace(
        ranks=(0, 8),
        nodes=2,
        saved=saved,
        collectives=[
            SimpleNamespace(bytes=size, node=node)
            for size, node in zip((8, 16), nodes, strict=True)
        ],
    )
    monkeypatch.setattr(group, "spread_groups", lambda *_: (apart,))
    monkeypatch.setattr(group, "source_of", lambda _: None)
    subject = subject_of(
        cluster=SimpleNamespace(ranks={3: SimpleNamespace(path="rank_3.ir")}),
        machine=SimpleNamespace(node_devices=8),
        cost=SimpleNamespace(seconds=1.0),
    )
    return list(group._spread(subject))


@pytest.mark.parametrize(
    ("saved", "severities"),
    [(0.049, []), (0.051, ["info"]), (0.199, ["info"]), (0.201, ["warning"])],
)
def test_neighbours_are_told_of_from_a_twentieth_and_warned_of_from_a_fifth(
    monkeypatch: pytest.MonkeyPatch, saved: float, severities: list[str]
) -> None:
    found = spread_told(monkeypatch, saved)
    assert [item.severity for item in found] == severities
    for item in found:  # at the largest of its collectives
        assert (item.node, item.line, item.rank) == ("%2", 2, 3)


def test_without_a_step_to_compare_with_nothing_is_said_of_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Costless:
        cluster = SimpleNamespace(ranks={0: None})
        machine = None

        @property
        def cost(self) -> None:
            raise CannotJudge("nothing has a strategy")

    monkeypatch.setattr(group, "spread_groups", lambda *_: (SimpleNamespace(saved=1.0),))
    without: Any = Costless()
    assert not list(group._spread(without))


# -- memory ----------------------------------------------------------------------------------------


def memory_told(
    monkeypatch: pytest.MonkeyPatch,
    needed: int,
    savings: list[Saving],
    limit: int = 0,
    **held: object,
) -> list[Diagnosis]:
    """What is told of a device that needs so much, and of ways to make that less."""
    whole = SimpleNamespace(
        **{
            "device_bytes": SimpleNamespace(low=needed),
            "fits": lambda most: needed <= most,
            "communicators": SimpleNamespace(bytes=SimpleNamespace(low=0), groups=(1, 2)),
            "static_by_cause": {"parameters": needed // 4, "inputs": 1},
            "alive": (),
            "peak_bytes": needed,
            **held,
        }
    )
    worst = SimpleNamespace(ranks=(4, 5), memory=whole, dump=SimpleNamespace(path="validate.ir"))
    asked: list[object] = []

    def plan(_held: object, _machine: object, most: object, _stages: int, **_: object) -> Any:
        asked.append(most)
        return SimpleNamespace(savings=savings, combinations=(), memory=whole)

    monkeypatch.setattr(memory, "memory_plan", plan)
    monkeypatch.setattr(memory, "source_of", lambda _: None)
    subject = subject_of(
        memories=[worst], memory_limit=limit, machine=SimpleNamespace(memory_bytes=64 * GIB)
    )
    found = list(memory.examine(subject))
    assert asked in ([], [None if needed <= (limit or 64 * GIB) else limit])
    return found


def saving(share: float, seconds: float = 0.0, of: int = 40 * GIB) -> Saving:
    return Saving(Option("recompute", "layers.0", "layers.0.recompute()"), int(share * of), seconds)


@pytest.mark.parametrize(
    ("ways", "is_told"),
    [
        ([saving(0.149)], False),
        ([saving(0.151)], True),
        ([saving(0.3, seconds=1e-9)], False),
        ([saving(0.3, seconds=1e-9), saving(0.2)], True),
        ([], False),
    ],
)
def test_a_saving_is_told_of_from_15_percent_of_the_peak_where_it_costs_nothing(
    monkeypatch: pytest.MonkeyPatch, ways: list[Saving], is_told: bool
) -> None:
    found = memory_told(monkeypatch, 40 * GIB, ways)
    assert [item.severity for item in found] == ["info"] * is_told
    for item in found:
        assert item.gain is not None
        assert item.gain.bytes == ways[-1].saved
        assert item.share == ways[-1].saved / (64 * GIB)


@pytest.mark.parametrize(("needed", "is_told"), [(GIB - 1, False), (GIB, True)])
def test_below_a_gibibyte_nobody_looks_for_savings(
    monkeypatch: pytest.MonkeyPatch, needed: int, is_told: bool
) -> None:
    assert bool(memory_told(monkeypatch, needed, [saving(0.5, of=needed)])) == is_told


@pytest.mark.parametrize(("limit", "severity"), [(40 * GIB, "info"), (40 * GIB - 1, "error")])
def test_what_does_not_fit_is_an_error(
    monkeypatch: pytest.MonkeyPatch, limit: int, severity: str
) -> None:
    (found,) = memory_told(monkeypatch, 40 * GIB, [saving(0.5)], limit)
    assert found.severity == severity


@pytest.mark.parametrize(
    ("ways", "says", "is_cure"),
    [
        ([saving(0.1), saving(0.25, 2.0), saving(0.3, 1.0)], "makes it fit", True),
        ([saving(0.25, 2.0), saving(0.24)], "makes it fit", True),
        ([saving(0.1), saving(0.24)], "no switches make it fit", False),
        ([], "no switch makes it less", False),
    ],
)
def test_what_makes_it_fit_saves_all_that_is_too_much(
    monkeypatch: pytest.MonkeyPatch, ways: list[Saving], says: str, is_cure: bool
) -> None:
    (found,) = memory_told(monkeypatch, 40 * GIB, ways, 30 * GIB)
    assert says in found.message
    assert (found.edit is not None) == is_cure
    if is_cure:  # the first that is enough, not the one that saves most
        assert found.gain is not None
        assert found.gain.bytes == 10 * GIB


@pytest.mark.parametrize(
    ("buffers", "kept", "says"),
    [
        (20 * GIB, 1, "20.0 GiB of it for buffers of 2 groups"),
        (20 * GIB - 1, 20 * GIB, "of it for good (parameters"),
        (20 * GIB - 1, 20 * GIB - 2, "the largest tensor at the peak is 2.0 GiB of MatMul %7"),
    ],
)
def test_what_takes_half_is_named_as_the_largest(
    monkeypatch: pytest.MonkeyPatch, buffers: int, kept: int, says: str
) -> None:
    node = SimpleNamespace(op="MatMul", id="%7", line=7)
    small = SimpleNamespace(bytes=GIB, node=SimpleNamespace(op="Add", id="%6", line=6))
    (found,) = memory_told(
        monkeypatch, 40 * GIB, [], 30 * GIB,
        communicators=SimpleNamespace(bytes=SimpleNamespace(low=buffers), groups=(1, 2)),
        static_by_cause={"parameters": kept, "inputs": 0},
        alive=(small, SimpleNamespace(bytes=2 * GIB, node=node), small),
    )  # fmt: skip
    assert says in found.message


# -- layers that are not recomputed ----------------------------------------------------------------


@pytest.mark.parametrize(("kept", "severity"), [(2, "warning"), (3, "info")])
@pytest.mark.parametrize("saved", [0, 5])
def test_more_layers_left_out_than_recomputed_may_be_meant(
    monkeypatch: pytest.MonkeyPatch, kept: int, severity: str, saved: int
) -> None:
    layers = {f"layers.{n}": (SimpleNamespace(id=f"%{n}", line=n),) for n in range(kept)}
    uneven = SimpleNamespace(kept=layers, recomputed=("a", "b"), share_kept=kept / (kept + 2))
    options = [
        SimpleNamespace(switch=switch, target=target)
        for switch, target in (
            ("recompute", "layers.1"),
            ("offload", "layers.0"),
            ("recompute", "a"),
        )
    ]
    taken: list[Any] = []

    def saves(_held: object, chosen: list[Any], _price: object) -> list[Saving]:
        taken.extend(chosen)
        return [saving(1.0, of=saved)] if saved else []

    for name, value in (
        ("uneven_layers", lambda *_: [uneven]),
        ("activation_options", lambda _: options),
        ("prices", lambda *_: None),
        ("savings", saves),
        ("source_of", lambda _: None),
    ):
        monkeypatch.setattr(recompute, name, value)
    held = SimpleNamespace(
        ranks=(1, 2), dump=SimpleNamespace(path="v.ir"), memory=SimpleNamespace(phases={})
    )
    subject = subject_of(memories=[held], machine=SimpleNamespace(memory_bytes=10))
    (found,) = recompute.examine(subject)
    assert found.severity == severity
    assert taken == [options[0]]  # the same switch, of those that are left out
    assert (found.gain is not None) == bool(saved)
    assert (found.weight, found.share) == (saved, saved / 10)


# -- redistributions -------------------------------------------------------------------------------


def edit(seconds: float, edges: int = 1, is_usual: bool = False, name: str = "%1") -> NetworkEdit:
    node: Any = SimpleNamespace(id=name, op="MatMul", scope="Default/net", line=int(name[1:]))
    strategy: Any = ((8, 1), (1, 1))
    return NetworkEdit(
        (node,), strategy, ((1, 1), (1, 1)), "", None, is_usual, seconds, 0, edges, False
    )


def edits_told(
    monkeypatch: pytest.MonkeyPatch,
    edits: list[NetworkEdit],
    redistributions: int = 1,
    devices: int = 8,
) -> list[Diagnosis]:
    """What is told of edits of a step of a second."""
    before = SimpleNamespace(seconds=1.0)
    monkeypatch.setattr(
        redistribution,
        "network_edits",
        lambda *_, **__: SimpleNamespace(edits=edits, before=before),
    )
    monkeypatch.setattr(
        redistribution,
        "source_of",
        lambda node: SourceLine("net.py", node.line),
    )
    report = SimpleNamespace(accepted=True, operators=[1], redistributions=[1] * redistributions)
    checked = SimpleNamespace(
        report=report, dump=SimpleNamespace(path="begin.ir"), context=None, network=None
    )
    parallel = SimpleNamespace(stage_size=devices)
    subject = subject_of(
        checked=checked, parallel=parallel, machine=None, structure=None, cost=None
    )
    return list(redistribution.examine(subject))


@pytest.mark.parametrize(
    ("change", "severity", "share"),
    [
        (edit(0.199), "info", 0.199),
        (edit(0.201), "warning", 0.201),
        (edit(0.201, edges=0), "info", 0.099),
        (edit(0.05, edges=0), "info", 0.05),
        (edit(0.01, is_usual=True), "warning", 0.01),
        (edit(-0.01, is_usual=True), "info", 0.0),
    ],
)
def test_from_a_fifth_of_a_step_on_a_redistribution_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, change: NetworkEdit, severity: str, share: float
) -> None:
    (found,) = edits_told(monkeypatch, [change])
    assert found.severity == severity
    assert found.share == pytest.approx(share)
    assert (found.gain is not None) == (change.seconds > 0)


def test_three_edits_are_told_one_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("%1", "%1", "%2", "%3", "%4")
    found = edits_told(monkeypatch, [edit(0.1, name=name) for name in names])
    assert [item.node for item in found] == ["%1", "%2", "%3"]


@pytest.mark.parametrize(
    ("edges", "devices", "is_told"), [(1, 1, True), (0, 2, True), (0, 1, False)]
)
def test_one_device_without_redistributions_has_nothing_to_change(
    monkeypatch: pytest.MonkeyPatch, edges: int, devices: int, is_told: bool
) -> None:
    assert bool(edits_told(monkeypatch, [edit(0.1)], edges, devices)) == is_told


# -- compilation -----------------------------------------------------------------------------------


def compile_told(
    monkeypatch: pytest.MonkeyPatch, copies: Copies | None, sizes: list[int]
) -> list[Diagnosis]:
    dump = SimpleNamespace(path="validate.ir", nodes=lambda: ())
    passes = [
        slow_compile.PassSize(SimpleNamespace(name=f"pass_{n}", path=f"{n}.ir"), size)  # type: ignore[arg-type]
        for n, size in enumerate(sizes)
    ]
    for name, value in (
        ("phases", lambda _: dict.fromkeys(range(10), "forward")),
        ("unrolled_loops", lambda *_: []),
        ("micro_batch_copies", lambda _: copies),
        ("pass_sizes", lambda *_: passes),
        ("_most_grown", lambda *_: ""),
    ):
        monkeypatch.setattr(slow_compile, name, value)
    return list(slow_compile.examine(subject_of(classes=[((0, 1), dump)])))


@pytest.mark.parametrize(
    ("statements", "severities"),
    [(499, []), (500, ["info"]), (1999, ["info"]), (2000, ["warning"])],
)
def test_copies_for_micro_batches_are_told_from_500_statements_and_a_fault_from_2000(
    monkeypatch: pytest.MonkeyPatch, statements: int, severities: list[str]
) -> None:
    found = compile_told(monkeypatch, Copies(4, 8, statements, 100), [])
    assert [item.severity for item in found] == severities
    assert [item.weight for item in found] == [statements - 100] * len(severities)


@pytest.mark.parametrize(
    ("sizes", "name"),
    [
        ([10_000, 30_000], ""),
        ([10_000, 30_001], "pass_1"),
        ([6_000, 25_999], ""),
        ([6_000, 26_000], "pass_1"),
        ([0, 20_000], "pass_1"),
        ([1, 10_000, 40_000, 41_000], "pass_2"),
        ([1, 40_000, 30_000, 95_000], "pass_3"),
        ([40_000, 10_000], ""),
        ([], ""),
    ],
)
def test_a_pass_is_told_of_that_makes_20000_statements_and_triples_the_graph(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], name: str
) -> None:
    assert [item.since for item in compile_told(monkeypatch, None, sizes)] == [name] * bool(name)


# -- stages ----------------------------------------------------------------------------------------


def stages_told(
    monkeypatch: pytest.MonkeyPatch, seconds: tuple[float, float], best: float, micro: int = 4
) -> list[Diagnosis]:
    """What is told of two stages that take so long, and could so."""
    stages = [
        SimpleNamespace(index=n, rank=n, ranks=(n,), path="stage.ir", layer_seconds=one)
        for n, one in enumerate(seconds)
    ]
    cut = SimpleNamespace(costs=(best, best / 2), stages=(("layers.0",), ("layers.1",)))
    balance = SimpleNamespace(
        stages=stages, stage_count=2, missing=(), micro_batches=micro, cut=cut,
        imbalance=2 * max(seconds) / sum(seconds) - 1,
    )  # fmt: skip
    monkeypatch.setattr(stage_balance, "pipeline", lambda *_: balance)
    monkeypatch.setattr(stage_balance, "layer_times", lambda *_: [(), ()])
    parallel = SimpleNamespace(stages=2, devices=2)
    subject = subject_of(parallel=parallel, memories=[], machine=None)
    return list(stage_balance.examine(subject))


@pytest.mark.parametrize(
    ("seconds", "best", "is_told"),
    [
        ((1.149, 0.851), 1.0, False),
        ((1.151, 0.849), 1.0, True),
        ((2.0, 1.0), 1.91, False),
        ((2.0, 1.0), 1.89, True),
        ((1.0, 2.0), 1.89, True),
        ((0.0, 0.0001), 0.0, True),
    ],
)
def test_a_cut_is_told_of_that_is_15_percent_uneven_and_5_percent_better(
    monkeypatch: pytest.MonkeyPatch, seconds: tuple[float, float], best: float, is_told: bool
) -> None:
    found = stages_told(monkeypatch, seconds, best)
    assert [item.rank for item in found] == [seconds.index(max(seconds))] * is_told
    for item in found:
        assert item.weight == pytest.approx((max(seconds) - best) * 4)


@pytest.mark.parametrize(("micro", "is_told"), [(1, True), (2, False)])
def test_fewer_micro_batches_than_stages_leave_stages_idle(
    monkeypatch: pytest.MonkeyPatch, micro: int, is_told: bool
) -> None:
    found = stages_told(monkeypatch, (1.0, 1.0), 1.0, micro)
    assert ["stages are idle" in item.message for item in found] == [True] * is_told
    for item in found:
        assert item.edit is not None
        assert item.edit.value == 2
