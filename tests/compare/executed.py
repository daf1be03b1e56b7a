"""Runs that MindSpore really executed, from the archives beside the tests, and how two compare."""

from __future__ import annotations

import tarfile
from pathlib import Path

from irtool.compare.runs.comparison import RunComparison, compare_runs
from irtool.compare.runs.sides import side_of_run
from irtool.compare.runs.units import Settings
from irtool.syntax.run import load_run

DATA = Path(__file__).parent / "data"


def unpack(folder: Path, *archives: Path, begins: tuple[str, ...] = ("",)) -> Path:
    """Put files of archives into a folder, which is returned.

    Args:
        folder: where they go.
        archives: ``.tar.xz`` files.
        begins: what the names of the files begin with that are wanted.
    """
    for path in archives:
        with tarfile.open(path) as archive:
            for member in archive.getmembers():
                stream = archive.extractfile(member) if member.isfile() else None
                if stream is not None and member.name.startswith(begins):
                    target = folder / member.name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(stream.read())
    return folder


def compared(left: Path, right: Path) -> RunComparison:
    """Two runs, compared as ``irtool diff`` does without options."""
    sides = [side_of_run(load_run(str(path)), None) for path in (left, right)]
    return compare_runs(sides[0], sides[1], Settings())
