"""Fingerprints of dumps that were made before, by the texts that they are of.

A fingerprint takes several times as long as the digest of a text, and whoever reads a run folder
makes one of every rank. Those that one command made are kept in one file, which is found by the
first of their texts; each is found by its own, so that none is ever taken for that of another text.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from irtool.syntax.cache_files import LEAST_KEPT, KeptFiles, digest

_MOST_BYTES = 64 << 20
"""Bytes that all files take together."""
_MOST = 100_000
"""Fingerprints in one file."""
_DECODER = msgspec.msgpack.Decoder(dict[bytes, str])


class KeptFingerprints:
    """The fingerprints that a command makes or finds.

    Args:
        maker: stands for the modules that make them.
    """

    def __init__(self, maker: Callable[[], bytes]) -> None:
        self._maker = maker
        self._files = KeptFiles("fingerprints", _MOST_BYTES)
        self._place: bytes | None = None
        self._known: dict[bytes, str] = {}
        self._added = False
        self._length = 0

    def of(self, text: str, rank: int, make: Callable[[], str]) -> str:
        """The fingerprint of a text as that of a rank; ``make`` makes one that is not kept."""
        own = digest(text, str(rank))
        if self._place is None:
            self._place = digest(self._maker(), "fingerprints", own)
            self._known = self._kept(self._place)
        known = self._known.get(own)
        if known is not None:
            return known
        made = make()
        self._length += len(text)
        if len(self._known) < _MOST:
            self._known[own] = made
            self._added = True
        return made

    def _kept(self, place: bytes) -> dict[bytes, str]:
        data = self._files.get(place)
        try:
            return {} if data is None else _DECODER.decode(data)
        except msgspec.DecodeError:
            return {}

    def flush(self) -> None:
        """Keep what was made since the last time, where that took time."""
        if self._added and self._place is not None and self._length >= LEAST_KEPT:
            self._files.put(self._place, msgspec.msgpack.encode(self._known))
            self._added = False
