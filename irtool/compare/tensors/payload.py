"""Values of a dumped tensor: npy, PyTorch's .pt, members of npz and safetensors, raw bytes.

No framework is needed: a .pt file is an uncompressed zip with a pickle that says type, shape and
strides, and the plain bytes of a storage.  The pickle is never executed; the few opcodes that a
tensor takes are read off it.
"""

from __future__ import annotations

import ast
import os
import pickletools
import struct
import zipfile
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from irtool.compare.tensors.dtypes import dtype_name, numpy_code
from irtool.compare.tensors.model import Shape

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MEMBER = "\x00"
"""Between a file and the name of one of its tensors."""

_MOST_BYTES = 1 << 34
_DAMAGED = (
    OSError, ValueError, LookupError, TypeError, AttributeError, SyntaxError, EOFError,
    OverflowError, MemoryError, RecursionError, struct.error, zipfile.BadZipFile,
)  # fmt: skip
"""What reading a damaged file may raise."""
_WIDER = {"Float16": "Float32", "BFloat16": "Float32", "Int4": "Int8"}


class BadPayload(ValueError):
    """A file whose tensor cannot be read, with the reason."""


def read_raw(file: str) -> tuple[str, Shape, tuple[int, ...] | None, memoryview]:
    """Declared type, shape, strides (in elements, None for C order) and bytes of one tensor.

    Raises:
        BadPayload: the file does not hold what it should.
    """
    try:
        if MEMBER in file:
            return _member(*file.split(MEMBER, 1))
        data = _content(file)
        if data[:6] == b"\x93NUMPY":
            return _npy(data)
        if data[:2] == b"PK":
            return _torch(data)
        return _raw(file, data)
    except BadPayload:
        raise
    except _DAMAGED as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise BadPayload(str(reason).lower()) from None


