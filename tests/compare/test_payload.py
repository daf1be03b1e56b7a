"""Values of dumped tensors: every kind of file, damaged ones too."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irtool.compare.tensors import payload
from irtool.compare.tensors.payload import BadPayload, numbers, read_array
from irtool.compare.tensors.plain import read_plain
from irtool.compare.tensors.values import BLOCK, measure_arrays, measure_stored

Write = Callable[[str, bytes], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, data: bytes) -> str:
        (tmp_path / name).write_bytes(data)
        return str(tmp_path / name)

    return written


def torch_file(pickle: bytes, storage: bytes, order: str = "little") -> bytes:
    """What ``torch.save`` writes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x/data.pkl", pickle)
        archive.writestr("x/byteorder", order)
        archive.writestr("x/data/0", storage)
    return buffer.getvalue()


def tensor_pickle(
    storage: str, size: int, shape: bytes, strides: bytes, more: bytes = b""
) -> bytes:
    """``_rebuild_tensor_v2`` of one storage, or ``_v3`` with a type behind it."""
    version = b"3" if more else b"2"
    return (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v" + version + b"\n((X\x07\x00\x00\x00storage"
        + f"ctorch\n{storage}\n".encode() + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK"
        + bytes([size]) + b"tQK\x00" + shape + strides + b"\x89ccollections\nOrderedDict\n)R"
        + more + b"tR."
    )  # fmt: skip


def test_strides_of_a_transposed_tensor_count(write: Write) -> None:
    values = np.arange(6, dtype=np.float32)
    pickle = tensor_pickle("FloatStorage", 6, b"K\x03K\x02\x86", b"K\x01K\x03\x86")
    found = read_array(write("t.pt", torch_file(pickle, values.tobytes())))
    np.testing.assert_array_equal(found, np.transpose(np.reshape(values, (2, 3))))


def test_types_without_a_storage_of_their_own_are_read(write: Write) -> None:
    more = b"ctorch\nfloat8_e5m2\n"
    pickle = tensor_pickle("UntypedStorage", 2, b"K\x02\x85", b"K\x01\x85", more)
    found = read_array(write("t.pt", torch_file(pickle, bytes([0x3C, 0xC0]))))
    assert found.tolist() == [1.0, -2.0]


def test_short_floats_have_the_values_of_their_bits() -> None:
    bits = np.array([0x38, 0xB8, 0x7F, 0x01, 0x7E], np.uint8)
    found = numbers("Float8E4M3FN", bits)
    np.testing.assert_array_equal(found, np.array([1, -1, np.nan, 2.0**-9, 448], np.float32))
    assert numbers("BFloat16", np.array(0x3F80, np.uint16)).tolist() == 1.0


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (torch_file(b"\x80\x02}.", b""), "not one tensor but a dictionary"),
        (torch_file(tensor_pickle("FloatStorage", 4, b"K\x04\x85", b"K\x01\x85"), b"1234"), "cut"),
        (torch_file(tensor_pickle("FloatStorage", 1, b"K\x02\x85", b"K\x09\x85"), b"12345678"),
         "reaches beyond"),
        (torch_file(tensor_pickle("FloatStorage", 1, b"K\x01\x85", b"K\x01\x85"), b"1234", "big"),
         "big-endian"),
        (b"\x80\x02\x8a\x0alold format", "before version 1.6"),
    ],
)  # fmt: skip
def test_what_holds_no_tensor_says_so(write: Write, data: bytes, reason: str) -> None:
    with pytest.raises(BadPayload, match=reason):
        read_array(write("t.pt", data))


def test_large_files_are_mapped_and_read_in_blocks(write: Write) -> None:
    values = np.random.default_rng(0).standard_normal(BLOCK + 1000).astype(np.float32)
    stream = io.BytesIO()
    np.save(stream, values)
    file = write("x.npy", stream.getvalue())
    stored = payload.read_stored(file)
    other = payload.Stored("Float32", np.asfortranarray(np.reshape(values, (2, -1))))
    found = measure_stored(stored, other)
    assert found.equal
    assert found.left == pytest.approx(float(np.linalg.norm(values)), rel=1e-6)


def test_members_of_packed_archives_are_read(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {f"a{n}": np.full((3, n + 1), n, np.float32) for n in range(3)}
    np.savez(tmp_path / "plain.npz", **arrays)
    np.savez_compressed(tmp_path / "packed.npz", **arrays)
    for name in ("plain.npz", "packed.npz"):
        run = read_plain(str(tmp_path / name))
        read = {op.name: read_array(run.columns.files[op.outputs[0]]) for op in run.ops}
        assert {key: value.tolist() for key, value in read.items()} == {
            key: value.tolist() for key, value in arrays.items()
        }


def test_safetensors_are_read(tmp_path: Path) -> None:
    header = b'{"w":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
    data = struct.pack("<Q", len(header)) + header + struct.pack("<2H", 0x3F80, 0xC000)
    (tmp_path / "m.safetensors").write_bytes(data)
    run = read_plain(str(tmp_path / "m.safetensors"))
    assert run.columns.dtypes == ["BFloat16"]
    assert read_array(run.columns.files[0], "BFloat16").tolist() == [1.0, -2.0]


def test_whole_numbers_that_double_precision_cannot_tell_apart_differ() -> None:
    left = np.array([2**60], np.int64)
    assert measure_arrays(left, left).equal
    assert not measure_arrays(left, left + 1).equal


def test_complex_numbers_differ_in_their_imaginary_part() -> None:
    left = np.array([1 + 1j], np.complex64)
    assert measure_arrays(left, np.conj(left)).error == pytest.approx(2**0.5)
