"""Output: whole or not at all, never over an input, and one line where it can't be written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from irtool.cli import writing
from irtool.cli.main import main
from irtool.cli.report import Failure
from irtool.cli.rules import GENERATED
from irtool.cli.writing import NewFile, write_file
from irtool.syntax import patterns

posix = pytest.mark.skipif(os.name != "posix", reason="no such files here")
full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")


@pytest.fixture
def dump(samples: Path, tmp_path: Path) -> Path:
    made = tmp_path / "in" / "dump.ir"
    made.parent.mkdir()
    made.write_bytes((samples / "custom_rules" / "step_parallel_begin_0001.ir").read_bytes())
    return made


def shell(command: str, dump: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a line of the shell in which ``irtool`` is this one and ``$D`` a dump."""
    environment = {
        **os.environ, "D": str(dump), "T": str(dump.parent.parent), "P": sys.executable, **more,
    }  # fmt: skip
    line = f'irtool() {{ "$P" -m irtool "$@"; }}; {command}'
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, env=environment, check=False
    )


# -- whole or not at all -------------------------------------------------------------------------


def test_a_file_is_at_its_place_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("before")
    file = NewFile(str(path))
    file.sink.write(b"after")
    assert path.read_text() == "before"
    file.keep()
    assert path.read_text() == "after"
    assert os.listdir(tmp_path) == ["out"]


def test_what_is_not_finished_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("before")
    file = NewFile(str(path))
    file.sink.write(b"after")
    file.discard()
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["out"]


@posix
def test_a_file_keeps_its_mode_and_a_new_one_gets_the_usual(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("")
    os.chmod(tmp_path / "old", 0o640)
    before = os.umask(0o027)
    try:
        write_file(str(tmp_path / "old"), "x")
        write_file(str(tmp_path / "new"), "x")
    finally:
        os.umask(before)
    modes = [os.stat(tmp_path / name).st_mode & 0o777 for name in ("old", "new")]
    assert modes == [0o640, 0o640]


@posix
def test_what_a_link_leads_to_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("before")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("new")
    for name in ("link", "dangling"):
        write_file(str(tmp_path / name), "after")
        assert (tmp_path / name).is_symlink()
    assert (tmp_path / "real").read_text() == (tmp_path / "new").read_text() == "after"


@pytest.mark.parametrize("name", ["", "nowhere/out", "a\0b", "x" * 300])
def test_a_name_that_can_be_none_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Failure, match="cannot write"):
        write_file(os.path.join(tmp_path, name), "x")
    assert os.listdir(tmp_path) == []


