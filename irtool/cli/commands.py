"""The table of commands; a command's module is imported when it is run."""

from __future__ import annotations

from typing import NamedTuple


class CommandEntry(NamedTuple):
    """``module`` has a ``command``: a function that typer understands, or a ``typer.Typer``."""

    module: str
    help: str


COMMANDS: dict[str, CommandEntry] = {
    "parse": CommandEntry("irtool.cli.parse", "What is in this dump?"),
    "check": CommandEntry(
        "irtool.cli.check", "Is each strategy legal; what will be sliced and communicated?"
    ),
    "diff": CommandEntry("irtool.cli.diff", "Two dumps or runs: what differs, and where first?"),
    "rules": CommandEntry("irtool.cli.rules", "What irtool knows of operators."),
}
