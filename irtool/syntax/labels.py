"""Parameter names with blanks, quotes or brackets, hidden from the lexer while it reads.

Names are arbitrary text (``w "q" {x}``), so that only the spellings which the file itself declares
tell where one ends.  Each is replaced by one private-use character, and put back afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_SIMPLE = re.compile(r"(?:\[\w+\]|[^\s,()\[\]{}\"])*\Z")
_DEFINITION = re.compile(r"%para[0-9]*_(.{0,1000}?) ?: ?<")
_HEAD = re.compile(r"subgraph @[^\n(]*\((.*)\) \{")
_PLACE = re.compile(r"%?para[0-9]*_|ref_key=:?|\[Parameter\]|, name=")
_PREFIX = re.compile(r"[^\s,()]*_")
"""Words that old passes put before a name: ``copy_``, ``U3408_copy_``."""
_PRIVATE = 0xF0000
_MOST = 0x10000


class OddLabels:
    """The odd names of one dump; false if it has none."""

    def __init__(self, text: str) -> None:
        self._marks: dict[str, str] = {}
        names = {name for name in _declared(text) if not _SIMPLE.match(name)}
        if not names or any(ord(char) >= _PRIVATE for char in set(text)):
            return
        self._marks = {
            name: chr(_PRIVATE + index) for index, name in enumerate(sorted(names)[:_MOST])
        }
        self._names = {ord(mark): name for name, mark in self._marks.items()}
        self._lengths = sorted({len(name) for name in self._marks}, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._marks)

    def hide(self, record: str) -> str:
        """The record with each odd name replaced by its mark."""
        pieces: list[str] = []
        done = 0
        for place in _PLACE.finditer(record):
            if place.end() < done:
                continue
            located = self._name_at(record, place.end())
            if located is not None:
                start, name = located
                pieces += [record[done:start], self._marks[name]]
                done = start + len(name)
        return "".join(pieces) + record[done:] if pieces else record

    def _name_at(self, record: str, position: int) -> tuple[int, str] | None:
        """The longest odd name that begins at ``position`` or behind words with underscores."""
        starts = [position]
        prefix = _PREFIX.match(record, position)
        if prefix is not None:
            starts += [index + 1 for index in range(position, prefix.end()) if record[index] == "_"]
        for start in reversed(starts):
            for length in self._lengths:
                name = record[start : start + length]
                if name in self._marks:
                    return start, name
        return None

    def restore(self, text: str) -> str:
        """A text with the odd names in the places of their marks."""
        return text.translate(self._names)


def _declared(text: str) -> Iterator[str]:
    """Parameter names of the ``# Params:`` section, and labels in heads of graphs."""
    for match in _at_line_starts(text, "%para", _DEFINITION):
        yield match[1]
    for match in _at_line_starts(text, "subgraph @", _HEAD):
        for label in re.split(r", (?=%para[0-9]*_)", match[1]):
            yield label.partition("_")[2]


def _at_line_starts(text: str, prefix: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    # Searching for the prefix is many times faster than a multi-line pattern.
    position = 0 if text.startswith(prefix) else text.find(f"\n{prefix}") + 1
    while position or text.startswith(prefix):
        match = pattern.match(text, position)
        if match is not None:
            yield match
        position = text.find(f"\n{prefix}", position) + 1
        if not position:
            return
