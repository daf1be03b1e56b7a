"""Dumps to read: the large corpus where there is one, else statements of a sample repeated."""

from __future__ import annotations

import lzma
import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_NUMBERED = re.compile(r"(?<=CNode_)[0-9]+|(?<=unique_id: \")[0-9]+")
_LAYER = re.compile(r"(?<=blocks\.)[0-9]+")
_REPEATED = re.compile(r"(?<=%)[0-9]+|(?<=CNode_)[0-9]+")


def corpus() -> Path | None:
    """The folder of real dumps: $IRTOOL_CORPUS, or shared/corpus beside the checkout."""
    given = os.environ.get("IRTOOL_CORPUS")
    folder = Path(given) if given else ROOT.parent / "shared" / "corpus"
    return folder if (folder / "large").is_dir() else None


def needed_corpus() -> Path:
    """The folder of real dumps; without it a script that reads nothing else ends in one line."""
    folder = corpus()
    if folder is None:
        raise SystemExit("needs the corpus: set IRTOOL_CORPUS to its folder, or name what to read")
    return folder


def large() -> tuple[str, dict[str, bytes]]:
    """Where the large dumps come from, and their bytes by name."""
    folder = corpus()
    if folder is not None:
        found = sorted((folder / "large").glob("*.ir.xz"))
        named = {"begin" if "begin" in path.name else "validate": path for path in found}
        return "dumps of a 24-layer GPT (MindSpore 2.7.0)", {
            name: lzma.decompress(path.read_bytes()) for name, path in named.items()
        }
    samples = sorted((ROOT / "samples").rglob("*.ir"), key=lambda path: path.stat().st_size)
    made: dict[str, bytes] = {}
    for kind in ("validate", "begin"):
        path = next((path for path in reversed(samples) if kind in path.name), samples[-1])
        made[kind] = repeated(path.read_text(encoding="utf-8", errors="surrogateescape"))
    return "NO CORPUS: a sample's statements repeated, which flatters", made


def repeated(text: str, size: int = 7_000_000) -> bytes:
    """A dump of about ``size`` bytes: the last graph's statements over and over, renumbered."""
    start = text.rindex("\n  %", 0, text.rindex("\n  Return(")) if "\n  Return(" in text else -1
    if start < 0:
        raise SystemExit("the sample has no statements")
    head = text.rindex("\nsubgraph @", 0, start)
    first = text.index("\n  %", head)
    last = text.index("\n  Return(", first)
    body, pieces = text[first:last], [text[:first]]
    for turn in range(max(size // len(body), 1)):
        offset = turn * 100_000
        pieces.append(_REPEATED.sub(lambda found, by=offset: str(int(found[0]) + by), body))
    pieces.append(text[last:])
    return "".join(pieces).encode("utf-8", "surrogateescape")


def renumbered(data: bytes) -> bytes:
    """The same dump as another compilation would number it: other ids, other layers."""
    text = data.decode("utf-8", "surrogateescape")
    text = _NUMBERED.sub(lambda found: str(int(found[0]) + 777), text)
    text = _LAYER.sub(lambda found: str(int(found[0]) + 24), text)
    return text.encode("utf-8", "surrogateescape")


def folder_files() -> list[Path]:
    """All dumps of ``verdicts/``: many small files with little in common."""
    folder = corpus()
    return sorted((folder / "verdicts").glob("*/*.ir")) if folder else []
