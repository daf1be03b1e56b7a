"""The answer of ``irtool recover`` for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import field

from irtool.cluster.context.model import RunContext
from irtool.operators.call import Strategy
from irtool.planning.recovery.groups import GroupChanges, GroupUse
from irtool.planning.recovery.growth import Growth
from irtool.planning.recovery.recover import Alternative, Recovery
from irtool.planning.recovery.reshard import Resharding
from irtool.planning.recovery.survival import LostSlice, SurvivingSlice, WeakPoint
from irtool.planning.recovery.times import RecoveryTime
from irtool.report.answer import AnswerObject, doc
from irtool.report.recovery.files import (
    RecoveryCheckpoints,
    RecoveryStrategies,
    checkpoints_answer,
    strategies_answer,
)
from irtool.report.recovery.view import RecoveryView, assumptions_text
from irtool.report.run_answer import RunAnswer, context_fields

_MOST_LINKS = 100
"""Links that are listed, the busiest first: there may be as many as pairs of devices."""


class RecoveryPlan(AnswerObject, frozen=True, kw_only=True):
    """A plan to go on with."""

    how: Annotated[str, doc("where its strategies are from: `searched`, `scaled` or `given`")]
    accepted: Annotated[bool | None, doc("what MindSpore would say of it; null: not known")]
    step_seconds: Annotated[
        float | None, doc("slowest stage, the planner's model; null: not all has a price")
    ]
    operators_changed: int
    bytes_moved: Annotated[int, doc("from peers")]
    bytes_from_storage: int
    move_seconds: float


class RebuiltGroup(AnswerObject, frozen=True, kw_only=True):
    """A group that holds a lost rank."""

    group: str
    ranks: list[int]
    operators: Annotated[dict[str, int], doc("how often each uses it, on one rank")]
    extrapolated: Annotated[bool, doc("whether it was inferred from groups of other ranks")]


class NamedGroup(AnswerObject, frozen=True, kw_only=True):
    """A communication group by its name and its ranks."""

    group: str
    ranks: list[int]


class ChangedGroups(AnswerObject, frozen=True, kw_only=True):
    """The new plan's groups against the old one's, both predicted."""

    kept: list[NamedGroup]
    added: list[NamedGroup]
    removed: list[NamedGroup]


class ReplicaSets(AnswerObject, frozen=True, kw_only=True):
    """Ranks that hold the same slice of a parameter."""

    parameter: str
    sets: list[list[int]]


class LevelTraffic(AnswerObject, frozen=True, kw_only=True):
    """What goes over links of one kind."""

    level: str
    bytes: int
    links: Annotated[int, doc("pairs of devices")]
    busiest_link: Annotated[int, doc("bytes")]
    busiest_sender: Annotated[int, doc("bytes")]
    busiest_receiver: Annotated[int, doc("bytes")]
    seconds: float


class BusyLink(AnswerObject, frozen=True, kw_only=True):
    """What one device sends to another."""

    source: Annotated[int, doc("old rank of the sender")] = field(name="from")
    rank: Annotated[int, doc("new rank of the receiver")]
    device: Annotated[int | None, doc("its old rank; null: a new device")]
    level: str
    bytes: int


class RankMove(AnswerObject, frozen=True, kw_only=True):
    """Where the state of one new rank comes from, in bytes."""

    rank: int
    device: Annotated[int | None, doc("the old rank whose device plays it; null: a new one")]
    local: Annotated[int, doc("there already")]
    peers: Annotated[int, doc("from other devices")]
    levels: Annotated[dict[str, int], doc("of `peers`, by kind of link")]
    storage: int


class ChangedStrategy(AnswerObject, frozen=True, kw_only=True):
    """An operator with another strategy."""

    node: str
    op: str
    line: Annotated[int, doc("of the plan's dump")]
    before: Strategy | None
    after: Strategy | None


class GrownParameter(AnswerObject, frozen=True, kw_only=True):
    """A parameter of the grown network."""

    name: str
    fate: Annotated[str, doc("`new`, `resharded`, `renamed` or `kept`")]
    old: Annotated[str | None, doc("its name before")]
    shape: list[int]
    bytes: int
    slices: Annotated[dict[str, list[list[int]]], doc("by rank: begin and end of each dimension")]


class GrownNetwork(AnswerObject, frozen=True, kw_only=True):
    """A network with more layers than before."""

    local: Annotated[bool, doc("whether only the new part is planned")]
    operators_unchanged: int
    operators_resharded: list[str]
    operators_added: list[str]
    operators_removed: list[str]
    border: Annotated[list[str], doc("nodes where the new part meets the old one")]
    dropped: list[str]
    parameters: list[GrownParameter]


class RecoverySeconds(AnswerObject, frozen=True, kw_only=True):
    """How long one way to get the state back takes, by cause."""

    start: float
    groups: float
    compile: float
    state: float
    data: float
    lost_steps: float
    total: float
    largest: Annotated[str, doc("the cause that takes longest")]


class RecoveryTimes(AnswerObject, frozen=True, kw_only=True):
    """Restore from peers against restart from a checkpoint."""

    peers: Annotated[RecoverySeconds | None, doc("null: not possible, or not known")]
    checkpoint: RecoverySeconds
    checkpoint_bytes: int
    store_seconds: Annotated[float, doc("that writing a checkpoint takes")]
    assumptions: str


class RecoverAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.recover/1"
):
    """Devices or layers that came or went: what changes, what moves, how long it takes.

    Keys of what moves are null where there is no plan.
    """

    path: Annotated[str, doc("the run")]
    devices: int
    lost: Annotated[list[int], doc("ranks")]
    added: Annotated[int, doc("devices")]
    target: Annotated[int, doc("devices to go on with")]
    stages: Annotated[int, doc("pipeline stages to go on with")]
    legal: Annotated[list[int], doc("all legal numbers up to what is left")]
    accepted: Annotated[
        bool | None,
        doc("what MindSpore would say of the new plan; null: not known, or nothing changes"),
    ]
    plan: Annotated[
        str | None,
        doc("where the plan's strategies are from, as in `ways`; null: the old ones stay"),
    ]
    ways: Annotated[list[RecoveryPlan], doc("all plans looked at, that one first")]
    step_seconds_before: Annotated[
        float | None,
        doc(
            "of the old plan on the old devices, slowest stage; null: nothing changes, or not all "
            "has a price"
        ),
    ]
    groups_rebuilt: list[RebuiltGroup]
    groups_changed: Annotated[ChangedGroups | None, doc("null: nothing changes")]
    slices_lost: Sequence[LostSlice]
    slices_surviving: Sequence[SurvivingSlice]
    common_replicas: Annotated[
        list[list[int]],
        doc(
            "sets of ranks that MindSpore's own recovery (TFT) restores from each other; one rank: "
            "from none"
        ),
    ]
    replicas: list[ReplicaSets]
    weak_points: Annotated[list[list[int]], doc("smallest sets of ranks no peer can repair")]
    weak_servers: Annotated[list[list[int]], doc("smallest sets of servers no peer can repair")]
    bytes_moved: Annotated[int | None, doc("from peers under the mapping that is taken")]
    bytes_moved_in_order: Annotated[int | None, doc("from peers with survivors in order")]
    bytes_from_storage: Annotated[int | None, doc("what no survivor has")]
    best_mapping: Annotated[bool | None, doc("whether it is the best one, rather than that order")]
    levels: Annotated[list[LevelTraffic] | None, doc("the innermost kind of link first")]
    links: Annotated[list[BusyLink] | None, doc(f"the {_MOST_LINKS} with most to carry")]
    moves: Annotated[list[RankMove] | None, doc("by new rank")]
    operators_changed: int
    changes: list[ChangedStrategy]
    classes: Annotated[list[list[int]], doc("ranks with equal graphs: one compilation each")]
    compile_cache: Annotated[str, doc("whether a cache is valid, in words")]
    fingerprints: Annotated[
        dict[str, str],
        doc(
            "by stage, of its begin dump, up to what differs from rank to rank: equal if and only "
            "if the graphs are, so one kept beside a compile cache tells later whether that is "
            "stale"
        ),
    ]
    growth: Annotated[GrownNetwork | None, doc("with `--grown`")]
    time: RecoveryTimes
    strategy_file: Annotated[
        RecoveryStrategies | None, doc("null: nothing changes, or `notes` say why there is none")
    ]
    checkpoints: Annotated[RecoveryCheckpoints | None, doc("null: likewise")]
    notes: Annotated[list[str], doc("what could not be said")]


def recover_answer(view: RecoveryView, context: RunContext) -> RecoverAnswer:
    """The answer of ``irtool recover`` for scripts.

    Args:
        view: the recovery, and what its command knows around it.
        context: of the run, with origins.
    """
    recovery = view.recovery
    return RecoverAnswer(
        path=view.path,
        devices=recovery.context.devices,
        lost=list(recovery.request.lost),
        added=recovery.request.added,
        target=recovery.target,
        stages=recovery.stages,
        legal=list(recovery.legal),
        accepted=recovery.accepted,
        plan=recovery.plan.how if recovery.plan is not None else None,
        ways=[_alternative(alternative) for alternative in recovery.alternatives],
        step_seconds_before=recovery.old_seconds,
        groups_rebuilt=[_rebuilt(group) for group in recovery.broken],
        groups_changed=_changed(recovery.group_changes),
        **_slices(recovery),
        **_moves(recovery.moves),
        operators_changed=recovery.changed,
        changes=_strategies(recovery),
        classes=[list(ranks) for ranks in view.classes],
        compile_cache=view.cache,
        fingerprints={str(stage): text for stage, text in view.fingerprints.items()},
        growth=_growth(recovery.growth),
        time=_times(view),
        strategy_file=strategies_answer(view),
        checkpoints=checkpoints_answer(view),
        notes=[*recovery.notes, *view.notes],
        **context_fields(context),
    )


def _alternative(alternative: Alternative) -> RecoveryPlan:
    return RecoveryPlan(
        how=alternative.plan.how,
        accepted=alternative.plan.accepted,
        step_seconds=alternative.plan.seconds,
        operators_changed=len(alternative.plan.changes),
        bytes_moved=alternative.moves.peer_bytes,
        bytes_from_storage=alternative.moves.lost_bytes,
        move_seconds=alternative.moves.seconds,
    )


def _rebuilt(group: GroupUse) -> RebuiltGroup:
    return RebuiltGroup(
        group=group.name,
        ranks=list(group.ranks),
        operators=dict(group.operators),
        extrapolated=group.extrapolated,
    )


def _changed(changes: GroupChanges | None) -> ChangedGroups | None:
    if changes is None:
        return None
    return ChangedGroups(
        kept=_named(changes.kept), added=_named(changes.added), removed=_named(changes.removed)
    )


def _named(groups: Sequence[GroupUse]) -> list[NamedGroup]:
    return [NamedGroup(group=group.name, ranks=list(group.ranks)) for group in groups]


def _slices(recovery: Recovery) -> dict[str, Any]:
    return {
        "slices_lost": recovery.lost,
        "slices_surviving": recovery.surviving,
        "common_replicas": [list(ranks) for ranks in recovery.common_replicas],
        "replicas": [
            ReplicaSets(parameter=item.name, sets=[list(ranks) for ranks in item.replica_sets])
            for item in recovery.old.items
        ],
        "weak_points": _units(recovery.weak),
        "weak_servers": _units(recovery.weak_servers),
    }


def _units(points: Sequence[WeakPoint]) -> list[list[int]]:
    return [list(point.units) for point in points]


def _moves(moves: Resharding | None) -> dict[str, Any]:
    if moves is None:
        return dict.fromkeys((
            "bytes_moved", "bytes_moved_in_order", "bytes_from_storage", "best_mapping", "levels",
            "links", "moves",
        ))  # fmt: skip
    return {
        "bytes_moved": moves.peer_bytes,
        "bytes_moved_in_order": moves.identity_bytes,
        "bytes_from_storage": moves.lost_bytes,
        "best_mapping": moves.is_best,
        "levels": [
            LevelTraffic(
                level=traffic.level.name,
                bytes=traffic.bytes,
                links=traffic.pairs,
                busiest_link=traffic.link,
                busiest_sender=traffic.sender,
                busiest_receiver=traffic.receiver,
                seconds=traffic.seconds,
            )
            for traffic in moves.levels
        ],
        "links": [
            BusyLink(
                source=link.source,
                rank=link.rank,
                device=link.device,
                level=link.level,
                bytes=link.bytes,
            )
            for link in moves.busiest[:_MOST_LINKS]
        ],
        "moves": [
            RankMove(
                rank=move.rank,
                device=move.device,
                local=move.local,
                peers=move.peers,
                levels=dict(move.levels),
                storage=move.lost,
            )
            for move in moves.moves
        ],
    }


def _strategies(recovery: Recovery) -> list[ChangedStrategy]:
    return [
        ChangedStrategy(
            node=change.node.id,
            op=change.node.op,
            line=change.node.line,
            before=change.before,
            after=change.after,
        )
        for change in (recovery.plan.changes if recovery.plan is not None else ())
    ]


def _times(view: RecoveryView) -> RecoveryTimes:
    times = view.recovery.times
    return RecoveryTimes(
        peers=None if times.peers is None else _time(times.peers),
        checkpoint=_time(times.checkpoint),
        checkpoint_bytes=times.checkpoint_bytes,
        store_seconds=times.store_seconds,
        assumptions=assumptions_text(view.assumptions, view.recovery.machine),
    )


def _time(time: RecoveryTime) -> RecoverySeconds:
    return RecoverySeconds(
        start=time.start,
        groups=time.groups,
        compile=time.compile,
        state=time.state,
        data=time.data,
        lost_steps=time.lost_steps,
        total=time.total,
        largest=time.largest,
    )


def _growth(growth: Growth | None) -> GrownNetwork | None:
    if growth is None:
        return None
    return GrownNetwork(
        local=growth.is_local,
        operators_unchanged=growth.unchanged,
        operators_resharded=[node.id for node in growth.resharded],
        operators_added=[node.id for node in growth.added],
        operators_removed=[node.id for node in growth.removed],
        border=[node.id for node in growth.border],
        dropped=list(growth.dropped),
        parameters=[
            GrownParameter(
                name=parameter.name,
                fate=parameter.fate,
                old=parameter.old,
                shape=list(parameter.shape),
                bytes=parameter.bytes,
                slices={
                    str(rank): [list(extent) for extent in box]
                    for rank, box in parameter.slices.items()
                },
            )
            for parameter in growth.parameters
        ],
    )
