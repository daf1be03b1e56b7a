"""``irtool diff A.ckpt B.ckpt``: the parameters of two checkpoints."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from irtool.cli.answering import Answered, tell
from irtool.cli.diff.names import maps_of
from irtool.cli.diff.options import DiffOptions
from irtool.cli.output import Output
from irtool.cli.report import Failure

if TYPE_CHECKING:
    from irtool.artefacts.strategies.model import StrategyFile
    from irtool.report.diff.checkpoints import CheckpointView


def is_for_checkpoints(paths: Sequence[str]) -> bool:
    """Whether two paths are to be compared as checkpoints: files or folders of them, both.

    Args:
        paths: as they were given.
    """
    kinds = [_is_checkpoint(path) for path in paths]
    # Beside a checkpoint a .pt that can't be read is taken for one: so it is said why it can't.
    return any(kinds) and False not in kinds


def _is_checkpoint(path: str) -> bool | None:
    """By the name; a ``.pt`` may be one tensor of a dump, and folders of runs hold more.

    None: a ``.pt`` that holds neither.
    """
    from irtool.compare.checkpoints.read import is_checkpoint
    from irtool.compare.tensors.formats.payload import BadPayload, read_raw
    from irtool.syntax.run import load_run
    from irtool.syntax.source import DumpError

    if path.endswith(".pt") and os.path.isfile(path):
        try:
            read_raw(path)
        except BadPayload as error:
            several = ("a dictionary", "a list", "something else")
            return True if any(what in str(error) for what in several) else None
        return False
    if not is_checkpoint(path):
        return False
    if os.path.isfile(path):
        return True
    try:
        run = load_run(path)
    except DumpError:
        return False
    if run.compilations or run.tensor_dumps or run.msprobe:
        return False
    return _holds_saved(path)


def _holds_saved(folder: str) -> bool:
    """Whether a folder, or that of a rank, holds files that are nothing but checkpoints."""
    for entry in os.scandir(folder):
        is_of_rank = "rank" in entry.name
        names = [entry.name]
        if entry.is_dir():
            names = os.listdir(entry.path) if is_of_rank else []
        saved = (".ckpt", ".bin", ".safetensors.index.json", *((".safetensors",) * is_of_rank))
        if any(name.endswith(saved) for name in names):
            return True
    return False


def tell_checkpoints(paths: Sequence[str], asked: DiffOptions, output: Output) -> int:
    """Compare two checkpoints and write the answer.

    Args:
        paths: files, or folders with the files of one checkpoint or of all ranks.
        asked: what the command line asks for.
        output: where the answer goes.

    Returns:
        The exit status.

    Raises:
        Failure: a side can't be read.
    """
    return tell(checkpoints_answered(paths, asked), output, asked.answer_form)


def checkpoints_answered(paths: Sequence[str], asked: DiffOptions) -> Answered[CheckpointView]:
    """Which parameters of two checkpoints differ, and by how much.

    Args:
        paths: of the left and the right side.
        asked: with the strategy files of both sides, and a map of names.

    Raises:
        Failure: a side can't be read.
    """
    from irtool.cli.diff.runs import calm_numpy
    from irtool.compare.checkpoints.comparison import compare_checkpoints
    from irtool.compare.checkpoints.joining import Side, side_of
    from irtool.compare.checkpoints.read import NoCheckpoint, read_checkpoint
    from irtool.compare.tensors.pairing.msprobe_maps import TOP
    from irtool.report.diff.checkpoints import (
        CheckpointView,
        checkpoints_answer,
        checkpoints_report,
    )

    calm_numpy()
    sides: list[Side] = []
    for path, strategy in zip(paths, (asked.left_strategy, asked.right_strategy), strict=True):
        try:
            sides.append(side_of(read_checkpoint(path), _layouts(strategy)))
        except NoCheckpoint as error:
            raise Failure(str(error), error.path) from None
    maps = maps_of(asked.map_file)
    if maps.layers.keys() - {TOP}:
        hint = "a file of cells, or one pair a line: name on the left = name on the right"
        why = "checkpoints name no classes, by which a layer file says what children are called"
        raise Failure(why, asked.map_file or "", hint=hint)
    comparison = compare_checkpoints(sides[0], sides[1], maps.of_parameters)
    view = CheckpointView(comparison, asked.limit)
    return Answered(
        view,
        lambda: checkpoints_answer(view),
        lambda _: checkpoints_report(view),
        status=asked.status(not comparison.is_equal),
    )


def _layouts(path: str | None) -> StrategyFile | None:
    if path is None:
        return None
    from irtool.cli.inputs.strategies import layouts_at

    return layouts_at(path)
