"""msprobe's dump.json, of MindSpore and of PyTorch, at levels L0, L1 and mix.

An entry is an API call (``Functional.linear.0.forward``), a module
(``Module.blocks.0.up.Linear.forward.0``) or gradients of a module's parameters
(``….parameters_grad.0``).  Of a backward entry only gradients are stated: what it computes with
besides them are the tensors of its forward entry.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any, cast

from irtool.compare.tensors.dtypes import dtype_name
from irtool.compare.tensors.formats.msprobe.files import (
    add_owners,
    add_sources,
    load_json,
    whole_part,
)
from irtool.compare.tensors.formats.msprobe.names import parsed
from irtool.compare.tensors.model import NAN, Columns, Level, NoTensors, Op, TensorRun
from irtool.compare.tensors.semantics import parameter_places
from irtool.ir.run import MsprobeDump

_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf, "infinity": math.inf}


def read_msprobe(dump: MsprobeDump) -> TensorRun:
    """One ``dump.json`` with its neighbours.

    Args:
        dump: the folder of one rank and step.

    Raises:
        NoTensors: it cannot be read, or holds nothing.
    """
    path = next(
        (
            file
            for name in ("dump.json", "debug.json")
            if os.path.exists(file := os.path.join(dump.path, name))
        ),
        os.path.join(dump.path, "dump.json"),
    )
    complaints: list[str] = []
    try:
        document: Any = load_json(path)
    except OSError as error:
        raise NoTensors(f"dump.json: {(error.strerror or str(error)).lower()}") from None
    except ValueError as error:
        document = whole_part(path)
        detail = str(error).partition(":")[0].lower()
        if document is None:
            raise NoTensors(f"dump.json is cut off or damaged ({detail})") from None
        number = len(document["data"])
        complaints.append(f"dump.json is cut off or damaged after {number:,} operators ({detail})")
    header = cast("dict[str, Any]", document if isinstance(document, dict) else {})
    data = header.get("data")
    if not isinstance(data, dict) or not data:
        raise NoTensors("dump.json holds no operators: was the run stopped before it was written?")
    folder = os.path.join(dump.path, "dump_tensor_data")
    has_files = header.get("task") == "tensor" and os.path.isdir(folder)
    reader = _Reader(f"{folder}{os.sep}" if has_files else "")
    for name, entry in cast("dict[str, Any]", data).items():
        if isinstance(entry, dict):
            reader.entry(name, cast("dict[str, Any]", entry))
        else:
            reader.complaints.append(f"{name}: not an operator")
    columns = reader.columns()
    _mark_optimizer(reader.ops)
    add_sources(reader.ops, dump.path)
    add_owners(reader.ops, dump.path)
    return TensorRun(
        path,
        "msprobe",
        _level(columns),
        str(header.get("framework") or _framework(reader.ops)),
        columns,
        reader.ops,
        dump.rank,
        dump.step,
        complaints=[*complaints, *reader.complaints],
    )


class _Reader:
    """Entries to operators; leaves are collected, and become columns all at once."""

    def __init__(self, folder: str) -> None:
        self.ops: list[Op] = []
        self.complaints: list[str] = []
        self._folder = folder
        self._labels: list[str] = []
        self._leaves: list[dict[str, Any]] = []

    def entry(self, name: str, entry: Mapping[str, Any]) -> None:
        type_, phase, owner, call, is_module = parsed(name)
        attributes: dict[str, object] = {}
        inputs: list[int] = []
        outputs: list[int] = []
        parameters: list[int] = []
        if is_module and ".parameters_grad" in name:
            for key, values in entry.items():
                self._walk(values, f"{key}.grad", outputs, attributes)
        else:
            self._walk(entry.get("input_args", entry.get("input")), "input", inputs, attributes)
            named = entry.get("input_kwargs")
            if named:
                self._walk(named, "input", inputs, attributes)
            if is_module:
                for key, value in _items(entry.get("parameters")):
                    self._walk(value, key, parameters, attributes)
            self._walk(entry.get("output"), "output", outputs, attributes)
        if is_module:
            inputs += parameters
        elif phase == "forward" and (wanted := _parameter_labels(type_)):
            labels = self._labels
            parameters += [place for place in inputs if labels[place] in wanted]
        self.ops.append(
            Op(
                len(self.ops),
                name,
                type_,
                phase,
                inputs,
                outputs,
                frozenset(parameters) if parameters else _NONE,
                attributes,
                owner,
                call,
                is_module=is_module,
            )
        )

    def _walk(
        self, value: Any, label: str, places: list[int], attributes: dict[str, object]
    ) -> None:
        """A leaf, or lists and maps of leaves, however deep."""
        if value.__class__ is not list:
            if value is not None:
                self._walk_deep([(value, label)], places, attributes)
            return
        items = cast("list[Any]", value)
        for item in items:
            if item.__class__ is not dict or "shape" not in item:
                pending = [(item, _label(label, n)) for n, item in enumerate(items)]
                self._walk_deep(pending, places, attributes)
                return
        leaves = self._leaves  # nearly always it is tensors, and nothing else
        start, count = len(leaves), len(items)
        leaves += items
        self._labels += _label_row(label, count)
        places += range(start, start + count)

    def _walk_deep(
        self, pending: list[tuple[Any, str]], places: list[int], attributes: dict[str, object]
    ) -> None:
        pending.reverse()
        while pending:
            value, label = pending.pop()
            if isinstance(value, list):
                items = cast("list[Any]", value)
                pending += [(item, f"{label}.{n}") for n, item in enumerate(items)][::-1]
            elif isinstance(value, dict):
                leaf = cast("dict[str, Any]", value)
                if "shape" in leaf:
                    places.append(len(self._leaves))
                    self._leaves.append(leaf)
                    self._labels.append(label)
                elif "type" in leaf:
                    attributes[label] = leaf.get("value")
                else:
                    pending += [(item, f"{label}.{key}") for key, item in leaf.items()][::-1]

    def columns(self) -> Columns:
        """The figures of all tensors."""
        leaves = self._leaves
        given: list[list[Any]] = [_column(leaves, name) for name in _NAMES]
        shapes, dtypes, *figures = given
        most, least, mean, norm = map(_numbers, figures)
        spelt = {text: dtype_name(str(text or "")) for text in set(map(str, dtypes))}
        return Columns(
            self._labels,
            [spelt[str(text)] for text in dtypes],
            _shapes(shapes),
            most,
            least,
            mean,
            norm,
            _broken(figures[0], figures[1]),
            self._checksums(),
            self._files(),
        )

    def _checksums(self) -> list[str]:
        """Whatever kind there is; of scalars it may be the number itself."""
        leaves = self._leaves
        if not any("md5" in leaf or "xor" in leaf for leaf in leaves):
            return [""] * len(leaves)
        given = [leaf.get("md5", leaf.get("xor")) for leaf in leaves]
        return ["" if checksum is None else str(checksum) for checksum in given]

    def _files(self) -> list[str]:
        folder = self._folder
        if not folder:
            return [""] * len(self._leaves)
        names = [leaf.get("data_name") for leaf in self._leaves]
        return [f"{folder}{name}" if name and name != "-1" else "" for name in names]


_INFINITE = math.inf
_NONE: frozenset[int] = frozenset()
_NAMES = ("shape", "dtype", "Max", "Min", "Mean", "Norm")


def _column(leaves: list[dict[str, Any]], name: str) -> list[Any]:
    """One figure of all tensors; with checksums, or of older versions, some lack it."""
    try:
        return list(map(itemgetter(name), leaves))
    except KeyError:
        return [leaf.get(name) for leaf in leaves]


def _level(columns: Columns) -> Level:
    if any(columns.files):
        return "tensors"
    if any(columns.hashes) and all(map(math.isnan, columns.most)):
        return "md5"
    return "statistics"


def _items(value: Any) -> Iterable[tuple[str, Any]]:
    return cast("dict[str, Any]", value).items() if isinstance(value, dict) else ()


@lru_cache(maxsize=4096)
def _label(label: str, place: int) -> str:
    return f"{label}.{place}"


@lru_cache(maxsize=4096)
def _label_row(label: str, count: int) -> tuple[str, ...]:
    return tuple(_label(label, place) for place in range(count))


@lru_cache(maxsize=4096)
def _parameter_labels(type_: str) -> frozenset[str]:
    return frozenset(f"input.{place}" for place in parameter_places(type_))


def _shapes(values: list[Any]) -> list[tuple[int, ...]]:
    """Dimensions; what are none make a shape that nothing else has."""
    try:
        shapes = [tuple(value or ()) for value in values]
        if all(type(size) is int for shape in set(shapes) for size in shape):
            return shapes
    except TypeError:
        pass
    return [_shape(value) for value in values]


def _shape(value: Any) -> tuple[int, ...]:
    sizes = cast("list[Any]", value) if isinstance(value, list) else ()
    return tuple(sizes) if all(type(size) is int for size in sizes) else (-1,)


def _broken(most: list[Any], least: list[Any]) -> list[int]:
    """1 where an extreme is NaN, 0 where both are finite; -1 where that is not stated."""
    if set(map(type, most)) | set(map(type, least)) == {float}:  # nearly always
        return [
            0 if b > -_INFINITE and a < _INFINITE else 1 if a != a or b != b else -1
            for a, b in zip(most, least, strict=True)
        ]
    rows = zip(map(_number, most), map(_number, least), most, least, strict=True)
    return [
        0 if math.isfinite(a) and math.isfinite(b) else 1 if x != x or y != y else -1
        for a, b, x, y in rows
    ]


def _numbers(values: list[Any]) -> list[float]:
    if set(map(type, values)) <= {float}:  # nearly always
        return values
    return [value if value.__class__ is float else _number(value) for value in values]


def _number(value: Any) -> float:
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        try:
            return _NUMBERS.get(value.lower(), NAN) if value.isalpha() else float(value)
        except ValueError:
            return NAN
    return NAN


def _framework(ops: list[Op]) -> str:
    return "mindspore" if any(op.name.startswith("Cell.") for op in ops) else "pytorch"


def _mark_optimizer(ops: list[Op]) -> None:
    """What runs after the last gradient is the optimizer."""
    last = max((op.index for op in ops if op.phase == "backward"), default=len(ops))
    for op in ops[last + 1 :]:
        op.phase = "optimizer"
