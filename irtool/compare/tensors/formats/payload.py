"""Values of a dumped tensor: npy, PyTorch's .pt, members of npz and safetensors, raw bytes.

Large files are read a block at a time (:mod:`irtool.compare.tensors.formats.window`), so memory
does not grow with the size of a tensor.
"""

from __future__ import annotations

import ast
import os
import stat
import struct
import zipfile
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from irtool.compare.tensors.dtypes import dtype_name, numpy_code
from irtool.compare.tensors.formats.torch_file import NotATensor, read_torch
from irtool.compare.tensors.formats.window import BadPayload, Window, open_plain
from irtool.compare.tensors.model import Shape
from irtool.ir.limits import MAX_UNPACKED_VARIABLE, max_unpacked
from irtool.syntax.reading import parse_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MEMBER = "\x00"
"""Between a file and the name of one of its tensors."""

_MOST_PACKED = 1 << 30
_MOST_HEADER = 100 << 20
_DAMAGED = (
    OSError, ValueError, LookupError, TypeError, AttributeError, SyntaxError, EOFError,
    OverflowError, MemoryError, RecursionError, struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What reading a damaged file may raise."""
_USUAL_HEADER = 512
"""Bytes of a header that is worth remembering: NumPy writes 118."""
_WIDER = {"Float16": "Float32", "BFloat16": "Float32", "Int4": "Int8"}

Raw = tuple[str, Shape, tuple[int, ...] | None, Window]
"""Declared type, shape, strides (in elements, None for C order) and bytes of one tensor."""


class Stored(NamedTuple):
    """A tensor as it is stored; bit patterns of types that NumPy lacks.

    Attributes:
        dtype: type of its elements.
        kind: the same, as NumPy has it in memory.
        shape: its dimensions.
        source: the elements: at hand, or the bytes of a file, in C order.
    """

    dtype: str
    kind: np.dtype[Any]
    shape: Shape
    source: NDArray[Any] | Window

    @property
    def size(self) -> int:
        """How many elements there are in its shape."""
        return elements(self.shape)

    @property
    def array(self) -> NDArray[Any]:
        """All elements in their shape.

        Raises:
            BadPayload: the file is shorter than it was.
        """
        import numpy as np

        if not isinstance(self.source, Window):
            return self.source
        data = self.source.read()
        try:
            return np.ndarray(self.shape, self.kind, data)
        except ValueError as error:  # more dimensions than NumPy has
            raise BadPayload(str(error).lower()) from None


def stored_array(dtype: str, array: NDArray[Any]) -> Stored:
    """Elements that are at hand, as a stored tensor.

    Args:
        dtype: type of the elements, of which the array may hold bit patterns.
        array: the elements in their shape.
    """
    return Stored(dtype, array.dtype, array.shape, array)


def read_raw(file: str) -> Raw:
    """What a file declares of its tensor, and the bytes.

    Args:
        file: its path, or that of an archive with the name of a member behind ``MEMBER``.

    Returns:
        Type, shape, strides (in elements; None: C order), and the bytes, not read yet.

    Raises:
        BadPayload: the file does not hold what it should.
    """
    try:
        if MEMBER in file:
            return _member(*file.split(MEMBER, 1))
        data = Window.of_file(file)
        start = bytes(data.read(0, 6))
        if start == b"\x93NUMPY":
            return _npy(data)
        if start[:2] == b"PK":
            return read_torch(data)
        return _raw(file, data)
    except BadPayload:
        raise
    except NotATensor as error:
        raise BadPayload(str(error)) from None
    except _DAMAGED as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise BadPayload(str(reason).lower()) from None


def read_stored(file: str, dtype: str = "") -> Stored:
    """The tensor of a file, its elements as they are stored.

    Args:
        file: where it is.
        dtype: the type that the dump declares; decides what bytes without a header mean, and
            that twice as many bytes as declared are of the wider type.

    Raises:
        BadPayload: it cannot be read.
    """
    import numpy as np

    declared, shape, strides, data = read_raw(file)
    stored, _ = stored_type(declared or dtype, shape, len(data))
    code = numpy_code(stored)
    if code is None:
        raise BadPayload(f"elements of type {stored} cannot be read")
    kind = np.dtype(code)
    count = elements(shape)
    if strides is not None and (not count or _contiguous(shape) == strides):
        strides = None
    if len(data) < count * kind.itemsize and strides is None:
        there = len(data) // kind.itemsize
        raise BadPayload(f"{there} elements where {count} are declared: the file is cut off")
    if strides is None:
        data = data.part(0, count * kind.itemsize)
        if count and not data.in_memory:
            return Stored(stored, kind, shape, data)
        steps = None
    elif min(strides, default=0) < 0:
        raise BadPayload("strides reach beyond the storage")
    else:
        steps = tuple(step * kind.itemsize for step in strides)
    try:
        return stored_array(stored, np.ndarray(shape, kind, data.read(), strides=steps))
    except BadPayload:
        raise
    except (ValueError, TypeError, OverflowError):
        raise BadPayload("the tensor reaches beyond its storage") from None


def read_array(file: str, dtype: str = "") -> NDArray[Any]:
    """The tensor as numbers; BFloat16 as Float32, whatever was swapped put right.

    Args:
        file: where it is.
        dtype: the type that the dump declares, as of :func:`read_stored`.

    Raises:
        BadPayload: it cannot be read.
    """
    stored = read_stored(file, dtype)
    return numbers(stored.dtype, stored.array)


def numbers(dtype: str, array: NDArray[Any]) -> NDArray[Any]:
    """Values of stored elements: bit patterns of types that NumPy lacks become Float32.

    Args:
        dtype: element type, spelt as MindSpore prints it.
        array: the elements as they are stored.

    Returns:
        An array of the same shape.
    """
    import numpy as np

    if dtype == "Float8E4M3FN":
        return _float8_values()[array]
    if dtype == "BFloat16":
        wide = np.ascontiguousarray(array).astype(np.uint32) << np.uint32(16)
        return np.ndarray(array.shape, np.float32, wide.data)
    if dtype == "Float8E5M2":
        half = np.ascontiguousarray(array).astype(np.uint16) << np.uint16(8)
        return np.ndarray(array.shape, np.float16, half.data).astype(np.float32)
    return array


@lru_cache(maxsize=1)
def _float8_values() -> NDArray[np.float32]:
    """Float8E4M3FN by bit pattern: 4 bits of exponent, 3 of mantissa, no infinity."""
    import numpy as np

    bits = np.arange(256)
    exponent, mantissa = (bits >> 3) & 15, bits & 7
    size = np.where(
        exponent == 0, np.ldexp(mantissa / 8, -6), np.ldexp(1 + mantissa / 8, exponent - 7)
    )
    size[(bits & 127) == 127] = np.nan
    return np.where(bits < 128, size, -size).astype(np.float32)


def stored_type(declared: str, shape: Shape, size: int) -> tuple[str, str]:
    """The type that the bytes have, and what that says against the declaration.

    A dump on the CPU declares the type that the graph has and writes the bytes that the device
    has: where a kernel computes in Float32 what the graph calls Float16, the body is twice as
    long as it should be.

    Args:
        declared: element type, spelt as MindSpore prints it.
        shape: dimensions.
        size: bytes that are there.

    Returns:
        The type, and what is wrong with the declaration, empty for nothing.
    """
    code = numpy_code(declared)
    if code is None:
        return declared, ""
    count = elements(shape)
    width = int(code[2:])
    if size == count * width:
        return declared, ""
    wider = _WIDER.get(declared)
    if wider is not None and size == count * int((numpy_code(wider) or "|i0")[2:]):
        return wider, f"payload holds {wider}, header says {declared}"
    if size < count * width:
        return declared, f"payload is cut off: {size} of {count * width} bytes"
    return declared, ""


def elements(shape: Shape) -> int:
    """Number of elements of a shape.

    Args:
        shape: without dynamic sizes.
    """
    count = 1
    for size in shape:
        count *= size
    return count


def _contiguous(shape: Shape) -> tuple[int, ...]:
    steps: list[int] = []
    step = 1
    for size in reversed(shape):
        steps.append(step)
        step *= size
    return tuple(reversed(steps))


# -- npy -----------------------------------------------------------------------------------------


def _npy(data: Window) -> Raw:
    start, length = _npy_place(bytes(data.read(0, 12)))
    dtype, shape, fortran = npy_header(bytes(data.read(start, start + length)))
    strides = _contiguous(tuple(reversed(shape)))[::-1] if fortran and len(shape) > 1 else None
    return dtype, shape, strides, data.part(start + length)


def _npy_place(head: bytes) -> tuple[int, int]:
    """Where the header of an npy file begins, and how long it is."""
    wide = head[6] >= 2
    (length,) = struct.unpack_from("<I" if wide else "<H", head, 8)
    if length > (1 << 16):
        raise BadPayload("header too long")
    return 12 if wide else 10, length


def npy_header(text: bytes) -> tuple[str, Shape, bool]:
    """Type, shape and order that the header of an npy file states."""
    return _usual_header(text) if len(text) <= _USUAL_HEADER else _header(text)


@lru_cache(maxsize=4096)
def _usual_header(text: bytes) -> tuple[str, Shape, bool]:
    return _header(text)


def _header(text: bytes) -> tuple[str, Shape, bool]:
    header = ast.literal_eval(text.decode("latin-1"))
    descr = header["descr"]
    if not isinstance(descr, str):
        raise BadPayload("a structured array")
    if descr.startswith(">"):
        raise BadPayload("big-endian numbers")
    shape = tuple(int(size) for size in header["shape"])
    if min(shape, default=0) < 0:
        raise BadPayload("a negative dimension")
    return _npy_type(descr), shape, bool(header["fortran_order"])


def _npy_type(descr: str) -> str:
    # NumPy counts bytes (<i8 is Int64); safetensors counts bits (I8 is Int8).
    names = {"f2": "Float16", "f4": "Float32", "f8": "Float64", "b1": "Bool", "c8": "Complex64",
             "c16": "Complex128", "V2": "BFloat16"}  # fmt: skip
    word = descr.lstrip("<=|")
    if word in names:
        return names[word]
    if word[:1] in "iu" and word[1:].isdecimal():
        return f"{'U' if word[0] == 'u' else ''}Int{8 * int(word[1:])}"
    raise BadPayload(f"elements of type {descr} are no numbers")


def npy_declaration(file: str) -> tuple[str, Shape, int]:
    """Type and shape of an npy file's header, and the bytes of its body; nothing else is read.

    Args:
        file: its path.

    Raises:
        BadPayload: it is none.
    """
    try:
        handle = open_plain(file)
        try:
            size = os.fstat(handle).st_size
            head = os.read(handle, 256)
            if head[:6] != b"\x93NUMPY":
                raise BadPayload("not an npy file" if head else "the file is empty")
            start, length = _npy_place(head)
            if start + length > len(head):
                head += os.read(handle, start + length - len(head))
        finally:
            os.close(handle)
        dtype, shape, _ = npy_header(head[start : start + length])
        return dtype, shape, size - start - length
    except BadPayload:
        raise
    except _DAMAGED as error:
        raise BadPayload(getattr(error, "strerror", None) or "not an npy file") from None


# -- files with several tensors ------------------------------------------------------------------


def _member(file: str, name: str) -> Raw:
    if file.endswith(".npz"):
        return _npy(_npz_member(file, name))
    header, start = safetensors_header(file)
    entry = header[name]
    begin, end = entry["data_offsets"]
    shape = tuple(int(size) for size in entry["shape"])
    if min(shape, default=0) < 0 or min(begin, end) < 0:
        raise BadPayload("a negative dimension")
    data = Window.of_file(file).part(start + begin, start + end)
    return dtype_name(str(entry["dtype"])), shape, None, data


def _npz_member(file: str, name: str) -> Window:
    info = _npz_directory(file, *_stamp(file))[name]
    content = Window.of_file(file)
    head = content.read(info.header_offset, info.header_offset + 30)
    names, extras = struct.unpack_from("<HH", head, 26)
    start = info.header_offset + 30 + names + extras
    data = content.part(start, start + info.compress_size)
    if info.compress_type == zipfile.ZIP_STORED:
        return data
    if info.compress_type != zipfile.ZIP_DEFLATED:
        raise BadPayload("packed in a way that is not known")
    most = max_unpacked() or _MOST_PACKED
    if info.file_size > most:
        limit = f"{MAX_UNPACKED_VARIABLE} lets it be more"
        raise BadPayload(f"packed, and {info.file_size:,} bytes, more than {most:,}: {limit}")
    unpacker = zlib.decompressobj(-15)
    # One byte more than stated would be a lie, and 0 would mean any number.
    return Window.of_bytes(unpacker.decompress(data.read(), info.file_size + 1)[: info.file_size])


@lru_cache(maxsize=2)
def _npz_directory(file: str, size: int, time: int) -> dict[str, zipfile.ZipInfo]:
    del size, time  # of the file as it was read
    with zipfile.ZipFile(file) as archive:
        return {info.filename: info for info in archive.infolist()}


def npz_members(file: str) -> list[str]:
    """Names of the arrays of an npz file.

    Args:
        file: its path.

    Raises:
        BadPayload: it is none.
    """
    try:
        return list(_npz_directory(file, *_stamp(file)))
    except _DAMAGED as error:
        raise BadPayload(getattr(error, "strerror", None) or str(error)) from None


def safetensors_members(file: str) -> list[str]:
    """Names of the tensors of a safetensors file.

    Args:
        file: its path.

    Raises:
        BadPayload: it is none.
    """
    try:
        return list(safetensors_header(file)[0])
    except _DAMAGED as error:
        raise BadPayload(getattr(error, "strerror", None) or "not a safetensors file") from None


def safetensors_header(file: str) -> tuple[dict[str, dict[str, Any]], int]:
    """The directory of a safetensors file, and where its bytes begin."""
    return _safetensors_header(file, *_stamp(file))


@lru_cache(maxsize=2)
def _safetensors_header(file: str, size: int, time: int) -> tuple[dict[str, dict[str, Any]], int]:
    del time
    with open(file, "rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        if length > min(size, _MOST_HEADER):
            raise BadPayload("not a safetensors file, or cut off")
        header = parse_json(stream.read(length))
    if not isinstance(header, dict):
        raise BadPayload("not a safetensors file")
    entries = cast("dict[str, dict[str, Any]]", header)
    entries.pop("__metadata__", None)
    return entries, 8 + length


def _stamp(file: str) -> tuple[int, int]:
    """Size and time of a file: another file has others."""
    status = os.stat(file)
    if not stat.S_ISREG(status.st_mode):
        raise BadPayload("is no plain file")
    return status.st_size, status.st_mtime_ns


# -- the rest ------------------------------------------------------------------------------------


def _raw(file: str, data: Window) -> Raw:
    """Bytes without a header, as the device wrote them: the name says what they are."""
    name = os.path.basename(file)
    if not data:
        raise BadPayload("the file is empty")
    if name.endswith((".pt", ".npy")):
        kind = "npy" if name.endswith(".npy") else ".pt"
        old = ", or PyTorch's format before version 1.6" if kind == ".pt" else ""
        raise BadPayload(f"not an {kind} file{old}" if kind == "npy" else f"not a .pt file{old}")
    words = [dtype_name(word) for word in reversed(name.split("."))]
    dtype = next((word for word in words if numpy_code(word)), None)
    if dtype is None:
        raise BadPayload("neither npy nor .pt, and the name tells no type")
    width = int((numpy_code(dtype) or "|i1")[2:])
    return dtype, (len(data) // width,), None, data
