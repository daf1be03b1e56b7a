"""What the command line asks of a comparison of two runs."""

from __future__ import annotations

from dataclasses import dataclass

from irtool.cli.output import Output


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the command line asks for."""

    format: str
    output: Output
    limit: int | None = None
    rank: int | None = None
    graph: int | None = None
    step: int | None = None
    map_file: str | None = None
    jobs: int | None = None
    scheduler: str | None = None
