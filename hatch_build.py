"""Makes the tables of the grammars, and parses the table of operators, when a wheel is built."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent


class MadeBefore(BuildHookInterface[Any]):
    """Puts what every command would have to make into the wheel.

    ``dump.tables.json`` and its like stand beside the grammars, ``parsed.json`` beside the texts of
    the table of operators.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make them, and say where they go."""
        if version == "editable":
            return  # a checkout keeps them in the user's folder for caches
        made = _grammar_tables()
        self._folder = tempfile.TemporaryDirectory()
        for name in made.OPTIONS:
            text = (ROOT / "grammars" / name).read_text(encoding="utf-8")
            path = Path(self._folder.name) / made.file_of(name)
            path.write_bytes(made.tables_of(name, text, made.built(name, text)))
            build_data["force_include"][str(path)] = f"irtool/grammars/{path.name}"
        name, data = _parsed_table()
        path = Path(self._folder.name) / name
        path.write_bytes(data)
        build_data["force_include"][str(path)] = f"irtool/operators/entries/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Take the files away that the wheel now has."""
        if version != "editable":
            self._folder.cleanup()


def _grammar_tables() -> Any:
    """``irtool.syntax.grammar_tables``, without irtool, whose dependencies a build lacks."""
    path = ROOT / "irtool" / "syntax" / "grammar_tables.py"
    spec = importlib.util.spec_from_file_location("grammar_tables", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _parsed_table() -> tuple[str, bytes]:
    """Name and bytes of the parsed table; its modules need nothing but Lark."""
    sys.path.insert(0, str(ROOT))
    try:
        from irtool.operators.table import PARSED_FILE, parsed_table

        return PARSED_FILE, parsed_table()
    finally:
        sys.path.remove(str(ROOT))
