"""``irtool comm``: what is communicated, does it hang, reuse of subgraphs, fusion."""

from __future__ import annotations

import typer

from irtool.cli import comm_fuse, comm_groups, comm_hang, comm_reuse

command = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="What is communicated: groups, hangs, reuse of subgraphs, fusion.",
)
for _name, _help, _function in (
    ("groups", "Every collective: group, axis, phase, stream, link.", comm_groups.command),
    ("hang", "Does the run hang?", comm_hang.command),
    ("reuse", "Reuse of subgraphs: streams, labels, the best value.", comm_reuse.command),
    ("fuse", "Buckets of fused collectives, and better ones.", comm_fuse.command),
):
    command.command(name=_name, help=_function.__doc__, short_help=_help)(_function)
