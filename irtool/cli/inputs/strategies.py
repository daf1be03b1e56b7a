"""What commands read of strategy files, or of dumps in their place."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.strategies import (
    SUFFIXES,
    merged,
    read_layouts,
    read_strategies,
    refuse_later_stage,
)
from irtool.artefacts.strategies.model import StrategyFile
from irtool.cli.configuration import Configuration
from irtool.cli.context import NO_DEVICES, ContextArguments, parallel_of
from irtool.cli.inputs.begin import context_of, find_begin
from irtool.cli.inputs.dumps import read_statements
from irtool.cli.report import Failure, note, report_problems
from irtool.syntax import file_facts
from irtool.syntax.run import load_run
from irtool.syntax.run.names import is_dump
from irtool.syntax.source import DumpError

if TYPE_CHECKING:
    from irtool.ir.dump import Dump
    from irtool.sharding.network.report import CheckResult

WHOLE = "whole"
"""Stands for a checkpoint that no devices share."""
CODE = "ART001"
"""Of a strategy file that can't be used."""


def failure_of(error: ArtefactError) -> Failure:
    """What a person is told of a file that can't be read."""
    place = f"{error.path}:{error.line}:{error.column}" if error.line else error.path
    return Failure(error.message, place, hint=error.hint, code=CODE)


def strategies_at(path: str) -> StrategyFile:
    """A strategy file, or a folder with one for each stage.

    Args:
        path: of the file or folder.

    Raises:
        Failure: it is none, or of a later pipeline stage alone.
    """
    try:
        file = read_strategies(path)
        refuse_later_stage(file)
    except ArtefactError as error:
        raise failure_of(error) from None
    return file


def layouts_at(path: str) -> StrategyFile | None:
    """How parameters lie, by a strategy file, a folder of stage files, a run or a begin dump.

    Args:
        path: of the file or folder, or the word ``whole``.

    Returns:
        None where ``path`` is ``whole``: checkpoints are not cut.

    Raises:
        Failure: nothing says it.
    """
    if path == WHOLE and not file_facts.exists(path):
        return None
    try:
        if is_dump(os.path.basename(path)) and not file_facts.is_folder(path):
            return _predicted(path)
        if not file_facts.is_folder(path) or _holds_strategies(path):
            return read_layouts(path)
        return _of_run(path)
    except ArtefactError as error:
        raise failure_of(error) from None


def _holds_strategies(folder: str) -> bool:
    """Whether strategy files lie in a folder itself, and not those of a run."""
    try:
        names = file_facts.names_in(folder)
    except OSError:
        return True  # reading says why it can't be looked into
    return any(name.endswith(SUFFIXES) for name in names) and not any(map(is_dump, names))


def _of_run(path: str) -> StrategyFile:
    """What a run folder holds: strategy files that MindSpore saved, else what its dumps predict."""
    return saved_in_run(path) or _predicted(path)


def saved_in_run(path: str) -> StrategyFile | None:
    """The layouts in strategy files that lie in a run folder, those of its stages as one.

    Args:
        path: the run folder.

    Returns:
        None where no file there holds layouts.

    Raises:
        ArtefactError: they are no files of one run, or lack a stage.
        Failure: the folder can't be read.
    """
    try:
        files = [name for name in load_run(path).strategy_files if name.endswith(SUFFIXES)]
    except DumpError as error:
        raise Failure(error.message, path, hint=error.hint) from None
    saved: list[StrategyFile] = []
    for name in files:
        try:
            file = read_strategies(name)
        except ArtefactError:
            note(f"{name} is no strategy file")
            continue
        if file.layouts:
            saved.append(file)
    joined = [file for file in saved if file.is_merged]
    if joined:
        note(f"reads {joined[0].path}")
        return read_layouts(joined[0].path)
    if not saved:
        return None
    note(f"reads {', '.join(file.path for file in saved[:4])}")
    return _checked(merged(path, saved))


def _checked(file: StrategyFile) -> StrategyFile:
    stages = {layout.stage or 0 for layout in file.layouts.values()}
    missing = [stage for stage in range(file.stages) if stage not in stages]
    if missing:
        raise ArtefactError(file.path, f"no strategy file of pipeline stage {missing[0]} is here")
    return file


def _predicted(path: str) -> StrategyFile:
    """What MindSpore would save for begin dumps.

    Raises:
        Failure: MindSpore would refuse them, or a part is not known.
    """
    from irtool.cli.inputs.stages import begins_of
    from irtool.planning.files.parameter_layouts import UnknownLayout, predicted_file
    from irtool.sharding.check import check

    file = find_begin(path, None, None)
    dump = _read(file.path)
    try:
        context = parallel_of(
            context_of(file, dump, ContextArguments(), Configuration()), file.path
        )
    except Failure as failure:
        if failure.code != NO_DEVICES:
            raise
        hint = "give a run folder, or a strategy file that MindSpore saved"
        raise Failure(failure.message, path, hint=hint, code=failure.code) from None
    dumps = {context.stage: dump}
    if context.stages > 1:
        dumps = dict(begins_of(path, context, None, file))
        lacking = [stage for stage in range(context.stages) if stage not in dumps]
        if lacking:
            message = f"no begin dump of pipeline stage {lacking[0]} is here"
            raise Failure(message, path, hint="give the run folder with dumps of all stages")
    reports: dict[int, CheckResult] = {}
    for stage, begin in sorted(dumps.items()):
        reports[stage] = check(begin, replace(context, rank=stage * context.stage_size))
        if reports[stage].accepted is False:
            raise Failure("MindSpore would refuse these strategies: irtool check", begin.path)
    try:
        predicted = predicted_file(path, reports, context.stages)
    except UnknownLayout as error:
        raise Failure(str(error), dumps[error.stage].path) from None
    if not predicted.layouts:
        raise Failure("no parameter here has a layout", path)
    return predicted


def network_at(path: str) -> Dump:
    """The begin dump that says a network's parameters.

    Args:
        path: of the begin dump, or of a run folder that holds it.

    Raises:
        Failure: there is none.
    """
    return _read(find_begin(path, None, None).path)


def _read(path: str) -> Dump:
    from irtool.ir.run import InputFile

    dump = read_statements(InputFile(path))
    report_problems(dump.problems)
    return dump
