"""Strategy files in JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from irtool.artefacts.errors import ArtefactError, position_in
from irtool.artefacts.strategies.model import (
    Rows,
    SavedLayout,
    SavedStrategy,
    StrategyFile,
)
from irtool.syntax.reading import JsonError, parse_json

STRATEGIES = "parallel_strategy_item"
LAYOUTS = "parallel_layout_item"
OUT_STRATEGIES = "parallel_out_strategy_item"
LAYOUT_VALUES = "parallel_layout_value_item"
OUT_LAYOUT_VALUES = "parallel_out_layout_value_item"
_WITH_LAYOUT = (LAYOUT_VALUES, "parallel_newshape_layout_value_item")
"""Tables of layouts of operands: those of results leave an operator its strategy."""
_OPERATOR = re.compile(r".*/[^/]+-op\d+")
_MERGED = re.compile(r"(\d{1,6})-(.+)", re.DOTALL)


def read_json_strategies(path: str, data: bytes) -> StrategyFile:
    """A strategy file in JSON.

    Args:
        path: of the file, for messages.
        data: what the file holds.

    Raises:
        ArtefactError: it is none, with the line and column where that shows.
    """
    try:
        document = parse_json(data)
    except JsonError as error:
        message = f"is no JSON: {error.message}"
        raise ArtefactError(path, message, error.line, error.column) from None
    reader = _Reader(path, data)
    if not isinstance(document, dict):
        reader.refuse("holds no table of strategies", "")
    table = cast("dict[str, Any]", document)
    if STRATEGIES not in table and LAYOUTS not in table:
        reader.refuse(f"holds neither {STRATEGIES} nor {LAYOUTS}", "")
    strategies = reader.strategies(table, STRATEGIES)
    layouts = reader.layouts(table)
    by_operators = LAYOUTS not in table or any(map(_OPERATOR.fullmatch, strategies))
    return StrategyFile(
        path,
        "json",
        "operators" if by_operators else "parameters",
        strategies,
        reader.strategies(table, OUT_STRATEGIES),
        frozenset(key for name in _WITH_LAYOUT for key in reader.table(table, name)),
        layouts,
    )


def split_key(key: str) -> tuple[str, int | None]:
    """The parameter and the stage of a layout's key: ``1-w`` is ``w`` of stage 1.

    Args:
        key: as the file has it; one of a file that is not merged names no stage.

    Returns:
        The name and the stage, None where the key names none.
    """
    match = _MERGED.fullmatch(key)
    return (match[2], int(match[1])) if match is not None else (key, None)


class _Reader:
    """Values of a document, held to what they should be; wrong ones are shown at their key."""

    def __init__(self, path: str, data: bytes) -> None:
        self._path = path
        self._data = data

    def refuse(self, message: str, key: str, within: str = "") -> NoReturn:
        """Refuse the file at a key, behind the key of the table that holds it."""
        offset = 0
        for name in (within, key):
            text = json.dumps(name).encode() + b":" if name else b""
            position = _behind(self._data, text, offset) if text else -1
            offset = max(offset, position)
        line, column = position_in(self._data, offset)
        raise ArtefactError(self._path, message, line, column)

    def table(self, table: Mapping[str, Any], key: str, within: str = "") -> dict[str, Any]:
        """The table at a key; empty where there is none."""
        inner: Any = table.get(key, {})
        if not isinstance(inner, dict):
            self.refuse(f"{key} is no table", key, within)
        return cast("dict[str, Any]", inner)

    def strategies(self, document: Mapping[str, Any], name: str) -> dict[str, SavedStrategy]:
        """The strategies of one table."""
        by_key: dict[str, SavedStrategy] = {}
        for key, item in self.table(document, name).items():
            if not isinstance(item, dict):
                self.refuse(f"{key}: no table with stage and parallel_strategy", key, name)
            values = cast("dict[str, Any]", item)
            rows: Any = values.get("parallel_strategy")
            if not isinstance(rows, list):
                self.refuse(f"{key}: parallel_strategy is no list of rows", key, name)
            strategy: Rows = tuple(
                self._numbers(row, f"{key}: a row of parallel_strategy", key, name, least=1)
                for row in cast("list[Any]", rows)
            )
            stage = self._number(values, "stage", key, name, least=0)
            by_key[key] = SavedStrategy(key, stage, strategy)
        return by_key

    def layouts(self, document: Mapping[str, Any]) -> dict[str, SavedLayout]:
        """The layouts of parameters."""
        by_key: dict[str, SavedLayout] = {}
        for key, item in self.table(document, LAYOUTS).items():
            if not isinstance(item, dict):
                self.refuse(f"{key}: no table with dev_matrix and tensor_map", key, LAYOUTS)
            values = cast("dict[str, Any]", item)

            def numbers(
                name: str,
                least: int,
                optional: bool = False,
                values: dict[str, Any] = values,
                key: str = key,
            ) -> tuple[int, ...]:
                if optional and name not in values:
                    return ()
                return self._numbers(values.get(name), f"{key}: {name}", key, LAYOUTS, least)

            name, stage = split_key(key)
            shape = numbers("tensor_shape", -1) if "tensor_shape" in values else None
            layout = SavedLayout(
                key,
                name,
                stage,
                numbers("dev_matrix", 1),
                numbers("tensor_map", -1),
                shape,
                self._number(values, "opt_weight_shard_size", key, LAYOUTS, least=-1),
                self._number(values, "opt_weight_shard_step", key, LAYOUTS, least=0),
                self._number(values, "field", key, LAYOUTS, least=0),
                numbers("param_split_shape", 0, optional=True),
                numbers("indices_offset", 0, optional=True),
            )
            if (problem := layout_problem(layout)) is not None:
                self.refuse(f"{key}: {problem}", key, LAYOUTS)
            by_key[key] = layout
        return by_key

    def _numbers(self, value: Any, what: str, key: str, within: str, least: int) -> tuple[int, ...]:
        if not isinstance(value, list):
            self.refuse(f"{what} is no list of whole numbers", key, within)
        items = cast("list[Any]", value)
        for item in items:
            if type(item) is not int or not least <= item < 1 << 63:
                self.refuse(f"{what} holds {str(item)[:40]}, not a whole number", key, within)
        return tuple(cast("list[int]", items))

    def _number(
        self, values: Mapping[str, Any], name: str, key: str, within: str, least: int
    ) -> int:
        value: Any = values.get(name, 0 if name == "stage" else None)
        if type(value) is not int or not least <= value < 1 << 31:
            self.refuse(f"{key}: {name} is {str(value)[:40]}, not a whole number", key, within)
        return value


def layout_problem(layout: SavedLayout) -> str | None:
    """Why a saved layout can't be one, as a clause (``its tensor map names an axis twice``).

    Args:
        layout: as the file has it.

    Returns:
        None where nothing contradicts itself.
    """
    axes = [
        axis
        for entry in layout.tensor_map
        for axis in (entry if isinstance(entry, tuple) else (entry,))
        if axis != -1
    ]
    wrong = next((axis for axis in axes if not 0 <= axis < len(layout.device_matrix)), None)
    if wrong is not None:
        return (
            f"its tensor map names axis {wrong}, and the device matrix has "
            f"{len(layout.device_matrix)}"
        )
    if len(set(axes)) < len(axes):
        return "its tensor map names an axis twice"
    if layout.shape is not None and len(layout.shape) != len(layout.tensor_map):
        return (
            f"its tensor map has {len(layout.tensor_map)} entries and its shape "
            f"{len(layout.shape)} dimensions"
        )
    if layout.shard_size != 0 and layout.shard_step == 0:
        return "opt_weight_shard_size without opt_weight_shard_step"
    return None


def _behind(data: bytes, text: bytes, offset: int) -> int:
    """Where a key stands, whether or not a blank stands before its colon."""
    position = data.find(text, offset)
    return position if position >= 0 else data.find(text[:-1], offset)
