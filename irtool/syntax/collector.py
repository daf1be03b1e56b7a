"""Keeps the garbage collector from slowing reading down."""

from __future__ import annotations

import gc
import time
from collections.abc import Generator
from contextlib import contextmanager


class CollectorPause:
    """No garbage collection while a dump is read.

    Reading makes many objects and hardly any garbage, so that collections would take a third of
    the time.  Dumps that the caller has dropped are cyclic garbage, however, and are collected
    once so much was read since, and for so long, that the collection hardly counts.
    """

    _COLLECT_EVERY = 128 << 20
    """Characters at least: models of so many take one or two hundred megabytes."""
    _SHARE = 20
    """Times as long as the last collection took, in time of the processor."""
    read = 0
    last = 0.0
    ended = 0.0
    """When the last collection ended, in time of the processor."""

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
                # What was read just now is not garbage yet.
                if cls.read - size >= cls._COLLECT_EVERY and cls._is_due():
                    start = time.process_time()
                    gc.collect()
                    cls.ended = time.process_time()
                    cls.last = cls.ended - start
                    cls.read = size
                elif gc.get_freeze_count():
                    gc.collect(0)
                else:
                    # All new objects go to the oldest generation at once: a collection of the
                    # youngest would visit every one of them and free nothing.
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()

    @classmethod
    def _is_due(cls) -> bool:
        """Whether the process worked long enough since the last collection."""
        return time.process_time() - cls.ended >= cls._SHARE * cls.last
