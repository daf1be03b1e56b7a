"""Folders of npy, npz, pt and safetensors files that no tool's format gives an order.

Each tensor is an operator's only output; the pairs are found by name, and the order is that of
the numbers in the names.  Without inputs there is no telling where an error comes from, so the
first tensor that differs is named as that and nobody is accused beyond it.
"""

from __future__ import annotations

import os
import re

from irtool.compare.tensors.formats.payload import (
    MEMBER,
    BadPayload,
    npy_declaration,
    npz_members,
    read_stored,
    safetensors_members,
    stored_type,
)
from irtool.compare.tensors.model import Columns, NoTensors, Op, TensorRun
from irtool.compare.tensors.plain_files import SUFFIXES
from irtool.ir.limits import bounded_int

_MOST_FILES = 1_000_000


def read_plain(path: str) -> TensorRun:
    """The tensors of a folder, or of one file.

    Args:
        path: of the folder or the file.

    Raises:
        NoTensors: there are none.
    """
    columns, complaints = Columns(), list[str]()
    ops: list[Op] = []
    for name, file in sorted(_files(path, complaints), key=lambda item: _natural(item[0])):
        try:
            dtype, shape = _declared(file)
        except BadPayload as error:
            complaints.append(f"{name}: {error}")
            continue
        place = columns.add("output.0", dtype, shape, file=file)
        ops.append(Op(len(ops), name, name.rpartition("/")[2], "forward", (), (place,)))
    if not ops:
        reason = complaints[0] if complaints else f"no {', '.join(SUFFIXES)} here"
        raise NoTensors(f"no tensors: {reason}")
    return TensorRun(
        path, "folder", "tensors", "", columns, ops, complaints=complaints, order_known=False
    )


def _files(path: str, complaints: list[str]) -> list[tuple[str, str]]:
    """Names without suffix, and where each tensor is."""
    if os.path.isfile(path):
        return _members(path, "", complaints)
    files: list[tuple[str, str]] = []
    for folder, below, names in os.walk(path):
        below.sort()
        inside = os.path.relpath(folder, path)
        prefix = "" if inside == "." else f"{inside}/"
        for name in names:
            if name.endswith(SUFFIXES):
                files += _members(os.path.join(folder, name), prefix, complaints)
        if len(files) > _MOST_FILES:
            complaints.append(f"only the first {_MOST_FILES:,} tensors were listed")
            break
    return files


def _members(file: str, prefix: str, complaints: list[str]) -> list[tuple[str, str]]:
    stem, suffix = os.path.splitext(os.path.basename(file))
    if suffix not in (".npz", ".safetensors"):
        return [(f"{prefix}{stem}", file)]
    try:
        names = npz_members(file) if suffix == ".npz" else safetensors_members(file)
    except BadPayload as error:
        complaints.append(f"{file}: {error}")
        return []
    return [(f"{prefix}{name.removesuffix('.npy')}", f"{file}{MEMBER}{name}") for name in names]


def _declared(file: str) -> tuple[str, tuple[int, ...]]:
    if file.endswith(".npy") and MEMBER not in file:
        dtype, shape, size = npy_declaration(file)
        _, note = stored_type(dtype, shape, size)
        if note.startswith("payload is cut"):
            raise BadPayload(note)
        return dtype, shape
    stored = read_stored(file)
    return stored.dtype, stored.shape


def _natural(text: str) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", text)
    return [
        (bounded_int(part), "") if index % 2 else (-1, part) for index, part in enumerate(parts)
    ]
