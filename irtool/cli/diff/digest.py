"""``irtool diff --digest RUN``: the statistics of a run, to be compared later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from irtool.cli.diff.options import DiffOptions
from irtool.cli.diff.runs import MANY_OBJECTS, calm_numpy, schedule_of, side_of
from irtool.cli.output import Output
from irtool.cli.report import Failure, note
from irtool.syntax.collector import CollectorPause

if TYPE_CHECKING:
    from irtool.compare.runs.sides import RunSide
    from irtool.compare.tensors.measuring.measure import Scheduler
    from irtool.compare.tensors.model import TensorRun


def write_digest(path: str, asked: DiffOptions, output: Output) -> int:
    """Write the statistics of a run's tensors.

    Args:
        path: of the run.
        asked: what the command line asks for; a file that ends in ``.gz`` is packed.
        output: where the answer goes.

    Returns:
        The exit status.

    Raises:
        Failure: there are no tensors.
    """
    calm_numpy()
    from irtool.compare.tensors import digest

    side = side_of(path, asked)
    losses: Mapping[int, float] = side.losses.loss.values if side.losses is not None else {}
    facts: dict[str, object] = {
        "losses": {str(step): value for step, value in losses.items() if value == value},
        "context": {key: str(value) for key, value in side.context.items()},
    }
    packed = asked.output_file is not None and asked.output_file.endswith(".gz")
    schedule, close = schedule_of(asked)
    try:
        with CollectorPause.over(MANY_OBJECTS):
            runs = _filled(side, asked, schedule)
            first = next(runs, None)
            if first is None:
                raise Failure("no tensors to make a digest of", path)
            stream = output.binary()
            digest.write_digest(stream, path, chain([first], runs), facts, packed)
    finally:
        close()
    output.close()
    return 0


def _filled(side: RunSide, asked: DiffOptions, schedule: Scheduler | None) -> Iterator[TensorRun]:
    """The units that are asked for, with the figures of all their tensors."""
    from irtool.compare.runs.graphs import join_graph
    from irtool.compare.runs.units import read_unit
    from irtool.compare.tensors import digest
    from irtool.compare.tensors.model import NoTensors

    for (rank, step, *_), unit in side.units.items():
        if asked.rank not in (None, rank) or asked.step not in (None, step):
            continue
        try:
            tensors = read_unit(unit)
        except NoTensors as error:
            note(f"{unit.path}: {error}")
            continue
        digest.fill(tensors, schedule)
        join_graph(side, tensors)
        for problem in tensors.problems:
            note(f"{tensors.path}: {problem}")
        note(f"{len(tensors.ops):,} operators of rank {tensors.rank}, step {tensors.step}")
        yield tensors
