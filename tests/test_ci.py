"""What the documents offer for CI is run as far as it can be without the CI: its shell scripts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import pytest

from irtool.linting.registry import own_rules
from irtool.linting.settings import chosen_rules, read_settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
CI = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")


@pytest.fixture
def job(tmp_path: Path, samples: Path) -> Path:
    """A job's folder with dumps in ``ir``, and irtool on its path."""
    shutil.copytree(samples / "mlp_rejected", tmp_path / "ir")
    (tmp_path / ".git").mkdir()
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "irtool"
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m irtool "$@"\n')
    tool.chmod(0o755)
    return tmp_path


def shell(job: Path, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A script as GitHub and GitLab run it: it ends at the first command that fails."""
    environment = {
        **os.environ,
        "PATH": f"{job / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "IRTOOL_CACHE_DIR": str(job / "cache"),
        **variables,
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(
        command, cwd=job, env=environment, capture_output=True, text=True, check=False
    )


def scripts(text: str) -> list[str]:
    return [textwrap.dedent(found) for found in re.findall(r"run: \|\n((?: {8,}.*\n|\n)+)", text)]


def test_the_action_writes_sarif_a_summary_and_annotations(job: Path) -> None:
    variables = {"PATHS": "ir", "ARGS": "--fail-on error", "SARIF": "irtool.sarif"}
    done = shell(job, scripts(ACTION)[-1], GITHUB_STEP_SUMMARY=str(job / "summary.md"), **variables)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("::error file=net.py,line=33,")
    assert json.loads((job / "irtool.sarif").read_text())["version"] == "2.1.0"
    assert "STR001" in (job / "summary.md").read_text()


def test_the_action_fails_with_2_where_there_are_no_dumps(job: Path) -> None:
    variables = {"PATHS": "nothing", "ARGS": "", "SARIF": "irtool.sarif"}
    done = shell(job, scripts(ACTION)[-1], GITHUB_STEP_SUMMARY=str(job / "summary.md"), **variables)
    assert done.returncode == 2


def test_the_gitlab_job_leaves_its_reports(job: Path) -> None:
    lines = re.findall(r"^    - (irtool lint .*)$", CI, re.MULTILINE)
    assert len(lines) == 3
    done = shell(job, "\n".join(lines))
    assert done.returncode == 1, done.stderr
    report = json.loads((job / "gl-code-quality-report.json").read_text())
    assert report[0]["location"]["path"] == "net.py"
    ElementTree.parse(job / "irtool-junit.xml")


def test_the_commands_of_the_page_run(job: Path) -> None:
    blocks = re.findall(r"```bash\n([\s\S]*?)```", CI)
    commands = [line for block in blocks for line in block.splitlines() if line[:6] == "irtool"]
    assert len(commands) == 4
    for command in commands:
        assert shell(job, command).returncode in (0, 1), command
    assert shell(job, commands[-1]).returncode == 0, "everything is known"


def test_the_hook_matches_dumps_only() -> None:
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    pattern = re.search(r"files: (.*)", hooks)
    assert pattern is not None
    for name, matches in {
        "a/b.ir": True,
        "b.ir.gz": True,
        "b.ir.xz": True,
        "b.iron": False,
    }.items():
        assert bool(re.search(pattern[1], name)) is matches
    assert "entry: irtool lint\n" in hooks


def test_the_settings_of_the_page_are_settings() -> None:
    page = (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")
    found = re.search(r"```toml\n([\s\S]*?)```", page)
    assert found is not None
    table = tomllib.loads(found[1])
    assert chosen_rules(read_settings(table["lint"]), own_rules())
