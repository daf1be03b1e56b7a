"""Tensor files byte by byte, as each writer lays them out: every type, every header."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from irtool.compare.tensors.formats.payload import (
    MEMBER,
    BadPayload,
    npy_declaration,
    npz_members,
    read_array,
    read_stored,
    safetensors_members,
    stored_type,
)

NUMPY_TYPES = (
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)


def some(kind: str, *shape: int) -> NDArray[Any]:
    return (
        (np.arange(np.prod(shape)) % 2 if kind == "bool" else np.arange(np.prod(shape)) + 1)
        .astype(kind)
        .reshape(shape)
    )


def put(folder: Path, name: str, data: bytes) -> str:
    (folder / name).write_bytes(data)
    return str(folder / name)


# -- npy


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", NUMPY_TYPES)
def test_npy_of_every_type_and_order(tmp_path: Path, kind: str, order: str) -> None:
    values = np.array(some(kind, 2, 3, 4), order=order)  # type: ignore[call-overload]
    np.save(tmp_path / "x.npy", values)
    read = read_array(str(tmp_path / "x.npy"))
    assert read.dtype == values.dtype
    assert np.array_equal(read, values)
    dtype, shape, body = npy_declaration(str(tmp_path / "x.npy"))
    assert (shape, body) == ((2, 3, 4), values.nbytes)
    assert dtype.lower() == kind


def npy(header: str, body: bytes, version: int = 1) -> bytes:
    text = header.encode("latin-1")
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + body


TWO = struct.pack("<2f", 1.5, -2.0)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_headers_of_every_version(tmp_path: Path, version: int) -> None:
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
    for padding in ("", " " * 600):  # NumPy pads; a long one is read as well
        file = put(tmp_path, "x.npy", npy(header + padding, TWO, version))
        assert read_array(file).tolist() == [1.5, -2.0]
        assert npy_declaration(file) == ("Float32", (2,), 8)


def test_numbers_of_sixteen_bits_with_the_upper_half_of_a_float(tmp_path: Path) -> None:
    body = struct.pack("<2H", 0x3FC0, 0xC000)
    header = "{'descr': '|V2', 'fortran_order': False, 'shape': (2,)}"
    assert read_array(put(tmp_path, "x.npy", npy(header, body))).tolist() == [1.5, -2.0]


def test_more_bytes_than_declared_do_not_count(tmp_path: Path) -> None:
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"
    assert read_array(put(tmp_path, "x.npy", npy(header, TWO + b"more"))).tolist() == [1.5, -2.0]


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", "big-endian"),
        ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", "structured"),
        ("{'descr': '<U4', 'fortran_order': False, 'shape': (2,)}", "are no numbers"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", "negative dimension"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "2 elements where 3"),
        ("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 1, 1)}", "beyond its storage"),
        ("{'fortran_order': False, 'shape': (2,)}", "descr"),
        ("nothing", ""),
    ],
)
def test_headers_that_are_refused(tmp_path: Path, header: str, reason: str) -> None:
    with pytest.raises(BadPayload, match=reason):
        read_array(put(tmp_path, "x.npy", npy(header, TWO)))


def test_a_header_longer_than_any_is_refused(tmp_path: Path) -> None:
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"
    most = header + " " * ((1 << 16) - len(header))
    assert read_array(put(tmp_path, "x.npy", npy(most, TWO, 2))).tolist() == [1.5, -2.0]
    with pytest.raises(BadPayload, match="header too long"):
        read_array(put(tmp_path, "x.npy", npy(most + " ", TWO, 2)))
    with pytest.raises(BadPayload, match="header too long"):
        npy_declaration(put(tmp_path, "x.npy", npy(most + " ", TWO, 2)))


def test_what_is_no_npy_file(tmp_path: Path) -> None:
    for data, reason in ((b"", "empty"), (b"hello, world", "not an npy file")):
        with pytest.raises(BadPayload, match=reason):
            npy_declaration(put(tmp_path, "x.npy", data))
        with pytest.raises(BadPayload, match=reason):
            read_array(put(tmp_path, "x.npy", data))


# -- bytes without a header


@pytest.mark.parametrize("kind", NUMPY_TYPES)
def test_bytes_are_what_their_name_says(tmp_path: Path, kind: str) -> None:
    values = some(kind, 5)
    file = put(tmp_path, f"Add.net_Add-op1.0.0.7.output.0.DefaultFormat.{kind}", values.tobytes())
    read = read_array(file)
    assert read.dtype == values.dtype
    assert np.array_equal(read, values)


def test_bytes_whose_name_says_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadPayload, match="the name tells no type"):
        read_array(put(tmp_path, "x.bin", b"1234"))
    with pytest.raises(BadPayload, match=r"before version 1\.6"):
        read_array(put(tmp_path, "x.pt", b"\x80\x02"))
    with pytest.raises(BadPayload, match="empty"):
        read_array(put(tmp_path, "x.float32", b""))


def test_a_type_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"
    file = put(tmp_path, "x.npy", npy(header.replace("<f4", "<i16"), TWO * 4))
    with pytest.raises(BadPayload, match="Int128"):
        read_array(file)


@pytest.mark.parametrize(
    ("declared", "size", "stored", "note"),
    [
        ("Float16", 32, "Float16", ""),
        ("Float16", 64, "Float32", "payload holds Float32, header says Float16"),
        ("BFloat16", 64, "Float32", "payload holds Float32, header says BFloat16"),
        ("Float16", 31, "Float16", "payload is cut off: 31 of 32 bytes"),
        ("Float16", 33, "Float16", ""),  # padded
        ("Float32", 128, "Float32", ""),
        ("NoSuchType", 3, "NoSuchType", ""),
    ],
)
def test_what_bytes_say_of_the_declared_type(
    declared: str, size: int, stored: str, note: str
) -> None:
    assert stored_type(declared, (4, 4), size) == (stored, note)


# -- floats of eight bits


def test_every_pattern_of_four_bits_of_exponent_and_three_of_mantissa(tmp_path: Path) -> None:
    """Sign, exponent with bias 7, mantissa; the last pattern is NaN, exponent 0 is subnormal."""
    read = read_array(put(tmp_path, "x.F8_E4M3", bytes(range(256))))
    for bits in range(256):
        sign, exponent, mantissa = bits >> 7, bits >> 3 & 15, bits & 7
        if exponent == 15 and mantissa == 7:
            assert np.isnan(read[bits])
            continue
        size = (1 + mantissa / 8) * 2.0 ** (exponent - 7) if exponent else mantissa / 8 * 2.0**-6
        assert read[bits] == (-size if sign else size)
    assert read[0b0_1111_110] == 448.0  # the largest


def test_every_pattern_of_five_bits_of_exponent_is_the_upper_half_of_a_float16(
    tmp_path: Path,
) -> None:
    read = read_array(put(tmp_path, "x.F8_E5M2", bytes(range(256))))
    halves = np.array([bits << 8 for bits in range(256)], np.uint16).view(np.float16)
    assert np.array_equal(read, halves.astype(np.float32), equal_nan=True)


# -- safetensors


SAFE = {
    "F64": "float64", "F32": "float32", "F16": "float16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U8": "uint8", "U16": "uint16", "U32": "uint32",
    "U64": "uint64", "BOOL": "bool",
}  # fmt: skip


def safetensors(header: bytes, body: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + body


@pytest.mark.parametrize("kind", SAFE)
def test_safetensors_of_every_type(tmp_path: Path, kind: str) -> None:
    """The second of two tensors, behind what is said of the file."""
    values = some(SAFE[kind], 2, 3)
    end = 4 + values.nbytes
    header = (
        '{"__metadata__":{"format":"pt"},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},'
        f'"b":{{"dtype":"{kind}","shape":[2,3],"data_offsets":[4,{end}]}}}}'
    )
    file = put(tmp_path, "m.safetensors", safetensors(header.encode(), b"abcd" + values.tobytes()))
    assert safetensors_members(file) == ["a", "b"]
    read = read_array(f"{file}{MEMBER}b")
    assert read.dtype == values.dtype
    assert np.array_equal(read, values)
    assert read_array(f"{file}{MEMBER}a").tolist() == list(b"abcd")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (safetensors(b"[]", b""), "not a safetensors file"),
        (struct.pack("<Q", 100) + b"{}", "not a safetensors file"),
        (b"123", "not a safetensors file"),
    ],
)
def test_damaged_directories(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(BadPayload, match=reason):
        safetensors_members(put(tmp_path, "m.safetensors", data))


@pytest.mark.parametrize(
    "entry",
    [
        '{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}',
        '{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}',
        '{"dtype":"F32","shape":[1],"data_offsets":[0,-4]}',
        '{"dtype":"F32","shape":[2],"data_offsets":[0,4]}',
        '{"dtype":"F32","shape":[1]}',
    ],
)
def test_damaged_entries(tmp_path: Path, entry: str) -> None:
    file = put(tmp_path, "m.safetensors", safetensors(f'{{"a":{entry}}}'.encode(), b"12345678"))
    with pytest.raises(BadPayload):
        read_array(f"{file}{MEMBER}a")


# -- npz


def test_npz_members_by_name(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {"a": some("float32", 3), "b": some("int64", 2, 2)}
    for save in (np.savez, np.savez_compressed):
        file = tmp_path / f"{save.__name__}.npz"
        save(file, **arrays)
        assert npz_members(str(file)) == ["a.npy", "b.npy"]
        for name, values in arrays.items():
            assert np.array_equal(read_array(f"{file}{MEMBER}{name}.npy"), values)


def test_an_archive_packed_otherwise_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, some("float32", 3))
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.npy", buffer.getvalue())
    with pytest.raises(BadPayload, match="not known"):
        read_array(f"{tmp_path / 'x.npz'}{MEMBER}a.npy")


# -- what torch.save writes


class Global:
    """Stands for a function or a class of PyTorch, by module and name."""

    def __init__(self, module: str, name: str) -> None:
        self.text = f"c{module}\n{name}\n".encode()


def pickled(found: object) -> bytes:
    """Opcodes of protocol 2, as ``torch.save`` uses them: nothing is memoized."""
    match found:
        case Global():
            return found.text
        case ("call", function, arguments):
            return pickled(function) + pickled(arguments) + b"R"
        case ("storage", kind, key, count):
            return pickled(("storage_", Global("torch", kind), key, "cpu", count)) + b"Q"
        case bool():
            return b"\x88" if found else b"\x89"
        case None:
            return b"N"
        case int():
            return b"J" + struct.pack("<i", found)
        case str():
            text = {"storage_": "storage"}.get(found, found).encode()
            return b"X" + struct.pack("<I", len(text)) + text
        case tuple():
            return b"(" + b"".join(map(pickled, found)) + b"t"
        case _:
            raise TypeError(found)


REBUILD = Global("torch._utils", "_rebuild_tensor_v2")
HOOKS = ("call", Global("collections", "OrderedDict"), ())


def tensor(
    kind: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0, key: str = "0"
) -> tuple[object, ...]:
    return ("call", REBUILD, (("storage", kind, key, 99), offset, shape, strides, False, HOOKS))


def archive(stated: bytes, *storages: bytes, comment: bytes = b"", order: str = "little") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("net/data.pkl", b"\x80\x02" + stated + b".")
        made.writestr("net/byteorder", order)
        for number, storage in enumerate(storages):
            made.writestr(f"net/data/{number}", storage)
        made.writestr("net/version", "3\n")
        made.comment = comment
    return buffer.getvalue()


STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}  # fmt: skip


@pytest.mark.parametrize("kind", STORAGES)
def test_storages_of_every_type(tmp_path: Path, kind: str) -> None:
    """The second storage, from its third element on, the other way round."""
    values = some(STORAGES[kind], 8)
    stated = pickled(tensor(kind, (2, 3), (1, 2), offset=2, key="1"))
    file = put(tmp_path, "x.pt", archive(stated, b"other", values.tobytes()))
    read = read_array(file)
    assert read.dtype == values.dtype
    assert np.array_equal(read, values[2:].reshape(3, 2).T)
    stored = read_stored(file)
    assert stored.shape == (2, 3)


ONE = tensor("FloatStorage", (2,), (1,))


def test_parameters_are_the_tensors_in_them(tmp_path: Path) -> None:
    for name in ("_rebuild_parameter", "_rebuild_parameter_with_state"):
        wrapped = pickled(("call", Global("torch._utils", name), (ONE, True, HOOKS)))
        read = read_array(put(tmp_path, "x.pt", archive(wrapped, TWO)))
        assert read.tolist() == [1.5, -2.0]


@pytest.mark.parametrize("comment", [b"", b"of somebody", b"x" * 65535])
def test_a_comment_behind_the_directory_is_passed_over(tmp_path: Path, comment: bytes) -> None:
    file = put(tmp_path, "x.pt", archive(pickled(ONE), TWO, comment=comment))
    assert read_array(file).tolist() == [1.5, -2.0]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickles_of_every_protocol(tmp_path: Path, protocol: int) -> None:
    """What Python itself writes, with its marks, memos and frames."""
    import sys
    import types

    module = types.ModuleType("torch_stand_in")

    def rebuilt(*arguments: object) -> object:
        return arguments

    rebuilt.__module__, rebuilt.__qualname__ = "torch_stand_in", "_rebuild_tensor_v2"
    rebuilt.__name__ = "_rebuild_tensor_v2"
    module._rebuild_tensor_v2 = rebuilt  # type: ignore[attr-defined]
    module.FloatStorage = type("FloatStorage", (), {"__module__": "torch_stand_in"})  # type: ignore[attr-defined]

    class Stored:
        pass

    stored = Stored()

    class Tensor:
        def __reduce__(self) -> tuple[Any, ...]:
            return rebuilt, (stored, 1, (2, 2), (2, 1), False, {})

    class Writer(pickle.Pickler):
        def persistent_id(self, obj: object) -> object:
            kind = module.FloatStorage  # type: ignore[attr-defined]
            return ("storage", kind, "0", "cpu", 5) if obj is stored else None

    sys.modules["torch_stand_in"] = module
    try:
        buffer = io.BytesIO()
        Writer(buffer, protocol).dump(Tensor())
    finally:
        del sys.modules["torch_stand_in"]
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as written:
        written.writestr("a/data.pkl", buffer.getvalue())
        written.writestr("a/data/0", struct.pack("<5f", 9, 1, 2, 3, 4))
    assert read_array(put(tmp_path, "x.pt", made.getvalue())).tolist() == [[1, 2], [3, 4]]


def widened(data: bytes) -> bytes:
    """The archive with places and sizes of 64 bits, as files over 4 GiB have them."""
    at = data.rfind(b"PK\x05\x06")
    count, _, place = struct.unpack_from("<HII", data, at + 10)
    directory, found = data[place:at], b""
    for _ in range(count):
        names, extras, notes = struct.unpack_from("<HHH", directory, 28)
        packed, unpacked = struct.unpack_from("<II", directory, 20)
        (local,) = struct.unpack_from("<I", directory, 42)
        head = bytearray(directory[:46])
        extra = struct.pack("<HHxx", 9, 2) + struct.pack("<HHQQQ", 1, 24, unpacked, packed, local)
        struct.pack_into("<II", head, 20, 0xFFFFFFFF, 0xFFFFFFFF)
        struct.pack_into("<H", head, 30, len(extra))
        struct.pack_into("<I", head, 42, 0xFFFFFFFF)
        found += bytes(head) + directory[46 : 46 + names] + extra
        directory = directory[46 + names + extras + notes :]
    end = struct.pack(
        "<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, len(found), place
    )
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, place + len(found), 1)
    last = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return data[:place] + found + end + locator + last


def test_archives_of_64_bits(tmp_path: Path) -> None:
    file = put(tmp_path, "x.pt", widened(archive(pickled(ONE), TWO)))
    assert read_array(file).tolist() == [1.5, -2.0]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (archive(pickled((ONE, ONE)), TWO), "not one tensor but something else"),
        (archive(pickled(7), TWO), "not one tensor but something else"),
        (archive(pickled(HOOKS), TWO), "not one tensor but a dictionary"),
        (archive(b"]", TWO), "not one tensor but a list"),
        (archive(pickled(ONE), TWO, order="big"), "big-endian"),
        (archive(pickled(ONE), TWO)[:-30], "cut off"),
        (archive(pickled(tensor("FloatStorage", (2,), (1,), 1)), TWO), "1 elements where 2"),
        (archive(pickled(tensor("FloatStorage", (2,), (-1,), 1)), TWO), "beyond the storage"),
        (archive(pickled(tensor("FloatStorage", (2,), (2,))), TWO), "beyond its storage"),
        (
            archive(pickled(tensor("FloatStorage", (2,), (1,), key="4")), TWO),
            "the storage 4 is not in the file",
        ),
    ],
)
def test_what_holds_no_tensor(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(BadPayload, match=reason):
        read_array(put(tmp_path, "x.pt", data))


def test_a_packed_archive_is_refused(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("a/data.pkl", b"\x80\x02" + pickled(ONE) + b".")
    with pytest.raises(BadPayload, match="compressed"):
        read_array(put(tmp_path, "x.pt", made.getvalue()))
    plain = io.BytesIO()
    with zipfile.ZipFile(plain, "w") as written:
        written.writestr("a/other", b"")
    with pytest.raises(BadPayload, match="no tensor of PyTorch"):
        read_array(put(tmp_path, "y.pt", plain.getvalue()))
