"""``irtool calibrate``: a machine as collectives and steps were measured on it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated

from irtool.artefacts.damage import Damage
from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.kernels import step_times
from irtool.cli import options as shared
from irtool.cli.answering import AnswerForm, write_answer
from irtool.cli.declared import with_options
from irtool.cli.inputs.profile import graph_that_ran, profile_at
from irtool.cli.machines import named_machine
from irtool.cli.measured_communication import (
    MeasuredCommunication,
    read_communication,
    read_communication_in,
)
from irtool.cli.output import Output
from irtool.cli.parameters import Argument, Option
from irtool.cli.report import Failure, report_problems
from irtool.cluster.calibrated_operators import (
    OperatorCalibration,
    calibrated_operators,
    measured_overlap,
    with_operators,
)
from irtool.cluster.calibration import calibrate
from irtool.cluster.context.model import RunContext
from irtool.cluster.machine import Machine, default_machine
from irtool.cluster.measured import MeasuredStep, measured_step
from irtool.ir.dataclass import dataclass

if TYPE_CHECKING:
    from irtool.report.calibrate import CalibrationView

CODE = "ART001"
"""Of an artefact that can't be used."""


class Format(str, Enum):
    """Forms of the answer; toml is the machine's file."""

    table = "table"
    json = "json"
    csv = "csv"
    html = "html"
    toml = "toml"


@dataclass(frozen=True, slots=True)
class CalibrateOptions:
    """What the command line asks of measurements, as it is typed."""

    format: Annotated[
        Format | None,
        Option(
            "--format",
            "-f",
            help="toml is the machine's file, for --machine.",
            show_default="toml for -o FILE.toml, else table",
        ),
    ] = None
    machine: shared.MachineName = None
    op: Annotated[
        str | None,
        Option("--op", metavar="NAME", help="The collective, where a file says none."),
    ] = None
    ranks: Annotated[
        int | None,
        Option("--ranks", least=2, metavar="N", help="How many ranks, where a file says none."),
    ] = None
    output_file: shared.OutputFile = None

    @property
    def form(self) -> Format:
        """The form that is asked for, or that the file's name tells."""
        is_toml = self.output_file is not None and self.output_file.endswith(".toml")
        return self.format or (Format.toml if is_toml else Format.table)


@with_options(CalibrateOptions)
def command(
    files: Annotated[
        list[str],
        Argument(
            metavar="FILE",
            help="Outputs of hccl_test or nccl-tests, communication.json, "
            "communication_matrix.json, tables of Galvatron's, run folders with a profile, "
            "step_trace_time.csv.",
            show_default=False,
        ),
    ],
    options: CalibrateOptions,
) -> int:
    """What do links and operators of this machine really take?

    Fits start-up time and bandwidth of each collective and shape of group that was measured, and of
    each kind of links for all others, and a roofline to each kind of operators in a profile; says
    the error on what was held back.
    Everything else stays as --machine has it.

    Exit status: 0; 1 rows could not be read or used; 2 nothing could be fitted.
    """
    from irtool.report.calibrate import calibrate_answer, calibrate_report, machine_lines

    base = named_machine(options.machine) or default_machine()
    given = _given(files, options, base)
    view = _calibrated(files, given, base)
    output = Output(options.output_file)
    if options.form is Format.toml:
        for line in machine_lines(view.machine):
            output.write(f"{line}\n")
        output.close()
    else:
        write_answer(
            output,
            AnswerForm(options.form.value),
            answer=lambda: calibrate_answer(view),
            report=lambda is_page: calibrate_report(view),
            context=RunContext(None),
        )
    return 1 if view.left or given.is_damaged else 0


