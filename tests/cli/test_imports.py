"""What a command imports: start-up is most of the time of a question on what was read before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BEGIN = "samples/mlp_semi_auto/step_parallel_begin_0018.ir"
LARGE = "samples/recompute_lost/rank_0/20_validate_0080.ir.xz"


def imported(folder: Path, *arguments: str) -> set[str]:
    """The modules that a command line of its own process imports; caches are in the folder."""
    code = (
        "import sys\n"
        "from irtool.cli.main import main\n"
        "main(sys.argv[1:])\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stderr.splitlines()[-1].split())


def test_a_dump_that_was_read_before_needs_no_parser(tmp_path: Path) -> None:
    assert "lark" in imported(tmp_path, "comm", "groups", LARGE)
    assert "lark" not in imported(tmp_path, "parse", LARGE)


@pytest.mark.parametrize("command", [("cost",), ("check",), ("memory",)])
def test_arrays_are_for_who_searches_or_compares(command: tuple[str, ...], tmp_path: Path) -> None:
    assert "numpy" not in imported(tmp_path, *command, BEGIN)
