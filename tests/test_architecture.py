"""What docs/architecture.md names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MODULES = list((ROOT / "irtool").rglob("*.py"))
NAMED = sorted(set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py|[a-z_/]+/)`", TEXT)))


def test_it_names_files() -> None:
    assert len(NAMED) > 40


@pytest.mark.parametrize("name", NAMED)
def test_a_file_that_is_named_is_there(name: str) -> None:
    """Below the package or the root; a name without its folder is one of the package."""
    if name.endswith("/"):
        assert (ROOT / name).is_dir() or (ROOT / "irtool" / name).is_dir()
        return
    assert (ROOT / name).is_file() or any(path.as_posix().endswith(f"/{name}") for path in MODULES)


def test_every_room_is_described() -> None:
    rooms = {path.parent.name for path in (ROOT / "irtool").glob("*/*.py")}
    assert rooms == set(re.findall(r"^\| `([a-z]+)/` \|", TEXT, re.MULTILINE))


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#:]+)\)", TEXT))
def test_links_lead_to_files(target: str) -> None:
    assert (ROOT / "docs" / target).exists()
