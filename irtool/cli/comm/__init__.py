"""``irtool comm``: what is communicated, does it hang, reuse of subgraphs, fusion."""

from __future__ import annotations

import typer

from irtool.cli.comm import fuse, groups, hang, reuse
from irtool.cli.opening import add_command

command = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="What is communicated: groups, hangs, reuse of subgraphs, fusion.",
)
for _name, _help, _function in (
    ("groups", "Every collective: group, axis, phase, stream, link.", groups.command),
    ("hang", "Does the run hang?", hang.command),
    ("reuse", "Reuse of subgraphs: streams, labels, the best value.", reuse.command),
    ("fuse", "Buckets of fused collectives, and better ones.", fuse.command),
):
    add_command(command, _name, _function, short_help=_help)
