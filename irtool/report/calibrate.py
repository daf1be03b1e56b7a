"""``irtool calibrate``: its answer for scripts, its report for people, and the machine's file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated

from irtool.cluster.calibrated_operators import KindFit, OperatorCalibration
from irtool.cluster.calibration import Calibration, GroupFit, LevelFit
from irtool.cluster.context.model import RunContext
from irtool.cluster.machine import Machine
from irtool.ir.dataclass import dataclass
from irtool.ir.units import bandwidth_text, plural, share_text, speed_text
from irtool.report.answer import AnswerObject, doc
from irtool.report.model import (
    Answer,
    Cell,
    Element,
    Facts,
    Note,
    Report,
    Table,
    number_column,
    text_column,
)
from irtool.report.run_answer import RunAnswer, context_fields


@dataclass(frozen=True, slots=True)
class CalibrationView:
    """A calibration, and the files that it was made of.

    Attributes:
        calibration: what links take.
        files: that were given.
        machine: all that was fitted, and the rest as it was.
        operators: what these take; None where no profile was given.
        overlap: what part of communication was hidden; None where nothing tells.
        left: what was not used, with the reason.
    """

    calibration: Calibration
    files: tuple[str, ...]
    machine: Machine
    operators: OperatorCalibration | None = None
    overlap: float | None = None
    left: tuple[str, ...] = ()


class CalibratedLinks(AnswerObject, frozen=True, kw_only=True):
    """One kind of links as measured."""

    name: str
    devices: Annotated[int | None, doc("of one unit; null: the outermost")]
    bandwidth: Annotated[float, doc("bytes a second that a device sends, in a mesh over one link")]
    latency: Annotated[float, doc("seconds a step")]
    start: Annotated[float, doc("seconds before the first step")]
    bandwidth_before: float
    samples: Annotated[int, doc("measured collectives")]
    error: Annotated[
        float | None, doc("median relative error of rows that were held back; null: too few rows")
    ]
    worst: Annotated[float | None, doc("largest relative error of what was held back")]
    separates: Annotated[
        bool, doc("false: rows cannot separate steps from the start; `latency` is 0")
    ]


class CalibratedSize(AnswerObject, frozen=True, kw_only=True):
    """A size of message that was measured, beside what the fitted line gives for it."""

    bytes: Annotated[float, doc("of the whole array")]
    seconds: Annotated[float, doc("measured; of several rows of a size the median")]
    bandwidth: Annotated[float, doc("bytes of the whole array a second")]
    fitted: Annotated[float, doc("seconds by the line that was fitted")]


class CalibratedGroup(AnswerObject, frozen=True, kw_only=True):
    """A collective on groups of one shape: `start + bytes / bandwidth` seconds."""

    op: str
    ranks: Annotated[int, doc("ranks that take part")]
    together: Annotated[
        list[int], doc("how many of them stand in one unit of each level, the innermost first")
    ]
    start: Annotated[float, doc("seconds of one that moves nothing")]
    bandwidth: Annotated[float, doc("bytes of the whole array a second")]
    sizes: Annotated[list[CalibratedSize], doc("empty: only a bandwidth was given")]
    error: Annotated[
        float | None, doc("median relative error of rows that were held back; null: too few rows")
    ]
    worst: Annotated[float | None, doc("largest relative error of what was held back")]
    modelled: Annotated[float | None, doc("seconds of the largest size by the machine as it was")]


class CalibratedKind(AnswerObject, frozen=True, kw_only=True):
    """Operators of one kind: `launch + operations / flops + bytes / bandwidth` seconds."""

    op: str
    launch: Annotated[float, doc("seconds, whatever the size")]
    flops: Annotated[float | None, doc("operations a second; null: they don't count")]
    bandwidth: Annotated[float | None, doc("bytes a second; null: they don't count")]
    operators: Annotated[int, doc("operators that were measured")]
    sizes: Annotated[int, doc("different ones among them; of one alone, all kinds' figures scaled")]
    seconds: Annotated[float, doc("of a step, as measured")]
    error: Annotated[
        float | None, doc("median relative error of sizes that were held back; null: none was")
    ]
    worst: Annotated[float | None, doc("largest relative error of what was held back")]


class CalibrateAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.calibrate/1"
):
    """A machine's links and operators, fitted to what was measured on it."""

    files: list[str]
    machine: Annotated[str, doc("its name")]
    levels: Annotated[list[CalibratedLinks], doc("those that were measured")]
    groups: Annotated[
        list[CalibratedGroup], doc("collectives that were measured; these figures go before links'")
    ]
    operators: Annotated[list[CalibratedKind], doc("kinds that were measured, the dearest first")]
    operator_error: Annotated[
        float | None, doc("of the kinds' errors the median, each by its part of a step")
    ]
    overlap: Annotated[float | None, doc("part of communication that was hidden; null: unknown")]
    left: Annotated[list[str], doc("what was not used, with the reason")]


