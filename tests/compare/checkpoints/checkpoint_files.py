"""Checkpoints as MindSpore, safetensors and PyTorch write them, out of arrays."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
_SAFETENSORS = {
    "float32": "F32",
    "float16": "F16",
    "int32": "I32",
    "int64": "I64",
    "uint16": "BF16",
}
_MINDSPORE = {
    "float32": "Float32", "float16": "Float16", "int32": "Int32", "int64": "Int64",
    "uint16": "BFloat16", "float64": "Float64", "int8": "Int8",
    "complex64": "Complex64", "complex128": "Complex128",
}  # fmt: skip


def write_ckpt(path: Path, arrays: Arrays, part: int = 1 << 20) -> Path:
    """MindSpore's: a ``Value`` for each parameter, or for each ``part`` bytes of a large one."""
    data = b""
    for name, array in arrays.items():
        content = array.tobytes()
        for start in range(0, max(len(content), 1), part):
            tensor = b"".join(b"\x08" + _varint(size) for size in array.shape)
            tensor += _field(2, _MINDSPORE[array.dtype.name].encode())
            tensor += _field(3, content[start : start + part])
            data += _field(1, _field(1, name.encode()) + _field(2, tensor))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = b""
    while value >= 0x80:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def write_safetensors(path: Path, arrays: Arrays) -> Path:
    """A JSON table, then the bytes."""
    table: dict[str, object] = {}
    data = b""
    for name, array in arrays.items():
        end = len(data) + array.nbytes
        kind = _SAFETENSORS[array.dtype.name]
        table[name] = {"dtype": kind, "shape": array.shape, "data_offsets": (len(data), end)}
        data += array.tobytes()
    header = json.dumps(table).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)
    return path


class _Storage:
    def __init__(self, key: str, size: int) -> None:
        self.key, self.size = key, size


class _Tensor:
    def __init__(self, storage: _Storage, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.storage, self.shape, self.strides = storage, shape, strides

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self.storage, 0, self.shape, self.strides, False, {})
        return _global("torch._utils", "_rebuild_tensor_v2"), arguments


class _Global:
    """Stands in a pickle for a name that is not imported here."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


def _global(module: str, name: str) -> Any:
    return _Global(module, name)


class _Pickler(pickle._Pickler):  # pyright: ignore  # the one in Python lets globals be written
    def persistent_id(self, obj: object) -> object:
        if isinstance(obj, _Storage):
            return ("storage", _global("torch", "FloatStorage"), obj.key, "cpu", obj.size)
        return None

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, _Global):
            self.write(b"c" + f"{obj.module}\n{obj.name}\n".encode())
            return
        if isinstance(obj, _Tensor):
            function, arguments = obj.__reduce__()
            self.save(function)
            self.save(arguments)
            self.write(b"R")
            return
        super().save(obj, save_persistent_id)


def write_torch(path: Path, state: Mapping[str, Any]) -> Path:
    """PyTorch's: dictionaries of Float32 tensors, however nested; other values as they are."""
    pickled, storages = _pickled(state)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        for number, storage in enumerate(storages):
            archive.writestr(f"archive/data/{number}", storage.tobytes())
    return path


def write_legacy_torch(path: Path, state: Mapping[str, Any]) -> Path:
    """The same as PyTorch wrote it before 1.6: pickles and storages one behind the other."""
    pickled, storages = _pickled(state)
    keys = [str(number) for number in range(len(storages))]
    before = (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})
    data = b"".join(pickle.dumps(item, protocol=2) for item in before)
    data += pickled + pickle.dumps(keys, protocol=2)
    for storage in storages:
        data += storage.size.to_bytes(8, "little") + storage.tobytes()
    path.write_bytes(data)
    return path


def _pickled(state: Mapping[str, Any]) -> tuple[bytes, list[NDArray[Any]]]:
    """The pickle of a state, and the storages that it names by their numbers."""
    storages: list[NDArray[Any]] = []

    def stated(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: stated(inner) for key, inner in value.items()}
        if not isinstance(value, np.ndarray):
            return value
        storages.append(np.ascontiguousarray(value))
        steps = tuple(step // value.itemsize for step in storages[-1].strides)
        return _Tensor(_Storage(str(len(storages) - 1), value.size), value.shape, steps)

    written = io.BytesIO()
    _Pickler(written, protocol=2).dump(stated(dict(state)))
    return written.getvalue(), storages
