"""The same question again: answered from what was kept, as long as nothing it rests on changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from irtool.cli import kept_answers
from irtool.cli.kept_answers import answered
from irtool.cli.main import main
from irtool.syntax import cache_files as kept_files
from irtool.syntax import file_facts

ROOT = Path(__file__).resolve().parents[2]
RUN = "pipeline_2_stages"
BEGIN = "step_parallel_begin"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, with a run and a dump of its own; answers of any size are kept."""
    monkeypatch.setenv("IRTOOL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_answers, "LEAST_KEPT", 1)
    place = tmp_path / "here"
    place.mkdir()
    shutil.copytree(ROOT / "samples" / RUN, place / "run")
    shutil.copytree(ROOT / "samples" / "mlp_semi_auto", place / "mlp")
    monkeypatch.chdir(place)
    return place


def kept(folder: Path) -> list[Path]:
    answers = folder.parent / "cache" / "answers"
    return sorted(answers.iterdir()) if answers.is_dir() else []


class Asked:
    """Asks questions, and counts how often one had to be answered anew."""

    def __init__(self) -> None:
        self.anew = 0

    def __call__(self, *words: str) -> object:
        def answer() -> int:
            self.anew += 1
            return main(words)

        return answered(words, answer)


@pytest.fixture
def ask() -> Asked:
    return Asked()


QUESTIONS = (
    ("parse", "run"),
    ("parse", "mlp", "-f", "json"),
    ("check", "mlp"),
    ("check", "mlp", "-f", "json", "--operators"),
    ("cost", "mlp"),
    ("viz", "run", "-f", "html", "-o", "page.html"),
    ("memory", "run"),
    ("comm", "groups", "run"),
    ("comm", "hang", "run"),
    ("pipeline", "run"),
    ("lint", "run"),
)


@pytest.mark.parametrize("words", QUESTIONS, ids=" ".join)
def test_the_same_question_has_the_same_answer(
    words: tuple[str, ...], ask: Asked, capfd: pytest.CaptureFixture[str]
) -> None:
    page = Path("page.html")
    page.write_text("")  # so that it is there both times
    first = ask(*words), capfd.readouterr(), page.read_bytes()
    again = ask(*words), capfd.readouterr(), page.read_bytes()
    assert again == first
    assert ask.anew == 1
    assert first[1].out or first[2]


@pytest.mark.parametrize("words", QUESTIONS, ids=" ".join)
def test_nothing_is_seen_of_files_that_is_not_noted(words: tuple[str, ...], folder: Path) -> None:
    """Whatever the system is asked below the folder, the answer is known to rest on it."""
    asked: set[str] = set()

    def watch(name: str, patch: pytest.MonkeyPatch) -> None:
        real: Callable[..., object] = getattr(os, name)

        def watched(path: object = ".", *more: object, **options: object) -> object:
            if isinstance(path, str | os.PathLike):
                asked.add(os.path.abspath(path))
            return real(path, *more, **options)

        patch.setattr(os, name, watched)

    with file_facts.noting_facts() as facts, pytest.MonkeyPatch.context() as patch:
        for name in ("stat", "scandir", "listdir", "access", "readlink"):
            watch(name, patch)
        assert main(words) in (0, 1)
    noted = {os.path.abspath(path) for _, path, _ in facts.taken()}
    unnoted = {path for path in asked - noted if path.startswith(str(folder))}
    # Looking whether an output would replace an input changes no answer.
    assert unnoted - {str(folder / "page.html")} == set()
    assert facts.is_complete


def begin_dump() -> Path:
    return next(path for path in Path("mlp").rglob("*.ir") if BEGIN in path.name)


def changed_byte(folder: Path) -> None:
    path = begin_dump()
    status, data = path.stat(), path.read_bytes()
    path.write_bytes(data.replace(b"Float32", b"Float16", 1))
    assert path.stat().st_size == status.st_size
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def settings_above(folder: Path) -> None:
    (folder / "irtool.toml").write_text("[context]\nglobal_rank = 1\n")


def context_beside(folder: Path) -> None:
    case = begin_dump().parent / "case.json"
    if case.exists():
        case.unlink()
    else:
        case.write_text("{}")


def another_dump(folder: Path) -> None:
    shutil.copy(begin_dump(), begin_dump().with_name("20_validate_0099.ir"))


def cut_off(folder: Path) -> None:
    (file,) = kept(folder)
    file.write_bytes(file.read_bytes()[:-7])


def damaged(folder: Path) -> None:
    (file,) = kept(folder)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def not_an_answer(folder: Path) -> None:
    (file,) = kept(folder)
    files = kept_files.KeptFiles("answers")
    files.put(bytes.fromhex(file.name), b"\x93\x01\x02\x03")


def deleted(folder: Path) -> None:
    shutil.rmtree(folder.parent / "cache")


CHANGES = (
    changed_byte, settings_above, context_beside, another_dump, cut_off, damaged, not_an_answer,
    deleted,
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_is_looked_at_again(
    change: Callable[[Path], None], folder: Path, ask: Asked, capfd: pytest.CaptureFixture[str]
) -> None:
    ask("check", "mlp")
    change(folder)
    capfd.readouterr()
    status = ask("check", "mlp")
    told = capfd.readouterr()
    assert ask.anew == 2
    assert (main(["check", "mlp", "--no-cache"]), capfd.readouterr()) == (status, told)


def test_another_irtool_another_place_or_another_environment_asks_anew(
    folder: Path, ask: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("parse", "run")
    with monkeypatch.context() as patch:
        patch.setattr(kept_answers, "program_digest", lambda: b"another")
        ask("parse", "run")
    assert ask.anew == 2
    with monkeypatch.context() as patch:
        patch.setenv("NO_COLOR", "1")
        ask("parse", "run")
    assert ask.anew == 3
    shutil.copytree(folder / "run", folder / "below" / "run")
    monkeypatch.chdir(folder / "below")
    ask("parse", "run")
    assert ask.anew == 4
    monkeypatch.chdir(folder)
    ask("parse", "run")
    assert ask.anew == 4


@pytest.mark.parametrize(
    "words",
    [
        ("parse", "nothing_here"),
        ("check", "mlp", "--no-cache"),
        ("lint", "run", "--baseline", "known.json", "--update-baseline"),
    ],
    ids=" ".join,
)
def test_failures_and_whatever_does_more_than_answer_are_not_kept(
    words: tuple[str, ...], folder: Path, ask: Asked
) -> None:
    ask(*words)
    assert kept(folder) == []


def test_a_named_pipe_is_not_kept(folder: Path, ask: Asked) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no named pipes here")
    os.mkfifo("pipe.ir")
    command = [
        sys.executable,
        "-c",
        "import sys; open('pipe.ir','wb').write(sys.stdin.buffer.read())",
    ]
    with begin_dump().open("rb") as data, subprocess.Popen(command, stdin=data):
        assert ask("parse", "pipe.ir") == 0
    assert kept(folder) == []


def test_a_kept_answer_replaces_no_input(folder: Path) -> None:
    """The first answer goes to a file; where that became a link to an input, the second may not."""
    many_dumps(folder)
    out = folder / "out"
    out.mkdir()
    words = ("parse", "many", "-o", "out/answer.txt")
    assert in_a_process(*words).returncode == 0
    assert len(kept(folder)) == 1
    (out / "answer.txt").unlink()
    (out / "answer.txt").symlink_to(next((folder / "many").iterdir()).absolute())
    refused = in_a_process(*words)
    assert refused.returncode == 2
    assert b"will not replace an input" in refused.stderr


def test_an_answer_is_as_long_as_what_is_kept_of_it(
    folder: Path, ask: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("irtool.cli.output._LONGEST", 10)
    ask("parse", "mlp")
    assert kept(folder) == []


def test_processes_that_answer_at_once_leave_one_whole_answer(folder: Path) -> None:
    many_dumps(folder)
    words = ("parse", "many", "--jobs", "2")
    command = [sys.executable, "-m", "irtool", *words]
    begun = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        for _ in range(3)
    ]
    told = [process.communicate() for process in begun]
    assert len(set(told)) == 1
    assert len(kept(folder)) == 1
    again = in_a_process(*words)
    assert (again.stdout, again.stderr) == told[0]
    first = next((folder / "many").iterdir())
    first.write_bytes(first.read_bytes().replace(b"Float32", b"Float16"))
    first.rename(first.with_name("renamed.ir"))
    assert in_a_process(*words).stdout != told[0][0]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def in_a_process(*words: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "irtool", *words]
    return subprocess.run(command, capture_output=True, env=environment(), check=False)


def many_dumps(folder: Path) -> None:
    """Dumps that are together large enough for their answer to be kept."""
    (folder / "many").mkdir()
    text = begin_dump().read_bytes()
    for number in range((256 << 10) // len(text) + 1):
        (folder / "many" / f"{BEGIN}_{number:04}.ir").write_bytes(text)


# -- what was seen of files --------------------------------------------------------------------


def test_a_file_that_changes_while_it_is_looked_at_makes_no_answer_to_keep(folder: Path) -> None:
    with file_facts.noting_facts() as facts:
        assert not file_facts.is_file("new")
        (folder / "new").write_text("")
        assert file_facts.is_file("new")
    assert not facts.is_complete


@pytest.mark.parametrize(("age", "is_complete"), [(1.0, False), (10.0, True)])
def test_a_file_read_in_pieces_counts_once_its_time_tells_changes(
    folder: Path, age: float, is_complete: bool
) -> None:
    path = folder / "stream"
    path.write_text("a")
    status = path.stat()
    then = status.st_mtime_ns - int(age * 1e9)
    os.utime(path, ns=(then, then))
    with file_facts.noting_facts() as facts:
        file_facts.note_stream("stream")
        facts.taken()
    assert facts.is_complete is is_complete


def test_facts_hold_until_one_does_not(folder: Path) -> None:
    with file_facts.noting_facts() as facts:
        assert file_facts.names_in("run")
        assert file_facts.is_folder("run")
        assert file_facts.file_size("run/nothing") == 0
    seen = facts.taken()
    assert file_facts.are_still(seen)
    (folder / "run" / "more").write_text("")
    assert not file_facts.are_still(seen)