def read_array(file: str, dtype: str = "") -> NDArray[Any]:
    """The tensor as a NumPy array; BFloat16 as Float32, whatever was swapped put right.

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
    flat = np.frombuffer(data, dtype=code)
    if stored == "BFloat16":
        flat = widen_bfloat16(flat)
    if strides is not None and _contiguous(shape) != strides:
        size = flat.itemsize
        steps = tuple(step * size for step in strides)
        reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if n)
        if reach >= flat.size or min(strides, default=0) < 0:
            raise BadPayload("strides reach beyond the storage")
        return np.lib.stride_tricks.as_strided(flat, shape, steps, writeable=False)
    count = 1
    for size in shape:
        count *= size
    if flat.size < count:
        raise BadPayload(f"{flat.size} elements where {count} are declared: the file is cut off")
    return flat[:count].reshape(shape)


def stored_type(declared: str, shape: Shape, size: int) -> tuple[str, str]:
    """The type that the bytes have, and what that says against the declaration.

    A dump on the CPU declares the type that the graph has and writes the bytes that the device
    has: where a kernel computes in Float32 what the graph calls Float16, the body is twice as
    long as it should be.
    """
    code = numpy_code(declared)
    if code is None:
        return declared, ""
    count = 1
    for length in shape:
        count *= length
    width = int(code[2:])
    if size == count * width:
        return declared, ""
    wider = _WIDER.get(declared)
    if wider is not None and size == count * int((numpy_code(wider) or "|i0")[2:]):
        return wider, f"payload holds {wider}, header says {declared}"
    if size < count * width:
        return declared, f"payload is cut off: {size} of {count * width} bytes"
    return declared, ""


def widen_bfloat16(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """BFloat16 bit patterns as Float32 values."""
    import numpy as np

    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _contiguous(shape: Shape) -> tuple[int, ...]:
    steps: list[int] = []
    step = 1
    for size in reversed(shape):
        steps.append(step)
        step *= size
    return tuple(reversed(steps))


def _content(file: str) -> memoryview:
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        size = os.fstat(handle).st_size
        if size > _MOST_BYTES:
            raise BadPayload("larger than 16 GiB")
        parts = [os.read(handle, size)]
        got = len(parts[0])
        while got < size:  # one read gives at most 2 GiB
            part = os.read(handle, size - got)
            if not part:
                break
            parts.append(part)
            got += len(part)
    finally:
        os.close(handle)
    return memoryview(parts[0] if len(parts) == 1 else b"".join(parts))


# -- npy -----------------------------------------------------------------------------------------


def _npy(data: memoryview) -> tuple[str, Shape, tuple[int, ...] | None, memoryview]:
    wide = data[6] >= 2
    (length,) = struct.unpack_from("<I" if wide else "<H", data, 8)
    start = 12 if wide else 10
    dtype, shape, fortran = npy_header(bytes(data[start : start + length]))
    strides = _contiguous(tuple(reversed(shape)))[::-1] if fortran and len(shape) > 1 else None
    return dtype, shape, strides, data[start + length :]


@lru_cache(maxsize=8192)
def npy_header(text: bytes) -> tuple[str, Shape, bool]:
    """Type, shape and order that the header of an npy file states."""
    found = ast.literal_eval(text.decode("latin-1"))
    descr = found["descr"]
    if not isinstance(descr, str):
        raise BadPayload("a structured array")
    if descr.startswith(">"):
        raise BadPayload("big-endian numbers")
    shape = tuple(int(size) for size in found["shape"])
    return _npy_type(descr), shape, bool(found["fortran_order"])


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
    """Type and shape of an npy file's header, and the bytes of its body; nothing else is read."""
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            size = os.fstat(handle).st_size
            head = os.read(handle, 256)
            if head[:6] != b"\x93NUMPY":
                raise BadPayload("not an npy file")
            wide = head[6] >= 2
            (length,) = struct.unpack_from("<I" if wide else "<H", head, 8)
            start = 12 if wide else 10
            if length > (1 << 16):
                raise BadPayload("header too long")
            if start + length > len(head):
                head += os.read(handle, start + length - len(head))
        finally:
            os.close(handle)
        dtype, shape, _ = npy_header(head[start : start + length])
        return dtype, shape, size - start - length
    except BadPayload:
        raise
    except (OSError, ValueError, KeyError, SyntaxError, struct.error, TypeError) as error:
        raise BadPayload(getattr(error, "strerror", None) or "not an npy file") from None


# -- PyTorch -------------------------------------------------------------------------------------


def _torch(data: memoryview) -> tuple[str, Shape, tuple[int, ...] | None, memoryview]:
    members = _zip_members(data)
    pickle = next((name for name in members if name.endswith("data.pkl")), None)
    if pickle is None:
        raise BadPayload("no tensor of PyTorch")
    start, size = members[pickle]
    dtype, key, offset, shape, strides = _torch_tensor(bytes(data[start : start + size]))
    begin, length = members[f"{pickle[: -len('data.pkl')]}data/{key}"]
    width = int((numpy_code(dtype) or "|i1")[2:])
    return dtype, shape, strides, data[begin + offset * width : begin + length]


def _zip_members(data: memoryview) -> dict[str, tuple[int, int]]:
    """Place and length of each stored member, read off the directory at the end."""
    tail = bytes(data[-65557:]) if len(data) > 65557 else bytes(data)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0:
        raise BadPayload("the file is cut off")
    count, _, start = struct.unpack_from("<HII", tail, at + 10)
    if start == 0xFFFFFFFF or count == 0xFFFF:
        locator = tail.rfind(b"PK\x06\x06")
        if locator < 0:
            raise BadPayload("the file is cut off")
        count, _, start = struct.unpack_from("<QQQ", tail, locator + 32)
    found: dict[str, tuple[int, int]] = {}
    place = start
    for _ in range(count):
        method, packed = struct.unpack_from("<H8xI", data, place + 10)
        name_size, extra_size, note_size = struct.unpack_from("<HHH", data, place + 28)
        (local,) = struct.unpack_from("<I", data, place + 42)
        name = bytes(data[place + 46 : place + 46 + name_size]).decode("utf-8", "replace")
        if method:
            raise BadPayload("a compressed archive")
        local_name, local_extra = struct.unpack_from("<HH", data, local + 26)
        found[name] = (local + 30 + local_name + local_extra, packed)
        place += 46 + name_size + extra_size + note_size
    return found


