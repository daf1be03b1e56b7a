"""Dumps that are wanted together, read by several processes or a cluster before they are asked for.

A process that read a dump sends its model as kept models are written (`syntax/kept/model.py`): a
fraction of the text, and quick to open.  What asks for the dump afterwards reads as ever, and finds
it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from irtool.cli.work import processes_for, run_all, scheduler_address
from irtool.ir.run import RankClass
from irtool.syntax.cache_files import LEAST_KEPT
from irtool.syntax.kept import ReadElsewhere, keeper, read_elsewhere


def prefetch(paths: Iterable[str]) -> None:
    """Read dumps, as ``--jobs`` and ``--scheduler`` say; one that can't be read is left for later.

    Args:
        paths: files; small ones are not worth it.
    """
    keep = keeper()
    if keep is None:
        return
    sizes = {path: _size(path) for path in dict.fromkeys(paths)}
    wanted = [path for path, size in sizes.items() if size >= LEAST_KEPT]
    processes = processes_for([sizes[path] for path in wanted], None) if wanted else 1
    if len(wanted) < 2 or (processes == 1 and scheduler_address() is None):
        return
    for outcome in run_all(_model, wanted, processes):
        try:
            read = outcome.get()
        except Exception:
            continue  # who asks for the dump reads it again, and says why it can't be
        if read is not None:
            keep.give(read)


def prefetch_classes(classes: Iterable[RankClass]) -> None:
    """Read the main dump of each class of ranks with equal graphs, as :func:`prefetch` does.

    Args:
        classes: those without a main dump are passed over.
    """
    prefetch(item.file.path for item in classes if item.file is not None)


def _model(path: str) -> ReadElsewhere | None:
    from irtool.syntax.load import loads
    from irtool.syntax.source import read_content

    content = read_content(path)
    if content.damage:
        return None
    return read_elsewhere(
        content.data, loads(content.data.decode("utf-8", "surrogateescape"), content.path)
    )


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
