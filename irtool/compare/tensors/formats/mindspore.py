r"""MindSpore's own tensor dump: a tree of npy files, statistic.csv, the order of execution.

A file is called ``{operator}.{full name}.{task}.{stream}.{microseconds}.{input|output}.{index}.
{format}.{type}.npy``; in the full name each of ``/ \ .`` and space became ``_``.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Iterator
from typing import cast

from irtool.compare.tensors.dtypes import dtype_name, is_float, numpy_code
from irtool.compare.tensors.formats.payload import (
    BadPayload,
    npy_declaration,
    read_array,
    stored_type,
)
from irtool.compare.tensors.model import (
    Columns,
    NoTensors,
    Op,
    Phase,
    TensorRun,
)
from irtool.ir.dataclass import dataclass
from irtool.ir.limits import MAX_DOCUMENT, bounded_int
from irtool.ir.run import TensorDump
from irtool.operators.table import operator_called
from irtool.syntax.lines import text_lines
from irtool.syntax.reading import read_text
from irtool.syntax.unpacking import Damaged, UnpacksTooFar

FILE_NAME = re.compile(
    r"(?P<op>[^.]+)\.(?P<name>.+)\.(?P<task>\d+)\.(?P<stream>\d+)\.(?P<time>\d+)"
    r"\.(?P<io>input|output)\.(?P<index>\d+)(?:\.(?P<slot>\d+))?"
    r"\.(?P<format>[A-Za-z_]\w*)(?:\.(?P<dtype>\w+))?(?P<npy>\.npy)?"
)
"""Names of dumped tensors; ``slot`` stands only in documentation, raw files end with the type."""

_UNSAFE = str.maketrans({"/": "_", "\\": "_", ".": "_", " ": "_"})
_INT64 = float(1 << 63)
_SIX_DIGITS = 1e-5
"""statistic.csv prints six digits."""


def sanitised(full_name: str) -> str:
    """A full name as it stands in names of dumped files.

    Args:
        full_name: of a node.
    """
    return full_name.translate(_UNSAFE)


@dataclass(slots=True)
class _Tensor:
    """One file or row before operators are put together."""

    op: str
    name: str
    time: int
    is_output: bool
    index: int
    dtype: str
    shape: tuple[int, ...]
    figures: tuple[float, float, float, float]
    file: str = ""
    checksum: str = ""
    broken: int = -1
    note: str = ""


def read_mindspore(dump: TensorDump) -> TensorRun:
    """The tensors of one iteration.

    Files of tensors are preferred to rows of statistics, which may hold a part only.

    Args:
        dump: the folder of one rank, step and graph.

    Raises:
        NoTensors: nothing in the folder can be read.
    """
    complaints: list[str] = []
    tensors = list(_files(dump.path, complaints))
    level = "tensors"
    if dump.statistics and not tensors:
        tensors = list(_rows(dump.statistics, complaints))
        level = "statistics"
    if not tensors:
        reason = complaints[0] if complaints else "no file is called as a dump calls them"
        raise NoTensors(f"no tensors: {reason}")
    columns = Columns()
    ops = _operators(tensors, columns)
    if level == "statistics":
        columns.resolution = _SIX_DIGITS
    if level == "statistics" and all(map(math.isnan, columns.most)) and any(columns.hashes):
        level = "md5"
    return TensorRun(
        dump.path,
        "mindspore" if level == "tensors" else "statistics",
        "tensors" if level == "tensors" else "md5" if level == "md5" else "statistics",
        "mindspore",
        columns,
        ops,
        dump.rank,
        dump.iteration,
        dump.graph,
        complaints,
    )


# -- files ---------------------------------------------------------------------------------------


def _files(folder: str, complaints: list[str]) -> Iterator[_Tensor]:
    aliases = _aliases(folder)
    unread = 0
    try:
        entries = os.scandir(folder)
    except OSError as error:
        complaints.append(f"{folder}: {(error.strerror or str(error)).lower()}")
        return
    with entries:
        for entry in entries:
            name = aliases.get(entry.name, entry.name)
            match = FILE_NAME.fullmatch(name)
            if match is None:
                continue
            try:
                yield _file(entry.path, match)
            except BadPayload as error:
                unread += 1
                if unread <= 3:
                    complaints.append(f"{entry.name}: {error}")
    if unread > 3:
        complaints.append(f"… and {unread - 3} more files that cannot be read")


def _aliases(folder: str) -> dict[str, str]:
    """Names that were too long for a file system stand in ``mapping.csv``."""
    aliases: dict[str, str] = {}
    try:
        text = read_text(os.path.join(folder, "mapping.csv"), MAX_DOCUMENT)
        for row in csv.reader(text.splitlines()):
            if len(row) >= 2:
                aliases[row[0]] = row[1]
    except (OSError, csv.Error):
        pass
    return aliases


def _file(path: str, match: re.Match[str]) -> _Tensor:
    named = dtype_name(match["dtype"] or match["format"])
    note = ""
    if match["npy"]:
        declared, shape, size = npy_declaration(path)
        _, note = stored_type(declared, shape, size)
        if note.startswith("payload is cut"):
            raise BadPayload(note)
        dtype = named if is_float(named) or not is_float(declared) else declared
    else:
        dtype = named
        width = int((numpy_code(named) or "|i1")[2:])
        shape = (os.path.getsize(path) // width,)  # nobody says how they lie
    return _Tensor(
        match["op"],
        match["name"],
        int(match["time"]),
        match["io"] == "output",
        int(match["index"]),
        dtype,
        shape,
        (math.nan, math.nan, math.nan, math.nan),
        path,
        note=note,
    )


# -- statistics ----------------------------------------------------------------------------------


def _rows(path: str, complaints: list[str]) -> Iterator[_Tensor]:
    """Rows of statistic.csv; each ends with a comma that the header lacks, in most versions."""
    bad = 0
    try:
        reader = csv.reader(text_lines(path))
        header = [cell.strip() for cell in next(reader, list[str]())]
        column = {name: place for place, name in enumerate(header)}
        if "Op Name" not in column or "IO" not in column:
            complaints.append(f"{path}: not a statistic.csv (no columns Op Name and IO)")
            return
        for row in reader:
            if not row:
                continue
            try:
                yield _row(row, column)
            except (ValueError, IndexError, OverflowError):
                bad += 1
    except (OSError, Damaged, UnpacksTooFar, csv.Error) as error:
        complaints.append(f"{path}: {getattr(error, 'strerror', None) or error}")
    if bad:
        complaints.append(f"{path}: {bad} rows that cannot be read")


def _row(row: list[str], column: dict[str, int]) -> _Tensor:
    def cell(name: str) -> str:
        place = column.get(name)
        return "" if place is None else row[place].strip()

    def number(*names: str) -> float:
        text = next((text for name in names if (text := cell(name))), "")
        if text in ("True", "False"):
            return float(text == "True")
        return float(text) if text else math.nan

    shape = tuple(bounded_int(size) for size in re.findall(r"\d+", cell("Shape")))
    counts = [number(name) for name in ("NaN Count", "Positive Inf Count", "Negative Inf Count")]
    known = [count for count in counts if not math.isnan(count)]
    mean = number("Avg Value", "Mean Value")
    if any(cell(name).lower() in ("nan", "-nan") for name in ("Max Value", "Min Value")):
        known.append(1.0)
    return _Tensor(
        cell("Op Type"),
        cell("Op Name"),
        int(cell("Timestamp") or 0),
        cell("IO").lower() == "output",
        int(cell("Slot") or 0),
        dtype_name(cell("Data Type")),
        shape,
        (number("Max Value"), number("Min Value"), mean, number("L2Norm Value", "L2Norm")),
        checksum=cell("MD5"),
        broken=int(sum(known)) if known else -1,
    )


# -- operators -----------------------------------------------------------------------------------


def _operators(tensors: list[_Tensor], columns: Columns) -> list[Op]:
    """Tensors put together to launches, in the order of time.

    A launch ends where a tensor comes again that it has already: an operator that runs several
    times in a step (a loop) has several launches.
    """
    tensors.sort(key=lambda item: (item.time, item.is_output, item.index))
    launches: dict[str, list[list[_Tensor]]] = {}
    for item in tensors:
        runs = launches.setdefault(item.name, [[]])
        if any(one.is_output == item.is_output and one.index == item.index for one in runs[-1]):
            runs.append([])
        runs[-1].append(item)
    ordered = sorted(
        (run for runs in launches.values() for run in runs), key=lambda run: run[0].time
    )
    return [_operator(place, run, columns) for place, run in enumerate(ordered)]


def _operator(place: int, run: list[_Tensor], columns: Columns) -> Op:
    first = run[0]
    inputs: list[int] = []
    outputs: list[int] = []
    attributes: dict[str, object] = {}
    word = first.op.lower()
    updated = operator_called(word).updates
    for item in sorted(run, key=lambda one: (one.is_output, one.index)):
        label = f"{'output' if item.is_output else 'input'}.{item.index}"
        if not item.is_output and not item.shape:
            attributes[label] = _scalar(item)
            continue
        tensor = columns.add(
            label, item.dtype, item.shape, item.figures, item.file, item.checksum, item.broken
        )
        if item.note:
            columns.notes[tensor] = item.note
        if item.is_output and operator_called(word).is_("no_results"):
            columns.notes[tensor] = "dead output"
            outputs.append(tensor)
        elif not item.is_output and item.index in updated:
            columns.notes[tensor] = "updated in place"
            outputs.append(tensor)
        else:
            (outputs if item.is_output else inputs).append(tensor)
    if operator_called(word).is_("no_results") and updated:
        outputs.sort(key=lambda tensor: columns.labels[tensor])
    return Op(place, first.name, first.op, _phase(first), inputs, outputs, attributes=attributes)


def _scalar(item: _Tensor) -> object:
    """A constant that was dumped as a tensor without dimensions."""
    if item.file:
        try:
            value = cast("object", read_array(item.file, item.dtype).item())
        except (BadPayload, ValueError) as error:
            return f"unreadable: {error}"
        return value
    most = item.figures[0]
    if math.isnan(most):
        return item.checksum or math.nan
    if is_float(item.dtype):
        return most
    return bool(most) if item.dtype == "Bool" else int(min(max(most, -_INT64), _INT64))


def _phase(item: _Tensor) -> Phase:
    if item.name.startswith(("Gradients", "Default_Gradients")) or "Grad" in item.op:
        return "backward"
    from irtool.compare.tensors.semantics import family

    is_update = family(item.op) == "optimizer" or "optimizer-" in item.name
    return "optimizer" if is_update or item.op == "Parameter" else "forward"
