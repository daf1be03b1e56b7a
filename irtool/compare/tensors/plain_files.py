"""Files of tensors that no tool's format gives an order: which they are, and where they lie."""

from __future__ import annotations

import os
from collections.abc import Iterator

SUFFIXES = (".npy", ".npz", ".safetensors", ".pt")


def holds_plain(path: str) -> bool:
    """Whether a path is a file of tensors, or a folder with some in it.

    Args:
        path: of a file or a folder, of which the first 10,000 files are looked at.
    """
    if os.path.isfile(path):
        return path.endswith(SUFFIXES)
    return any(name.endswith(SUFFIXES) for name in _names(path, 10_000))


def _names(path: str, most: int) -> Iterator[str]:
    for _, folders, names in os.walk(path):
        folders.sort()
        for name in names:
            most -= 1
            if most < 0:
                return
            yield name
