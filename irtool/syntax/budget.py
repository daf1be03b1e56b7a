"""How much memory the caches of reading may hold together.

What makes reading quick (templates of records, values by their text) pays off while forms come
again.  A process that reads many different dumps would keep more and more of it, so all that is
kept is counted in bytes, estimated by the text it came from.  Once that is half of the budget,
all caches age together: what nobody asked for since they last did is thrown away, within one dump
and between dumps.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any, Protocol, TypeVar

MAX_KEPT = 128 << 20
"""Bytes that all caches of reading may hold together."""

Value = TypeVar("Value")


class Cache(Protocol):
    """Something that can forget, and is as good as before afterwards."""

    def age(self) -> None:
        """Forget what was not asked for since this was last called."""


class Budget:
    """Caches that age together once they hold so many bytes.

    Args:
        most: the bytes, of what is new and of what is older together.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.spent = 0
        """Bytes of what is new."""
        self._caches: dict[int, weakref.ref[Any]] = {}

    def add(self, cache: Cache) -> None:
        """Let this cache age with the others, as long as somebody has it."""
        key = id(cache)
        self._caches[key] = weakref.ref(cache, partial(self._forget, key))

    def charge(self, size: int) -> None:
        """Say that a cache will hold so many bytes more; call it before they are put there."""
        self.spent += size
        if self.spent > self.most // 2:
            self.spent = size
            for reference in list(self._caches.values()):
                cache = reference()
                if cache is not None:
                    cache.age()

    def _forget(self, key: int, gone: weakref.ref[Any]) -> None:
        if self._caches.get(key) is gone:
            del self._caches[key]


READING = Budget(MAX_KEPT)
"""Of all that reading dumps keeps in this process."""


class Aging(dict[Any, Value]):
    """A cache whose older half is looked into when a key is missing.

    Args:
        budget: what its entries are charged to; None: whoever has it lets it age.
    """

    __slots__ = ("__weakref__", "elder")

    def __init__(self, budget: Budget | None = READING) -> None:
        super().__init__()
        self.elder: dict[Any, Value] = {}
        if budget is not None:
            budget.add(self)

    def age(self) -> None:
        """Forget what was not asked for since this was last called."""
        self.elder = dict(self)
        self.clear()

    def keep(self, key: Any, value: Value, size: int) -> None:
        """Put a value there, which takes so many bytes."""
        READING.charge(size)
        self[key] = value

    def again(self, key: Any, size: int) -> Value | None:
        """A value that was there before, kept from now on; None where there was none."""
        value = self.elder.pop(key, None)
        if value is not None:
            self.keep(key, value, size)
        return value
