"""The user's Python files: where a dump's paths lead to here, and their lines."""

from __future__ import annotations

import os
from collections.abc import Sequence

from irtool.syntax import file_facts
from irtool.syntax.reading import read_text

_MOST_BYTES = 8 << 20


class SourceFiles:
    """Finds Python files by the paths that dumps print.

    A path is taken as it is, with its beginning replaced as ``mapping`` says, or by its longest
    end that is a file below the current folder (the dump was made elsewhere).
    """

    def __init__(self, mapping: Sequence[tuple[str, str]] = (), folder: str = "") -> None:
        self._mapping = mapping
        self._folder = folder or os.getcwd()
        self._found: dict[str, str | None] = {}
        self._lines: dict[str, list[str]] = {}

    def find(self, path: str) -> str | None:
        """The file here that a dump's path means; relative to the current folder if below it."""
        if path not in self._found:
            self._found[path] = self._search(path)
        return self._found[path]

    def lines(self, path: str) -> list[str]:
        """The lines of a file that :meth:`find` gave; none where it cannot be read."""
        if path not in self._lines:
            try:
                full = os.path.join(self._folder, path)
                text = read_text(full, _MOST_BYTES, errors="surrogateescape")
                self._lines[path] = text.splitlines()
            except OSError:
                self._lines[path] = []
        return self._lines[path]

    def _search(self, path: str) -> str | None:
        plain = path.replace("\\", "/")
        for old, new in self._mapping:
            prefix = old.rstrip("/")
            if plain == prefix or plain.startswith(f"{prefix}/") or not prefix:
                mapped = os.path.join(new, plain[len(prefix) :].lstrip("/"))
                if self._is_file(mapped):
                    return self._relative(mapped)
        if self._is_file(plain):
            return self._relative(plain)
        parts = [part for part in plain.split("/") if part not in ("", ".", "..")]
        for start in range(1 if plain.startswith("/") else 0, len(parts)):
            ending = os.path.join(*parts[start:])
            if self._is_file(ending):
                return self._relative(ending)
        return None

    def _is_file(self, path: str) -> bool:
        try:
            return file_facts.is_file(os.path.join(self._folder, path))
        except ValueError:  # a NUL in it
            return False

    def _relative(self, path: str) -> str:
        full = file_facts.real_path(os.path.join(self._folder, path))
        root = file_facts.real_path(self._folder)
        if full.startswith(root + os.sep):
            return os.path.relpath(full, root)
        return full
