"""How much memory the caches of reading may hold together.

What makes reading quick (templates of records, values by their text) pays off while forms come
again.  A process that reads many different dumps would keep more and more of it, so all that is
kept is counted in bytes, estimated by the text it came from, and thrown away together when that
exceeds the budget: within one dump, and between dumps.
"""

from __future__ import annotations

import weakref
from typing import Any, Protocol

MAX_KEPT = 128 << 20
"""Bytes that all caches of reading may hold together."""


class Cache(Protocol):
    """Something that can be emptied, and is as good as before afterwards."""

    def clear(self) -> None:
        """Forget everything."""


class Budget:
    """Caches that are emptied together once they hold so many bytes.

    Args:
        most: the bytes.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.spent = 0
        self._caches: list[weakref.ref[Any]] = []

    def add(self, cache: Cache) -> None:
        """Empty this cache too, as long as somebody has it."""
        self._caches.append(weakref.ref(cache, self._forget))

    def charge(self, size: int) -> None:
        """Say that a cache will hold so many bytes more; call it before they are put there."""
        self.spent += size
        if self.spent > self.most:
            self.spent = size
            for each in list(self._caches):
                cache = each()
                if cache is not None:
                    cache.clear()

    def _forget(self, gone: weakref.ref[Any]) -> None:
        # Two that are gone are equal to nothing but themselves.
        self._caches = [each for each in self._caches if each is not gone]


READING = Budget(MAX_KEPT)
"""Of all that reading dumps keeps in this process."""
