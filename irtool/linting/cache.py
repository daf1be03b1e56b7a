"""The cache: what rules said of dumps, by their content, the settings, and irtool itself."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import msgspec

from irtool.ir.finding import Finding, Silenced
from irtool.linting.engine import Linted

_FILE = "lint.sqlite"
_FORM = 2
"""Of what is stored; a new one where that changes."""
_NUMBER = "\0"
"""Before the number of a file, in the place of its name."""
_KEEP_SECONDS = 30 * 24 * 3600
_FRESH_SECONDS = 24 * 3600


class Cache:
    """Results by key, in one file; where that cannot be used, there is nothing in it."""

    def __init__(self, folder: str | None) -> None:
        self._connection: sqlite3.Connection | None = None
        if folder is not None:
            try:
                os.makedirs(folder, exist_ok=True)
                self._connection = _opened(os.path.join(folder, _FILE))
            except (OSError, sqlite3.Error):
                self._connection = None
        self._new: dict[bytes, bytes] = {}
        self._old: list[bytes] = []

    def get(self, key: bytes, files: Sequence[str]) -> Linted | None:
        """What is known of the dumps that ``key`` stands for, which now stand at ``files``."""
        if self._connection is None:
            return None
        try:
            row = self._connection.execute(
                "SELECT value, used FROM results WHERE key = ?", (key,)
            ).fetchone()
            if row is None:
                return None
            if row[1] < time.time() - _FRESH_SECONDS:
                self._old.append(key)
            return decoded(json.loads(row[0]), files)
        except (sqlite3.Error, msgspec.ValidationError, ValueError, TypeError, LookupError):
            return None

    def put(self, key: bytes, linted: Linted, files: Sequence[str]) -> None:
        """Remember what came of some dumps."""
        if self._connection is not None:
            text = json.dumps(encoded(linted, files), separators=(",", ":"))
            self._new[key] = text.encode()

    def close(self) -> None:
        """Write what is new, forget what nobody asked for in a month."""
        if self._connection is None:
            return
        now = time.time()
        try:
            with self._connection as write:
                write.executemany(
                    "INSERT OR REPLACE INTO results VALUES (?, ?, ?)",
                    ((key, value, now) for key, value in self._new.items()),
                )
                write.executemany(
                    "UPDATE results SET used = ? WHERE key = ?", ((now, key) for key in self._old)
                )
                if self._new:
                    write.execute("DELETE FROM results WHERE used < ?", (now - _KEEP_SECONDS,))
        except sqlite3.Error:
            pass  # another irtool is writing: it is a cache, nothing is lost
        self._connection.close()
        self._connection = None


def _opened(path: str) -> sqlite3.Connection:
    try:
        return _prepared(path)
    except sqlite3.DatabaseError:
        os.unlink(path)  # damaged: begin anew
        return _prepared(path)


def _prepared(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=2)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS results (key BLOB PRIMARY KEY, value BLOB, used REAL)"
    )
    return connection


# -- as JSON -----------------------------------------------------------------------------------


def encoded(linted: Linted, files: Sequence[str]) -> dict[str, object]:
    """Plain data; files are numbers, since the same dumps may stand elsewhere next time."""
    numbers = {path: f"{_NUMBER}{number}" for number, path in enumerate(files)}
    findings = [
        _refiled(finding, lambda path: numbers.get(path, path)) for finding in linted.findings
    ]
    return {
        "form": _FORM,
        "findings": cast("object", msgspec.to_builtins(findings)),
        "silenced": [[rule.code, rule.need, rule.reason] for rule in linted.silenced],
    }


def decoded(data: Any, files: Sequence[str]) -> Linted | None:
    """What :func:`encoded` made; None where it is of another form.

    Args:
        data: what was kept, read from JSON.
        files: the dumps where they stand now, in the order in which they were encoded.
    """
    if data["form"] != _FORM:
        return None

    def path_of(text: str) -> str:
        return files[int(text[len(_NUMBER) :])] if text.startswith(_NUMBER) else text

    findings = msgspec.convert(data["findings"], list[Finding], strict=True)
    silenced = [Silenced(*item) for item in data["silenced"]]
    return Linted([_refiled(finding, path_of) for finding in findings], silenced)


def _refiled(finding: Finding, name_of: Callable[[str], str]) -> Finding:
    """A finding whose dumps go by other names."""
    return replace(
        finding,
        file=name_of(finding.file),
        related=tuple(replace(place, file=name_of(place.file)) for place in finding.related),
    )
