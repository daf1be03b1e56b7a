"""One side of a comparison of runs: what there is of graphs, tensors, losses and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import cast

from irtool.compare.losses.series import LossRun, Series
from irtool.compare.tensors.digest import read_digest
from irtool.compare.tensors.model import NoTensors, TensorRun
from irtool.compare.tensors.open import Unit, is_digest, plain_units, units_of
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.syntax.run import Run

Key = tuple[int, int, int, str]


@dataclass(slots=True)
class RunSide:
    """One side of a comparison; what is not there is None or empty."""

    path: str
    run: Run | None = None
    units: dict[Key, Unit | TensorRun] = field(default_factory=dict[Key, "Unit | TensorRun"])
    dump: Dump | None = None
    losses: LossRun | None = None
    context: Mapping[str, object] = field(default_factory=dict[str, object])
    complaints: list[str] = field(default_factory=list[str])


def side_of_run(run: Run, losses: LossRun | None) -> RunSide:
    """What a run folder has to be compared.

    Args:
        run: the folder.
        losses: its loss curve, if it has one.

    Returns:
        The side, without its dump.
    """
    side = RunSide(run.path, run, losses=losses, context=run.context or {})
    for unit in units_of(run):
        side.units[unit.key] = unit
    if not side.units:
        for unit in plain_units(run.path):
            side.units[unit.key] = unit
    return side


def side_of_file(path: str) -> RunSide:
    """A digest, or a file of tensors, as a side of a comparison.

    Args:
        path: of the file.

    Raises:
        NoTensors: it is damaged, or neither.
    """
    side = RunSide(path)
    if is_digest(path):
        runs, facts = read_digest(path)
        for item in runs:
            step = -1 if item.step is None else item.step
            side.units[item.rank, step, item.graph or 0, ""] = item
        context = facts.get("context")
        side.context = cast("Mapping[str, object]", context) if isinstance(context, dict) else {}
        side.losses = digest_losses(path, facts)
        return side
    for unit in plain_units(path):
        side.units[unit.key] = unit
    if not side.units:
        raise NoTensors("neither a digest nor a file of tensors")
    return side


def digest_losses(path: str, facts: Mapping[str, object]) -> LossRun | None:
    """The loss curve that a digest carries.

    Args:
        path: of the digest.
        facts: what it says beside tensors.

    Returns:
        The curve; None where it has none.
    """
    values = facts.get("losses")
    if not isinstance(values, dict) or not values:
        return None
    pairs = cast("Mapping[str, float]", values)
    return LossRun(path, "digest", Series({int(step): float(v) for step, v in pairs.items()}))
