"""``irtool diff --loss``: its answer for scripts, and its report for people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import field

from irtool.compare.losses.comparison import (
    Drift,
    LossComparison,
    Verdict,
)
from irtool.compare.losses.series import LossRun
from irtool.ir.units import error_text, plural, share_text
from irtool.report.answer import AnswerObject, doc
from irtool.report.model import (
    Answer,
    Cell,
    Element,
    Facts,
    Note,
    Picture,
    Report,
    Table,
    number_column,
    text_column,
)
from irtool.report.page.charts import Mark, Series, line_chart
from irtool.report.run_answer import RunAnswer, no_context

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 60
_SPIKES = 8
NEXT: dict[Verdict, str] = {
    "spike": "a batch of that step, or a gradient that overflowed in it: dump that step on both "
    "sides and compare tensors (irtool diff RUN_A RUN_B)",
    "different from the first step": "seed, data or forward pass differ: where the first two "
    "are the same, dump step 0 on both sides and compare tensors (irtool diff RUN_A RUN_B)",
    "multiple": "compare how the loss is scaled and reduced (sum or mean; over batch, "
    "micro-batches, ranks); what is trained may be the same",
    "drift": "compare learning rate, weight decay, betas, epsilon and gradients around the step "
    "where it begins; then dump that step on both sides",
}
"""What to do after each verdict that asks for something."""


# -- for scripts ---------------------------------------------------------------------------------


class WorstLoss(AnswerObject, frozen=True, kw_only=True):
    """The step at which two curves are furthest apart."""

    relative: Annotated[float | str, doc("error, relative to the left loss")]
    step: int


class NoiseFloor(AnswerObject, frozen=True, kw_only=True):
    """What a healthy run's loss may differ by."""

    value: Annotated[float, doc("absolute")]
    origin: Annotated[str, doc("`repeats`, `printed digits` or `rounding`")] = field(name="from")


class LossDrift(AnswerObject, frozen=True, kw_only=True):
    """The mean signed difference, right minus left, and how surely it is no chance."""

    mean: float
    relative: Annotated[float, doc("over the mean loss")]
    t: Annotated[float | str, doc("mean over standard error")]
    positive: Annotated[float, doc("share of the steps at which the right loss is above")]
    lag: Annotated[int, doc("neighbouring steps that were taken to go together")]


class StepOfSide(AnswerObject, frozen=True, kw_only=True):
    """Something that happens in one run only."""

    step: int
    side: Annotated[str, doc("left or right")]


class LossAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.diff.loss/1"
):
    """Whether two loss curves part, when, and how surely; errors are relative to the left one."""

    left: Annotated[str, doc("path")]
    right: Annotated[str, doc("path")]
    verdict: Verdict
    suspicious: Annotated[bool, doc("there is something to look for")]
    identical: bool
    steps: Annotated[int, doc("that both have")]
    offset: Annotated[int, doc("added to the right one's steps so that they agree")]
    first_relative: Annotated[float | str, doc("error of the first common step")]
    mae: Annotated[float | str, doc("mean absolute error")]
    mre: Annotated[float | str, doc("mean relative error")]
    late_mre: Annotated[float | str, doc("mean relative error of the last quarter")]
    worst: WorstLoss
    noise_floor: NoiseFloor
    drift: Annotated[LossDrift, doc("of all common steps")]
    drift_after: Annotated[LossDrift | None, doc("from `change_step` on")]
    change_step: Annotated[int | None, doc("from which the difference stays above the floor")]
    spikes: Annotated[list[StepOfSide], doc("jumps that the other curve does not make")]
    broken: Annotated[list[StepOfSide], doc("NaN or infinite on one side only")]
    increments_correlation: Annotated[
        float | None, doc("of the changes from step to step; null: fewer than three steps")
    ]


def losses_answer(comparison: LossComparison) -> LossAnswer:
    """The answer of ``irtool diff --loss`` for scripts.

    Args:
        comparison: of two runs' losses.
    """
    after = comparison.drift_after
    return LossAnswer(
        **no_context(),
        left=comparison.left.path,
        right=comparison.right.path,
        verdict=comparison.verdict,
        suspicious=comparison.is_suspicious,
        identical=comparison.verdict == "identical",
        steps=len(comparison.steps),
        offset=comparison.offset,
        first_relative=comparison.first,
        mae=comparison.mae,
        mre=comparison.mre,
        late_mre=comparison.late_mre,
        worst=WorstLoss(relative=comparison.worst[0], step=comparison.worst[1]),
        noise_floor=NoiseFloor(value=comparison.floor, origin=comparison.floor_from),
        drift=_drift(comparison.drift),
        drift_after=None if after is None else _drift(after),
        change_step=comparison.change_step,
        spikes=[StepOfSide(step=step, side=side) for step, side in comparison.spikes],
        broken=[StepOfSide(step=step, side=side) for step, side in comparison.broken],
        increments_correlation=comparison.increments,
    )