def test_nothing_is_left_where_nothing_could_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.ir").write_bytes(b"\x1f\x8b\0")
    (tmp_path / "out").write_text("before")
    for format in ("table", "json", "ndjson", "csv", "ir"):
        status = main(["parse", str(tmp_path / "no.ir"), "-f", format, "-o", str(tmp_path / "out")])
        assert status == 2
    assert sorted(os.listdir(tmp_path)) == ["broken.ir", "out"]
    assert (tmp_path / "out").read_text() == "before"


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_end_from_outside_takes_away_what_was_begun(dump: Path, number: int) -> None:
    pipe = dump.parent / "slow.ir"
    os.mkfifo(pipe)
    out = dump.parent.parent / "out"
    process = subprocess.Popen(
        [sys.executable, "-m", "irtool", "parse", dump, pipe, "-f", "ndjson", "-o", out],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Where the tests run in the background the signal is ignored, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with open(pipe, "wb"):  # held open, nothing written: irtool waits for more
        deadline = time.monotonic() + 60
        while not list(out.parent.glob(".irtool-*")) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(number)
        said, complaint = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert (said, complaint) == (b"", b"")
    assert sorted(os.listdir(out.parent)) == ["in"]


# -- never over an input -------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["parse", "-f", "ir"], ["parse", "-f", "csv"], ["check"]])
def test_an_input_is_not_replaced(
    dump: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    before = dump.read_bytes()
    name, *more = command
    extra = ["--devices", "4"] if name == "check" else []
    assert main([name, str(dump), *more, *extra, "-o", str(dump)]) == 2
    assert "will not replace an input" in capsys.readouterr().err
    assert dump.read_bytes() == before


@posix
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_an_input_is_known_by_whatever_name(
    dump: Path, capsys: pytest.CaptureFixture[str], link: object
) -> None:
    other = dump.parent.parent / "other"
    link(dump, other)  # type: ignore[operator]
    before = dump.read_bytes()
    assert main(["parse", str(dump), "-f", "ir", "-o", str(other)]) == 2
    assert main(["parse", str(other), "-f", "ir", "-o", str(dump)]) == 2
    assert "will not replace an input" in capsys.readouterr().err
    assert dump.read_bytes() == before


def test_files_of_an_input_folder_are_inputs_and_a_report_beside_them_is_none(
    dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = dump.parent / "step_parallel_begin_0002.ir"
    other.write_bytes(dump.read_bytes())
    folder = str(dump.parent)
    assert main(["parse", folder, "-o", str(other)]) == 2
    assert other.read_bytes() == dump.read_bytes()
    report = dump.parent / "report.csv"
    assert main(["parse", folder, "-f", "csv", "-o", str(report)]) == 0
    assert main(["parse", folder, "-f", "csv", "-o", str(report)]) == 0
    assert report.read_text().startswith("file,")


def test_a_file_of_settings_is_an_input(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    context = dump.parent / "context.json"
    context.write_text('{"device_num": 4}')
    assert main(["check", str(dump), "--context", str(context), "-o", str(context)]) == 2
    assert context.read_text() == '{"device_num": 4}'


def test_a_baseline_is_brought_up_to_date_in_place(
    dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline = dump.parent / "baseline.json"
    for _ in range(2):
        main(["lint", str(dump), "--baseline", str(baseline), "--update-baseline"])
        assert "baseline" in baseline.read_text()


def test_pages_of_somebody_else_are_neither_replaced_nor_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.md").write_text("mine")
    (tmp_path / "OLD001.md").write_text(f"{GENERATED}\n")
    assert main(["rules", "--write-docs", str(tmp_path)]) == 0
    assert (tmp_path / "notes.md").read_text() == "mine"
    assert not (tmp_path / "OLD001.md").exists()
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "COM001.md").unlink()
    assert main(["rules", "--write-docs", str(tmp_path)]) == 2
    assert "README.md: error[CLI003]" in capsys.readouterr().err
    assert (tmp_path / "README.md").read_text() == "mine"
    assert not (tmp_path / "COM001.md").exists()


# -- streams and devices -------------------------------------------------------------------------


@full
@pytest.mark.parametrize(
    "line",
    [
        "irtool parse $D > /dev/full",
        "irtool parse $D -f json > /dev/full",
        "irtool parse $D -o /dev/full",
        "irtool parse $D -f parquet -o /dev/full",
        "irtool viz $D --no-check -f html -o /dev/full",
        "irtool --help > /dev/full",
        "irtool --version > /dev/full",
        "irtool parse $D >&-",
        "irtool --help >&-",
    ],
)
def test_a_full_disk_or_a_closed_output_is_one_line_and_status_2(dump: Path, line: str) -> None:
    ended = shell(line, dump)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "error[CLI003]: " in ended.stderr


@posix
@pytest.mark.parametrize(
    "line",
    [
        "irtool parse $D -f json | true",
        "irtool parse $D -o /dev/stdout | true",
        "irtool parse $D -f parquet | true",
        "irtool --help | true",
    ],
)
def test_a_reader_that_went_away_is_silence_and_status_141(dump: Path, line: str) -> None:
    ended = shell(line.replace("| true", "| (exec <&-; sleep 2); exit ${PIPESTATUS[0]}"), dump)
    assert ended.stderr == ""
    assert ended.returncode == 141


@posix
@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full", "2> >(exec <&-)"])
def test_nobody_who_hears_messages_changes_no_answer(dump: Path, closed: str) -> None:
    if "full" in closed and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    heard = shell("irtool parse $D $T/no.ir", dump)
    assert heard.returncode == 1
    assert "no such file" in heard.stderr
    unheard = shell(f"irtool parse $D $T/no.ir {closed}", dump)
    assert (unheard.returncode, unheard.stdout) == (1, heard.stdout)
    assert shell(f"irtool parse $T/no.ir >&- {closed}", dump).returncode == 2


@posix
def test_a_closed_input_is_unreadable(dump: Path) -> None:
    ended = shell("irtool parse - <&-", dump)
    assert ended.returncode == 2
    assert "<stdin>" in ended.stderr


@posix
def test_standard_output_may_be_named(dump: Path) -> None:
    plain = shell("irtool parse $D", dump).stdout
    for name in ("-", "/dev/stdout", "/dev/fd/1"):
        assert shell(f"irtool parse $D -o {name}", dump).stdout == plain
    ended = shell(
        "echo before > $T/out; irtool parse $D -o /dev/stdout >> $T/out; cat $T/out", dump
    )
    assert ended.stdout == f"before\n{plain}"
    assert shell("irtool parse $D -o /dev/fd/7 7>&1", dump).stdout == plain


@posix
def test_a_named_pipe_is_written_to(dump: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    assert main(["parse", str(dump), "-o", str(pipe)]) == 0
    reader.join()
    assert found[0].startswith(str(dump).encode())
    assert pipe.is_fifo()


@posix
def test_a_named_pipe_that_nobody_reads_is_no_hang(
    dump: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(writing, "_READER_PATIENCE", 0.05)
    os.mkfifo(tmp_path / "pipe")
    assert main(["parse", str(dump), "-o", str(tmp_path / "pipe")]) == 2
    assert "nobody reads" in capsys.readouterr().err


def test_a_query_that_takes_too_long_is_one_error(
    dump: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(patterns, "MAX_TOTAL", 0.0)
    assert main(["parse", str(dump), "--where", 'op =~ "(a+)+$"']) == 2
    said = capsys.readouterr()
    assert "error[QRY001]: this regular expression takes too long" in said.err
    assert said.out == ""
