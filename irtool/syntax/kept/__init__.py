"""Dumps that were read before: the model comes from a kept file instead of from their text.

A kept model is found by the dump's bytes and by what made it: irtool's version, its grammar, the
classes of the model and the modules that read.  It is written after the answer, so that nobody
waits for it, and only by commands (:func:`keeping`): a library doesn't fill a disk unasked.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import ref

from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.version import VERSION
from irtool.ir.worked_out import set_recall
from irtool.syntax.cache_files import KeptFiles, digest, states_of_files
from irtool.syntax.collector import CollectorPause
from irtool.syntax.grammar_files import grammar_folder
from irtool.syntax.kept.fingerprints import KeptFingerprints
from irtool.syntax.kept.model import Decode, can_be_kept, form_of_model, model_bytes, model_from
from irtool.syntax.kept.results import results_bytes, results_from, worked_out

_MOST_RESULTS = 128 << 20
"""Bytes that all kept results take."""


@lru_cache(maxsize=1)
def _maker() -> bytes:
    """What makes models: a change of it, and what was kept before is not looked at."""
    package = Path(__file__).parents[2]
    folders = (str(package / "ir"), str(package / "syntax"), grammar_folder())
    return digest(VERSION, form_of_model(), *states_of_files(*folders))


class Keeper:
    """Finds kept models, and keeps those of dumps that were read."""

    def __init__(self, writes: bool = True) -> None:
        self._files = KeptFiles("models") if writes else None
        self._given: dict[bytes, bytes] = {}
        self._waiting: tuple[bytes, Dump, str] | None = None
        self._results = KeptFiles("results", _MOST_RESULTS) if writes else None
        self._fingerprints = KeptFingerprints(_maker) if writes else None
        self._asked: dict[bytes, tuple[ref[Dump], frozenset[str]]] = {}
        """Dumps that results are kept of, and which of these are kept already."""

    def fingerprint(self, text: str, rank: int, make: Callable[[], str]) -> str:
        """The fingerprint of a dump's text: one that was kept, else what ``make`` makes."""
        if self._fingerprints is None:
            return make()
        return self._fingerprints.of(text, rank, make)

    @property
    def writes(self) -> bool:
        """Whether anything outlives this process."""
        return self._files is not None

    def give(self, read: ReadElsewhere) -> None:
        """Take a model that another process read."""
        self._given[read.key] = read.model
        if self._files is not None:
            self._files.put(read.key, read.model)

    def get(self, data: bytes, text: str, path: str, decode: Decode) -> Dump | None:
        """The model of a dump with these bytes, None where none is kept.

        Args:
            data: the dump's bytes, unpacked.
            text: they as text, without a last line feed.
            path: what to call the dump.
            decode: reads comment lines.
        """
        key = _key(data)
        kept = self._given.get(key)
        if kept is None and self._files is not None:
            kept = self._files.get(key)
        if kept is None:
            return None
        try:
            with CollectorPause.over(len(text)):
                dump = model_from(kept, text, path, decode)
        except (ValueError, LookupError):
            return None
        self._will_keep_results(key, dump)
        return dump

    def _will_keep_results(self, key: bytes, dump: Dump) -> None:
        """Keep what will be worked out of a dump; what is kept of it is there when asked for."""
        if self._results is None:
            return
        self._asked[key] = ref(dump), frozenset()
        set_recall(dump, lambda derived: self._recall(key, derived))

    def _recall(self, key: bytes, derived: dict[str, Any]) -> None:
        asked = self._asked.get(key)
        dump = asked[0]() if asked is not None else None
        data = self._results.get(key) if self._results is not None else None
        if dump is None or data is None or dump.derived is not derived:
            return
        derived.update(results_from(data, dump))
        self._asked[key] = ref(dump), worked_out(dump)

    def _keep_results(self) -> None:
        for key, (asked, known) in self._asked.items():
            dump = asked()
            if dump is None or self._results is None or worked_out(dump) <= known:
                continue
            with suppress(LookupError, OverflowError, MemoryError):
                self._results.put(key, results_bytes(dump))
                self._asked[key] = asked, worked_out(dump)

    def wants(self, data: bytes, dump: Dump, text: str) -> None:
        """Keep the model of a dump, but not at once; the one that waited before is kept now."""
        self._flush_model()
        if self._files is not None and can_be_kept(dump):
            key = _key(data)
            self._waiting = key, dump, text
            self._will_keep_results(key, dump)

    def flush(self) -> None:
        """Write the model and the results that wait to be kept."""
        self._flush_model()
        self._keep_results()
        if self._fingerprints is not None:
            self._fingerprints.flush()

    def _flush_model(self) -> None:
        if self._waiting is None or self._files is None:
            return
        (key, dump, text), self._waiting = self._waiting, None
        made = _model_of(dump, text)
        if made is not None:
            self._files.put(key, made)


@dataclass(frozen=True, slots=True)
class ReadElsewhere:
    """The model of a dump, as bytes that travel between processes and machines."""

    key: bytes
    model: bytes


def read_elsewhere(data: bytes, dump: Dump) -> ReadElsewhere | None:
    """What a process that read a dump sends to the one that wants it; None where it can't be sent.

    Args:
        data: the dump's bytes, unpacked.
        dump: what was read.
    """
    if not can_be_kept(dump):
        return None
    text = data.decode("utf-8", "surrogateescape").removesuffix("\n")
    made = _model_of(dump, text)
    return None if made is None else ReadElsewhere(_key(data), made)


def _key(data: bytes) -> bytes:
    return digest(_maker(), data)


def _model_of(dump: Dump, text: str) -> bytes | None:
    from irtool.syntax.printer import print_comment

    try:
        return model_bytes(dump, text, print_comment)
    except (ValueError, OverflowError, RecursionError, MemoryError):
        return None


_keeper: Keeper | None = None


def keeper() -> Keeper | None:
    """Who finds and keeps models here; None where nobody does."""
    return _keeper


def remembers() -> bool:
    """Whether what is found out here is kept for the next command."""
    return _keeper is not None and _keeper.writes


def use_keeper(wanted: bool) -> Keeper | None:
    """Look for kept models from here on, or stop doing so.

    Args:
        wanted: whether to; False: models are only taken from where they are given.

    Returns:
        Who kept models before, to be put back.
    """
    global _keeper
    before, _keeper = _keeper, Keeper(wanted)
    return before


def flush() -> None:
    """Keep what waits to be kept."""
    if _keeper is not None:
        _keeper.flush()


@contextmanager
def keeping(wanted: bool = True) -> Generator[None]:
    """Look for kept models, and keep those that are read, until the end of a block.

    Args:
        wanted: False: models are only taken from where they are given, and none is kept.
    """
    global _keeper
    before = use_keeper(wanted)
    try:
        yield
        flush()
    finally:
        _keeper = before
