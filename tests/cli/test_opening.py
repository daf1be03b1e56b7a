"""``--open``: one option, wherever there are pages."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from irtool.cli.commands import COMMANDS
from irtool.cli.main import _command_of, main

ROOT = Path(__file__).resolve().parents[2]
VALIDATE = "samples/mlp_semi_auto/20_validate_0080.ir"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("webbrowser.open", found.append)
    return found


def test_every_command_with_pages_opens_them() -> None:
    for name in COMMANDS:
        command = _command_of(name)
        for inner in getattr(command, "commands", {name: command}).values():
            options = {option for each in inner.params for option in each.opts}
            assert ("--open" in options) == ("--format" in options and name != "parse"), name


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("check samples/mlp_rejected", 1),
        (f"viz {VALIDATE}", 0),
        (f"lint {VALIDATE}", 0),
        (f"diff {VALIDATE} {VALIDATE}", 0),
        ("rules", 0),
        ("explain COM001", 0),
        ("comm groups samples/mlp_semi_auto", 0),
    ],
)
def test_open_writes_a_page_and_shows_it(
    opened: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    line: str,
    status: int,
) -> None:
    page = tmp_path / "page.html"
    assert main([*shlex.split(line), "--open", "-o", str(page)]) == status
    assert opened == [page.as_uri()]
    assert "<html" in page.read_text(encoding="utf-8")[:500]
    assert f"wrote {page}" in capsys.readouterr().err


def test_open_alone_writes_to_a_file_of_its_own(opened: list[str]) -> None:
    assert main(["rules", "--open"]) == 0
    (place,) = opened
    path = Path(place.removeprefix("file://"))
    assert path.name == "index.html"
    assert path.exists()
    path.unlink()
    path.parent.rmdir()


def test_what_cannot_be_opened_is_refused(
    opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rules", "--open", "-f", "json"]) == 2
    assert "shows a page, not json" in capsys.readouterr().err
    assert main(["rules", "--open", "-o", "-"]) == 2
    assert opened == []


def test_a_question_that_fails_opens_nothing(opened: list[str]) -> None:
    assert main(["check", "no-such.ir", "--open"]) == 2
    assert opened == []