def calibrate_answer(view: CalibrationView) -> CalibrateAnswer:
    """The answer of ``irtool calibrate`` for scripts.

    Args:
        view: the calibration, and the files that it was made of.
    """
    calibration = view.calibration
    return CalibrateAnswer(
        files=list(view.files),
        machine=view.machine.name,
        levels=[_links(fit) for fit in calibration.fits],
        groups=[_group(fit) for fit in calibration.groups],
        operators=[_kind(fit) for fit in view.operators.kinds] if view.operators else [],
        operator_error=None if view.operators is None else view.operators.error,
        overlap=view.overlap,
        left=list(view.left),
        **context_fields(RunContext(None)),
    )


def _kind(fit: KindFit) -> CalibratedKind:
    line = fit.roofline
    return CalibratedKind(
        op=fit.op,
        launch=line.launch,
        flops=line.flops or None,
        bandwidth=line.bandwidth or None,
        operators=fit.operators,
        sizes=fit.sizes,
        seconds=fit.seconds,
        error=fit.error,
        worst=fit.worst,
    )


def _group(fit: GroupFit) -> CalibratedGroup:
    group = fit.group
    return CalibratedGroup(
        op=group.op,
        ranks=group.ranks,
        together=list(group.together),
        start=group.start,
        bandwidth=group.bandwidth,
        sizes=[
            CalibratedSize(
                bytes=size, seconds=seconds, bandwidth=size / seconds,
                fitted=group.start + size / group.bandwidth,
            )
            for size, seconds in fit.sizes
        ],
        error=fit.error,
        worst=fit.worst,
        modelled=fit.modelled if fit.rows else None,
    )  # fmt: skip


def _links(fit: LevelFit) -> CalibratedLinks:
    level = fit.level
    return CalibratedLinks(
        name=level.name,
        devices=level.devices,
        bandwidth=level.bandwidth,
        latency=level.latency,
        start=level.start,
        bandwidth_before=fit.before.bandwidth,
        samples=fit.samples,
        error=fit.error,
        worst=fit.worst,
        separates=fit.separates,
    )


def calibrate_report(view: CalibrationView) -> Report:
    """Links and operators as measured, and how far what was fitted is off.

    Args:
        view: the calibration, and the files that it was made of.
    """
    calibration = view.calibration
    facts = [("machine", view.machine.name), ("files", ", ".join(view.files[:4]))]
    if view.overlap is not None:
        facts.append(("overlap", f"{share_text(view.overlap)} of communication was hidden"))
    elements: list[Element] = [Facts(facts)]
    if calibration.fits:
        elements.append(_links_table(calibration))
    if calibration.groups:
        elements.append(_groups_table(calibration))
    if any(fit.rows for fit in calibration.groups):
        elements.append(_sizes_table(calibration))
    if view.operators is not None:
        elements.append(_kinds_table(view.operators))
    elements += [Note(f"note: not used: {text}") for text in view.left]
    elements += [
        Note(
            f"note: {fit.level.name}: one collective on one number of ranks tells no step from the "
            "start: all of it counts as start"
        )
        for fit in calibration.fits
        if not fit.separates
    ]
    return Report(f"calibrate: {view.machine.name}", Answer(_text(view)), elements)


def _links_table(calibration: Calibration) -> Table:
    columns = [
        text_column("links"), text_column("bandwidth"), text_column("before"),
        number_column("start", "seconds"), number_column("a step", "seconds"),
        number_column("rows"), number_column("error", "share"), number_column("worst", "share"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            fit.level.name, bandwidth_text(fit.level.bandwidth),
            bandwidth_text(fit.before.bandwidth), fit.level.start, fit.level.latency,
            fit.samples, fit.error, fit.worst,
        ]
        for fit in calibration.fits
    ]  # fmt: skip
    return Table("Links as measured", columns, rows, note="Errors are of rows that were held back")


def _groups_table(calibration: Calibration) -> Table:
    columns = [
        text_column("collective"), number_column("ranks"), text_column("in one unit"),
        number_column("start", "seconds"), text_column("bandwidth"), number_column("rows"),
        number_column("error", "share"), number_column("worst", "share"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            fit.group.op, fit.group.ranks, ", ".join(map(str, fit.group.together)),
            fit.group.start, bandwidth_text(fit.group.bandwidth), len(fit.rows),
            fit.error, fit.worst,
        ]
        for fit in calibration.groups
    ]  # fmt: skip
    return Table(
        "Collectives as measured", columns, rows,
        note="bandwidth: bytes of the whole array a second; other groups go by their links",
    )  # fmt: skip


