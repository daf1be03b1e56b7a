"""The answer of ``irtool plan`` for scripts."""

from __future__ import annotations

from math import isinf
from typing import Annotated, Literal

from msgspec import field

from irtool.cluster.context.model import RunContext
from irtool.operators.call import Strategy
from irtool.planning.plans.border import Border, Share
from irtool.planning.plans.decisions import Decisions
from irtool.planning.plans.onto import Onto
from irtool.planning.plans.plan import Plan, PlannedOperator
from irtool.planning.recovery.elastic import ElasticPlan
from irtool.planning.recovery.elastic.transition import COMPILE_SECONDS
from irtool.planning.scaling.candidates import Candidates
from irtool.planning.scaling.scaled import Scaled
from irtool.planning.stages.stages import StagedPlan
from irtool.report.answer import AnswerObject, doc
from irtool.report.cost import (
    DeviceBytes,
    HiddenSeconds,
    ReceivedBytes,
    device_bytes,
    received_bytes,
    seconds_by_cause,
)
from irtool.report.planning.view import PlanView, assumed
from irtool.report.run_answer import RunAnswer, context_fields


class PlannedSeconds(AnswerObject, frozen=True, kw_only=True):
    """How long a step takes, before and after."""

    before: Annotated[float | None, doc("null: the dump had no complete plan for these devices")]
    after: float
    lower_bound: Annotated[
        float | None,
        doc(
            "that no plan undercuts; null: `recursive` and `propagation` have none, nor is there "
            "one where the dump is cheaper than any plan that was found"
        ),
    ]
    passed_over: Annotated[
        float | None,
        doc(
            "of the fastest plan, where it saves next to nothing and communicates dearer than the "
            "dump; `lower_bound` is then of plans that communicate no dearer; null: it is this one"
        ),
    ]
    unit: Literal["seconds a step"] = "seconds a step"
    hidden: Annotated[HiddenSeconds, doc("of communication that computing could hide, as fused")]


class PlannedShares(AnswerObject, frozen=True, kw_only=True):
    """Seconds by cause, as in [cost](json-cost.md)."""

    before: dict[str, float] | None
    after: dict[str, float]


class PlannedStrategy(AnswerObject, frozen=True, kw_only=True):
    """An operator with its strategy before and after."""

    node: str
    op: str
    line: int
    before: Strategy | None
    after: Strategy | None
    out_before: Strategy | None
    out_after: Strategy | None
    pinned: Annotated[bool, doc("whether something that is given decided it")]
    why: Annotated[str, doc('why there was no choice; "": there was one')]


class ElasticPoint(AnswerObject, frozen=True, kw_only=True):
    """A plan for some number of devices."""

    devices: int
    seconds: Annotated[float, doc("a step")]
    fetched_bytes: Annotated[int, doc("that all devices together fetch")]
    slices_changed: Annotated[int, doc("operators whose slices change: those are compiled")]
    strategies_changed: Annotated[int, doc("operators whose strategy changes")]
    seconds_before: Annotated[float, doc("of start-up: fetching, compiling")]
    horizon: Annotated[float | None, doc("steps that it was searched for; null: endless")]
    cheapest_for: Annotated[
        tuple[float, float | None] | None,
        doc("from so many steps to so many (null: endless); null: it is never the cheapest"),
    ]


class ElasticChoice(AnswerObject, frozen=True, kw_only=True):
    """What a plan for other devices was chosen from."""

    lost: Annotated[list[int], doc("ranks")]
    devices: Annotated[
        list[int | None],
        doc("by new rank the old one whose device plays it; null: a new device"),
    ]
    legal: Annotated[list[int], doc("numbers of devices that the network allows")]
    why: str
    horizon: Annotated[float | None, doc("steps; null: endless")]
    bandwidth: Annotated[float, doc("bytes a second at which state is fetched")]
    compile_seconds: Annotated[float, doc("of one operator")]
    operators: Annotated[int, doc("how many there are")]
    chosen: Annotated[int, doc("index into `points`")]
    points: list[ElasticPoint]


