"""What a layout file declares of the ranks of each run, where no graph says how they are cut.

Tensor parallel ranks are neighbours, data parallel ones stand next, pipeline stages are furthest
apart: rank = (stage · data_parallel + d) · tensor_parallel + t, which is Megatron's usual order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Any, cast

from irtool.ir.dataclass import dataclass

SIDES = ("left", "right")
_DEGREES = ("tensor_parallel", "data_parallel", "pipeline_parallel", "micro_batches")
_KEYS = (*_DEGREES, "batch", "parameters")
_MOST = 1 << 20


class BadLayout(ValueError):
    """A layout that says nothing sensible: ``where`` is the key, the text what was expected."""

    def __init__(self, where: str, text: str) -> None:
        super().__init__(where, text)
        self.where = where
        self.text = text

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class SideLayout:
    """How one run is cut.

    Attributes:
        tensor_parallel, data_parallel, pipeline_parallel: numbers of ranks.
        micro_batches: in a step; None where the counts of calls say it.
        batch: the axis of activations that data parallel ranks and micro-batches cut.
        parameters: by name (``*`` stands for anything) the axis that tensor parallel ranks cut.
    """

    tensor_parallel: int = 1
    data_parallel: int = 1
    pipeline_parallel: int = 1
    micro_batches: int | None = None
    batch: int = 0
    parameters: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def ranks(self) -> int:
        """How many ranks the layout makes: the product of its three degrees."""
        return self.tensor_parallel * self.data_parallel * self.pipeline_parallel

    def axis(self, name: str) -> int | None:
        """The axis that ranks cut of a parameter; None where nothing is declared of it."""
        for pattern, axis in self.parameters.items():
            if fnmatchcase(name, pattern) or fnmatchcase(name, f"*.{pattern}"):
                return axis
        return None

    def position(self, place: int) -> tuple[int, int, int]:
        """Stage, data parallel and tensor parallel number of a rank, by its place among all."""
        rest, tensor = divmod(place, self.tensor_parallel)
        stage, data = divmod(rest, self.data_parallel)
        return stage, data, tensor

    def document(self) -> dict[str, object]:
        """As a layout file has it."""
        document: dict[str, object] = {
            "tensor_parallel": self.tensor_parallel,
            "data_parallel": self.data_parallel,
            "pipeline_parallel": self.pipeline_parallel,
            "batch": self.batch,
            "parameters": dict(self.parameters),
        }
        if self.micro_batches is not None:
            document["micro_batches"] = self.micro_batches
        return document


def layouts_of(document: Any) -> tuple[SideLayout, SideLayout]:
    """Both sides of a layout file.

    Args:
        document: what JSON or TOML gave.

    Returns:
        The left and the right layout; a side that is not named is one rank.

    Raises:
        BadLayout: a key is unknown, or has a value that it cannot have.
    """
    if not isinstance(document, dict):
        raise BadLayout("", "an object with left and right was expected")
    sides = cast("dict[str, Any]", document)
    for key in sides:
        if key not in SIDES:
            raise BadLayout(key, "left or right was expected")
    if not sides:
        raise BadLayout("", "it says nothing of left or right")
    return _side(sides, "left"), _side(sides, "right")


def _side(sides: Mapping[str, Any], name: str) -> SideLayout:
    given = sides.get(name, {})
    if not isinstance(given, dict):
        raise BadLayout(name, "an object was expected")
    values = cast("dict[str, Any]", given)
    for key in values:
        if key not in _KEYS:
            raise BadLayout(f"{name}.{key}", f"one of {', '.join(_KEYS)} was expected")
    degrees: dict[str, int] = {}
    for key in _DEGREES:
        if key in values:
            degrees[key] = _number(values[key], f"{name}.{key}", 1)
    return SideLayout(
        degrees.get("tensor_parallel", 1),
        degrees.get("data_parallel", 1),
        degrees.get("pipeline_parallel", 1),
        degrees.get("micro_batches"),
        _number(values.get("batch", 0), f"{name}.batch", 0),
        _axes(values.get("parameters", {}), f"{name}.parameters"),
    )


def _axes(given: Any, where: str) -> dict[str, int]:
    if not isinstance(given, dict):
        raise BadLayout(where, "an object of axes by name was expected")
    axes = cast("dict[str, Any]", given)
    return {name: _number(axis, f"{where}.{name}", 0) for name, axis in axes.items()}


def _number(value: Any, where: str, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _MOST:
        raise BadLayout(where, f"a whole number from {least} on was expected, not {value!r}")
    return value
