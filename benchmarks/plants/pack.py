"""Pack dumps of compiled plants as evidence for tests: with neutral paths, nothing else changed.

    python benchmarks/plants/pack.py FOLDER NAME=begin NAME=validate … [--out FOLDER]

FOLDER is one of ``compile.py``; of ``NAME`` the dump of that pass is kept as ``NAME.PASS.ir.xz``
(of several ranks one each as ``NAME.RANK.PASS.ir.xz``), and what its context says as ``NAME.json``.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
from pathlib import Path

PASSES = {
    "begin": "step_parallel_begin_*.ir",
    "end": "step_parallel_end_*.ir",
    "validate": "*_validate_*.ir",
}
NEUTRAL = (
    (re.compile(r"[^\s,()]*/site-packages/"), "/usr/lib/python3.11/site-packages/"),
    (re.compile(r"(?<=In file )/(?!usr/lib/)[^\s:]*/(?=[^/\s:]+\.py)"), "net/"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+", metavar="NAME=PASS")
    parser.add_argument("--out", type=Path, default=Path("tests/linting/evidence"))
    options = parser.parse_args()
    for text in options.names:
        name, _, kind = text.partition("=")
        folder = options.folder / name
        ranks = sorted(folder.glob("rank_*"))
        for part in ranks or [folder]:
            (path,) = part.glob(PASSES[kind])
            own = f"{name}.{part.name}" if ranks else name
            packed = options.out / f"{own}.{kind}.ir.xz"
            packed.write_bytes(lzma.compress(neutral(path.read_bytes()), preset=9))
            print(f"{packed}: {packed.stat().st_size:,} bytes")
        case = json.loads(((ranks or [folder])[0] / "case.json").read_text(encoding="utf-8"))
        context = json.dumps(case["context"], indent=1, sort_keys=True)
        (options.out / f"{name}.json").write_text(context + "\n", encoding="utf-8")


def neutral(content: bytes) -> bytes:
    """A dump without paths of the machine that made it."""
    text = content.decode("utf-8", "surrogateescape")
    for regex, instead in NEUTRAL:
        text = regex.sub(instead, text)
    return text.encode("utf-8", "surrogateescape")


if __name__ == "__main__":
    main()