class PipelineStage(AnswerObject, frozen=True, kw_only=True):
    """A stage of a planned pipeline."""

    layers: list[str]
    seconds: Annotated[float, doc("of all micro-batches, nothing idle")]
    static_bytes: Annotated[int, doc("weights, gradients and states on a device")]
    activation_bytes: Annotated[int, doc("results of the micro-batches that it holds at once")]
    in_flight: Annotated[int, doc("micro-batches whose results it holds")]
    loose_bytes: Annotated[
        int,
        doc(
            "of the static ones: weights of other stages that stand in no cell, so that every "
            "stage keeps them"
        ),
    ]
    sent_bytes: Annotated[int, doc("that a device hands to later stages in a step, forward")]
    scopes: list[str]


class PipelineTransfer(AnswerObject, frozen=True, kw_only=True):
    """What a device of one stage hands to one of another in a step."""

    source: Annotated[int, doc("the stage")] = field(name="from")
    target: Annotated[int, doc("the stage")] = field(name="to")
    what: Annotated[str, doc("the operator, or the weight")]
    bytes: Annotated[int, doc("of one message")]
    count: Annotated[int, doc("messages of a step, forward")]
    returned: Annotated[bool, doc("whether as many gradients come back")]


class PlannedPipeline(AnswerObject, frozen=True, kw_only=True):
    """A pipeline; the plan beside it is of one micro-batch inside of a stage."""

    devices: int
    micro_batches: int
    seconds: Annotated[float, doc("a step")]
    unstaged_seconds: Annotated[
        float | None, doc("the dump's own step; null: it has no plan for these devices")
    ]
    unstaged_planned_seconds: Annotated[
        float | None, doc("a step as it is planned without stages; null: nothing fits")
    ]
    bubble: Annotated[float, doc("share of the work that is idle, if all stages take as long")]
    imbalance: Annotated[float, doc("by which share the slowest stage exceeds the mean")]
    replanned: Annotated[list[int], doc("stages planned anew to fit into `--memory`")]
    stages: list[PipelineStage]
    transfers: list[PipelineTransfer]


class ScaledRole(AnswerObject, frozen=True, kw_only=True):
    """A size of a network that was planned with other sizes than the dump has."""

    role: Annotated[str, doc("`layers`, `hidden`, `heads` and so on")]
    before: Annotated[int, doc("in the dump")]
    after: Annotated[int, doc("as it is planned")]
    given: Annotated[bool, doc("whether `--role` says it")]


class PlanCandidate(AnswerObject, frozen=True, kw_only=True):
    """One way to run a network that was planned with other sizes."""

    devices: Annotated[int, doc("that it uses, of all stages")]
    stages: int
    micro_batches: Annotated[int, doc("of a step")]
    optimizer_parallel: Annotated[bool, doc("whether weights may be cut over their replicas")]
    recompute: Annotated[bool, doc("whether operators may run again")]
    seconds: Annotated[float, doc("a step; of a deep network one layer stands for its equals")]
    memory_bytes: Annotated[
        int, doc("of a device of the fullest stage: weights, gradients, states, kept results")
    ]
    lower_bound: Annotated[
        float | None,
        doc("that no strategies undercut in as many stages and micro-batches on these devices"),
    ]
    fits: Annotated[bool, doc("whether it keeps the limit of memory")]
    chosen: Annotated[bool, doc("whether the rest of the answer is about this one")]


class NotKept(AnswerObject, frozen=True, kw_only=True):
    """An operator that both plans have, planned anew."""

    node: str
    op: str
    why: str


class OntoOldPlan(AnswerObject, frozen=True, kw_only=True):
    """What became of an old plan."""

    kept: Annotated[list[str], doc("nodes")]
    added: Annotated[list[str], doc("nodes")]
    not_kept: list[NotKept]
    removed: Annotated[int, doc("how many")]


class BorderShare(AnswerObject, frozen=True, kw_only=True):
    """Seconds of a region and of its border."""

    inside: float
    border: Annotated[float, doc("of edges across it")]
    edges: Annotated[int, doc("how many that are")]
    whole: Annotated[float, doc("a step")]


class RegionBorder(AnswerObject, frozen=True, kw_only=True):
    """What it costs that all around a region is frozen."""

    operators: Annotated[int, doc("of the region")]
    seconds: Annotated[float, doc("that the frozen border costs the region")]
    step_seconds: Annotated[float, doc("that not planning the rest costs")]
    frozen: BorderShare
    free: Annotated[BorderShare, doc("where everything is planned")]


