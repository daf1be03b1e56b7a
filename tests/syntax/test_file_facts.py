"""Whoever asks the file system on the way to an answer asks where it is noted."""

from __future__ import annotations

import re
from pathlib import Path

import irtool

PACKAGE = Path(irtool.__file__).parent
RAW = re.compile(
    r"\bos\.path\.(?:exists|lexists|isfile|isdir|islink|getsize|getmtime|samefile)\("
    r"|\bos\.(?:stat|lstat|scandir|listdir|walk|access)\("
    r"|\bglob\.i?glob\("
    r"|(?<!file_facts)\.(?:is_file|is_dir|iterdir|rglob)\("
    r"|(?<![\w.])(?<!def )open\("
)
MAY = {
    "where it is noted": {
        "syntax/file_facts.py", "syntax/reading.py", "syntax/run/folders.py",
        "syntax/run/expanding.py", "cli/lint/work.py", "cli/parse/history.py",
    },
    "what irtool itself consists of, and what it keeps": {
        "syntax/grammar_files.py", "syntax/cache_files.py",
        "operators/table.py", "linting/registry.py", "linting/cache.py", "cli/kept_answers.py",
    },
    "memory that there is, sizes that decide who reads, outputs, and what is said of a mistake": {
        "ir/limits.py", "cli/prefetch.py", "cli/lint/linting.py", "cli/writing.py",
        "cli/opening.py", "cli/main.py", "cli/start.py", "cli/complete.py", "cli/doctor.py",
    },
}  # fmt: skip
OF_OTHER_COMMANDS = (
    "editor/", "compare/", "cli/diff/", "cli/calibrate.py", "cli/explain", "cli/gate",
    "cli/recover", "cli/rules.py", "cli/lsp.py",
)  # fmt: skip
"""Commands whose answers are not kept, and what only they use."""


def test_files_are_looked_at_where_it_is_noted() -> None:
    raw = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(RAW.search(line) for line in path.read_text(encoding="utf-8").splitlines())
    }
    ours = {name for name in raw if not name.startswith(OF_OTHER_COMMANDS)}
    assert ours <= set().union(*MAY.values())
