"""What a plan's answer and report are made of."""

from __future__ import annotations

from irtool.ir.dataclass import dataclass
from irtool.planning.cost.costs import assumptions_of
from irtool.planning.plans.plan import Plan
from irtool.planning.recovery.elastic import ElasticPlan
from irtool.planning.scaling.candidates import Candidates
from irtool.planning.scaling.scaled import Scaled
from irtool.planning.stages.stages import StagedPlan


@dataclass(frozen=True, eq=False)
class PlanView:
    """A plan to show, with what it is a part or one of.

    Attributes:
        plan: the plan; of a pipeline that inside of a stage, for other devices the chosen one.
        path: the dump.
        limit: rows of a list that text shows; None is the usual number, 0 is all.
        elastic: for other devices, what it was chosen from.
        staged: the pipeline that it is a part of.
        scaled: the network of other sizes that is planned.
        candidates: what was searched together, where this plan is one of them.
    """

    plan: Plan
    path: str
    limit: int | None = None
    elastic: ElasticPlan | None = None
    staged: StagedPlan | None = None
    scaled: Scaled | None = None
    candidates: Candidates | None = None


def assumed(view: PlanView) -> list[str]:
    """What the model takes for granted.

    Args:
        view: the plan; a pipeline and recomputation change what is assumed.
    """
    texts = assumptions_of(view.plan.after.machine)
    if view.staged is not None:
        own = "stages run one forward, one backward (1F1B); what they hand on is not hidden"
        texts = [own if text.startswith("one micro-batch") else text for text in texts]
    decisions = view.plan.decisions
    if decisions is None or not decisions.recomputed:
        return texts
    return [text.replace("none is recomputed", "but for what is recomputed") for text in texts]
