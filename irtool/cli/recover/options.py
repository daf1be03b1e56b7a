"""The options of ``irtool recover``: declared once, with what each goes together with."""

from __future__ import annotations

import math
from dataclasses import fields as fields_of
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated

from irtool.cli import options as shared
from irtool.cli.help import OUTPUT
from irtool.cli.inputs.memory import size_of
from irtool.cli.parameters import Option
from irtool.cli.plan.options import (
    FILES,
    JobCommand,
    JobImage,
    JobName,
    JobServers,
    Keys,
    is_given,
)
from irtool.cli.question import RunOptions
from irtool.cli.report import Failure
from irtool.ir.dataclass import dataclass

if TYPE_CHECKING:
    from irtool.planning.recovery.times import Assumptions


class RecoverForm(str, Enum):
    """Forms of the answer, and of the plan itself."""

    table = "table"
    json = "json"
    csv = "csv"
    html = "html"
    strategy = "strategy"
    msjob = "msjob"

    @property
    def is_plan(self) -> bool:
        """Whether it is the plan, and nothing about it."""
        return self.value in _PLAN_ITSELF


_PLAN_ITSELF = ("strategy", "msjob")
_COUNTS_IN = {
    "keys": _PLAN_ITSELF, "names": _PLAN_ITSELF,
    "name": ("msjob",), "image": ("msjob",), "command": ("msjob",), "servers": ("msjob",),
}  # fmt: skip
"""By option the formats that it counts in."""


@dataclass(frozen=True, slots=True)
class RecoverOptions(RunOptions):
    """What the command line asks of a recovery, as it is typed."""

    keys: Annotated[
        Keys | None,
        Option(
            help="Which of MindSpore's strategy files.",
            show_default="operators, or parameters where those can't be told apart",
            group=FILES,
        ),
    ] = None
    names: Annotated[
        str | None,
        Option(
            metavar="SAVED.json",
            help="A strategy file of MindSpore's to check keys by.",
            group=FILES,
        ),
    ] = None
    name: JobName = None
    image: JobImage = None
    command: JobCommand = None
    servers: JobServers = None
    format: Annotated[
        RecoverForm,
        Option("--format", "-f", help="strategy, msjob: the plan itself.", group=OUTPUT),
    ] = RecoverForm.table
    lost: Annotated[
        str | None, Option(metavar="RANKS", help="Ranks whose devices are gone: 3,5,8-15.")
    ] = None
    to: Annotated[int | None, Option(least=1, metavar="N", help="Devices to go on with.")] = None
    add_devices: Annotated[
        int, Option("--add-devices", least=0, metavar="N", help="Devices that joined.")
    ] = 0
    plan: Annotated[
        str | None,
        Option(metavar="BEGIN", help="A begin dump with a plan for the new devices."),
    ] = None
    grown: Annotated[
        str | None, Option(metavar="BEGIN", help="The begin dump with layers added.")
    ] = None
    scaled: Annotated[
        bool, Option("--scaled", help="Scale strategies, don't search for better ones.")
    ] = False
    horizon: Annotated[
        str | None,
        Option(
            metavar="STEPS",
            show_default="10000",
            help="Steps that pay off what is moved and compiled for a new plan.",
        ),
    ] = None
    machine: shared.MachineName = None
    server: Annotated[
        int | None,
        Option(
            least=1,
            metavar="N",
            help="Devices of a server, which fail together; else the machine's.",
        ),
    ] = None
    data_bytes: Annotated[
        str | None,
        Option("--data-bytes", metavar="SIZE", help="Other state, in bytes: 20GiB."),
    ] = None
    assume: Annotated[
        list[str] | None,
        Option(metavar="NAME=NUMBER", help="For the time: step_seconds=2.5."),
    ] = None
    limit: shared.Limit = None
    allow_unknown: shared.AllowUnknown = False

    def refuse_other_forms(self) -> None:
        """Say which options would not count.

        Raises:
            Failure: one of them was given.
        """
        for name, forms in _COUNTS_IN.items():
            if is_given(getattr(self, name)) and self.format.value not in forms:
                raise Failure(f"goes with --format {' or '.join(forms)}", f"--{name}")

    @property
    def rates(self) -> Assumptions:
        """What the model of the time takes for granted: ``--assume`` and ``--data-bytes``.

        Raises:
            Failure: there is no such assumption, or a value is no number or size.
        """
        from irtool.planning.recovery.times import Assumptions

        known = [field.name for field in fields_of(Assumptions)]
        values = dict(_assumption(text, known) for text in self.assume or ())
        if self.data_bytes is not None:
            values["data_bytes"] = size_of(self.data_bytes, "--data-bytes")
        typed = {
            name: int(value) if name in ("checkpoint_steps", "data_bytes") else value
            for name, value in values.items()
        }
        return replace(Assumptions(), **typed)  # pyright: ignore[reportArgumentType]  # names were checked


def _assumption(text: str, known: list[str]) -> tuple[str, float]:
    """A number that ``--assume NAME=NUMBER`` gives, by its name."""
    name, equals, number = text.partition("=")
    name = name.strip().replace("-", "_")
    if name not in known or not equals:
        hint = f"there are: {', '.join(known)}"
        raise Failure(f"{text} is no assumption", "--assume", hint=hint)
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Failure(f"{number} is no number", "--assume", hint="--assume step_seconds=2.5")
    if value < 0 or (name == "storage_bandwidth" and value == 0):
        raise Failure(f"{name} must be more than 0", "--assume")
    return name, value
