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


REFERENCES = re.compile(r":(?:mod|func|class|meth|data|attr):`~?(irtool(?:\.\w+)+)`")


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something that one of them defines."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:count])
        source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if source.is_file():
            defined = set(re.findall(r"^\s*(?:def |class )?(\w+)\b", read(source), re.MULTILINE))
            return count == len(parts) or set(parts[count:]) <= defined
    return False


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_docstrings_name_what_is_there() -> None:
    named = {name for path in MODULES for name in REFERENCES.findall(read(path))}
    assert len(named) > 50
    assert [name for name in sorted(named) if not is_there(name)] == []


@pytest.mark.parametrize("name", ["irtool.syntax.nowhere", "irtool.ir.graph.Nobody"])
def test_a_name_of_nothing_is_seen(name: str) -> None:
    assert is_there("irtool.ir.graph.Node")
    assert not is_there(name)
