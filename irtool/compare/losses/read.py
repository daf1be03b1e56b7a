"""Loss curves from files: which reader a file needs, by its name and its beginning."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

from irtool.compare.losses.log_lines import read_log
from irtool.compare.losses.series import LossRun, NoLoss, Series
from irtool.compare.losses.tables import read_csv, read_json, read_json_lines
from irtool.syntax.reading import note_input
from irtool.syntax.source import read_content

Reader = Callable[[str, str], LossRun]

READERS: dict[str, Reader] = {
    "json": read_json,
    "json lines": lambda text, path: read_json_lines(text.splitlines(), path),
    "csv": read_csv,
    "log": lambda text, path: read_log(text.splitlines(), path),
}
"""Readers by format; a new text format is a function and a line here."""

_BY_SUFFIX = {
    ".json": ("json", "json lines", "log"),
    ".jsonl": ("json lines", "json"),
    ".ndjson": ("json lines", "json"),
    ".csv": ("csv", "log"),
    ".tsv": ("csv", "log"),
}
_ANY = ("log", "json", "json lines", "csv")


def read_loss(path: str) -> LossRun:
    """The loss curve that a file holds.

    Args:
        path: of the file, which may be packed.

    Raises:
        NoLoss: there is none in it.
        DumpError: it cannot be read.
    """
    if "tfevents" in os.path.basename(path):
        return _read_events(path)
    text = read_content(path).data.decode("utf-8", "replace")
    name = path.removesuffix(".gz").removesuffix(".xz")
    failures: list[str] = []
    for kind in _BY_SUFFIX.get(os.path.splitext(name)[1].lower(), _ANY):
        try:
            return READERS[kind](text, path)
        except NoLoss as error:
            failures.append(str(error))
    raise NoLoss(failures[0])


def _read_events(path: str) -> LossRun:
    """Scalars of a TensorBoard event file; needs the extra ``irtool[tensorboard]``."""
    try:
        module: Any = import_module("tensorboard.backend.event_processing.event_accumulator")
    except ImportError:
        raise NoLoss("event files need TensorBoard: pip install 'irtool[tensorboard]'") from None
    note_input(path)
    try:
        events: Any = module.EventAccumulator(path, size_guidance={"scalars": 0, "tensors": 0})
        events.Reload()
    except Exception as error:  # TensorBoard does not say what it raises for a damaged file
        raise NoLoss(f"TensorBoard cannot read it: {error}") from None
    scalars = {
        str(tag): {int(event.step): float(event.value) for event in events.Scalars(tag)}
        for tag in events.Tags().get("scalars", ())
    }
    for tag in events.Tags().get("tensors", ()):  # how newer writers keep scalars
        values = {int(event.step): _scalar(event.tensor_proto) for event in events.Tensors(tag)}
        if all(value is not None for value in values.values()):
            scalars[str(tag)] = cast("dict[int, float]", values)
    wanted = [tag for tag in scalars if "loss" in tag.lower() and "scale" not in tag.lower()]
    if not wanted:
        there = ", ".join(list(scalars)[:8]) or "none"
        raise NoLoss(f"no scalar is called loss; there are: {there}")
    tag = min(wanted, key=lambda name: ("train" not in name.lower(), len(name)))
    return LossRun(path, "event file", Series(scalars[tag]))


def _scalar(tensor: Any) -> float | None:
    """The one number of a tensor, or None."""
    if len(tensor.float_val) == 1:
        return float(tensor.float_val[0])
    content: bytes = tensor.tensor_content
    return float(struct.unpack("<f", content)[0]) if len(content) == 4 else None
