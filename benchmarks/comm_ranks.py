"""How the time of `irtool comm` grows with ranks, where most of them are equal.

Makes run folders of 8 to 1,024 ranks from the four of samples/pipeline_2_stages by moving their
ranks, and prints CPU seconds: python benchmarks/comm_ranks.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from irtool.cli.comm_inputs import Asked, read_cluster  # noqa: E402  # needs the path above
from irtool.cluster.groups import group_report  # noqa: E402
from irtool.cluster.hang import play  # noqa: E402
from irtool.cluster.machine import default_machine  # noqa: E402
from tests.cluster.rank_dumps import Movable  # noqa: E402

SAMPLE = ROOT / "samples" / "pipeline_2_stages"
NAME = "20_validate_0080.ir"


def main() -> None:
    dumps = [
        Movable((SAMPLE / f"rank_{rank}" / NAME).read_text(), rank, range(4)) for rank in range(4)
    ]
    print(
        f"{'ranks':>6} {'distinct':>8} {'MB':>6} {'read':>6} {'groups':>6} {'hang':>6}  CPU seconds"
    )
    for count in (8, 64, 256, 1024):
        with tempfile.TemporaryDirectory() as folder:
            size = 0
            for rank in range(count):
                place = Path(folder) / f"rank_{rank}"
                place.mkdir()
                text = dumps[rank % 4].moved(rank // 4 * 4, count)
                size += len(text)
                (place / NAME).write_text(text)
            measure(folder, count, size)


def measure(folder: str, count: int, size: int) -> None:
    start = time.process_time()
    read = read_cluster(Asked([folder]))
    middle = time.process_time()
    group_report(read.cluster, default_machine())
    grouped = time.process_time()
    report = play(read.cluster)
    end = time.process_time()
    assert not report.hangs
    times = (middle - start, grouped - middle, end - grouped)
    distinct = len(read.cluster.classes)
    texts = " ".join(f"{one:6.2f}" for one in times)
    print(f"{count:6,} {distinct:8,} {size / 1e6:6.1f} {texts}")


if __name__ == "__main__":
    main()
