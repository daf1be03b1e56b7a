"""How the time of `irtool comm` grows with ranks and with those of them that differ.

Makes run folders of 8 to 1,024 ranks from real dumps of samples/ by moving their ranks, and prints
CPU seconds: python benchmarks/comm_ranks.py

With one pipeline copied again and again there are always as many distinct ranks as it has stages;
folders made of several pipelines, side by side, have more.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from irtool.cli.inputs.cluster import Asked, read_cluster  # noqa: E402  # needs the path above
from irtool.cluster.groups import group_report  # noqa: E402
from irtool.cluster.hang import play  # noqa: E402
from irtool.cluster.machine import default_machine  # noqa: E402
from irtool.syntax.source import read_content  # noqa: E402
from tests.cluster.rank_dumps import Movable  # noqa: E402

PIPELINES = ("pipeline_2_stages", "pipeline_8_micro", "pipeline_4_stages")
"""Samples with a dump of every rank: 2, 4, and 4 distinct ones."""
RUNS = (
    (PIPELINES[:1], (8, 64, 256, 1024)),
    (PIPELINES[1:2], (1024,)),
    (PIPELINES[:2], (1024,)),
    (PIPELINES, (1024,)),
)
NAME = "20_validate_0080.ir"


def main() -> None:
    titles = ("ranks", "distinct", "MB", "lines", "read", "groups", "hang")
    print(" ".join(f"{title:>8}" for title in titles), " CPU seconds; lines: of distinct ranks")
    for samples, counts in RUNS:
        pipelines = [movable(ROOT / "samples" / sample) for sample in samples]
        for count in counts:
            with tempfile.TemporaryDirectory() as folder:
                size = write(Path(folder), pipelines, count)
                measure(folder, size, ", ".join(samples))


def movable(sample: Path) -> list[Movable]:
    """The dumps of all ranks of a sample."""
    folders = sorted(sample.glob("rank_*"))
    texts = [read_content(str(next(folder.glob("*validate*")))).data.decode() for folder in folders]
    return [Movable(text, rank, range(len(texts))) for rank, text in enumerate(texts)]


def write(folder: Path, pipelines: Sequence[Sequence[Movable]], count: int) -> int:
    """A run of pipelines side by side, in turns of 8 ranks; how many characters it has."""
    size = 0
    for rank in range(count):
        dumps = pipelines[rank // 8 % len(pipelines)]
        place = folder / f"rank_{rank}"
        place.mkdir()
        text = dumps[rank % len(dumps)].moved(rank // len(dumps) * len(dumps), count)
        size += len(text)
        (place / NAME).write_text(text)
    return size


def write_stages(folder: Path, dumps: Sequence[Movable], stages: int, count: int) -> int:
    """A run of one pipeline with many replicas, stage by stage; how many characters it has."""
    own = len(dumps) // stages
    size = 0
    for rank in range(count):
        stage, within = divmod(rank, count // stages)
        replica, place = divmod(within, own)

        def placed(number: int, first: int = replica * own) -> int:
            return number // own * (count // stages) + first + number % own

        text = dumps[stage * own + place].placed(placed, count)
        size += len(text)
        (folder / f"rank_{rank}").mkdir()
        (folder / f"rank_{rank}" / NAME).write_text(text)
    return size


def measure(folder: str, size: int, samples: str) -> None:
    start = time.process_time()
    read = read_cluster(Asked([folder]))
    middle = time.process_time()
    group_report(read.cluster, default_machine())
    grouped = time.process_time()
    report = play(read.cluster)
    end = time.process_time()
    assert not report.hangs
    ranks = read.cluster.ranks
    lines = sum(len(list(ranks[each[0]].program.dump.nodes())) for each in read.cluster.classes)
    counts = f"{len(ranks):8,} {len(read.cluster.classes):8,} {size / 1e6:8.1f} {lines:8,}"
    times = (middle - start, grouped - middle, end - grouped)
    print(counts, " ".join(f"{one:8.2f}" for one in times), "", samples)


if __name__ == "__main__":
    main()
