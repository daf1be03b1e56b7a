"""The library's door: :func:`load` and :func:`dumps`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from irtool.ir.comments import CommentLine
from irtool.ir.dump import Dump
from irtool.ir.finding import Finding
from irtool.syntax.cache_files import LEAST_KEPT
from irtool.syntax.kept import Keeper, keeper
from irtool.syntax.printer import dumps
from irtool.syntax.source import Content, PathLike, read_content

if TYPE_CHECKING:
    from irtool.syntax.records import Records


TRUNCATED = "SYN003"
"""The code of a dump that ends early."""
_LOSSES = (TRUNCATED, "SYN006", "SYN005", "SYN004", "SYN007")
"""Codes of dumps that lack a part or hold one of another; those that say it best come first."""


def lost_part(dump: Dump) -> Finding | None:
    """The problem that tells that a part of a dump is missing; None where nothing shows that.

    What such a dump holds is true, what it does not hold tells nothing.

    Args:
        dump: with the problems found while reading.
    """
    lost = [problem for problem in dump.problems if problem.code in _LOSSES]
    return min(lost, key=lambda problem: _LOSSES.index(problem.code), default=None)


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
    keep = keeper()
    if keep is not None and len(content.data) >= LEAST_KEPT and not content.damage:
        return _kept_or_read(content, keep)
    dump = loads(_text_of(content), content.path)
    if content.damage:
        problem = Finding(
            TRUNCATED,
            "error",
            content.damage,
            content.path,
            1,
            hint="what could be expanded was read",
        )
        dump = replace(dump, problems=(problem, *dump.problems))
    return dump


def loads(text: str, path: str = "<text>", records: Records | None = None) -> Dump:
    """Read the text of a dump.

    Never fails: what cannot be read becomes :class:`Opaque` and a problem of the dump.

    Args:
        text: the dump.
        path: what to call it.
        records: what reads single records, and keeps what they have in common; by default one for
            the whole process.
    """
    # Lark and the classes of its trees need not be imported for a dump that was read before.
    from irtool.syntax import reader

    return reader.loads(text, path, records)


def _text_of(content: Content) -> str:
    return content.data.decode("utf-8", "surrogateescape")


def _kept_or_read(content: Content, keep: Keeper) -> Dump:
    text = _text_of(content)
    body = text.removesuffix("\n")
    dump = keep.get(content.data, body, content.path, _comment_lines)
    if dump is None:
        dump = loads(text, content.path)
        keep.wants(content.data, dump, body)
    return dump


def _comment_lines(text: str) -> tuple[CommentLine, ...]:
    from irtool.syntax.reader import comment_lines

    return comment_lines(text)


__all__ = ["dumps", "load", "loads"]
