"""Dumps that were read before: the model comes from a kept file instead of from their text.

A kept model is found by the dump's bytes and by what made it: irtool's version, its grammar, the
classes of the model and the modules that read.  It is written after the answer, so that nobody
waits for it, and only by commands (:func:`keeping`): a library doesn't fill a disk unasked.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from irtool.ir.dump import Dump
from irtool.ir.version import VERSION
from irtool.syntax.collector import CollectorPause
from irtool.syntax.kept_files import KeptFiles, digest
from irtool.syntax.kept_model import Decode, can_be_kept, form_of_model, model_bytes, model_from

LEAST_KEPT = 256 << 10
"""Bytes of the smallest dump whose model is kept; smaller ones are read as quickly."""


@lru_cache(maxsize=1)
def _maker() -> bytes:
    """What makes models: a change of it, and what was kept before is not looked at."""
    package = Path(__file__).parents[1]
    modules = sorted(path for name in ("ir", "syntax") for path in (package / name).glob("*.py"))
    states = (f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in modules)
    return digest(VERSION, form_of_model(), "\n".join(states))


class Keeper:
    """Finds kept models, and keeps those of dumps that were read."""

    def __init__(self) -> None:
        self._files = KeptFiles("models")
        self._waiting: tuple[bytes, Dump, str] | None = None

    def get(self, data: bytes, text: str, path: str, decode: Decode) -> Dump | None:
        """The model of a dump with these bytes, None where none is kept.

        Args:
            data: the dump's bytes, unpacked.
            text: they as text, without a last line feed.
            path: what to call the dump.
            decode: reads comment lines.
        """
        kept = self._files.get(self._key(data))
        if kept is None:
            return None
        try:
            with CollectorPause.over(len(text)):
                return model_from(kept, text, path, decode)
        except (ValueError, LookupError):
            return None

    def wants(self, data: bytes, dump: Dump, text: str) -> None:
        """Keep the model of a dump, but not at once; the one that waited before is kept now."""
        self.flush()
        if can_be_kept(dump):
            self._waiting = self._key(data), dump, text

    def flush(self) -> None:
        """Keep what waits."""
        if self._waiting is None:
            return
        from irtool.syntax.printer import print_comment

        (key, dump, text), self._waiting = self._waiting, None
        try:
            made = model_bytes(dump, text, print_comment)
        except (ValueError, RecursionError, MemoryError):
            return
        self._files.put(key, made)

    def _key(self, data: bytes) -> bytes:
        return digest(_maker(), data)


_keeper: Keeper | None = None


def keeper() -> Keeper | None:
    """Who keeps models here; None where nobody does."""
    return _keeper


def remembers() -> bool:
    """Whether what is found out here is kept for the next command."""
    return _keeper is not None


def use_keeper(wanted: bool) -> Keeper | None:
    """Look for kept models from here on, or not; returns who did before."""
    global _keeper
    before, _keeper = _keeper, Keeper() if wanted else None
    return before


def flush() -> None:
    """Keep what waits to be kept."""
    if _keeper is not None:
        _keeper.flush()


@contextmanager
def keeping(wanted: bool = True) -> Generator[None]:
    """Look for kept models, and keep those that are read, until the end of a block."""
    global _keeper
    before = use_keeper(wanted)
    try:
        yield
        flush()
    finally:
        _keeper = before
