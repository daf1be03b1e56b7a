"""``--write-layout``: a layout file proposed for two runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from irtool.cli.diff.options import DiffOptions
from irtool.cli.diff.runs import calm_numpy, side_of
from irtool.cli.output import Output
from irtool.cli.report import Failure, note

if TYPE_CHECKING:
    from irtool.compare.runs.sides import RunSide
    from irtool.compare.tensors.model import TensorRun


def write_layout(paths: Sequence[str], asked: DiffOptions, output: Output) -> int:
    """Propose a layout file for two runs, and write it.

    Args:
        paths: run folders with msprobe's dumps.
        asked: what the command line asks for.
        output: where the answer goes.

    Returns:
        The exit status.

    Raises:
        Failure: a side has no tensors.
    """
    from irtool.compare.layouts.proposal import proposed

    calm_numpy()
    sides = [_first_step(side_of(path, asked), path) for path in paths]
    layouts = proposed(sides[0], sides[1])
    for path, layout in zip(paths, layouts, strict=True):
        note(
            f"{path}: tensor parallel {layout.tensor_parallel}, data parallel "
            f"{layout.data_parallel}, pipeline parallel {layout.pipeline_parallel}"
        )
        if layout.tensor_parallel > 1 and not layout.parameters:
            note(f"{path}: its calls have no names of parameters (levels L0 and mix have)")
    document = dict(zip(("left", "right"), (layout.document() for layout in layouts), strict=True))
    output.write(json.dumps(document, indent=2) + "\n")
    output.close()
    return 0


def _first_step(side: RunSide, path: str) -> dict[int, TensorRun]:
    from irtool.compare.runs.units import read_unit
    from irtool.compare.tensors.model import NoTensors

    runs: dict[int, TensorRun] = {}
    first = min((key[1] for key in side.units), default=None)
    for key, unit in side.units.items():
        if key[1] == first:
            try:
                runs.setdefault(key[0], read_unit(unit))
            except NoTensors as error:
                raise Failure(str(error), unit.path) from None
    if not runs:
        raise Failure("no tensors to tell a layout by", path)
    return runs
