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

    _COLLECT_EVERY = 1 << 20
    """Characters at least."""
    _SHARE = 10
    """Times as long as the last collection took, in time of the processor."""
    _LARGE = 1 << 20
    read = 0
    seconds = 0.0
    last = 0.0

    @classmethod
    @contextmanager
    def over(cls, size: int) -> Generator[None]:
        enabled = gc.isenabled()
        gc.disable()
        start = time.process_time()
        try:
            yield
        finally:
            if enabled:
                cls.read += size
                cls.seconds += time.process_time() - start
                # What was read just now is not garbage yet.
                before = cls.read - size
                if before >= cls._COLLECT_EVERY and cls.seconds >= cls._SHARE * cls.last:
                    start = time.process_time()
                    gc.collect()
                    cls.last = time.process_time() - start
                    cls.read, cls.seconds = size, 0.0
                elif size < cls._LARGE or gc.get_freeze_count():
                    gc.collect(0)
                else:
                    # All new objects go to the oldest generation at once: a collection of the
                    # youngest would visit every one of them and free nothing.
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()
