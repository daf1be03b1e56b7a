"""The machine that ``--machine`` names."""

from __future__ import annotations

from dataclasses import replace

from irtool.cli.configuration import read_table
from irtool.cli.report import Failure
from irtool.cluster.machine import (
    BUILT_IN,
    Machine,
    MachineError,
    built_in,
    default_machine,
    machine_from,
)
from irtool.syntax import file_facts


def named_machine(name: str | None) -> Machine | None:
    """The machine of ``--machine``; None where the option is not given.

    Args:
        name: of a built-in machine, or a TOML file.

    Raises:
        Failure: there is no such machine, or the file makes no sense.
    """
    return None if name is None else machine_named(name, "")


def with_overlap(machine: Machine, text: str | None) -> Machine:
    """The machine with the overlap of ``--overlap``; as it is where the option is not given.

    Args:
        machine: as it is.
        text: ``none``, or what part of the communication that computing can hide it does hide, 0 to
            1.

    Raises:
        Failure: it is no part.
    """
    if text is None:
        return machine
    try:
        part = 0.0 if text == "none" else float(text)
    except ValueError:
        part = -1.0
    if not 0 <= part <= 1:
        raise Failure(f"{text} is no part", "--overlap", hint="none, or a number from 0 to 1")
    return replace(machine, overlap=part)


def machine_named(name: str | None, target: str) -> Machine:
    """A built-in machine by its name, or one from a file; without a name that of the target.

    Args:
        name: what was given on the command line.
        target: ``Ascend`` or ``GPU``, in any case.

    Raises:
        Failure: there is no such machine, or the file makes no sense.
    """
    if name is None:
        return default_machine("GPU" if target.upper() == "GPU" else "Ascend")
    if name in BUILT_IN:
        return built_in(name)
    if not file_facts.exists(name):
        hint = f"built in are {', '.join(BUILT_IN)}; anything else is a TOML file"
        raise Failure(f"there is no machine {name}", "--machine", hint=hint)
    try:
        return machine_from(read_table(name))
    except MachineError as error:
        raise Failure(str(error), name, hint="docs/comm.md shows the keys") from None
