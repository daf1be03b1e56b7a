"""What is known of a run's context: each key with its value and where that was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal, TypeAlias, cast

from irtool.ir.dataclass import dataclass
from irtool.sharding.network.context import ParallelContext

Source: TypeAlias = Literal["option", "file", "dump", "folder", "logs", "assumed"]
"""Who says a value: the command line, a file of settings, a dump, the run's folder, a log; or
nobody, so that MindSpore's default is taken."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was said: ``path`` of the file or dump, ``what`` it says there."""

    source: Source
    path: str = ""
    what: str = ""

    def __str__(self) -> str:
        if self.path:
            return f"{self.path}: {self.what}" if self.what else self.path
        return self.what or self.source


DEFAULT = Origin("assumed", what="MindSpore's default")


@dataclass(frozen=True, slots=True)
class Entry:
    """The value of one key, and where it was said."""

    value: object
    origin: Origin


@dataclass(frozen=True, slots=True)
class Assumption:
    """A value that nobody said and no dump shows.

    ``decides``: whether another value would give other answers, as far as the dumps tell: where a
    later dump is there, and what it shows is as the value says, it does not.
    """

    key: str
    value: object
    why: str
    decides: bool


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two sources say different things of one key.

    ``used`` is the value that answers go by, ``other`` the one that they don't.
    """

    key: str
    used: Entry
    other: Entry

    @property
    def path(self) -> str:
        """The dump that says otherwise than what is given."""
        dumps = (
            entry.origin.path for entry in (self.used, self.other) if entry.origin.source == "dump"
        )
        return next(dumps, self.used.origin.path)

    @property
    def message(self) -> str:
        """A sentence with both values, who said each of them, and which one counts."""
        return (
            f"{self.key}: {shown(self.other.value)} ({self.other.origin}), but "
            f"{shown(self.used.value)} ({self.used.origin}), which counts here"
        )


def shown(value: object) -> str:
    """A value as contexts are written: ``true``, ``(4, 1)``, ``ascend``.

    Args:
        value: of any key.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return str(tuple(cast("Sequence[object]", value))).replace(",)", ")")
    return str(value)


@dataclass(frozen=True, eq=False)
class RunContext:
    """The context of a run.

    Attributes:
        parallel: devices and options for whoever judges; None where nobody says, and nothing
            shows, how many devices there are.
        entries: by MindSpore's name of the key, what is known of it.
        assumptions: what was taken although nobody says it.
        contradictions: where two sources say different things.
        given: what somebody said, by key, as it was said; keys that are not here were left at
            their defaults, or nobody told.
    """

    parallel: ParallelContext | None
    entries: Mapping[str, Entry] = field(default_factory=dict[str, Entry])
    assumptions: tuple[Assumption, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    given: Mapping[str, object] = field(default_factory=dict[str, object])

    def value(self, key: str) -> object:
        """The value of a key; None where it is not known."""
        entry = self.entries.get(key)
        return None if entry is None else entry.value

    def is_known(self, key: str) -> bool:
        """Whether somebody says the value, or something shows it."""
        entry = self.entries.get(key)
        return entry is not None and entry.origin.source != "assumed"

    @property
    def devices(self) -> int | None:
        """How many there are; None where nothing tells."""
        return self.parallel.devices if self.parallel is not None else None

    @property
    def stages(self) -> int | None:
        """Pipeline stages; None where nothing tells."""
        stages = self.value("pipeline_stages")
        return stages if isinstance(stages, int) else None