def _drift(drift: Drift) -> LossDrift:
    return LossDrift(
        mean=drift.mean,
        relative=drift.relative,
        t=drift.t,
        positive=drift.positive,
        lag=drift.lag,
    )


# -- for people ----------------------------------------------------------------------------------


def losses_report(comparison: LossComparison, is_page: bool = False) -> Report:
    """The answer, the figures behind it, and the curves.

    Args:
        comparison: of the two curves.
        is_page: with pictures and every step, where text has a line of bars.
    """
    step = NEXT.get(comparison.verdict)
    return Report(
        f"diff: {comparison.left.path} ↔ {comparison.right.path}",
        Answer(
            answer_text(comparison),
            "bad" if comparison.is_suspicious else "good",
            [f"next: {step}"] if step else [],
        ),
        [Facts(loss_facts(comparison)), *loss_elements(comparison, is_page)],
    )


def answer_text(comparison: LossComparison) -> str:
    """The verdict on two runs' losses, in one line.

    Args:
        comparison: of two runs' losses.
    """
    if comparison.broken:
        step, side = comparison.broken[0]
        return f"the {side} run's loss is not finite from step {step} on, the other's is"
    steps = plural(len(comparison.steps), "step")
    match comparison.verdict:
        case "identical":
            return f"identical in {steps}"
        case "noise":
            ways = (
                ", of runs that go their own ways from the first on (other data, weights or seeds)"
                if comparison.own_ways
                else ""
            )
            return f"no sign of a fault in {steps}{ways}: the difference is noise"
        case "spike":
            size = error_text(comparison.worst[0])
            return f"one jumps at step {comparison.spike_step} alone, by {size} relative"
        case "different from the first step":
            return f"different from the first step: {error_text(comparison.first)} relative"
        case "multiple":
            return f"the right losses are {_multiple_text(comparison)} the left ones at every step"
        case "drift":
            side = "above" if _telling(comparison).mean > 0 else "below"
            return f"the right run drifts {side} the left one{_since(comparison)}"


def _multiple_text(comparison: LossComparison) -> str:
    multiple = comparison.multiple or 1.0
    return f"{multiple:.4g} times" if abs(multiple) > 1 else f"1/{1 / multiple:.4g} of"


def _since(comparison: LossComparison) -> str:
    return "" if comparison.change_step is None else f" from step {comparison.change_step} on"


def _telling(comparison: LossComparison) -> Drift:
    """The drift that decided."""
    after = comparison.drift_after
    if after is not None and abs(after.t) > abs(comparison.drift.t):
        return after
    return comparison.drift


def loss_facts(comparison: LossComparison) -> list[tuple[str, Cell]]:
    """What was compared, and the figures that the answer rests on.

    Args:
        comparison: of two runs' losses; errors are relative to the left one's loss.
    """
    steps = comparison.steps
    shifted = f", the right one's steps moved by {comparison.offset:+d}" * bool(comparison.offset)
    facts: list[tuple[str, Cell]] = [
        ("left", _run_text(comparison.left, comparison.only_left)),
        ("right", _run_text(comparison.right, comparison.only_right)),
        ("compared", f"{plural(len(steps), 'step')}, {steps[0]} to {steps[-1]}{shifted}"),
        (
            "first step",
            f"relative error {error_text(comparison.first)} (limit {comparison.first_limit:.2g})",
        ),
        ("error", _error_text(comparison)),
        ("drift", _drift_text(comparison.drift, comparison.verdict == "noise")),
    ]
    if comparison.drift_after is not None:
        after = _drift_text(comparison.drift_after, comparison.verdict == "noise")
        facts.append((f"drift from step {comparison.change_step}", after))
    floor = f"{error_text(comparison.floor)} (from {comparison.floor_from})"
    facts.append(("noise floor", floor))
    if comparison.increments is not None:
        text = f"correlation {comparison.increments:.6f} of the changes from step to step"
        facts.append(("increments", text))
    if comparison.change_step is not None:
        text = f"above the noise floor from step {comparison.change_step} on"
        facts.append(("change", text))
    if comparison.spikes:
        shown = ", ".join(f"step {step} ({side})" for step, side in comparison.spikes[:_SPIKES])
        facts.append(("spikes", shown + " …" * (len(comparison.spikes) > _SPIKES)))
    return facts


