"""What PyTorch's optimizers were told, from the calls that they make.

Adam and AdamW, one parameter after the other: ``step += 1``, ``p.mul_(1 - lr·wd)`` (AdamW) or
``g.add(p, alpha=wd)`` (Adam), ``m.lerp_(g, 1 - beta1)``, ``v.mul_(beta2)``, ``v.addcmul_(g, g)``,
``(sqrt(v) / …).add_(eps)``, ``p.addcdiv_(m, …, value=-lr / (1 - beta1^step))``.  SGD:
``g.add(p, alpha=wd)``, ``b.mul_(momentum)``, ``b.add_(g)``, ``p.add_(b, alpha=-lr)``.  (As
torch.optim computes with ``foreach=False``; the fused forms leave no calls.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field

from irtool.compare.tensors.model import Op, TensorRun
from irtool.ir.dataclass import dataclass

Said = tuple[str, float, str]
"""Name, value, and the call that says it."""


@dataclass(slots=True)
class _Parameter:
    """The calls for one parameter so far."""

    step: float = math.nan
    beta1: float = math.nan
    factor: float = math.nan
    added: list[tuple[Op, float]] = field(default_factory=list[tuple[Op, float]])


def told_by_calls(run: TensorRun) -> Iterator[Said]:
    """What the calls of PyTorch's optimizers tell of their hyperparameters.

    Args:
        run: a dump of calls; those of the optimizer count.

    Yields:
        Name, value, and the call that tells it; the same is told once a parameter.
    """
    calls = [op for op in run.ops if op.phase == "optimizer" and op.call]
    now = _Parameter()
    for place, op in enumerate(calls):
        after = calls[place + 1] if place + 1 < len(calls) else None
        yield from _call(run, op, after, now)
        if op.type == "addcdiv_" or (op.type == "add_" and _alpha(op) < 0):
            now = _Parameter()


def _call(run: TensorRun, op: Op, after: Op | None, now: _Parameter) -> Iterator[Said]:
    number = op.attributes.get("input.1")
    value = float(number) if isinstance(number, float) else math.nan
    alpha = _alpha(op)
    match op.type:
        case "__iadd__":
            now.step = run.columns.most[op.outputs[0]] if op.outputs else math.nan
        case "lerp_":
            weight = op.attributes.get("input.2")
            if isinstance(weight, float):
                now.beta1 = 1 - weight
                yield "beta1", now.beta1, op.name
        case "mul_" if after is not None and not math.isnan(value):
            if after.type == "addcmul_":
                yield "beta2", value, op.name
            elif after.type == "lerp_":
                now.factor = value
            elif after.type == "add_" and _alpha(after) > 0:
                yield "momentum", value, op.name
        case "add" if not math.isnan(alpha):
            now.added.append((op, alpha))
        case "add_" if alpha < 0:
            yield from _updated(run, op, now)
            yield "learning rate", -alpha, op.name
        case "add_" if not math.isnan(value):
            yield "optimizer epsilon", value, op.name
        case "addcdiv_":
            yield from _stepped(run, op, now)
        case _:
            pass


def _stepped(run: TensorRun, op: Op, now: _Parameter) -> Iterator[Said]:
    """The learning rate and weight decay that Adam's last call, ``addcdiv_``, tells."""
    step = op.attributes.get("input.value", op.attributes.get("input.3"))
    if not isinstance(step, float):
        return
    rate = -step * (1 - now.beta1**now.step)
    if math.isnan(rate) or not rate:
        yield "step size (rate, bias corrected)", -step, op.name
        if not math.isnan(now.factor):
            yield "decay factor (1 - rate · decay)", now.factor, op.name
        return
    yield "learning rate", rate, op.name
    if not math.isnan(now.factor):
        yield "weight decay", (1 - now.factor) / rate, op.name
    else:
        yield from _updated(run, op, now)


def _updated(run: TensorRun, op: Op, now: _Parameter) -> Iterator[Said]:
    """Weight decay and Nesterov's momentum, of calls that add to the gradient."""
    columns = run.columns
    decay = 0.0
    for call, alpha in now.added:
        if not call.inputs or not op.inputs:
            continue
        is_decay = columns.norm[call.inputs[-1]] == columns.norm[op.inputs[0]]
        if is_decay:
            decay = alpha
        else:
            yield "momentum", alpha, call.name
            yield "Nesterov's momentum", 1.0, call.name
    yield "weight decay", decay, op.name


def _alpha(op: Op) -> float:
    value = op.attributes.get("input.alpha")
    return float(value) if isinstance(value, int | float) else math.nan
