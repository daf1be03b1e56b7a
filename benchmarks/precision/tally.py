"""What the programs share that judge drawn pairs of runs: arguments, the pairs, the table."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

Entry = dict[str, Any]
"""What ``truth.json`` says of one pair."""


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Folders of drawn runs, and which of their pairs."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("out", nargs="+", help="folders with a truth.json")
    parser.add_argument("--only", default="", metavar="PATTERN", help="of names of pairs")
    parser.add_argument("--statistics", action="store_true", help="without tensors' values")
    return parser


def pairs(asked: argparse.Namespace) -> Iterator[tuple[str, str, Entry]]:
    """Folder, name and truth of each pair; without what was changed and alters no bit."""
    for out in asked.out:
        with open(os.path.join(out, "truth.json"), encoding="utf-8") as stream:
            truth: dict[str, Entry] = json.load(stream)
        for name, entry in truth.items():
            is_fault = entry.get("kind", "fault") != "healthy"
            changes_nothing = is_fault and not entry.get("enters", True)
            if re.search(asked.only, name) and not changes_nothing:
                yield out, name, entry


class Tally:
    """How often each word was said of each group of pairs."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, ...], Counter[str]] = {}

    def add(self, word: str, *group: str) -> None:
        self.counts.setdefault(group, Counter())[word] += 1

    def show(self) -> None:
        for group, counts in sorted(self.counts.items()):
            words = ", ".join(f"{word} {count}" for word, count in counts.most_common())
            total = sum(counts.values())
            print(f"{' '.join(f'{part:8}' for part in group)} {total:4}: {words}")
