"""Models of dumps that were read before: opened again they are the same, or they are not there."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import irtool
from irtool.cli.main import main
from irtool.ir.dump import Dump
from irtool.ir.graph import Node
from irtool.syntax import kept, reader
from irtool.syntax.cache_files import KeptFiles, digest
from irtool.syntax.kept import Keeper, keeping
from irtool.syntax.kept.model import can_be_kept, form_of_model, model_bytes, model_from
from irtool.syntax.printer import print_comment

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "samples").rglob("*.ir"))
GPT = ROOT / "samples" / "gpt" / "step_parallel_begin_0018.ir"
TWO = (GPT, ROOT / "samples" / "layout" / "step_parallel_begin_0019.ir")
FIELDS = tuple(name for name in Node.__slots__ if name != "graph")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("irtool.syntax.load.LEAST_KEPT", 1)
    return tmp_path / "cache" / "models"


def opened_again(dump: Dump, text: str) -> Dump:
    body = text.removesuffix("\n")
    data = model_bytes(dump, body, print_comment)
    return model_from(data, body, dump.path, reader.comment_lines)


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


# -- the model ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
def test_a_model_comes_back_as_it_was(name: str) -> None:
    path = ROOT / name
    dump = irtool.load(path)
    if not can_be_kept(dump):
        assert dump.problems or dump.bom or dump.line_ends.usual != "\n"
        return
    again = opened_again(dump, text_of(path))
    assert irtool.dumps(again) == irtool.dumps(dump)
    assert again.properties == dump.properties
    assert (again.dialect, again.size, again.path) == (dump.dialect, dump.size, dump.path)
    for left, right in zip(dump.nodes(), again.nodes(), strict=True):
        assert [getattr(left, field) for field in FIELDS] == [
            getattr(right, field) for field in FIELDS
        ]
        assert [str(node) for node in left.users] == [str(node) for node in right.users]
        assert (right.graph and right.graph.name) == (left.graph and left.graph.name)


def test_equal_values_stay_one_object() -> None:
    dump = irtool.load(GPT)
    again = opened_again(dump, text_of(GPT))

    def distinct(model: Dump) -> int:
        return len({id(node.signature) for node in model.nodes()})

    assert distinct(again) == distinct(dump) < len(list(dump.nodes()))


def test_comments_that_were_read_already_are_found_in_the_text() -> None:
    dump = irtool.load(GPT)
    lines = [node.comments.lines for node in dump.nodes()]  # their text is given up now
    again = opened_again(dump, text_of(GPT))
    assert [node.comments.lines for node in again.nodes()] == lines


def test_a_scope_that_somebody_looked_for_is_kept_with_the_comments() -> None:
    dump = irtool.load(GPT)
    scopes = [node.scope for node in dump.nodes()]
    text = text_of(GPT).removesuffix("\n")

    def refuse(text: str) -> tuple[()]:
        raise AssertionError("comments are not read for their scope")

    again = model_from(model_bytes(dump, text, print_comment), text, dump.path, refuse)
    assert [node.scope for node in again.nodes()] == scopes
    assert any(scopes)


@pytest.mark.parametrize(
    ("change", "kept_as"),
    [
        (lambda text: text, True),
        (lambda text: text.replace("\n", "\r\n"), False),
        (lambda text: "\ufeff" + text, False),
        (lambda text: text[: len(text) // 2], False),  # has problems, which are told anew
    ],
)
def test_only_what_was_read_as_usual_is_kept(change: Callable[[str], str], kept_as: bool) -> None:
    assert can_be_kept(irtool.loads(change(text_of(GPT)))) is kept_as


def test_the_form_of_kept_models_tells_classes_and_fields() -> None:
    assert form_of_model() == form_of_model()
    assert len(form_of_model()) == 16


# -- files -------------------------------------------------------------------------------------


def test_what_was_put_there_is_there(tmp_path: Path) -> None:
    files = KeptFiles("things")
    files.put(digest("a"), b"data")
    assert files.get(digest("a")) == b"data"
    assert files.get(digest("b")) is None


def test_a_damaged_file_is_not_there_and_goes(folder: Path) -> None:
    """Any single byte that differs, any end that is missing, and a file of another key."""
    generator = random.Random(7)
    files, key = KeptFiles("models"), digest("a")
    data = bytes(generator.randrange(256) for _ in range(200))
    files.put(key, data)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert files.get(key) is None
        assert not path.exists()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        assert files.get(key) is None
    (folder / digest("b").hex()).write_bytes(whole)
    assert files.get(digest("b")) is None
    path.write_bytes(whole)
    assert files.get(key) == data


def test_the_files_of_a_kind_stay_below_their_bound(folder: Path) -> None:
    files = KeptFiles("models", most=1000)
    for number in range(4):
        files.put(digest(str(number)), b"x" * 300)
        os.utime(folder / digest(str(number)).hex(), (number, number))
    assert files.get(digest("0")) is None  # the one that nobody asked for the longest
    assert files.get(digest("3")) is not None
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 1000


def test_what_was_asked_for_stays_when_room_is_made(folder: Path) -> None:
    files = KeptFiles("models", most=1000)
    for number in range(2):
        files.put(digest(str(number)), b"x" * 400)
        os.utime(folder / digest(str(number)).hex(), (number, number))
    assert files.get(digest("0")) is not None
    files.put(digest("2"), b"x" * 400)
    assert files.get(digest("0")) is not None
    assert files.get(digest("1")) is None


def test_what_is_larger_than_the_bound_is_not_kept(folder: Path) -> None:
    files = KeptFiles("models", most=100)
    files.put(digest("a"), b"x" * 101)
    assert files.get(digest("a")) is None
    files.put(digest("a"), b"x" * 40)
    assert files.get(digest("a")) is not None


def test_a_folder_that_cannot_be_written_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path / "file"))
    files = KeptFiles("models")
    files.put(digest("a"), b"data")
    assert files.get(digest("a")) is None


# -- reading -----------------------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were parsed."""
    seen: list[str] = []
    real = reader.loads

    def noted(text: str, path: str = "<text>", records: object = None) -> Dump:
        seen.append(path)
        return real(text, path)

    monkeypatch.setattr(reader, "loads", noted)
    return seen


