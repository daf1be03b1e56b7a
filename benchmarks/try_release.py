"""Try what users get of a release: build the wheel, and use it in a scratch repository.

python benchmarks/try_release.py           # with uv, pipx, pre-commit and build on the PATH

The wheel is run by ``uvx`` and ``pipx run``, the hook by pre-commit (of the wheel, and of this
repository's last commit), and the steps of the Action as GitHub would run them, up to the upload.
What is not installed is said and left out; the exit status is 1 where something fails.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FINDING = "the dimension that is summed up"
"""What the scratch repository's dump is refused for."""


class Failed(Exception):
    """A step did not do what it should."""


def run(words: Sequence[str | Path], folder: Path, status: int = 0, **more: str) -> str:
    """What a command prints; it must end with the status."""
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, env={**os.environ, **more},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    output = done.stdout + done.stderr
    if done.returncode != status:
        raise Failed(f"{words[0]} ended with {done.returncode}, not {status}:\n{output[-2000:]}")
    return output


def scratch_repository(folder: Path) -> Path:
    """A repository with a dump that is refused."""
    repository = folder / "scratch"
    shutil.copytree(ROOT / "samples" / "mlp_rejected", repository / "ir")
    for words in (["init", "-q"], ["add", "."]):
        run(["git", *words], repository)
    author = ["-c", "user.name=scratch", "-c", "user.email=scratch@localhost"]
    run(["git", *author, "commit", "-qm", "dumps"], repository)
    return repository


def built_wheel(folder: Path) -> Path:
    run([sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT], folder)
    (wheel,) = folder.glob("irtool-*.whl")
    return wheel


def try_uvx(wheel: Path, repository: Path) -> None:
    output = run(["uvx", "--from", wheel, "irtool", "doctor", "ir"], repository, 1)
    _says(output, FINDING)


def try_pipx(wheel: Path, repository: Path) -> None:
    output = run(["pipx", "run", "--spec", wheel, "irtool", "doctor", "ir"], repository, 1)
    _says(output, FINDING)


def try_hook_of_wheel(wheel: Path, repository: Path) -> None:
    """The hook as it is declared, with the wheel in the place of the repository."""
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    declared = textwrap.indent(f"{hook}  additional_dependencies: [{wheel}]\n", "      ")
    config = f"repos:\n  - repo: local\n    hooks:\n{declared}"
    (repository / ".pre-commit-config.yaml").write_text(config, encoding="utf-8")
    run(["git", "add", "."], repository)
    _says(run(["pre-commit", "run", "--all-files"], repository, 1), "STR001")


def try_hook_of_repository(repository: Path) -> None:
    words = ["pre-commit", "try-repo", ROOT, "irtool-lint", "--all-files"]
    _says(run(words, repository, 1), "STR001")


def try_action(wheel: Path, repository: Path, folder: Path) -> None:
    """The shell steps of action.yml in order; its path is the wheel's."""
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    install, lint = (
        textwrap.dedent(step) for step in re.findall(r"run: \|\n((?: {8,}.*\n|\n)+)", text)
    )
    temporary = folder / "runner"
    temporary.mkdir()
    paths, summary = folder / "path", folder / "summary.md"
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
    run([*shell, install], repository, ACTION_PATH=str(wheel), RUNNER_TEMP=str(temporary),
        GITHUB_PATH=str(paths))  # fmt: skip
    path = os.pathsep.join([*paths.read_text().split(), os.environ["PATH"]])
    output = run(
        [*shell, lint], repository, 1, PATH=path, PATHS="ir", ARGS="--fail-on error",
        SARIF="irtool.sarif", GITHUB_STEP_SUMMARY=str(summary),
    )  # fmt: skip
    _says(output, "::error file=net.py,line=33,")
    _says(summary.read_text(encoding="utf-8"), "STR001")
    results = json.loads((repository / "irtool.sarif").read_text())["runs"][0]["results"]
    if not results:
        raise Failed("the SARIF file has no results")


def _says(output: str, text: str) -> None:
    if text not in output:
        raise Failed(f"{text!r} is not in the output:\n{output[-2000:]}")


def main() -> int:
    """Try everything; say what works, what fails, and what could not be tried."""
    with tempfile.TemporaryDirectory(prefix="irtool-release-") as name:
        folder = Path(name)
        wheel = built_wheel(folder)
        repository = scratch_repository(folder)
        print(f"{wheel.name}: {wheel.stat().st_size / 2**20:.1f} MiB")
        steps = {
            "uvx": lambda: try_uvx(wheel, repository),
            "pipx": lambda: try_pipx(wheel, repository),
            "action": lambda: try_action(wheel, repository, folder),
            "pre-commit, the wheel": lambda: try_hook_of_wheel(wheel, repository),
            "pre-commit, the repository": lambda: try_hook_of_repository(repository),
        }
        failed = 0
        for title, step in steps.items():
            tool = title.partition(",")[0]
            if tool != "action" and shutil.which(tool) is None:
                print(f"{title}: not tried, {tool} is not installed")
                continue
            try:
                step()
                print(f"{title}: works")
            except Failed as error:
                failed += 1
                print(f"{title}: FAILS: {error}")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
