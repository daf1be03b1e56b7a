"""What rules may need: dumps of some kinds, and things beside them; and that one is lacking."""

from __future__ import annotations

from typing import Literal, TypeAlias

Need: TypeAlias = Literal["begin", "devices", "validate", "ranks", "machine", "environment"]
"""What a rule may need beside the dump that it looks at."""

NEEDS: dict[Need, str] = {
    "begin": "the dump step_parallel_begin of the same compilation",
    "devices": "the parallel context (number of devices, stages, …)",
    "validate": "the dump validate of the same compilation",
    "ranks": "the dumps of other ranks",
    "machine": "a description of the machine",
    "environment": "the environment variables of the training process",
}

DumpKind: TypeAlias = Literal["auto_begin", "begin", "end", "validate", "other"]
"""Dumps by what was done to them.

Before the search for strategies, before and after the parallel pass (``step_parallel_begin``,
``step_parallel_end``), the whole graph with backward pass and optimizer (``validate``), any other.
"""


class Lacking(Exception):
    """A rule needs something that is not there: it stays silent, and the summary says so."""

    def __init__(self, need: Need, reason: str = "") -> None:
        super().__init__(reason or need)
        self.need: Need = need
        self.reason = reason
