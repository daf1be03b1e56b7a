"""Values of dumped tensors: every kind of file, damaged ones too."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irtool.compare.tensors.formats import payload
from irtool.compare.tensors.formats.payload import BadPayload, numbers, read_array
from irtool.compare.tensors.formats.plain import read_plain
from irtool.compare.tensors.measuring import figures, values
from irtool.compare.tensors.measuring.measure import Sides, measure_all
from irtool.compare.tensors.measuring.values import (
    BLOCK,
    measure_arrays,
    measure_stored,
    number_blocks,
)

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


def test_large_files_are_read_in_blocks(write: Write) -> None:
    array = np.random.default_rng(0).standard_normal(BLOCK + 1000).astype(np.float32)
    stream = io.BytesIO()
    np.save(stream, array)
    file = write("x.npy", stream.getvalue())
    stored = payload.read_stored(file)
    other = payload.stored_array("Float32", np.asfortranarray(np.reshape(array, (2, -1))))
    found = measure_stored(stored, other)
    assert found.equal
    assert found.left == pytest.approx(float(np.linalg.norm(array)), rel=1e-6)


def npy(values: np.ndarray[Any, Any]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


@pytest.mark.parametrize("left", [BLOCK // 2, 2 * BLOCK, 0])
def test_a_file_that_shrinks_while_it_is_read_is_said_to(write: Write, left: int) -> None:
    data = npy(np.arange(3 * BLOCK, dtype=np.float32))
    file = write("x.npy", data)
    stored = payload.read_stored(file)
    os.truncate(file, left * 4)
    with pytest.raises(BadPayload, match="became shorter"):
        sum(block.size for block in number_blocks(stored))
    with pytest.raises(BadPayload, match="became shorter"):
        _ = stored.array


@pytest.mark.parametrize("side", ["left", "right"])
def test_of_a_pair_the_side_that_shrank_is_named(
    write: Write, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    data = npy(np.arange(3 * BLOCK, dtype=np.float32))
    files = {name: write(f"{name}.npy", data) for name in ("left", "right")}
    real = values.measure_stored

    def shrinking(left: payload.Stored, right: payload.Stored) -> values.Measure:
        os.truncate(files[side], 3 * BLOCK)
        return real(left, right)

    monkeypatch.setattr(values, "measure_stored", shrinking)
    pair = values.Files(files["left"], files["right"], "Float32", "Float32")
    (found,) = values.measure_files([pair])
    assert found.note == f"{side}: the file became shorter while it was read"


def test_figures_of_a_file_that_shrinks_have_a_note(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write("x.npy", npy(np.arange(3 * BLOCK, dtype=np.float32)))
    real = figures.number_blocks

    def shrinking(stored: payload.Stored) -> Iterator[Any]:
        for number, block in enumerate(real(stored)):
            if not number:
                os.truncate(file, 6 * BLOCK)
            yield block

    monkeypatch.setattr(figures, "number_blocks", shrinking)
    found = figures.figures_of(figures.File(file, "Float32"))
    assert found.note == "the file became shorter while it was read"


@pytest.mark.parametrize("shape", [(0, 10**30), (1,) * 100 + (BLOCK,), (2**40, 2**40)])
def test_shapes_that_no_array_has_are_refused(write: Write, shape: tuple[int, ...]) -> None:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}".encode()
    body = bytes(4 * BLOCK)
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body
    with pytest.raises(BadPayload):
        read_array(write("x.npy", data))


@pytest.mark.parametrize(("allowed", "is_read"), [("4096", True), ("4095", False)])
def test_a_packed_member_is_as_large_as_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: str, is_read: bool
) -> None:
    np.savez_compressed(tmp_path / "x.npz", a=np.zeros((4096 - 128) // 4, np.float32))
    monkeypatch.setenv("IRTOOL_MAX_UNPACKED", allowed)
    file = f"{tmp_path / 'x.npz'}{payload.MEMBER}a.npy"
    if is_read:
        assert read_array(file).size == 992
    else:
        with pytest.raises(BadPayload, match="IRTOOL_MAX_UNPACKED"):
            read_array(file)


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


def test_complex_numbers_are_not_measured_against_real_ones(tmp_path: Path) -> None:
    real = np.array([3.0, 1.0], np.float32)
    np.savez(tmp_path / "x.npz", real=real, complex=real.astype(np.complex64), same=real)
    columns = read_plain(str(tmp_path / "x.npz")).columns
    place = {dtype: number for number, dtype in enumerate(columns.dtypes)}
    pairs = [(place["Float32"], place["Complex64"]), (place["Float32"], place["Float32"])]
    mixed, alike = measure_all(Sides(columns, columns, pairs))
    assert np.isnan(mixed.error)
    assert mixed.note == "complex numbers against real ones"
    assert alike.equal


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("name", ["x.npy", "x.pt", "x.npz", "x.safetensors"])
def test_a_pipe_is_no_payload_and_no_hang(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    member = f"{payload.MEMBER}a" if name.endswith(("npz", "safetensors")) else ""
    with pytest.raises(BadPayload, match="no plain file"):
        read_array(f"{tmp_path / name}{member}")
    if name.endswith("npy"):
        with pytest.raises(BadPayload, match="no plain file"):
            payload.npy_declaration(str(tmp_path / name))
