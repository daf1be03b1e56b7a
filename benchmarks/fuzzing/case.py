"""One case: files and a command over them. It can be written to a folder and read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

READ = "read"
"""Name of the case that reads a dump through the library and prints it back."""
_CASE = "fuzz.json"


@dataclass(frozen=True, slots=True)
class Case:
    """What to run.

    Attributes:
        command: the name it is counted under, such as ``plan recursive``; :data:`READ` for none.
        mutator: the name of the mutation it is counted under.
        argv: what stands behind ``irtool``; paths are relative to the case's folder.
        files: contents by path; all folders are made.
        mutated: paths of the files that were mutated.
    """

    command: str
    mutator: str
    argv: tuple[str, ...]
    files: Mapping[str, bytes]
    mutated: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(map(len, self.files.values()))

    @property
    def format(self) -> str:
        """What ``--format`` asks for, or ``""``."""
        for flag, value in zip(self.argv, self.argv[1:], strict=False):
            if flag in ("-f", "--format"):
                return value
        return ""

    def write(self, folder: Path) -> None:
        """Write the files only."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def keep(self, folder: Path, **more: object) -> None:
        """Write the files and how to run them; ``more`` stands beside it for people."""
        self.write(folder)
        told = {
            "command": self.command,
            "mutator": self.mutator,
            "argv": self.argv,
            "files": list(self.files),
            "mutated": self.mutated,
            **more,
        }
        (folder / _CASE).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def kept_cases(folder: Path) -> list[Path]:
    """Folders of the cases that were kept under a folder."""
    return sorted(path.parent for path in folder.glob(f"*/{_CASE}"))


def read_case(folder: Path) -> Case:
    """A case that was kept."""
    told = json.loads((folder / _CASE).read_text(encoding="utf-8"))
    return Case(
        told["command"],
        told["mutator"],
        tuple(told["argv"]),
        {name: (folder / name).read_bytes() for name in told["files"]},
        tuple(told["mutated"]),
    )
