"""How long launch order and liveness take: milliseconds for a thousand nodes.

    python benchmarks/launch_order.py [DUMP ...]

Reading and inlining are not counted; each figure is the best of several.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import irtool
from irtool.cluster.launch_order import launches
from irtool.cluster.liveness import liveness
from irtool.cluster.memory import memory

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
DEFAULT = (
    "gpt/20_validate_0080.ir",
    "memory/without_recompute.ir.xz",
    "pipeline_8_micro/rank_3/20_validate_0080.ir.xz",
    "execution_order/transformer_adam.ir.xz",
)
ROUNDS = 7


def best(work: Callable[[], object]) -> float:
    """Milliseconds of the quickest round; the first one also decodes the statements."""
    found: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        found.append(1000 * (time.perf_counter() - start))
    return min(found)


def main(paths: list[str]) -> None:
    """Print a line a dump."""
    print(f"{'nodes':>7} {'order':>8} {'liveness':>9} {'memory':>8}  ms for 1,000 nodes")
    for path in paths or [str(SAMPLES / name) for name in DEFAULT]:
        dump = irtool.load(path)
        whole = dump.whole()
        scale = 1000 / max(1, len(whole))
        order = best(lambda whole=whole: launches(whole)) * scale
        live = best(lambda whole=whole: liveness(whole)) * scale
        all_of_it = best(lambda dump=dump, whole=whole: memory(dump, whole=whole)) * scale
        print(f"{len(whole):7,} {order:8.2f} {live:9.2f} {all_of_it:8.2f}  {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
