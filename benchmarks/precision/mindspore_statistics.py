"""A MindSpore run with ``statistic.csv`` in the place of its tensors."""

from __future__ import annotations

import csv
import os
import re
import shutil
from pathlib import Path

import numpy as np

_FILE = re.compile(
    r"([^.]+)\.(.+)\.(\d+)\.(\d+)\.(\d+)\.(input|output)\.(\d+)\.[^.]+\.([^.]+)\.npy"
)
_HEADER = ("Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,"
           "Max Value,Min Value,Avg Value,L2Norm Value")  # fmt: skip


def with_statistics(run: str) -> str:
    """The folder beside a run that has its figures, made the first time.

    Args:
        run: a folder with ``rank_N/``.
    """
    made = f"{run}-statistics"
    if not os.path.exists(made):
        shutil.copytree(run, f"{made}.part", dirs_exist_ok=True)
        for folder in Path(f"{made}.part").glob("rank_*/Net/0/0"):
            _replace(folder)
        os.rename(f"{made}.part", made)
    return made


def _replace(folder: Path) -> None:
    rows: list[tuple[int, list[object]]] = []
    for file in folder.glob("*.npy"):
        match = _FILE.fullmatch(file.name)
        if match is None:
            continue
        values = np.load(file)
        wide = values.astype(np.float64)
        figures = [wide.max(), wide.min(), wide.mean(), np.linalg.norm(wide.ravel())]
        shape = f"({','.join(map(str, values.shape))})"
        rows.append((int(match[5]), [*match.groups()[:7], values.nbytes, match[8].lower(),
                                     shape, *map(float, figures)]))  # fmt: skip
        file.unlink()
    with (folder / "statistic.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(_HEADER.split(","))
        writer.writerows(row for _, row in sorted(rows, key=lambda row: row[0]))
