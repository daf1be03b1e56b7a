"""Times and sizes of pictures, and whether every dump of the corpus becomes one.

python benchmarks/viz.py                     # dumps named below, one line each
python benchmarks/viz.py DUMP [DUMP ...]     # these instead
python benchmarks/viz.py --corpus FOLDER     # all dumps below FOLDER to dot, every 50th part to svg
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import irtool
from irtool.report.json import json_text
from irtool.report.model_explorer.graph import model_explorer_graph
from irtool.report.picture.build import Wishes, picture
from irtool.report.picture.dot import dot_text
from irtool.report.picture.material import material
from irtool.report.picture.render import RenderError, rendered

ROOT = Path(__file__).resolve().parents[1]
Result = TypeVar("Result")


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def measure(path: Path, most: int = 300) -> None:
    """One line: seconds of processor time for each step, boxes, and kilobytes."""
    dump, reading = timed(lambda: irtool.load(path))
    whole, inlining = timed(dump.whole)
    drawn, finding = timed(lambda: material(whole, title=path.name))
    made, folding = timed(lambda: picture(drawn, Wishes(most)))
    text, writing = timed(lambda: dot_text(made))
    start = time.perf_counter()
    svg = rendered(made, "svg")
    laying = time.perf_counter() - start
    explorer, exporting = timed(lambda: json_text(model_explorer_graph(drawn, path.name)))
    seconds = (reading, inlining, finding, folding, writing, laying, exporting)
    sizes = (len(text), len(svg), len(explorer))
    print(
        f"{path.parent.name + '/' + path.name:60.60} {len(whole):>7,} {len(made.boxes):>6,} "
        + " ".join(f"{each:7.2f}" for each in seconds)
        + " ".join(f"{each // 1000:>8,}" for each in sizes),
        flush=True,
    )


def measure_all(paths: list[Path], most: int = 300) -> None:
    titles = ("read", "whole", "find", "fold", "write", "layout", "export")
    sizes = ("dot kB", "svg kB", "json kB")
    print(
        f"{'seconds':60} {'nodes':>7} {'boxes':>6} "
        + " ".join(f"{each:>7}" for each in titles)
        + " ".join(f"{each:>8}" for each in sizes)
    )
    for path in paths:
        measure(path, most)


def corpus(folder: Path) -> int:
    """Every dump to dot, every n-th to svg so that there are about 50; the number of failures."""
    paths = sorted(path for path in folder.rglob("*.ir*") if path.is_file())
    step = max(1, len(paths) // 50)
    failures = svgs = 0
    largest = (0.0, "")
    for number, path in enumerate(paths):
        start = time.perf_counter()
        try:
            made = picture(material(irtool.load(path).whole(), title=path.name))
            assert len(made.boxes) <= 300
            assert dot_text(made).startswith("digraph")
            if number % step == 0:
                svgs += bool(rendered(made, "svg"))
        except (Exception, RenderError) as error:  # whatever it is, it is a failure to count
            failures += 1
            print(f"{path}: {type(error).__name__}: {error}")
        largest = max(largest, (time.perf_counter() - start, str(path)))
    print(f"{len(paths)} dumps, {svgs} of them also to svg, {failures} failures")
    print(f"longest: {largest[0]:.2f} s, {largest[1]}")
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dumps", nargs="*", type=Path)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--max-nodes", type=int, default=300)
    options = parser.parse_args()
    if options.corpus is not None:
        return 1 if corpus(options.corpus) else 0
    measure_all(
        options.dumps or sorted((ROOT / "samples").rglob("*validate*.ir")), options.max_nodes
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
