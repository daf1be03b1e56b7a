"""Files beside dumps: within bounds, or a reason."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from irtool.ir.limits import MAX_DEPTH, bounded_int, max_unpacked
from irtool.syntax import reading
from irtool.syntax.lines import text_lines
from irtool.syntax.reading import (
    JsonError,
    note_input,
    note_input_folder,
    noted_inputs,
    opened,
    parse_json,
    read_bytes,
    read_text,
)
from irtool.syntax.source import DumpError, read_content

# -- JSON ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("depth", "is_read"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
@pytest.mark.parametrize("brackets", ["[]", '{"a":}'])
def test_json_is_read_to_a_depth(depth: int, is_read: bool, brackets: str) -> None:
    opening, closing = brackets[:-1], brackets[-1]
    text = opening * (depth - 1) + ("[]" if brackets == "[]" else "{}") + closing * (depth - 1)
    if is_read:
        assert json.dumps(parse_json(text)) == json.dumps(json.loads(text))
    else:
        with pytest.raises(JsonError, match="nested too deeply"):
            parse_json(text)


def test_json_of_any_depth_ends() -> None:
    for text in ("[" * 1_000_000, '{"a":' * 100_000, "[" * 5000 + "]" * 5000):
        with pytest.raises(JsonError):
            parse_json(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NaN", "no number in JSON"),
        ("[1, -Infinity]", "no number in JSON"),
        ("1e400", "too large a number"),
        ("-1e400", "too large a number"),
        ("9" * 5000, "thousands of digits"),
        ("", "Expecting value"),
        ('{"a": 1,}', "."),
        (b"\xff\xfe\xff", "."),
    ],
)
def test_what_is_no_json_is_said(text: str | bytes, message: str) -> None:
    with pytest.raises(JsonError, match=message):
        parse_json(text)


def test_numbers_that_python_writes_and_json_lacks_are_read_where_tools_write_them() -> None:
    assert str(parse_json("[NaN, Infinity, 1e400]", special=True)) == "[nan, inf, inf]"


def test_a_mistake_in_json_has_a_place() -> None:
    with pytest.raises(JsonError) as raised:
        parse_json('{\n"a": ]')
    assert (raised.value.line, raised.value.column) == (2, 6)


# -- bytes and text --------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "is_read"), [(10, True), (9, False)])
def test_a_file_may_have_so_many_bytes(tmp_path: Path, most: int, is_read: bool) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    if is_read:
        assert read_bytes(str(tmp_path / "file"), most) == b"0123456789"
    else:
        with pytest.raises(OSError, match="is larger than"):
            read_bytes(str(tmp_path / "file"), most)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no /dev/zero here")
@pytest.mark.parametrize("read", [read_bytes, read_text, opened])
def test_a_device_is_no_file(read: Callable[[str], object]) -> None:
    """Some never end, some wait for somebody to type."""
    with pytest.raises(OSError, match="is a device, not a file"):
        read("/dev/zero")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no /dev/zero here")
def test_a_device_on_standard_input_is_no_dump() -> None:
    with open("/dev/zero", "rb") as file, pytest.raises(DumpError, match="is a device, not a file"):
        read_content(file, "<stdin>")
    with open("/dev/null", "rb") as file:
        assert read_content(file).data == b""


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="no /dev/null here")
def test_the_empty_device_is_an_empty_file() -> None:
    assert read_bytes("/dev/null") == b""
    with opened("/dev/null") as file:
        assert file.read() == b""


def test_a_file_that_is_too_large_is_not_read_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> bytes:
        raise AssertionError("its size says enough")

    monkeypatch.setattr(reading, "read_stream", read)
    (tmp_path / "file").write_bytes(b"0123456789")
    with pytest.raises(OSError, match="is larger than 0 MiB"):
        read_bytes(str(tmp_path / "file"), 9)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_that_nobody_writes_into_is_no_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_WRITER_PATIENCE", 0.05)
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    readers: tuple[Callable[[str], object], ...] = (
        *(read_bytes, read_text, opened),
        lambda path: list(text_lines(path)),
    )
    for read in readers:
        with pytest.raises(OSError, match="nobody writes"):
            read(path)


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_no_file_can_have_is_an_error_of_the_system(name: str) -> None:
    with pytest.raises(OSError, match=r"no file can have this name|[Nn]o such file"):
        read_bytes(name)


def test_text_has_line_feeds_and_no_mark(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert read_text(str(tmp_path / "file")) == "a\nb\nc\n"
    (tmp_path / "file").write_bytes(b"\xff")
    with pytest.raises(OSError, match="no text in UTF-8"):
        read_text(str(tmp_path / "file"))


def test_of_a_line_so_much_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"ab\r\n" + b"x" * 3_000_000 + b"\nend")
    assert list(text_lines(str(tmp_path / "log"), 4)) == ["ab", "xxxx", "end"]


# -- what was read ---------------------------------------------------------------------------------


def test_what_is_read_is_noted_where_somebody_asks(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "other").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "tensor.npy").write_text("x")
    with noted_inputs() as noted:
        read_bytes(str(tmp_path / "file"))
        note_input(str(tmp_path / "gone"))
        note_input_folder(str(tmp_path / "folder"))
    assert noted.same_as(str(tmp_path / "." / "file")) == str(tmp_path / "file")
    assert noted.same_as(str(tmp_path / "folder" / "tensor.npy")) is not None
    assert noted.same_as(str(tmp_path / "none" / ".." / "file")) == str(tmp_path / "file")
    assert noted.same_as(str(tmp_path / "other")) is None
    assert noted.same_as(str(tmp_path / "gone")) is None
    read_bytes(str(tmp_path / "other"))
    assert noted.same_as(str(tmp_path / "other")) is None


# -- numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("digits", "is_exact"), [(40, True), (41, False), (10_000, False)])
def test_runs_of_digits_are_numbers(digits: int, is_exact: bool) -> None:
    assert (bounded_int("1" * digits) == (10**digits - 1) // 9) == is_exact
    assert bounded_int("9" * digits) <= 10**40


@pytest.mark.parametrize(
    ("text", "size"),
    [("", None), ("0", 0), ("123", 123), ("2k", 2048), ("8G", 8 << 30), (" 1 T", None)],
)
def test_sizes_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, text: str, size: int | None
) -> None:
    monkeypatch.setenv("IRTOOL_MAX_UNPACKED", text)
    if text == " 1 T":
        with pytest.raises(ValueError, match="no size"):
            max_unpacked()
    else:
        assert max_unpacked() == size