def test_what_was_read_once_is_not_parsed_again(reads: list[str]) -> None:
    with keeping():
        first = irtool.load(GPT)
    with keeping():
        second = irtool.load(GPT)
    assert reads == [str(GPT)]
    assert irtool.dumps(second) == irtool.dumps(first)


def test_a_library_keeps_nothing_unasked(reads: list[str], folder: Path) -> None:
    irtool.load(GPT)
    irtool.load(GPT)
    assert len(reads) == 2
    assert not folder.exists()


def test_a_dump_is_known_by_its_bytes_not_by_its_name(reads: list[str], tmp_path: Path) -> None:
    copy = tmp_path / "copy.ir"
    copy.write_bytes(GPT.read_bytes())
    with keeping():
        irtool.load(GPT)
        kept.flush()
        again = irtool.load(copy)
        assert again.path == str(copy)
        assert reads == [str(GPT)]
        copy.write_bytes(GPT.read_bytes().replace(b"MatMul", b"MatMuk"))
        assert any(node.op == "MatMuk" for node in irtool.load(copy).nodes())
    assert reads == [str(GPT), str(copy)]


def test_the_bound_below_which_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    size = GPT.stat().st_size
    monkeypatch.setattr("irtool.syntax.load.LEAST_KEPT", size + 1)
    with keeping():
        irtool.load(GPT)
    assert not folder.exists()
    monkeypatch.setattr("irtool.syntax.load.LEAST_KEPT", size)
    with keeping():
        irtool.load(GPT)
    assert len(list(folder.iterdir())) == 1


def test_kept_bytes_that_make_no_sense_are_passed_over(
    reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a fault of irtool would write them: whole by their digest, and yet no model."""
    with keeping():
        irtool.load(GPT)
    monkeypatch.setattr(KeptFiles, "get", lambda self, key: b"\x90")
    with keeping():
        assert irtool.load(GPT).problems == ()
    assert len(reads) == 2


def test_another_irtool_does_not_look_at_what_was_kept(
    reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with keeping():
        irtool.load(GPT)
    monkeypatch.setattr(kept, "_maker", lambda: b"another")
    with keeping():
        irtool.load(GPT)
    assert len(reads) == 2


def test_each_of_several_dumps_is_kept(folder: Path) -> None:
    with keeping():
        for path in TWO:
            irtool.load(path)
    assert len(list(folder.iterdir())) == 2


def test_a_dump_with_problems_tells_them_each_time(tmp_path: Path, folder: Path) -> None:
    cut = tmp_path / "cut.ir"
    cut.write_bytes(GPT.read_bytes()[:20_000])
    for _ in range(2):
        with keeping():
            assert irtool.load(cut).problems
    assert not folder.exists()


def test_a_number_that_no_file_holds_is_read_and_not_kept(tmp_path: Path, folder: Path) -> None:
    huge = tmp_path / "huge.ir"
    text = text_of(GPT)
    huge.write_text(text.replace("%para10_", f"%para{10**20}_"))
    with keeping():
        dump = irtool.load(huge)
    assert not dump.problems
    assert not folder.exists()


def test_keeping_ends_with_its_block() -> None:
    assert kept.keeper() is None
    with keeping():
        assert isinstance(kept.keeper(), Keeper)
        with keeping(wanted=False):  # only what other processes read is taken
            assert not kept.remembers()
        assert kept.remembers()
    assert not kept.remembers()


# -- commands ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        ("parse",),
        ("parse", "--format", "json"),
        ("parse", "--where", 'op == "MatMul"'),
        ("check", "--devices", "8"),
        ("lint", "--devices", "8", "--format", "json"),
        ("cost", "--devices", "8", "--machine", "ascend_910b"),
    ],
)
def test_a_command_answers_the_same_from_a_kept_model(
    command: tuple[str, ...], reads: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    answers: list[tuple[int, str, str]] = []
    for more in ((), (), ("--no-cache",)):
        status = main([command[0], str(GPT), *command[1:], *more])
        answers.append((status, *capsys.readouterr()))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][1]
    assert reads.count(str(GPT)) == 2  # of the dump beside it parts alone are read, each time


def test_no_cache_remembers_nothing(folder: Path) -> None:
    main(["parse", str(GPT), "--no-cache"])
    assert not folder.exists()
    main(["parse", str(GPT)])
    assert len(list(folder.iterdir())) == 1


@pytest.mark.slow
def test_workers_keep_what_they_read(folder: Path, tmp_path: Path) -> None:
    program = "import sys; from irtool.syntax import load; load.LEAST_KEPT = 1;"
    program += "from irtool.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = (sys.executable, "-c", program, "parse", *map(str, TWO), "--jobs", "2")
    # Workers are forked on Linux alone; elsewhere they begin with the usual bound.
    if sys.platform != "linux" or sys.version_info >= (3, 14):
        pytest.skip("workers don't inherit what this test sets")
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    assert len(list(folder.iterdir())) == 2