class PlanDecisions(AnswerObject, frozen=True, kw_only=True):
    """What was decided beside strategies."""

    sharded: Annotated[list[str] | None, doc("weights cut over replicas; null: not asked")]
    whole: Annotated[list[str], doc("weights with parallel_optimizer=False")]
    recomputed: Annotated[list[str] | None, doc("nodes that run again; null: not asked")]
    recompute_seconds: float
    saved_bytes: Annotated[int, doc("of results that are not kept")]
    held_bytes: Annotated[int, doc("of them at a time")]


class PlanAnswer(RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.plan/1"):
    """Which strategies would be better, and how far they are from the best."""

    path: Annotated[str, doc("what was read")]
    algorithm: Annotated[str, doc("`exact`, `recursive` or `propagation`")]
    devices: Annotated[int, doc("for which it is planned")]
    accepted: Annotated[bool | None, doc("what [check](json-check.md) says of the plan")]
    machine: Annotated[str, doc("name of the machine model")]
    cost: PlannedSeconds
    shares: PlannedShares
    communication: Annotated[list[ReceivedBytes], doc("of the plan")]
    memory_bytes: Annotated[
        DeviceBytes,
        doc("of the plan, which the limit is held against; of a pipeline the fullest stage's"),
    ]
    account: Annotated[
        DeviceBytes | None,
        doc("equals `memory_bytes`; null in stages"),
    ]
    memory_limit: Annotated[int | None, doc("bytes of a device")]
    seconds: Annotated[float, doc("CPU seconds of tables and search, without reading")]
    rounds: Annotated[int, doc("how often the search was run")]
    operators: list[PlannedStrategy]
    elastic: Annotated[
        ElasticChoice | None,
        doc("for other devices; `cost.before` is then of the old strategies fitted to them"),
    ]
    pipeline: Annotated[
        PlannedPipeline | None,
        doc(
            "with `--to-stages`; `cost` and `shares` are then of the whole step on one device of "
            "every stage together"
        ),
    ]
    onto: Annotated[OntoOldPlan | None, doc("with `--onto`")]
    border: Annotated[RegionBorder | None, doc("with `--region`")]
    decisions: Annotated[PlanDecisions | None, doc("with `--optimizer-parallel` or `--recompute`")]
    notes: list[str]
    roles: Annotated[
        list[ScaledRole] | None,
        doc("with `--scale`: which sizes the dump has, and the plan; null: its own network"),
    ]
    candidates: Annotated[
        list[PlanCandidate] | None,
        doc("with `--scale`, where all that can be decided was searched together: the first ten"),
    ]


def plan_answer(view: PlanView, context: RunContext) -> PlanAnswer:
    """The answer of ``irtool plan`` for scripts.

    Args:
        view: the plan, and what it is a part or one of.
        context: of the run, with origins.
    """
    plan = view.plan
    return PlanAnswer(
        path=view.path,
        algorithm=plan.algorithm,
        devices=plan.context.devices,
        accepted=plan.report.accepted,
        machine=plan.after.machine.name,
        cost=_seconds(plan),
        shares=PlannedShares(
            before=seconds_by_cause(plan.before.shares) if plan.before else None,
            after=seconds_by_cause(plan.after.shares),
        ),
        communication=received_bytes(plan.after),
        memory_bytes=device_bytes(plan.after.memory),
        account=device_bytes(plan.after.memory) if view.staged is None else None,
        memory_limit=plan.memory_limit,
        seconds=plan.seconds,
        rounds=plan.rounds,
        operators=[_strategy(item) for item in plan.operators],
        elastic=None if view.elastic is None else _elastic(view.elastic),
        pipeline=None if view.staged is None else _pipeline(view.staged),
        onto=None if plan.onto is None else _onto(plan.onto),
        border=None if plan.border is None else _border(plan.border),
        decisions=None if plan.decisions is None else _decisions(plan.decisions),
        notes=list(plan.notes),
        roles=None if view.scaled is None else _roles(view.scaled),
        candidates=None if view.candidates is None else _candidates(view.candidates),
        **context_fields(context, assumed(view)),
    )


def _roles(network: Scaled) -> list[ScaledRole]:
    return [
        ScaledRole(role=name, before=before, after=after, given=network.roles.known[name].given)
        for name, (before, after) in network.sizes.items()
    ]


def _candidates(candidates: Candidates) -> list[PlanCandidate]:
    return [
        PlanCandidate(
            devices=candidate.devices,
            stages=candidate.stages,
            micro_batches=candidate.micro_batches,
            optimizer_parallel=candidate.optimizer_parallel,
            recompute=candidate.recompute,
            seconds=candidate.seconds,
            memory_bytes=candidate.memory_bytes,
            lower_bound=candidate.lower_bound,
            fits=candidate.fits,
            chosen=number == candidates.chosen,
        )
        for number, candidate in enumerate(candidates.ranked)
    ]


def _seconds(plan: Plan) -> PlannedSeconds:
    before = plan.before
    return PlannedSeconds(
        before=before.seconds if before else None,
        after=plan.after.seconds,
        lower_bound=plan.lower_bound,
        passed_over=plan.passed_over.seconds if plan.passed_over is not None else None,
        hidden=HiddenSeconds(
            before=before.hidden_at_best if before else None, after=plan.after.hidden_at_best
        ),
    )


def _strategy(item: PlannedOperator) -> PlannedStrategy:
    return PlannedStrategy(
        node=item.node.id,
        op=item.node.op,
        line=item.node.line,
        before=item.before,
        after=item.after,
        out_before=item.out_before,
        out_after=item.out_after,
        pinned=item.pinned,
        why=item.why,
    )


def _elastic(choice: ElasticPlan) -> ElasticChoice:
    points = [
        ElasticPoint(
            devices=point.devices,
            seconds=point.seconds,
            fetched_bytes=point.fetched_bytes,
            slices_changed=point.recompiled,
            strategies_changed=point.changed,
            seconds_before=point.seconds_before(choice.bandwidth),
            horizon=_finite(point.horizon),
            cheapest_for=None if best is None else (best[0], _finite(best[1])),
        )
        for point, best in zip(choice.points, choice.best_over, strict=True)
    ]
    return ElasticChoice(
        lost=list(choice.lost),
        devices=list(choice.devices),
        legal=list(choice.legal),
        why=choice.why,
        horizon=_finite(choice.horizon),
        bandwidth=choice.bandwidth,
        compile_seconds=COMPILE_SECONDS,
        operators=choice.operators,
        chosen=choice.chosen,
        points=points,
    )


def _finite(number: float) -> float | None:
    return None if isinf(number) else number


def _pipeline(staged: StagedPlan) -> PlannedPipeline:
    return PlannedPipeline(
        devices=staged.devices,
        micro_batches=staged.micro_batches,
        seconds=staged.seconds,
        unstaged_seconds=staged.unstaged,
        unstaged_planned_seconds=staged.unstaged_plan,
        bubble=staged.bubble,
        imbalance=staged.imbalance,
        replanned=list(staged.replanned),
        stages=[
            PipelineStage(
                layers=list(stage.layers),
                seconds=stage.seconds,
                static_bytes=stage.static_bytes,
                activation_bytes=stage.activation_bytes,
                in_flight=stage.in_flight,
                loose_bytes=stage.loose_bytes,
                sent_bytes=stage.sent_bytes,
                scopes=list(stage.scopes),
            )
            for stage in staged.stages
        ],
        transfers=[
            PipelineTransfer(
                source=item.source,
                target=item.target,
                what=item.what,
                bytes=item.size,
                count=item.count,
                returned=item.returned,
            )
            for item in staged.transfers
        ],
    )


def _onto(onto: Onto) -> OntoOldPlan:
    return OntoOldPlan(
        kept=[node.id for node in onto.kept],
        added=[node.id for node in onto.added],
        not_kept=[
            NotKept(node=item.node.id, op=item.node.op, why=item.why) for item in onto.not_kept
        ],
        removed=onto.removed,
    )


def _border(border: Border) -> RegionBorder:
    return RegionBorder(
        operators=border.operators,
        seconds=border.seconds,
        step_seconds=border.step_seconds,
        frozen=_share(border.frozen),
        free=_share(border.free),
    )


def _share(share: Share) -> BorderShare:
    return BorderShare(
        inside=share.inside, border=share.border, edges=share.edges, whole=share.total
    )


def _decisions(decisions: Decisions) -> PlanDecisions:
    recomputed = decisions.recomputed
    return PlanDecisions(
        sharded=None if decisions.sharded is None else list(decisions.sharded),
        whole=list(decisions.unsharded),
        recomputed=None if recomputed is None else [node.id for node in recomputed],
        recompute_seconds=decisions.seconds,
        saved_bytes=decisions.saved,
        held_bytes=decisions.held,
    )
