"""Strategy files as they lie on disk: one file, or a folder with one for each pipeline stage."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from irtool.artefacts.errors import ArtefactError, bytes_of
from irtool.artefacts.strategies.json import read_json_strategies
from irtool.artefacts.strategies.model import SavedLayout, SavedStrategy, StrategyFile
from irtool.artefacts.strategies.protobuf import read_protobuf_strategies
from irtool.syntax import file_facts
from irtool.syntax.run.folders import natural

JSON_SUFFIX = ".json"
SUFFIXES = (JSON_SUFFIX, ".ckpt")
"""Names that MindSpore's own merging looks for."""

MERGE = (
    "merge the files of all stages with mindspore.merge_pipeline_strategys, or give their folder"
)


RECEIVES = "Receive_"
"""How a key begins that names a tensor from another stage."""


def read_strategies(path: str) -> StrategyFile:
    """A strategy file; of a folder the files of all pipeline stages, put together.

    MindSpore tells JSON from protobuf by the suffix ``.json``, and so does this.

    Args:
        path: of the file or folder.

    Raises:
        ArtefactError: it is none, or stages are missing.
    """
    if file_facts.is_folder(path):
        return _of_folder(path)
    data = bytes_of(path)
    if not data:
        raise ArtefactError(path, "is empty")
    if path.endswith(JSON_SUFFIX):
        return read_json_strategies(path, data)
    return read_protobuf_strategies(path, data)


def read_layouts(path: str) -> StrategyFile:
    """A strategy file, for those who ask how parameters lie in the whole run.

    Args:
        path: of the file, or of the folder with those of all pipeline stages.

    Raises:
        ArtefactError: it holds no layouts, holds those of devices that differ in number, or those
            of one later pipeline stage alone.
    """
    file = read_strategies(path)
    if file.keys == "operators" and not file.layouts:
        hint = "save one with strategy_ckpt_config={'save_file': …}: it is keyed by parameters"
        raise ArtefactError(
            path, "is keyed by operators: it has no parallel_layout_item", hint=hint
        )
    if not file.layouts:
        hint = "MindSpore saves layouts when a network was compiled, not before"
        raise ArtefactError(path, "its parallel_layout_item is empty", hint=hint)
    refuse_later_stage(file)
    for layout in file.layouts.values():
        if not layout.device_matrix:
            message = f"{layout.key} has no device matrix: a pipeline of single devices"
            raise ArtefactError(path, message, hint="MindSpore converts no such checkpoints")
        if layout.devices != file.stage_devices:
            message = (
                f"{layout.key} lies on {layout.devices} devices, "
                f"{next(iter(file.layouts))} on {file.stage_devices}"
            )
            raise ArtefactError(path, message)
    return file


def refuse_later_stage(file: StrategyFile) -> None:
    """Refuse what lacks pipeline stages before others.

    Args:
        file: one file, or the files of several stages put together.

    Raises:
        ArtefactError: it is of one later stage alone, or of several and not of all before the last.
    """
    if not file.is_merged and file.stage:
        message = (
            f"is of pipeline stage {file.stage} alone, and says nothing of the stages before it: "
            "MindSpore's conversion would take it for stage 0, and read the wrong ranks"
        )
        raise ArtefactError(file.path, message, hint=MERGE)
    if not file.is_merged and any(key.startswith(RECEIVES) for key in file.strategies):
        message = (
            "its operators receive from another pipeline stage, and it calls itself stage 0: a "
            "search writes that of every stage, and MindSpore merges none but the first of them"
        )
        raise ArtefactError(file.path, message, hint="compile in semi-auto mode to save the stages")
    stages = {layout.stage for layout in file.layouts.values()}
    missing = sorted(set(range(file.stages)) - stages) if file.is_merged else []
    if missing:
        numbers = ", ".join(map(str, missing))
        message = f"lacks pipeline stage {numbers} of {file.stages}"
        raise ArtefactError(file.path, message, hint=MERGE)


def _of_folder(path: str) -> StrategyFile:
    try:
        names = sorted(file_facts.names_in(path), key=natural)
    except OSError as error:
        raise ArtefactError(path, (error.strerror or str(error)).lower()) from None
    files = [name for name in names if name.endswith(SUFFIXES)]
    if not files:
        raise ArtefactError(path, "holds no strategy file: none ends in .json or .ckpt")
    kinds = {os.path.splitext(name)[1] for name in files}
    if len(kinds) > 1:
        message = f"holds .json and .ckpt files: {files[0]}, {files[-1]}"
        raise ArtefactError(path, message, hint="MindSpore merges a folder of one kind alone")
    return merged(path, [read_strategies(os.path.join(path, name)) for name in files])


def merged(path: str, files: Sequence[StrategyFile]) -> StrategyFile:
    """The files of all pipeline stages as one, as ``merge_pipeline_strategys`` makes it.

    Args:
        path: what the merged file is called.
        files: of the stages, in any order.

    Raises:
        ArtefactError: one holds no layouts, was merged before, or disagrees with another of its
            stage; or stages are missing.
    """
    by_stage: dict[int, StrategyFile] = {}
    for file in files:
        if file.is_merged:
            raise ArtefactError(file.path, "is merged already: give it alone")
        if not file.strategies or not file.layouts:
            raise ArtefactError(file.path, "holds no strategies, or no layouts of parameters")
        stage = file.stage or 0
        known = by_stage.setdefault(stage, file)
        if known.layouts != file.layouts:
            message = f"is of pipeline stage {stage} like {known.path}, and says other layouts"
            raise ArtefactError(file.path, message, hint="give a folder with the files of one run")
    if len(by_stage) == 1 and 0 in by_stage:
        return replace(by_stage[0], path=path, parts=(by_stage[0].path,))
    stages = [by_stage[stage] for stage in sorted(by_stage)]
    strategies: dict[str, SavedStrategy] = {}
    for file in stages:
        strategies |= file.strategies
    layouts = {
        layout.key: layout for stage in sorted(by_stage) for layout in _of(by_stage[stage], stage)
    }
    first = stages[0]
    return StrategyFile(
        path,
        first.form,
        first.keys,
        strategies,
        {},
        frozenset(),
        layouts,
        tuple(file.path for file in stages),
    )


def _of(file: StrategyFile, stage: int) -> Iterator[SavedLayout]:
    """The layouts of a stage's file under the keys that merging gives them."""
    for layout in file.layouts.values():
        yield replace(layout, key=f"{stage}-{layout.key}", stage=stage)
