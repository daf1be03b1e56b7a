"""Which rules there are, also those of other packages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from irtool.linting.registry import RegistryError, all_rules, own_rules

PACKAGE = '''
from irtool.linting.rule import DumpRule

class OneMore(DumpRule):
    """A rule of another package."""
    code = "{code}"
    name = "one-more"
    severity = "info"
    summary = "There is a dump"
    explanation = "It is there."
    bad = good = "a dump"

    def check(self, facts):
        yield self.finding("a dump of another package's rule")
'''


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    all_rules.cache_clear()
    yield
    all_rules.cache_clear()


def installed(folder: Path, name: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a package with an entry point onto the path, as pip would."""
    (folder / f"{name}.py").write_text(PACKAGE.format(code=code))
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[irtool.lint_rules]\n{name} = {name}\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)


def test_finding_the_rules_imports_none_of_them() -> None:
    before = {name for name in sys.modules if name.startswith("irtool.linting.rules.")}
    assert own_rules()
    after = {name for name in sys.modules if name.startswith("irtool.linting.rules.")}
    assert after == before


def test_another_package_adds_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "acme_rules", "ACME001", monkeypatch)
    entry = all_rules()["ACME001"]
    assert entry.origin == "acme_rules"
    assert entry.text().origin == "acme_rules"
    assert list(all_rules())[-1] == "ACME001"


def test_a_code_that_is_taken_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "clash_rules", "SYN001", monkeypatch)
    with pytest.raises(RegistryError, match="SYN001 is a rule of irtool already"):
        all_rules()


def test_a_package_that_cannot_be_imported_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, "broken_rules", "BRK001", monkeypatch)
    (tmp_path / "broken_rules.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(RegistryError, match="broken_rules: its rules cannot be loaded"):
        all_rules()


def test_a_rule_without_a_name_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "bare_rules", "BAR001", monkeypatch)
    text = PACKAGE.format(code="BAR001").replace('    name = "one-more"\n', "")
    (tmp_path / "bare_rules.py").write_text(text)
    with pytest.raises(RegistryError, match="OneMore has no name"):
        all_rules()
