"""Strategy files in protobuf: ``node_strategy.proto``, message ``ParallelStrategyMap``."""

from __future__ import annotations

from collections.abc import Iterator

from irtool.artefacts.errors import ArtefactError
from irtool.artefacts.protobuf import Field, Malformed, fields
from irtool.artefacts.strategies.json import layout_problem, split_key
from irtool.artefacts.strategies.model import (
    MapEntry,
    Rows,
    SavedLayout,
    SavedStrategy,
    StrategyFile,
)

_CURRENT_STAGE, _STRATEGY_ITEM, _LAYOUT_ITEM = 1, 2, 3


def read_protobuf_strategies(path: str, data: bytes) -> StrategyFile:
    """A strategy file in protobuf.

    Args:
        path: of the file, for messages.
        data: what the file holds.

    Raises:
        ArtefactError: it is none, with the byte where that shows.
    """
    strategies: dict[str, SavedStrategy] = {}
    layouts: dict[str, SavedLayout] = {}
    has_counter = False
    try:
        for field in fields(memoryview(data)):
            if field.number == _CURRENT_STAGE:
                field.number_of()
                has_counter = True
            elif field.number == _STRATEGY_ITEM:
                item = _strategy(field)
                strategies[item.key] = item
            elif field.number == _LAYOUT_ITEM:
                layout = _layout(field)
                layouts[layout.key] = layout
            else:
                raise Malformed(f"a strategy file has no field {field.number}", field.offset)
    except Malformed as error:
        message = f"is no strategy file: byte {error.offset:,}: {error.message}"
        hint = "files that end in .json are JSON, all others protobuf"
        raise ArtefactError(path, message, hint=hint) from None
    if not has_counter:
        raise ArtefactError(path, "is no strategy file: current_stage is missing")
    return StrategyFile(path, "protobuf", "parameters", strategies, {}, frozenset(), layouts)


def _strategy(field: Field) -> SavedStrategy:
    key, inner = _named(field, "node_name", "parallel_strategys")
    stage: int | None = None
    rows: list[tuple[int, ...]] = []
    for member in inner.message():
        if member.number == 1:
            stage = member.number_of()
        elif member.number == 2:
            rows.append(_dimensions(member))
    if stage is None:
        raise Malformed(f"{key} has no stage", inner.offset)
    strategy: Rows = tuple(rows)
    return SavedStrategy(key, stage, strategy)


def _layout(field: Field) -> SavedLayout:
    key, inner = _named(field, "param_name", "parallel_layouts")
    lists: dict[int, list[tuple[int, ...]]] = {}
    numbers: dict[int, int] = {}
    for member in inner.message():
        if member.number in (1, 2, 3, 4):
            lists.setdefault(member.number, []).append(_dimensions(member))
        elif member.number in (5, 6, 7):
            numbers[member.number] = member.number_of()
    missing = {5, 6, 7} - numbers.keys()
    if missing:
        raise Malformed(f"the layout of {key} lacks field {min(missing)}", inner.offset)
    if len(lists.get(1, ())) != 1:
        raise Malformed(f"the layout of {key} has no device matrix", inner.offset)
    name, stage = split_key(key)
    layout = SavedLayout(
        key,
        name,
        stage,
        lists[1][0],
        _tensor_map(lists.get(2, [])),
        None,
        numbers[7],
        numbers[6],
        numbers[5],
        *(next(iter(lists.get(number, ())), ()) for number in (3, 4)),
    )
    if (problem := layout_problem(layout)) is not None:
        raise Malformed(f"{key}: {problem}", inner.offset)
    return layout


def _tensor_map(maps: list[tuple[int, ...]]) -> tuple[MapEntry, ...]:
    """One map of all dimensions, or where one of them lies along several axes one a dimension.

    A lone map of two entries may be either; MindSpore takes it for a map of all dimensions.
    """
    if len(maps) <= 1:
        return maps[0] if maps else ()
    return tuple(axes[0] if len(axes) == 1 else axes for axes in maps if axes)


def _named(field: Field, name: str, value: str) -> tuple[str, Field]:
    """The name and the inner message of an item."""
    key: str | None = None
    inner: Field | None = None
    for member in field.message():
        if member.number == 1:
            key = member.text()
        elif member.number == 2:
            inner = member
    if key is None or inner is None:
        missing = name if key is None else value
        raise Malformed(f"an item without {missing}", field.offset)
    return key, inner


def _dimensions(field: Field) -> tuple[int, ...]:
    return tuple(_all_dimensions(field))


def _all_dimensions(field: Field) -> Iterator[int]:
    for member in field.message():
        if member.number == 1:
            yield from member.numbers()
