"""What a checkpoint holds: parameters by name, of one file, of several, or of each rank.

MindSpore's ``.ckpt`` and ``.safetensors``, PyTorch's ``.pt``, ``.pth`` and ``.bin`` (whose pickle
is read off, never executed).  Values stay in their files until somebody asks for a block.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import field
from math import prod
from typing import Any, TypeAlias

from irtool.artefacts.checkpoints import saved_parameters
from irtool.artefacts.errors import ArtefactError
from irtool.compare.tensors.dtypes import dtype_name, numpy_code
from irtool.compare.tensors.formats.torch_file import NotATensor, read_torch_tensors
from irtool.compare.tensors.formats.window import BadPayload, Window
from irtool.compare.tensors.model import Shape
from irtool.ir.dataclass import dataclass

Array: TypeAlias = Any
"""An array of NumPy, whose own types leave too much open."""

TORCH = (".pt", ".pth", ".bin")
"""What files of PyTorch end with."""
SUFFIXES = (".ckpt", ".safetensors", *TORCH)
"""What checkpoints end with."""
BLOCK = 1 << 20
"""Elements that are looked at together."""
_RANK = re.compile(r"(?:^|[_.-])rank[_.-]?(\d{1,7})(?=[_.-]|$)")


class NoCheckpoint(Exception):
    """What a path holds is no checkpoint, or one that can't be read; the message says why."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message, path)
        self.message = message
        self.path = path

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A tensor of a checkpoint, or the slice of it that a rank keeps.

    Attributes:
        name: of the parameter.
        dtype: of its elements, spelt as MindSpore prints it.
        shape: its dimensions.
        windows: the bytes of its elements, in order.
        strides: in elements, where they do not stand in C order.
    """

    name: str
    dtype: str
    shape: Shape
    windows: tuple[Window, ...] = field(repr=False)
    strides: tuple[int, ...] | None = None

    @property
    def elements(self) -> int:
        """How many elements the parameter has."""
        return prod(self.shape)

    def blocks(self, size: int = BLOCK) -> Iterator[Array]:
        """Its elements as they are stored, in C order, so many at a time.

        Raises:
            BadPayload: they can't be read.
        """
        import numpy as np

        if self.strides is not None:
            flat = self.array().reshape(-1)
            for start in range(0, max(len(flat), 1), size):
                yield flat[start : start + size]
            return
        kind = self._kind()
        rest = b""
        for window in self.windows:
            for piece in window.pieces(size * kind.itemsize):
                rest = bytes(rest) + bytes(piece) if rest else piece
                while len(rest) >= size * kind.itemsize:
                    yield np.frombuffer(rest, kind, size)
                    rest = bytes(rest[size * kind.itemsize :])
        if rest or not self.elements:
            yield np.frombuffer(rest, kind)

    def array(self) -> Array:
        """All elements in their shape, as they are stored.

        Raises:
            BadPayload: they can't be read.
        """
        import numpy as np

        kind = self._kind()
        data = b"".join(bytes(window.read()) for window in self.windows)
        steps = None if self.strides is None else tuple(s * kind.itemsize for s in self.strides)
        try:
            return np.ndarray(self.shape, kind, data, strides=steps)
        except (ValueError, TypeError):
            raise BadPayload("the tensor reaches beyond its storage") from None

    def _kind(self) -> Any:
        import numpy as np

        code = numpy_code(self.dtype)
        if code is None:
            raise BadPayload(f"elements of type {self.dtype} cannot be read")
        kind = np.dtype(code)
        there = sum(map(len, self.windows))
        if self.strides is None and there != self.elements * kind.itemsize:
            needed = self.elements * kind.itemsize
            why = "the file is cut off: " if there < needed else ""
            raise BadPayload(f"{why}{there:,} bytes of {needed:,} are there")
        return kind


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A checkpoint: by rank what its files hold; rank 0 alone where no devices share it."""

    path: str
    ranks: Mapping[int, Mapping[str, Kept]] = field(repr=False)
    files: int

    @property
    def is_shared(self) -> bool:
        """Whether several ranks hold parts of it."""
        return len(self.ranks) > 1


