"""Hold what ``irtool lint`` and ``irtool gate`` say against what was planted.

    python benchmarks/plants/judge.py FOLDER            # of compile.py: plants and healthy networks
    python benchmarks/plants/judge.py FOLDER --pairs    # of compile.py --module pairs

A plant is found if a rule of its codes speaks, and the message, scope or line matches its words.  A
healthy network is right if no rule says more than an info.  A change is told if the first finding
of the gate is of its code and words.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", action="store_true")
    options = parser.parse_args()
    judged = list(gated(options.folder) if options.pairs else linted(options.folder))
    for name, verdict, told in judged:
        print(f"{verdict:8} {name:32} {told}")
    print(dict(Counter(verdict for _, verdict, _ in judged)))


def cases(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names of what compiled, with what was planted."""
    for path in sorted(folder.glob("*.truth.json")):
        truth = json.loads(path.read_text(encoding="utf-8"))
        if truth["ended"] == "compiled":
            yield path.name.removesuffix(".truth.json"), truth


def linted(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Each network: its name, the verdict, and what was said."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for name, truth in cases(folder):
        options = tuple(truth.get("options", ()))
        if options not in found:
            found[options] = asked("lint", folder, *options)
        own = [each for each in found[options] if f"/{name}/" in each["file"]]
        grave = [each for each in own if each["severity"] != "info"]
        if not truth["codes"]:
            yield name, "clean" if not grave else "NOISE", told(grave)
            continue
        hits = [each for each in own if each["code"] in truth["codes"] and says(each, truth)]
        others = [each for each in grave if each["code"] not in truth["codes"]]
        yield (
            name,
            "found" if hits else "MISSED",
            told(hits[:1] or own) + (f"   also {told(others)}" if others else ""),
        )


def gated(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Each change: its name, whether the gate told its cause first, and what it said."""
    for name, truth in cases(folder):
        style = name.rpartition("_")[2]
        golden = next((folder / f"golden_{style}").glob("*_validate_*.ir"), None)
        new = next((folder / name).glob("*_validate_*.ir"), None)
        if golden is None or new is None:
            continue
        found = asked("gate", golden, new)
        if not truth["codes"]:
            yield name, "silent" if not found else "NOISE", told(found)
            continue
        first = found[0] if found else None
        is_cause = first is not None and first["code"] in truth["codes"] and says(first, truth)
        yield name, "cause" if is_cause else "MISSED", told(found)


def says(finding: dict[str, Any], truth: dict[str, Any]) -> bool:
    """Whether a finding says what it should."""
    source = finding["source"] or {}
    text = " ".join((finding["message"], finding["scope"] or "", str(source.get("text", ""))))
    return re.search(truth["words"], text) is not None


def told(findings: list[dict[str, Any]]) -> str:
    """The first findings, and how many more there are."""
    texts = [f"{each['code']} {each['message'][:90]}" for each in findings[:2]]
    return " | ".join(texts) + (f" (+{len(findings) - 2})" if len(findings) > 2 else "")


def asked(command: str, *paths: Path | str) -> list[dict[str, Any]]:
    """The findings of a command."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "answer.json")
        subprocess.run(
            [sys.executable, "-m", "irtool", command, *map(str, paths), "-f", "json", "-o", output],
            env={**os.environ, "PYTHONPATH": str(ROOT), "IRTOOL_CACHE_DIR": folder},
            stderr=subprocess.DEVNULL,
            check=False,
        )
        found: list[dict[str, Any]] = json.loads(Path(output).read_text("utf-8"))["findings"]
    return found


if __name__ == "__main__":
    main()
