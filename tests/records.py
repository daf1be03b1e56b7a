"""Records of compilations by MindSpore, many in a file: one JSON object a line, compressed."""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import irtool
from irtool.ir.dump import Dump
from irtool.sharding.network.context import ParallelContext


@dataclass(frozen=True, slots=True)
class Record:
    """One compilation: what MindSpore was given, printed and decided.

    ``dumps`` are texts by kind (``begin``, ``validate``, …), without source lines and addresses;
    ``removed``: how many operators with a strategy later passes removed, merged or replaced;
    ``operators``: how many operators a search chose for.
    """

    name: str
    accepted: bool
    error: str
    log: tuple[str, ...]
    mapping: dict[str, Any]
    dumps: dict[str, str]
    removed: int = 0
    operators: int = 0

    @property
    def context(self) -> ParallelContext:
        return ParallelContext.from_mapping(self.mapping)

    def dump(self, kind: str) -> Dump:
        """A dump under a name that says what it is, as in the folder of a run."""
        names = {"begin": "step_parallel_begin_0018.ir", "validate": "20_validate_0080.ir"}
        return irtool.loads(self.dumps[kind], names.get(kind, f"{kind}.ir"))


@cache
def records(path: Path) -> dict[str, Record]:
    """The records of a file, by name."""
    found: dict[str, Record] = {}
    for line in lzma.decompress(path.read_bytes()).decode().splitlines():
        entry = json.loads(line)
        name, accepted, error = entry.pop("name"), entry.pop("accepted"), entry.pop("error")
        log, mapping = tuple(entry.pop("log")), entry.pop("context")
        counts = entry.pop("removed", 0), entry.pop("operators", 0)
        found[name] = Record(name, accepted, error, log, mapping, entry, *counts)
    return found
