"""What ``irtool diff --loss`` tells: whether two loss curves part, when, and how surely."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irtool.compare.losses.comparison import (
    DRIFT_T,
    FIRST_STEP,
    Drift,
    LossComparison,
    side_values,
)
from irtool.compare.losses.series import LossRun
from irtool.ir.units import plural
from irtool.report.model import Document, Facts, Heading, Note, Table, number_column, text_column

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 60
NEXT = {
    "different from the first step": "the forward pass differs: dump step 0 on both sides and "
    "compare tensors (irtool diff RUN_A RUN_B)",
    "drift": "compare learning rate, weight decay, betas, epsilon and gradients around the step "
    "where it begins; then dump that step on both sides",
}
"""What to do after each verdict that asks for something."""


def losses_document(found: LossComparison) -> Document:
    """The answer, the figures behind it, the difference as a line of bars."""
    document = Document([Heading(answer_text(found)), Facts(figures(found))])
    apart = deltas(found)
    if any(apart):
        document.add(Facts([("difference", sparkline([abs(delta) for delta in apart]))]))
    rows = _other_rows(found)
    if rows:
        columns = (text_column("also logged"), number_column("left"), number_column("right"))
        document.add(Table("", columns, rows))
    step = NEXT.get(found.verdict)
    if step:
        document.add(Note(f"next: {step}"))
    return document


def answer_text(found: LossComparison) -> str:
    """The answer in one line."""
    if found.broken:
        step, side = found.broken[0]
        return f"the {side} run's loss is not finite from step {step} on, the other's is"
    match found.verdict:
        case "identical":
            return f"identical in {plural(len(found.steps), 'step')}"
        case "noise":
            return (
                f"no sign of a fault in {plural(len(found.steps), 'step')}: the difference is noise"
            )
        case "different from the first step":
            return f"different from the first step: {found.first:.2g} relative"
        case "drift":
            drift = _telling(found)
            side = "above" if drift.mean > 0 else "below"
            return f"the right run drifts {side} the left one{_since(found)}"


def _since(found: LossComparison) -> str:
    return "" if found.change_step is None else f" from step {found.change_step} on"


def _telling(found: LossComparison) -> Drift:
    """The drift that decided."""
    after = found.drift_after
    return after if after is not None and abs(after.t) > abs(found.drift.t) else found.drift


def figures(found: LossComparison) -> list[tuple[str, str]]:
    """What was compared, and the figures that the answer rests on."""
    steps = found.steps
    shifted = f", the right one's steps moved by {found.offset:+d}" if found.offset else ""
    facts = [
        ("left", _run_text(found.left, found.only_left)),
        ("right", _run_text(found.right, found.only_right)),
        ("compared", f"{plural(len(steps), 'step')}, {steps[0]} to {steps[-1]}{shifted}"),
        ("first step", f"{found.first:.2g} relative (suspicious above {FIRST_STEP:g})"),
        (
            "error",
            f"mean {found.mae:.2g}, relative {found.mre:.2g} ({found.grade}), "
            f"late {found.late_mre:.2g}, worst {found.worst[0]:.2g} at step {found.worst[1]}",
        ),
        ("drift", _drift_text(found.drift)),
    ]
    if found.drift_after is not None:
        facts.append(("drift after", f"step {found.change_step}: {_drift_text(found.drift_after)}"))
    facts.append(("noise floor", f"{found.floor:.2g} (from {found.floor_from})"))
    if found.increments is not None:
        facts.append(("increments", f"correlation {found.increments:.6f}"))
    if found.change_step is not None:
        facts.append(("change", f"above the noise floor from step {found.change_step} on"))
    if found.spikes:
        shown = ", ".join(f"step {step} ({side})" for step, side in found.spikes[:8])
        facts.append(("spikes", shown + (" …" if len(found.spikes) > 8 else "")))
    return facts


def _run_text(run: LossRun, alone: int) -> str:
    more = f", {plural(alone, 'step')} of its own" if alone else ""
    skipped = f", {plural(run.skipped, 'line')} skipped" if run.skipped else ""
    return f"{run.path} ({run.kind}, {plural(len(run.loss), 'step')}{more}{skipped})"


def _drift_text(drift: Drift) -> str:
    return (
        f"mean {drift.mean:+.2g} ({drift.relative:+.2g} relative), t = {drift.t:.1f} "
        f"(suspicious beyond ±{DRIFT_T:g}), right above left in {drift.positive:.0%}"
    )


def _other_rows(found: LossComparison) -> list[list[str | int | None]]:
    """Last values of what both runs logged beside the loss."""
    rows: list[list[str | int | None]] = []
    for name in found.left.others.keys() & found.right.others.keys():
        left, right = found.left.others[name], found.right.others[name]
        common = sorted(left.values.keys() & right.values.keys())
        if common:
            step = common[0]
            label = f"{name} at step {step}"
            rows.append([label, f"{left.values[step]:.6g}", f"{right.values[step]:.6g}"])
    return sorted(rows, key=lambda row: str(row[0]))


def deltas(found: LossComparison) -> list[float]:
    """Right minus left by step."""
    left = side_values(found.left, found.steps)
    right = side_values(found.right, found.steps, found.offset)
    return [b - a if math.isfinite(a) and math.isfinite(b) else 0.0
            for a, b in zip(left, right, strict=True)]  # fmt: skip


def sparkline(values: Sequence[float], width: int = _WIDTH) -> str:
    """Values as bars, at most ``width``: the largest of the values that share one."""
    if not values:
        return ""
    size = max(1, math.ceil(len(values) / width))
    parts = [max(values[at : at + size]) for at in range(0, len(values), size)]
    most = max(parts)
    if most <= 0:
        return _BARS[0] * len(parts)
    return "".join(_BARS[min(7, int(8 * part / most))] for part in parts)


# -- for scripts -----------------------------------------------------------------------------------


def losses_object(found: LossComparison) -> dict[str, object]:
    """``--format json``."""
    return {
        "schema": "irtool.diff.loss/1",
        "left": found.left.path,
        "right": found.right.path,
        "verdict": found.verdict,
        "suspicious": found.is_suspicious,
        "identical": found.verdict == "identical",
        "steps": len(found.steps),
        "offset": found.offset,
        "first_relative": _number(found.first),
        "mae": found.mae,
        "mre": found.mre,
        "late_mre": found.late_mre,
        "worst": {"relative": found.worst[0], "step": found.worst[1]},
        "noise_floor": {"value": found.floor, "from": found.floor_from},
        "drift": _drift_object(found.drift),
        "drift_after": _drift_object(found.drift_after) if found.drift_after else None,
        "change_step": found.change_step,
        "spikes": [{"step": step, "side": side} for step, side in found.spikes],
        "broken": [{"step": step, "side": side} for step, side in found.broken],
        "increments_correlation": found.increments,
    }


def _drift_object(drift: Drift) -> dict[str, object]:
    return {
        "mean": drift.mean,
        "relative": drift.relative,
        "t": _number(drift.t),
        "positive": drift.positive,
        "lag": drift.lag,
    }


def _number(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
