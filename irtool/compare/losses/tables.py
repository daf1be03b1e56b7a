"""Loss curves in files of data: JSON, JSON lines, CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from irtool.compare.losses.series import LossRun, NoLoss, Series, series
from irtool.syntax.reading import parse_json

_STEP = ("step", "global_step", "iteration", "iter", "steps", "_step", "current_steps")
_LOSS = ("loss", "train_loss", "training_loss", "lm_loss", "lm loss", "train/loss", "total_loss")
_OTHERS: Mapping[str, tuple[str, ...]] = {
    "grad_norm": ("grad_norm", "gnorm", "global_norm", "gradient_norm", "train/grad_norm"),
    "learning_rate": ("learning_rate", "lr", "train/learning_rate"),
    "loss_scale": ("loss_scale", "scale"),
    "global_batch_size": ("global_batch_size",),
}


def read_json(text: str, path: str) -> LossRun:
    """A loss curve of a JSON document: columns, rows, a list of losses, or losses by step.

    Args:
        text: the document.
        path: where it was read.

    Returns:
        The loss, and what else it says, by step.

    Raises:
        NoLoss: it is no JSON, or holds no loss.
    """
    try:
        document = parse_json(text, special=True)
    except ValueError as error:
        raise NoLoss(f"it is no JSON: {error}") from None
    if isinstance(document, Mapping):
        table = cast("Mapping[str, object]", document)
        history = table.get("log_history")
        if isinstance(history, list):  # what the Hugging Face trainer leaves
            return _rows(cast("list[object]", history), path, "json")
        return _columns(table, path)
    if isinstance(document, list):
        items = cast("list[object]", document)
        if items and all(isinstance(item, int | float) for item in items):
            pairs = enumerate(float(cast("float", item)) for item in items)
            return LossRun(path, "json", series(pairs))
        return _rows(items, path, "json")
    raise NoLoss("it holds no loss")


def read_json_lines(lines: Iterable[str], path: str) -> LossRun:
    """A loss curve of JSON objects, one a line.

    Args:
        lines: the objects; those that are none are counted as skipped.
        path: where they were read.

    Returns:
        The loss, and what else they say, by step.

    Raises:
        NoLoss: no line holds a loss.
    """
    rows: list[object] = []
    skipped = 0
    for line in lines:
        if not line.strip():
            continue
        try:
            rows.append(parse_json(line, special=True))
        except ValueError:
            skipped += 1
    made = _rows(rows, path, "json lines")
    return LossRun(made.path, made.kind, made.loss, made.others, skipped)


def read_csv(text: str, path: str) -> LossRun:
    """A loss curve of a table with a header; the column of the loss is known by its name.

    Args:
        text: the table; commas, semicolons, tabs or bars part its columns.
        path: where it was read.

    Returns:
        The loss, and what else it says, by step.

    Raises:
        NoLoss: no column is called loss, or this can be no table: a field that never ends, or, for
            Python 3.10, a zero byte.
    """
    try:
        dialect = csv.Sniffer().sniff(text[:4096], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    try:
        rows = [dict(row) for row in csv.DictReader(text.splitlines(), dialect=dialect)]
    except csv.Error as error:
        raise NoLoss(f"no table: {error}") from None
    return _rows(rows, path, "csv")


def _columns(table: Mapping[str, object], path: str) -> LossRun:
    named = {str(key).strip().lower(): value for key, value in table.items()}
    losses = _first(named, _LOSS)
    if isinstance(losses, list):
        values = _of_one_rank(cast("list[object]", losses))
        steps = _first(named, _STEP)
        numbers = cast("list[object]", steps) if isinstance(steps, list) else range(len(values))
        others = {
            name: _series(numbers, cast("list[object]", column))
            for name, keys in _OTHERS.items()
            if isinstance(column := _first(named, keys), list)
        }
        return LossRun(path, "json", _some(_series(numbers, values)), others)
    if isinstance(losses, Mapping):
        by_step = cast("Mapping[object, object]", losses)
        return LossRun(path, "json", _some(_series(list(by_step), list(by_step.values()))))
    if table and all(str(key).isdecimal() for key in table):
        return LossRun(path, "json", _some(_series(list(table), list(table.values()))))
    raise NoLoss(f"no key is called loss; there are: {', '.join(list(table)[:8])}")


def _of_one_rank(losses: list[object]) -> list[object]:
    """Of a list a rank the last one with a loss: of pipeline stages only the last one has any."""
    rows = [cast("list[object]", row) for row in losses if isinstance(row, list)]
    if not rows or len(rows) != len(losses):
        return losses
    return next((row for row in reversed(rows) if any(row)), rows[-1])


def _rows(rows: Sequence[object], path: str, kind: str) -> LossRun:
    losses: list[tuple[object, object]] = []
    others: dict[str, list[tuple[object, object]]] = {name: [] for name in _OTHERS}
    columns: tuple[str, ...] = ()
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            continue
        entries = cast("Mapping[object, object]", row)
        named = {str(key).strip().lower(): value for key, value in entries.items()}
        columns = columns or tuple(named)
        step = _first(named, _STEP)
        loss = _first(named, _LOSS)
        if loss is None or loss == "":
            continue
        number = place if step is None else step
        losses.append((number, loss))
        for name, keys in _OTHERS.items():
            logged = _first(named, keys)
            if logged is not None and logged != "":
                others[name].append((number, logged))
    if not losses:
        there = f"; there are: {', '.join(columns[:8])}" if columns else ""
        raise NoLoss(f"no column is called loss{there}")
    made = {name: _series(*zip(*pairs, strict=True)) for name, pairs in others.items() if pairs}
    return LossRun(path, kind, _some(_series(*zip(*losses, strict=True))), made)


def _series(steps: Iterable[object], values: Iterable[object]) -> Series:
    pairs: list[tuple[int, str | float]] = []
    for step, value in zip(steps, values, strict=False):
        try:
            number = int(float(str(step)))
            text = value if isinstance(value, str) else None
            pairs.append((number, text.strip() if text else float(cast("float", value))))
            float(pairs[-1][1])
        except (TypeError, ValueError, OverflowError):
            if pairs and pairs[-1][1] == value:
                pairs.pop()
    return series(pairs)


def _some(made: Series) -> Series:
    if not made.values:
        raise NoLoss("its losses are no numbers")
    return made


def _first(named: Mapping[str, object], keys: Sequence[str]) -> object:
    return next((named[key] for key in keys if key in named), None)
