"""What irtool needs: bounds that are true, and a clear word where an extra is missing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOWEST = (ROOT / ".ci" / "lowest.txt").read_text(encoding="utf-8")
CI = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*>=\s*([0-9.]+)")


def bounds() -> dict[str, str]:
    """The lower bound of every distribution that pyproject.toml names."""
    listed = list(PROJECT["dependencies"])
    for extra in PROJECT["optional-dependencies"].values():
        listed += extra
    found: dict[str, str] = {}
    for requirement in listed:
        matched = _REQUIREMENT.match(requirement)
        assert matched is not None, f"{requirement} has no lower bound"
        assert found.setdefault(matched[1].lower(), matched[2]) == matched[2], requirement
    return found


def numbers(version: str) -> tuple[int, ...]:
    """A version without its last zeros: 1.26 and 1.26.0 are the same."""
    parts = [int(part) for part in version.split(".")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def test_the_lowest_versions_are_the_bounds() -> None:
    lowest = dict(re.findall(r"^([\w.-]+)==([0-9.]+)$", LOWEST, re.MULTILINE))
    assert {name: numbers(version) for name, version in lowest.items()} == {
        name: numbers(version) for name, version in bounds().items()
    }


def test_the_lowest_versions_are_tried_on_the_lowest_python() -> None:
    lowest = PROJECT["requires-python"].removeprefix(">=")
    job = CI[CI.index("  lowest:\n") :]
    assert f'python-version: "{lowest}"' in job
    assert "-c .ci/lowest.txt" in job


def test_every_python_that_is_named_is_tried() -> None:
    named = [
        version
        for kind in PROJECT["classifiers"]
        for version in re.findall(r"^Programming Language :: Python :: (3\.\d+)$", kind)
    ]
    tried = re.search(r"python: \[(.*)\]", CI)
    assert tried is not None
    assert re.findall(r'"([\d.]+)"', tried[1]) == named
    assert PROJECT["requires-python"] == f">={named[0]}"


# -- with the base dependencies only -------------------------------------------------------------

_MARKER = re.compile(r"extra\s*==")


def needed() -> set[str]:
    """The distributions that ``pip install irtool`` brings, as far as they are installed here."""
    wanted = [re.split(r"[^A-Za-z0-9._-]", item)[0] for item in PROJECT["dependencies"]]
    found: set[str] = set()
    while wanted:
        name = re.sub(r"[-_.]+", "-", wanted.pop()).lower()
        if name in found:
            continue
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # needed elsewhere: on Windows, or on an older Python
        found.add(name)
        wanted += [
            re.split(r"[^A-Za-z0-9._-]", item)[0] for item in requires if not _MARKER.search(item)
        ]
    return found


def packages() -> dict[str, set[str]]:
    """Distributions by the packages they bring; Python 3.10 knows those that list them only."""
    brought = {name: set(by) for name, by in metadata.packages_distributions().items()}
    for one in metadata.distributions():
        for file in one.files or ():
            if len(file.parts) == 2 and file.parts[1] == "__init__.py":
                brought.setdefault(file.parts[0], set()).add(one.metadata["Name"])
    return brought


def base_only(code: str) -> subprocess.CompletedProcess[str]:
    """Run lines in a process where only what the base dependencies bring can be imported."""
    kept = needed()
    brought = packages()
    hidden = {
        package
        for package, names in brought.items()
        if package != "irtool"
        and not {re.sub(r"[-_.]+", "-", name).lower() for name in names} & kept
    }
    finder = (
        "import sys\n"
        f"hidden = {hidden!r}\n"
        "class Hides:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in hidden:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Hides())\n"
    )
    return subprocess.run(
        [sys.executable, "-c", finder + code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_is_hidden_is_what_the_base_does_not_bring() -> None:
    assert {"click", "rich", "lark", "numpy", "orjson"} <= needed()
    assert not {"pyarrow", "pytest", "distributed"} & needed()
    assert base_only("import numpy, lark, click, irtool").returncode == 0
    assert "No module named 'pytest'" in base_only("import pytest").stderr


def test_a_line_that_says_too_little_fails_with_the_click_that_is_there() -> None:
    # A newer click under a layer made for an older one has made every command print the version
    # and exit with 0; between click and irtool there is no layer.
    assert not {"typer", "pydantic"} & needed()
    assert base_only("from irtool.cli.main import main; sys.exit(main(['parse']))").returncode == 2


def test_flags_that_nobody_gave_are_not_given_with_the_click_that_is_there() -> None:
    # click 8.2.2 made them False, which went before what files and dumps say.
    ran = base_only(
        "from irtool.cli.main import main; sys.exit(main(['check', 'samples/gpt', '-f', 'json']))"
    )
    assert ran.returncode == 0
    assert "option" not in json.loads(ran.stdout)["context"]["origins"].values()


def test_readmes_python_lines_run_after_its_install_line() -> None:
    found = re.search(r"```python\n([\s\S]*?)```", README)
    assert found is not None
    ran = base_only(found[1])
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "import irtool; irtool.load('samples/fragment_2.0.ir').to_arrow()",
            "to_arrow() needs pyarrow: pip install 'irtool[arrow]'",
        ),
        (
            "from irtool.cli.main import main;"
            "sys.exit(main(['parse', 'samples/fragment_2.0.ir', '-f', 'parquet']))",
            "hint: pip install 'irtool[arrow]'",
        ),
        (
            "from irtool.cli.main import main; sys.exit(main(['lsp']))",
            "hint: python -m pip install 'irtool[lsp]'",
        ),
        (
            "from irtool.cli.main import main;"
            "sys.exit(main(['diff', 'samples/precision/reference', 'samples/precision/tanh_gelu',"
            " '--scheduler', 'tcp://localhost:1']))",
            "hint: pip install 'irtool[dask]'",
        ),
        (
            "from irtool.compare.losses.read import _read_events; _read_events('none')",
            "event files need TensorBoard: pip install 'irtool[tensorboard]'",
        ),
    ],
    ids=["to_arrow", "parquet", "lsp", "scheduler", "events"],
)
def test_a_missing_extra_is_named(code: str, said: str) -> None:
    ran = base_only(code)
    assert ran.returncode != 0
    assert said in ran.stderr


def test_every_extra_that_is_spoken_of_exists() -> None:
    texts = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "irtool").rglob("*.py")]
    spoken = {
        extra
        for path in texts
        for extra in re.findall(r"irtool\[([a-z]+)\]", path.read_text(encoding="utf-8"))
    }
    assert spoken
    assert spoken <= set(PROJECT["optional-dependencies"])


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="a process's own CPU time is POSIX's")
def test_help_is_quick() -> None:
    def seconds() -> float:
        with open(os.devnull, "wb") as nowhere:
            started = subprocess.Popen(
                [sys.executable, "-m", "irtool", "--help"],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=nowhere,
            )
            _, status, used = os.wait4(started.pid, 0)
            started.returncode = os.waitstatus_to_exitcode(status)
        assert started.returncode == 0
        return used.ru_utime + used.ru_stime

    # A busy machine makes some runs dearer, none cheaper.
    assert min(seconds() for _ in range(5)) < 0.3