@lru_cache(maxsize=8192)
def _torch_tensor(pickle: bytes) -> tuple[str, str, int, Shape, tuple[int, ...]]:
    """Type, storage key, offset, shape and strides that a pickled tensor states."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    for opcode, argument, _ in pickletools.genops(pickle):
        name = opcode.name
        if name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name == "MARK":
            marks.append(len(stack))
        elif name == "TUPLE":
            start = marks.pop()
            stack[start:] = [tuple(stack[start:])]
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[-1])
            stack[-count:] = [tuple(stack[-count:])]
        elif name == "EMPTY_TUPLE":
            stack.append(())
        elif name == "GLOBAL":
            stack.append(argument)
        elif name in ("EMPTY_DICT", "EMPTY_LIST"):
            stack.append({})
        elif name == "BINPERSID":
            stack[-1] = ("storage", stack[-1])
        elif name == "REDUCE":
            arguments, function = stack.pop(), stack.pop()
            if str(function).endswith(("_rebuild_tensor_v2", "_rebuild_tensor")):
                return _rebuilt(arguments)
            if str(function).endswith("_rebuild_parameter"):
                return arguments[0]
            stack.append(("called", function))
        elif name in ("NEWTRUE", "NEWFALSE"):
            stack.append(name == "NEWTRUE")
        elif name == "NONE":
            stack.append(None)
        elif argument is not None and name not in ("PROTO", "FRAME"):
            stack.append(argument)
    raise BadPayload("no tensor of PyTorch")


def _rebuilt(arguments: Any) -> tuple[str, str, int, Shape, tuple[int, ...]]:
    (_, stored), offset, shape, strides = arguments[:4]
    dtype = dtype_name(str(stored[1]).replace(" ", ".").rpartition(".")[2])
    return dtype, str(stored[2]), int(offset), tuple(shape), tuple(strides)


# -- the rest ------------------------------------------------------------------------------------


def _member(file: str, name: str) -> tuple[str, Shape, tuple[int, ...] | None, memoryview]:
    if file.endswith(".npz"):
        with zipfile.ZipFile(file) as archive:
            info = archive.getinfo(name)
            if info.file_size > _MOST_BYTES:
                raise BadPayload("larger than 16 GiB")
            return _npy(memoryview(archive.read(info)))
    header, start = safetensors_header(file)
    entry = header[name]
    begin, end = entry["data_offsets"]
    with open(file, "rb") as stream:
        stream.seek(start + begin)
        data = memoryview(stream.read(end - begin))
    return dtype_name(str(entry["dtype"])), tuple(entry["shape"]), None, data


def safetensors_header(file: str) -> tuple[dict[str, Any], int]:
    """The directory of a safetensors file, and where its bytes begin."""
    import json

    with open(file, "rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        if length > (100 << 20):
            raise BadPayload("not a safetensors file")
        header: dict[str, Any] = json.loads(stream.read(length))
    header.pop("__metadata__", None)
    return header, 8 + length


def _raw(file: str, data: memoryview) -> tuple[str, Shape, tuple[int, ...] | None, memoryview]:
    """Bytes without a header, as the device wrote them: the name says what they are."""
    name = os.path.basename(file)
    words = [dtype_name(word) for word in reversed(name.split("."))]
    dtype = next((word for word in words if numpy_code(word)), None)
    if dtype is None:
        raise BadPayload("neither npy nor .pt, and the name tells no type")
    width = int((numpy_code(dtype) or "|i1")[2:])
    return dtype, (len(data) // width,), None, data