def _calibrated(files: Sequence[str], given: Given, base: Machine) -> CalibrationView:
    """The machine that fits what was measured.

    Raises:
        Failure: nothing of it can be used.
    """
    from irtool.report.calibrate import CalibrationView

    measured = given.measured
    calibration = calibrate(measured.samples, base, measured.paces, measured.links)
    operators = calibrated_operators(given.steps) if given.steps else None
    overlap = measured_overlap(given.overlaps)
    overlap = measured.overlap if overlap is None else overlap
    left = (
        *calibration.left,
        *measured.left,
        *_left(given.steps, operators, overlap, given.overlaps),
    )
    if not calibration.fits and not calibration.groups and operators is None and overlap is None:
        why = left[0] if left else "no row could be used"
        raise Failure(f"nothing can be fitted: {why}", files[0], code=CODE)
    machine = calibration.machine
    if operators is not None:
        machine = with_operators(machine, operators)
    if overlap is not None:
        machine = replace(machine, overlap=overlap)
    if calibration.machine is base:
        machine = replace(machine, name=f"{base.name}, as measured")
    return CalibrationView(calibration, tuple(files), machine, operators, overlap, left)


@dataclass(frozen=True, slots=True)
class Given:
    """What the files given to ``irtool calibrate`` measured.

    Attributes:
        measured: collectives and links.
        steps: profiles, joined with what ran.
        overlaps: exposed and hidden communication of each step.
        is_damaged: whether a row could not be read.
    """

    measured: MeasuredCommunication
    steps: Sequence[MeasuredStep]
    overlaps: Sequence[tuple[float, float]]
    is_damaged: bool


def _given(files: Sequence[str], options: CalibrateOptions, base: Machine) -> Given:
    measured = MeasuredCommunication()
    steps: list[MeasuredStep] = []
    overlaps: list[tuple[float, float]] = []
    count = 0
    for path in files:
        damage = Damage(path)
        if os.path.isdir(path):
            known = measured.count
            read_communication_in(path, measured, options.ranks)
            step = _step(path, base, is_needed=measured.count == known)
            if step is not None:
                steps.append(step)
                overlaps += [(totals.exposed, totals.hidden) for totals in step.profile.steps]
        elif os.path.basename(path) == "step_trace_time.csv":
            overlaps += _overlaps(path, damage)
        else:
            read_communication(path, measured, damage, options.op, options.ranks)
        report_problems(damage.problems)
        count += damage.count
    return Given(measured, steps, overlaps, count + measured.damages > 0)


def _step(path: str, base: Machine, *, is_needed: bool) -> MeasuredStep | None:
    """The profile of a run folder, joined with the dump of what ran.

    Args:
        path: the folder.
        base: what operators are held against.
        is_needed: whether there must be one; None is answered where it need not and is not there.

    Raises:
        Failure: there is no profile that names operators, or no dump of the same network.
    """
    profile = profile_at(path, path if is_needed else None, None)
    if profile is None and not is_needed:
        return None
    dump = graph_that_ran(path, None, None)
    if profile is None or dump is None:
        hint = "MS_DEV_SAVE_GRAPHS=2 writes graph_build_*.ir and validate"
        raise Failure("holds no dump of what ran", path, hint=hint, code=CODE)
    step = measured_step(profile, dump, base)
    if not step.joined.nodes:
        message = f"names no node of {dump.path}: is it of this network?"
        raise Failure(message, profile.path, code=CODE)
    if step.shapes.others:
        message = f"{step.shapes.others[0][0]} ran with other shapes than {dump.path} has"
        hint = "give the profile and the dumps of one run"
        raise Failure(message, profile.path, hint=hint, code=CODE)
    return step


def _overlaps(path: str, damage: Damage) -> list[tuple[float, float]]:
    try:
        return [(step.exposed, step.hidden) for step in step_times(path, damage)]
    except ArtefactError as error:
        raise Failure(error.message, error.place, hint=error.hint, code=CODE) from None


def _left(
    steps: Sequence[MeasuredStep],
    operators: OperatorCalibration | None,
    overlap: float | None,
    overlaps: Sequence[tuple[float, float]],
) -> Iterator[str]:
    """What was given and could not be used."""
    if steps and operators is None:
        yield "a roofline needs operators of several sizes"
    if overlaps and overlap is None and not steps:
        yield "overlap needs steps with communication"
