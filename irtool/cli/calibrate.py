"""``irtool calibrate``: a machine's links as collectives were measured on it."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from irtool.artefacts.collective_tests import CollectiveTest, collective_test
from irtool.artefacts.damage import Damage
from irtool.artefacts.errors import ArtefactError
from irtool.cli import options
from irtool.cli.answering import AnswerForm, write_answer
from irtool.cli.machines import named_machine
from irtool.cli.output import Output
from irtool.cli.report import Failure, report_problems
from irtool.cluster.calibration import Sample, calibrate
from irtool.cluster.context.model import RunContext
from irtool.cluster.machine import default_machine
from irtool.ir.operators import COMMUNICATION

CODE = "ART001"
"""Of an artefact that can't be used."""


class Format(str, Enum):
    """Forms of the answer; toml is the machine's file."""

    table = "table"
    json = "json"
    html = "html"
    toml = "toml"


def command(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="Outputs of hccl_test or nccl-tests.", show_default=False
        ),
    ],
    format: Annotated[
        Format | None,
        typer.Option(
            "--format", "-f", help="toml is the machine's file, for --machine.",
            show_default="toml for -o FILE.toml, else table",
        ),
    ] = None,
    machine: options.MachineName = None,
    op: Annotated[
        str | None,
        typer.Option("--op", metavar="NAME", help="The collective, where a file says none."),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option("--ranks", min=2, metavar="N", help="How many ranks, where a file says none."),
    ] = None,
    output_file: options.OutputFile = None,
) -> int:  # fmt: skip
    """What do the links of this machine really take?

    Fits start-up times and bandwidth of each kind of links to collectives that were measured, and
    says the error on rows that were held back. Everything else stays as --machine has it.

    Exit status: 0; 1 rows could not be read or used; 2 nothing could be fitted.
    """
    from irtool.report.calibrate import (
        CalibrationView,
        calibrate_answer,
        calibrate_report,
        machine_lines,
    )

    damages = [Damage(path) for path in files]
    tests = [_read(path, damage) for path, damage in zip(files, damages, strict=True)]
    samples = [sample for test in tests for sample in _samples(test, op, ranks)]
    found = calibrate(samples, named_machine(machine) or default_machine())
    for damage in damages:
        report_problems(damage.problems)
    if not found.fits:
        reason = found.left[0] if found.left else "no row could be used"
        raise Failure(f"nothing can be fitted: {reason}", files[0], code=CODE)
    view = CalibrationView(found, tuple(files))
    is_toml = output_file is not None and output_file.endswith(".toml")
    form = format or (Format.toml if is_toml else Format.table)
    if form is Format.toml:
        output = Output(output_file)
        for line in machine_lines(found.machine):
            output.write(f"{line}\n")
        output.close()
    else:
        write_answer(
            Output(output_file),
            AnswerForm(form.value),
            answer=lambda: calibrate_answer(view),
            report=lambda is_page: calibrate_report(view),
            context=RunContext(None),
        )
    return 1 if found.left or any(damage.count for damage in damages) else 0


def _read(path: str, damage: Damage) -> CollectiveTest:
    try:
        return collective_test(path, damage)
    except ArtefactError as error:
        raise Failure(error.message, error.place, hint=error.hint, code=CODE) from None


def _samples(test: CollectiveTest, op: str | None, ranks: int | None) -> list[Sample]:
    name, count = test.op or op, test.ranks or ranks
    if name is None or name not in COMMUNICATION:
        hint = "--op AllReduce, or name the file after the test: all_reduce_8ranks.txt"
        raise Failure("does not say which collective it measured", test.path, hint=hint, code=CODE)
    if count is None:
        hint = "--ranks 8, or name the file after them: all_reduce_8ranks.txt"
        raise Failure("does not say how many ranks took part", test.path, hint=hint, code=CODE)
    return [
        Sample(name, count, row.bytes, row.seconds, f"{test.path}:{row.line}")
        for row in test.rows
        if row.passed is not False
    ]
