"""What users install: the wheel works elsewhere, without the repository beside it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from irtool.ir.version import VERSION

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
BIN = "Scripts" if os.name == "nt" else "bin"

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path, **more: str) -> subprocess.CompletedProcess[bytes]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUTF8": "1", **more},
        capture_output=True,
        check=False,
    )


def checked(*command: str | Path, cwd: Path, **more: str) -> bytes:
    done = run(*command, cwd=cwd, **more)
    assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built with the backend that pyproject.toml names."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("no pip in this environment to build the wheel with")
    folder = tmp_path_factory.mktemp("wheel")
    backend = {}
    if importlib.util.find_spec("hatchling") is None:
        target = tmp_path_factory.mktemp("backend")
        command = (sys.executable, "-m", "pip", "install", "-q", "--target", target, "hatchling")
        if run(*command, cwd=folder).returncode:
            pytest.skip("hatchling is neither installed nor to be had (offline): pip install it")
        backend = {"PYTHONPATH": str(target)}
    checked(
        sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
        "-w", folder, ROOT, cwd=folder, **backend,
    )  # fmt: skip
    (made,) = folder.glob("irtool-*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel, and what it needs from the environment of the tests."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder, with_pip=False)
    python = folder / BIN / "python"
    checked(
        sys.executable, "-m", "pip", "--python", python,
        "install", "-q", "--no-deps", "--no-index", wheel, cwd=folder,
    )  # fmt: skip
    own = checked(
        python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder
    )
    needed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    # Lines of a .pth file come last on the path, so that the wheel is found first.
    Path(own.decode().strip(), "dependencies.pth").write_text("\n".join(sorted(needed)) + "\n")
    return folder


def test_the_build_needs_nothing_but_what_it_requires() -> None:
    """Frontends build where irtool's own dependencies aren't installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    required = project_names(project["build-system"]["requires"])
    absent = project_names(project["project"]["dependencies"]) - required
    assert {"msgspec", "numpy"} <= absent
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({sorted(absent)}))\n"
        "from irtool.operators.table import parsed_table\n"
        "assert len(parsed_table()) > 100_000\n"
    )
    checked(sys.executable, "-c", code, cwd=ROOT)


def project_names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w-]", one)[0] for one in requirements}


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_grammars_are_in_the_wheel(wheel: Path) -> None:
    expected = {f"irtool/grammars/{path.name}" for path in (ROOT / "grammars").glob("*.lark")}
    assert "irtool/grammars/dump.lark" in expected
    assert expected <= names_in(wheel)


def test_every_file_of_the_package_is_in_the_wheel(wheel: Path) -> None:
    files = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "irtool").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "irtool/py.typed" in files
    assert files - names_in(wheel) == set()


def test_what_commands_would_have_to_make_comes_with_the_wheel(
    installed: Path, tmp_path: Path
) -> None:
    code = (
        "from irtool.operators.table import operator_of\n"
        "from irtool.syntax.grammar_parser import parser_of\n"
        "assert operator_of('MatMul').rule\n"
        "for name in ('dump', 'query', 'rule'):\n"
        "    parser_of(f'{name}.lark')\n"
    )
    python, cache = installed / BIN / "python", tmp_path / "cache"
    checked(python, "-c", code, cwd=installed, IRTOOL_CACHE_DIR=str(cache))
    assert not cache.exists()


def test_nothing_but_the_package_is_in_the_wheel(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in names_in(wheel)}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"irtool"}


def test_the_licence_is_in_the_wheel(wheel: Path) -> None:
    assert any(name.endswith("/licenses/LICENSE") for name in names_in(wheel))


def test_the_installed_package_is_the_wheels(installed: Path) -> None:
    code = "import irtool; print(irtool.__file__)"
    found = checked(installed / BIN / "python", "-c", code, cwd=installed)
    assert Path(found.decode().strip()).is_relative_to(installed)


def test_the_installed_library_reads_a_dump(installed: Path, samples: Path) -> None:
    code = (
        "import irtool, sys\n"
        "dump = irtool.load(sys.argv[1])\n"
        "assert dump.problems == ()\n"
        "print(*[node.op for node in dump.nodes()])\n"
    )
    sample = samples / "search_page_step_parallel_begin.ir"
    printed = checked(installed / BIN / "python", "-c", code, sample, cwd=installed)
    assert printed.decode().split() == ["Flatten", "Load", "MatMul", "Load", "BiasAdd", "ReLU"]


def test_the_installed_command_parses_a_sample(installed: Path, samples: Path) -> None:
    sample = samples / "search_page_step_parallel_begin.ir"
    printed = checked(installed / BIN / "irtool", "parse", sample, cwd=installed)
    assert b"MatMul" in printed


def test_the_installed_command_prints_a_sample_back(installed: Path, samples: Path) -> None:
    sample = samples / "gpt" / "step_parallel_begin_0018.ir"
    command = (installed / BIN / "irtool", "parse", sample, "--format", "ir")
    assert checked(*command, cwd=installed) == sample.read_bytes()


# -- the release -----------------------------------------------------------------------------------


def test_one_version_stands_everywhere() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^version = "([^"]+)"', text, re.MULTILINE)
    assert found is not None
    version = found[1]
    assert version == VERSION
    places = {
        "CITATION.cff": f"version: {version}\n",
        "CHANGELOG.md": f"## [{version}]",
        "docs/ci.md": f"rev: v{version}\n",
        "editors/vscode/package.json": f'"version": "{version}"',
        "editors/vscode/package-lock.json": f'"version": "{version}"',
    }
    stale = [
        path for path, words in places.items() if words not in (ROOT / path).read_text("utf-8")
    ]
    assert stale == []
    cited = re.search(r"^date-released: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert f"## [{version}] - {cited[1]}\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_notes_of_a_release_are_the_changelogs_section() -> None:
    """The release workflow's own line of awk."""
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    script = re.search(r"awk -v head=\"([^\"]*)\" '([^']*)'", workflow)
    assert script is not None
    if shutil.which("awk") is None:
        pytest.skip("no awk here")
    head = script[1].replace("${TAG#v}", VERSION)
    words = ["awk", "-v", f"head={head}", script[2], "CHANGELOG.md"]
    notes = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "### Reading" in notes
    assert "## [" not in notes
    assert len(notes.splitlines()) < 80, "short enough to be read"


def test_workflows_and_forms_are_yaml() -> None:
    yaml = pytest.importorskip("yaml")
    folder = ROOT / ".github"
    for path in [*folder.rglob("*.yml"), ROOT / "action.yml", ROOT / "CITATION.cff"]:
        assert yaml.safe_load(path.read_text(encoding="utf-8")), path
