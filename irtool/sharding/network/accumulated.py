"""Sums of gradients over micro-batches: what MindSpore needs of them.

Source: compilations of pipelines with MindSpore 2.7.0 whose step keeps no sums of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from irtool.ir.parameter_roles import is_accumulated
from irtool.sharding.network.analysis import Analysis
from irtool.sharding.network.states import Weight

SUMMED = "step_parallel_utils.cc:CreateMirrorInput"


def check_accumulated(analysis: Analysis, weights: Iterable[Weight]) -> None:
    """Refuse a pipeline whose step keeps no sum of a gradient that ranks share."""
    if analysis.context.stages == 1 or not analysis.differentiates:
        return
    sums = [item.name for item in weights if is_accumulated(item.name)]
    for weight in weights:
        shared = weight.mirror_ranks or weight.scatter_ranks
        if not shared or any(weight.name in name for name in sums):
            continue
        message = (
            f"no parameter accu_grads.{weight.name} sums up its gradient over the micro-batches: "
            "the step of a pipeline has to keep one for every weight whose gradient ranks share"
        )
        analysis.refuse("gradient-sums", message, SUMMED, weight.user, "parameter")
        return
