"""Options that all questions about communication share."""

from __future__ import annotations

from collections.abc import Sequence

from irtool.cli import options as shared
from irtool.cli.inputs.cluster import Asked
from irtool.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CommOptions:
    """What is read and written; these options stand behind those of the question itself."""

    devices: shared.Devices = None
    graph: shared.GraphNumber = None
    context: shared.Context = None
    config: shared.Config = None
    assumptions: shared.Assumptions = False
    output_file: shared.OutputFile = None

    def asked(self, paths: Sequence[str], rank: int | None = None) -> Asked:
        """What is to be read of these paths; ``rank``: only this one."""
        return Asked(paths, rank, self.graph, self.devices, self.context, self.config)
