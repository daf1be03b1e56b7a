"""``irtool comm``: what is communicated, does it hang, reuse of subgraphs, fusion."""

from __future__ import annotations

from importlib import import_module

import click

from irtool.cli.help import FamilyOfCommands
from irtool.cli.opening import command_made_of

_COMMANDS = {
    "groups": "Every collective: group, axis, phase, stream, link.",
    "hang": "Does the run hang?",
    "reuse": "Reuse of subgraphs: streams, labels, the best value.",
    "fuse": "Buckets of fused collectives, and better ones.",
}


class _CommCommands(FamilyOfCommands):
    """Imports the module of a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _COMMANDS and cmd_name not in self.commands:
            function = import_module(f"{__name__}.{cmd_name}").command
            made = command_made_of(cmd_name, function, short_help=_COMMANDS[cmd_name])
            self.add_command(made)
        return self.commands.get(cmd_name)


command: click.Group = _CommCommands(
    "comm",
    help="What is communicated: groups, hangs, reuse of subgraphs, fusion.",
)
