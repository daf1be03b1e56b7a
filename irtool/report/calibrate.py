"""``irtool calibrate``: its answer for scripts, its report for people, and the machine's file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from irtool.cluster.calibration import Calibration, LevelFit
from irtool.cluster.context.model import RunContext
from irtool.cluster.machine import Machine
from irtool.ir.units import plural, share_text
from irtool.report.answer import AnswerObject, RunAnswer, context_fields, doc
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


@dataclass(frozen=True, slots=True)
class CalibrationView:
    """A calibration, and the files that it was made of."""

    found: Calibration
    files: tuple[str, ...]


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
    worst: Annotated[float | None, doc("the largest of them")]
    separates: Annotated[bool, doc("false: rows do not tell a step from the start; `latency` is 0")]


class CalibrateAnswer(
    RunAnswer, frozen=True, kw_only=True, tag_field="schema", tag="irtool.calibrate/1"
):
    """A machine's links, fitted to collectives that were measured on it."""

    files: list[str]
    machine: Annotated[str, doc("its name")]
    levels: Annotated[list[CalibratedLinks], doc("those that were measured")]
    left: Annotated[list[str], doc("what was not used, with the reason")]


def calibrate_answer(view: CalibrationView) -> CalibrateAnswer:
    """The answer for scripts."""
    found = view.found
    return CalibrateAnswer(
        files=list(view.files),
        machine=found.machine.name,
        levels=[_links(fit) for fit in found.fits],
        left=list(found.left),
        **context_fields(RunContext(None)),
    )


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
    """Each kind of links as measured and as it was taken before, and how far that goes."""
    found = view.found
    columns = [
        text_column("links"), text_column("bandwidth"), text_column("before"),
        number_column("start", "seconds"), number_column("a step", "seconds"),
        number_column("rows"), number_column("error", "share"), number_column("worst", "share"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            fit.level.name, _pace(fit.level.bandwidth), _pace(fit.before.bandwidth),
            fit.level.start, fit.level.latency, fit.samples, fit.error, fit.worst,
        ]
        for fit in found.fits
    ]  # fmt: skip
    elements: list[Element] = [
        Facts([("machine", found.machine.name), ("files", ", ".join(view.files[:4]))]),
        Table("links as measured", columns, rows, note="errors are of rows that were held back"),
    ]
    elements += [Note(f"note: not used: {text}") for text in found.left]
    elements += [
        Note(
            f"note: {fit.level.name}: one collective on one number of ranks tells no step from the "
            "start: all of it counts as start"
        )
        for fit in found.fits
        if not fit.separates
    ]
    return Report(f"calibrate: {found.machine.name}", Answer(_text(found)), elements)


def _text(found: Calibration) -> str:
    errors = [fit.error for fit in found.fits if fit.error is not None]
    what = f"{plural(len(found.fits), 'kind')} of links fitted"
    return f"{what}, off by {share_text(max(errors))} on rows held back" if errors else what


def _pace(bandwidth: float) -> str:
    return f"{bandwidth / 1e9:.4g} GB/s"


def machine_lines(machine: Machine) -> Iterator[str]:
    """A machine as the TOML file that ``--machine`` takes."""
    yield f"name = {json.dumps(machine.name)}"
    yield f"target = {json.dumps(machine.target)}"
    if machine.soc:
        yield f"soc = {json.dumps(machine.soc)}"
    yield f"memory_bytes = {machine.memory_bytes}"
    if machine.memory_bandwidth:
        yield f"memory_bandwidth = {machine.memory_bandwidth!r}"
    if machine.hierarchical:
        yield "hierarchical = true"
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