def is_checkpoint(path: str) -> bool:
    """Whether a path is a checkpoint by its name: a file, or a folder with files of one in it.

    Args:
        path: of a file or a folder; it need not exist.
    """
    if os.path.isfile(path):
        return path.endswith(SUFFIXES)
    return os.path.isdir(path) and bool(_files(path))


def read_checkpoint(path: str) -> Checkpoint:
    """A file, a folder of files that make up one checkpoint, or one with those of all ranks.

    Of several files of one rank that hold the same names (saved at several steps) the last by name
    counts, as in MindSpore's own conversion.

    Args:
        path: of the file or folder.

    Returns:
        Parameters by rank and name, without their values; a single file is rank 0.

    Raises:
        NoCheckpoint: there is no such file in the folder, or one can't be read, or none holds a
            parameter.
    """
    files = [(0, path)] if os.path.isfile(path) else _files(path)
    if not files:
        raise NoCheckpoint(f"no {', '.join(SUFFIXES)} here", path)
    ranks: dict[int, dict[str, Kept]] = {}
    for rank, file in files:
        ranks.setdefault(rank, {}).update(_read(file))
    if not any(ranks.values()):
        raise NoCheckpoint("holds no parameter", path)
    return Checkpoint(path, ranks, len(files))


def _files(folder: str) -> list[tuple[int, str]]:
    """Files with the rank that their name or folder says; strategy files are none of them."""
    files: list[tuple[int, str]] = []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return []
    for entry in entries:
        stated = _RANK.search(os.path.splitext(entry.name)[0])
        rank = int(stated[1]) if stated is not None else 0
        if entry.is_file() and entry.name.endswith(SUFFIXES) and "strategy" not in entry.name:
            files.append((rank, entry.path))
        elif entry.is_dir() and stated is not None:
            files += [(rank, file) for _, file in _files_of_rank(entry.path)]
    return files


def _files_of_rank(folder: str) -> list[tuple[int, str]]:
    names = sorted(os.listdir(folder))
    return [
        (0, os.path.join(folder, name))
        for name in names
        if name.endswith(SUFFIXES) and "strategy" not in name
    ]


def _read(path: str) -> dict[str, Kept]:
    try:
        data = Window.of_file(path)
        if path.endswith(TORCH):
            return {
                name: Kept(name, dtype, shape, *_in_order(shape, strides, window, dtype))
                for name, (dtype, shape, strides, window) in read_torch_tensors(data).items()
            }
        return {
            name: Kept(
                name, dtype_name(saved.dtype), saved.shape,
                tuple(data.part(start, start + size) for start, size in saved.places),
            )
            for name, saved in saved_parameters(path).items()
        }  # fmt: skip
    except ArtefactError as error:
        raise NoCheckpoint(error.message, path) from None
    except NotATensor as error:
        raise NoCheckpoint(f"is no checkpoint: {error}", path) from None
    except BadPayload as error:
        raise NoCheckpoint(str(error), path) from None
    except OSError as error:
        raise NoCheckpoint((error.strerror or str(error)).lower(), path) from None
    except _DAMAGED as error:
        reason = str(error) or type(error).__name__
        raise NoCheckpoint(f"is damaged: {reason}", path) from None


_DAMAGED = (
    ValueError, LookupError, TypeError, AttributeError, EOFError, OverflowError, struct.error
)  # fmt: skip
"""What reading a damaged file of PyTorch may raise."""


def _in_order(
    shape: Shape, strides: tuple[int, ...], window: Window, dtype: str
) -> tuple[tuple[Window, ...], tuple[int, ...] | None]:
    """Window and strides; without strides where the elements stand in C order."""
    steps: list[int] = []
    step = 1
    for size in reversed(shape):
        steps.append(step)
        step *= size
    plain = all(
        size == 1 or a == b for size, a, b in zip(shape, strides, reversed(steps), strict=True)
    )
    if not plain:
        return (window,), strides
    width = int((numpy_code(dtype) or "|i1")[2:])
    return (window.part(0, prod(shape) * width),), None
