"""A run's statistics in one file, computed where its dump lies, to be compared later elsewhere.

One JSON document (gzip where the name ends in .gz): the operators of each step and rank, and of
each tensor its type, shape, extremes, mean, norm, checksum and a sketch
(:mod:`irtool.compare.tensors.measuring.sketch`), so that distances, not only figures, can still be
compared.  ``irtool.digest/1``.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO, TypeVar, get_args

from irtool.compare.tensors.measuring.figures import Figures, File, figures_of_files, state
from irtool.compare.tensors.measuring.measure import LOST
from irtool.compare.tensors.measuring.schedule import Scheduler, here
from irtool.compare.tensors.model import NAN, Columns, Level, NoTensors, Op, Phase, TensorRun
from irtool.syntax.lines import chunks_of
from irtool.syntax.reading import parse_json
from irtool.syntax.source import DumpError, read_content

SCHEMA = "irtool.digest/1"
_LEVEL = 4
Word = TypeVar("Word", bound=str)
_START = b'{"schema": "irtool.digest/1"'


def is_digest(path: str) -> bool:
    """Whether a file begins as a digest does; false of one that can't be read.

    Args:
        path: of the file, which may be packed.
    """
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as stream:
            return next(chunks_of(stream), b"").startswith(_START)
    except (OSError, ValueError):
        return False


def fill(run: TensorRun, schedule: Scheduler | None = None) -> None:
    """State the figures, checksum and sketch of every tensor whose values the dump holds.

    Args:
        run: the dump, whose columns are filled.
        schedule: where files are measured; here, if it is not given.
    """
    columns = run.columns
    places = [place for place, file in enumerate(columns.files) if file]
    files = [File(columns.files[place], columns.dtypes[place]) for place in places]
    for place, measured in zip(places, (schedule or here)(figures_of_files, files), strict=True):
        state(columns, place, measured or Figures(note=LOST))


def write_digest(
    stream: BinaryIO,
    path: str,
    runs: Iterable[TensorRun],
    facts: Mapping[str, object],
    packed: bool = False,
) -> int:
    """Write the digest of a run, a unit at a time; the same run gives the same bytes.

    Args:
        stream: where to.
        path: the run.
        runs: its units, filled; each can be let go of once it is written.
        facts: what stands beside them (losses, hyperparameters).
        packed: with gzip.

    Returns:
        How many units were written.
    """
    count = 0
    packer = zlib.compressobj(_LEVEL, wbits=31) if packed else None

    def write(text: str) -> None:
        data = text.encode()
        stream.write(packer.compress(data) if packer is not None else data)

    write(_text({"schema": SCHEMA, "run": path, **facts})[:-1] + ', "units": [')
    for run in runs:
        write((", " if count else "") + _text(_unit_object(run)))
        count += 1
    write("]}\n")
    if packer is not None:
        stream.write(packer.flush())
    return count


def _text(value: object) -> str:
    return json.dumps(value, allow_nan=False, separators=(", ", ": "))


def _unit_object(run: TensorRun) -> dict[str, object]:
    columns = run.columns
    return {
        "rank": run.rank,
        "step": run.step,
        "graph": run.graph,
        "framework": run.framework,
        "level": "statistics" if run.level == "tensors" else run.level,
        "order_known": run.order_known,
        "resolution": columns.resolution,
        "tensors": {
            "label": columns.labels,
            "dtype": columns.dtypes,
            "shape": columns.shapes,
            "max": _plain(columns.most),
            "min": _plain(columns.least),
            "mean": _plain(columns.mean),
            "norm": _plain(columns.norm),
            "broken": columns.broken,
            "checksum": columns.hashes,
        },
        "notes": {str(place): note for place, note in columns.notes.items()},
        "unread": {str(place): why for place, why in columns.unread.items()},
        "sketches": {
            str(place): [float(f"{value:.12g}") for value in values]
            for place, values in columns.sketches.items()
        },
        "operators": [
            {
                "name": op.name,
                "type": op.type,
                "phase": op.phase,
                "inputs": list(op.inputs),
                "outputs": list(op.outputs),
                "parameters": sorted(op.parameters),
                "attributes": {key: _plain_value(value) for key, value in op.attributes.items()},
                "owner": op.owner,
                "call": op.call,
                "source": op.source,
                "module": op.is_module,
            }
            for op in run.ops
        ],
    }


def _plain(values: Sequence[float]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values]


def _plain_value(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def read_digest(path: str) -> tuple[list[TensorRun], Mapping[str, Any]]:
    """The units of a digest, and what stands beside them.

    Args:
        path: of the file, which may be packed.

    Returns:
        Tensors of each rank and step, and the whole document.

    Raises:
        NoTensors: it is damaged, or can't be read.
    """
    try:
        content = read_content(path)
        if content.damage:
            raise ValueError(content.damage)
        document: Any = parse_json(content.data, special=True)
        runs = [_read_unit(path, unit) for unit in document["units"]]
    except DumpError as error:
        raise NoTensors(error.message) from None
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise NoTensors(f"the digest is damaged: {error}") from None
    return runs, document


def _read_unit(path: str, unit: Mapping[str, Any]) -> TensorRun:
    columns = _read_columns(unit)
    return TensorRun(
        path,
        "digest",
        _one_of(unit["level"], _LEVELS),
        str(unit["framework"]),
        columns,
        _read_operators(unit["operators"], len(columns)),
        int(unit["rank"]),
        None if unit["step"] is None else int(unit["step"]),
        None if unit["graph"] is None else int(unit["graph"]),
        order_known=bool(unit["order_known"]),
    )


def _read_columns(unit: Mapping[str, Any]) -> Columns:
    table = unit["tensors"]
    most, least, mean, norm = (
        [NAN if value is None else float(value) for value in table[name]]
        for name in ("max", "min", "mean", "norm")
    )
    columns = Columns(
        labels=list(map(str, table["label"])),
        dtypes=list(map(str, table["dtype"])),
        shapes=[tuple(map(int, shape)) for shape in table["shape"]],
        most=most,
        least=least,
        mean=mean,
        norm=norm,
        broken=[int(count) for count in table["broken"]],
        hashes=[str(text or "") for text in table["checksum"]],
        files=[""] * len(table["label"]),
        resolution=float(unit.get("resolution", 0.0)),
        notes={int(place): str(note) for place, note in unit["notes"].items()},
        unread={int(place): str(why) for place, why in unit.get("unread", {}).items()},
        sketches={
            int(place): tuple(map(float, values)) for place, values in unit["sketches"].items()
        },
    )
    lengths = {
        len(column)
        for column in (
            *(columns.labels, columns.dtypes, columns.shapes, columns.hashes, columns.broken),
            *(columns.most, columns.least, columns.mean, columns.norm),
        )
    }
    if len(lengths) != 1:
        raise ValueError("columns of different lengths")
    return columns


def _read_operators(operators: Iterable[Mapping[str, Any]], tensors: int) -> list[Op]:
    ops = [
        Op(
            index,
            str(op["name"]),
            str(op["type"]),
            _one_of(op["phase"], _PHASES),
            [int(place) for place in op["inputs"]],
            [int(place) for place in op["outputs"]],
            frozenset(map(int, op["parameters"])),
            dict(op["attributes"].items()),
            str(op["owner"]),
            str(op["call"]),
            str(op["source"]),
            is_module=bool(op["module"]),
        )
        for index, op in enumerate(operators)
    ]
    for op in ops:
        if any(not 0 <= place < tensors for place in (*op.tensors, *op.parameters)):
            raise ValueError(f"{op.name}: tensors that are not there")
    return ops


_PHASES: tuple[Phase, ...] = get_args(Phase)
_LEVELS: tuple[Level, ...] = get_args(Level)


def _one_of(value: object, known: Sequence[Word]) -> Word:
    for word in known:
        if word == value:
            return word
    raise ValueError(f"{value!r} is none of {', '.join(map(str, known))}")
