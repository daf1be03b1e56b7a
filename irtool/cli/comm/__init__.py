"""``irtool comm``: what is communicated, does it hang, reuse of subgraphs, fusion."""

from __future__ import annotations

import click

from irtool.cli.comm import fuse, groups, hang, reuse
from irtool.cli.help import FamilyOfCommands
from irtool.cli.opening import command_made_of

command: click.Group = FamilyOfCommands(
    "comm",
    help="What is communicated: groups, hangs, reuse of subgraphs, fusion.",
)
for _name, _help, _function in (
    ("groups", "Every collective: group, axis, phase, stream, link.", groups.command),
    ("hang", "Does the run hang?", hang.command),
    ("reuse", "Reuse of subgraphs: streams, labels, the best value.", reuse.command),
    ("fuse", "Buckets of fused collectives, and better ones.", fuse.command),
):
    command.add_command(command_made_of(_name, _function, short_help=_help))
