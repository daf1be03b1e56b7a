"""The library's door: :func:`load` and :func:`dumps`."""

from __future__ import annotations

from dataclasses import replace
from typing import BinaryIO

from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.syntax.printer import dumps
from irtool.syntax.reader import loads
from irtool.syntax.source import PathLike, read_content


def load(source: PathLike | bytes | BinaryIO, name: str | None = None) -> Dump:
    """Read a dump.

    Args:
        source: path (``.gz`` and ``.xz`` are read as they are), bytes, or a binary file.
        name: what to call it in messages instead of its path.

    Returns:
        The dump.  Its ``problems`` is empty if and only if everything was read.

    Raises:
        DumpError: nothing can be read: no such file, no permission, a folder, too large.
    """
    content = read_content(source, name)
    dump = loads(content.data.decode("utf-8", "surrogateescape"), content.path)
    if content.damage:
        problem = Finding(
            "SYN003",
            "error",
            content.damage,
            content.path,
            1,
            hint="what could be expanded was read",
        )
        dump = replace(dump, problems=(problem, *dump.problems))
    return dump


__all__ = ["dumps", "load", "loads"]
