"""Keeps the garbage collector from slowing reading down."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


class CollectorPause:
    """No garbage collection while a dump is read.

    Reading makes many objects and hardly any garbage, so that collections would take a third of
    the time.  Dumps that the caller has dropped are cyclic garbage, however, and are collected
    once in so many characters of text read.
    """

    _COLLECT_EVERY = 128 << 20
    _LARGE = 1 << 20
    read = 0

    @classmethod
    @contextmanager
    def over(cls, size: int) -> Generator[None]:
        enabled = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if enabled:
                cls.read += size
                full = cls.read >= cls._COLLECT_EVERY
                cls.read = 0 if full else cls.read
                if full:
                    gc.collect()
                elif size < cls._LARGE or gc.get_freeze_count():
                    gc.collect(0)
                else:
                    # All new objects go to the oldest generation at once: a collection of the
                    # youngest would visit every one of them and free nothing.
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()