def _error_text(comparison: LossComparison) -> str:
    return (
        f"mean {error_text(comparison.mae)}, relative {error_text(comparison.mre)} "
        f"({comparison.grade}), {error_text(comparison.late_mre)} in the last quarter, "
        f"worst {error_text(comparison.worst[0])} at step {comparison.worst[1]}"
    )


def _run_text(run: LossRun, alone: int) -> str:
    more = f", {plural(alone, 'step')} of its own" if alone else ""
    skipped = f", {plural(run.skipped, 'line')} skipped" if run.skipped else ""
    return f"{run.path} ({run.kind}, {plural(len(run.loss), 'step')}{more}{skipped})"


def _drift_text(drift: Drift, is_noise: bool) -> str:
    is_small = is_noise and abs(drift.t) > drift.limit
    t = f"{drift.t:.1f}" if math.isfinite(drift.t) else "unbounded"
    return (
        f"mean {drift.mean:+.2g} ({drift.relative:+.2g} relative), t = {t} "
        f"(limit ±{drift.limit:.3g}), right above left in {share_text(drift.positive)} of the steps"
        + "; its mean is within the noise floor"
        * is_small
    )


def loss_elements(comparison: LossComparison, is_page: bool) -> Iterator[Element]:
    """The difference, what else both runs logged, and on a page the curves and every step.

    Args:
        comparison: of two runs' losses.
        is_page: whether pictures are seen; text draws the differences as one line of bars.
    """
    if is_page and len(comparison.steps) > 1:  # one point is no curve: the table tells it
        yield Picture("Loss", losses_chart(comparison), "The loss of both runs by step.")
        yield Picture(
            "Difference", difference_chart(comparison), "The absolute difference by step."
        )
    elif not is_page and any(comparison.deltas):
        bars = sparkline([abs(delta) for delta in comparison.deltas])
        yield Facts([("difference", bars)])
    rows = _other_rows(comparison)
    if rows:
        columns = (text_column("also logged"), number_column("left"), number_column("right"))
        yield Table("", columns, rows)
    if is_page:
        yield _steps_table(comparison)


def next_note(comparison: LossComparison) -> Iterator[Note]:
    """What to do next, where the verdict asks for something.

    Args:
        comparison: of two runs' losses.

    Yields:
        one note, or none.
    """
    if comparison.verdict in NEXT:
        yield Note(f"next: {NEXT[comparison.verdict]}")


def _other_rows(comparison: LossComparison) -> list[list[Cell]]:
    """First common values of what both runs logged beside the loss."""
    left, right = comparison.left.others, comparison.right.others
    rows: list[list[Cell]] = []
    for name in sorted(left.keys() & right.keys()):
        common = left[name].values.keys() & right[name].values.keys()
        if common:
            step = min(common)
            rows.append(
                [f"{name} at step {step}", left[name].values[step], right[name].values[step]]
            )
    return rows


def _steps_table(comparison: LossComparison) -> Table:
    columns = [number_column(title) for title in ("step", "left", "right", "difference")]
    left, right = comparison.values
    rows = [[step, a, b, b - a] for step, a, b in zip(comparison.steps, left, right, strict=True)]
    return Table("Loss by step", columns, rows, noun="step")


def sparkline(values: Sequence[float], width: int = _WIDTH) -> str:
    """Values as bars, at most ``width``: the largest of the values that share one."""
    if not values:
        return ""
    size = max(1, math.ceil(len(values) / width))
    parts = [max(values[start : start + size]) for start in range(0, len(values), size)]
    most = max(parts)
    if most <= 0:
        return _BARS[0] * len(parts)
    return "".join(_BARS[min(7, int(8 * part / most))] for part in parts)


def losses_chart(comparison: LossComparison) -> str:
    """The losses of both runs over the steps that they share, as svg."""
    curves = [
        Series(name, [(step, value) for step, value in zip(comparison.steps, values, strict=True)
                      if math.isfinite(value)])
        for name, values in zip(("left", "right"), comparison.values, strict=True)
    ]  # fmt: skip
    return line_chart(curves, "step", "loss", marks=_marks(comparison))


def difference_chart(comparison: LossComparison) -> str:
    """The absolute difference, as svg."""
    points = [
        (step, abs(delta)) for step, delta in zip(comparison.steps, comparison.deltas, strict=True)
    ]
    curve = Series("difference", points)
    return line_chart([curve], "step", "difference", marks=_marks(comparison))


def _marks(comparison: LossComparison) -> list[Mark]:
    step = comparison.change_step
    if step is None or step == comparison.steps[0]:
        return []
    return [Mark(step, f"step {step}")]