def _sizes_table(calibration: Calibration) -> Table:
    columns = [
        text_column("collective"), number_column("ranks"), number_column("array", "bytes"),
        number_column("measured", "seconds"), text_column("bandwidth"),
        number_column("fitted", "seconds"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            fit.group.op, fit.group.ranks, size, seconds, bandwidth_text(size / seconds),
            fit.group.start + size / fit.group.bandwidth,
        ]
        for fit in calibration.groups
        for size, seconds in fit.sizes
    ]  # fmt: skip
    return Table("Collectives by size", columns, rows)


def _kinds_table(calibration: OperatorCalibration) -> Table:
    columns = [
        text_column("operator"), number_column("measured", "seconds"), number_column("operators"),
        number_column("sizes"), number_column("launch", "seconds"), text_column("arithmetic"),
        text_column("memory"), number_column("error", "share"), number_column("worst", "share"),
    ]  # fmt: skip
    rows: list[list[Cell]] = []
    for fit in calibration.kinds:
        line = fit.roofline
        flops = speed_text(line.flops) if line.flops else ""
        bandwidth = bandwidth_text(line.bandwidth) if line.bandwidth else ""
        rows.append([
            fit.op, fit.seconds, fit.operators, fit.sizes, line.launch, flops, bandwidth,
            fit.error, fit.worst,
        ])  # fmt: skip
    return Table(
        "Operators as measured", columns, rows,
        noun="kind",
        note="errors are of sizes that were held back; of one size: all kinds' figures, scaled",
    )  # fmt: skip


def _text(view: CalibrationView) -> str:
    """``1 kind of links and 14 kinds of operators fitted, off by 3 % and 21 % on what was …``."""
    parts: list[str] = []
    errors: list[str] = []
    if view.calibration.fits:
        parts.append(f"{plural(len(view.calibration.fits), 'kind')} of links")
        known = [fit.error for fit in view.calibration.fits if fit.error is not None]
        errors += [share_text(max(known))] if known else []
    if view.calibration.groups:
        parts.append(plural(len(view.calibration.groups), "collective"))
        known = [fit.error for fit in view.calibration.groups if fit.error is not None]
        errors += [share_text(max(known))] if known else []
    if view.operators is not None:
        parts.append(f"{plural(len(view.operators.kinds), 'kind')} of operators")
        error = view.operators.error
        errors += [] if error is None else [share_text(error)]
    if not parts:
        return f"{share_text(view.overlap)} of communication was hidden"
    what = f"{' and '.join(parts)} fitted"
    return f"{what}, off by {' and '.join(errors)} on what was held back" if errors else what


def machine_lines(machine: Machine) -> Iterator[str]:
    """A machine as the TOML file that ``--machine`` takes.

    Args:
        machine: bandwidths in bytes a second, latencies and starts in seconds; figures that it
            doesn't have are left out.

    Yields:
        lines without their ends.
    """
    yield f"name = {json.dumps(machine.name)}"
    yield f"target = {json.dumps(machine.target)}"
    if machine.soc:
        yield f"soc = {json.dumps(machine.soc)}"
    yield f"memory_bytes = {machine.memory_bytes}"
    if machine.memory_bandwidth:
        yield f"memory_bandwidth = {machine.memory_bandwidth!r}"
    if machine.hierarchical:
        yield "hierarchical = true"
    if machine.overlap:
        yield f"overlap = {machine.overlap!r}"
    yield "sources = ["
    yield from (f"    {json.dumps(text, ensure_ascii=False)}," for text in machine.sources)
    yield "]"
    yield ""
    yield "[flops]"
    yield from (f"{name} = {rate!r}" for name, rate in machine.flops.items())
    for level in machine.levels:
        yield ""
        yield "[[levels]]"
        yield f"name = {json.dumps(level.name)}"
        if level.devices is not None:
            yield f"devices = {level.devices}"
        yield f'topology = "{level.topology}"'
        yield f"bandwidth = {level.bandwidth!r}"
        yield f"latency = {level.latency!r}"
        yield f"start = {level.start!r}"
    for group in machine.groups:
        yield ""
        yield "[[groups]]"
        yield f"op = {json.dumps(group.op)}"
        yield f"ranks = {group.ranks}"
        yield f"together = {list(group.together)}"
        yield f"start = {group.start!r}"
        yield f"bandwidth = {group.bandwidth!r}"
    for op, line in machine.rooflines.items():
        yield ""
        yield f"[operators.{json.dumps(op)}]"
        yield f"launch = {line.launch!r}"
        if line.flops:
            yield f"flops = {line.flops!r}"
        if line.bandwidth:
            yield f"bandwidth = {line.bandwidth!r}"
    if machine.measured:
        yield ""
        yield "# What operators took, by operator, element type and slices of their inputs."
        yield "[measured]"
    for key, known in machine.measured.items():
        back = "" if known.backward is None else f", backward = {known.backward!r}"
        yield f"{json.dumps(key, ensure_ascii=False)} = {{ forward = {known.forward!r}{back} }}"
