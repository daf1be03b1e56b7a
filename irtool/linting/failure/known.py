"""The table of known lines, ``known_lines.toml``: what a line of a log means and what to do.

To teach irtool a line, add an entry there, with an example; tests/linting/failure tries every one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, cast

from irtool.ir.dataclass import dataclass
from irtool.ir.finding import Severity
from irtool.ir.limits import bounded_int
from irtool.linting.failure.record import Level, Record
from irtool.linting.failure.template import Template, template

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LineRole = Literal["cause", "consequence", "note", "echo", "end", "refusal"]
"""``echo`` repeats a refusal, ``end`` closes its lines, ``refusal`` is the exception after them."""

_ROLES = ("cause", "consequence", "note", "echo", "end", "refusal")
_LEVELS: tuple[Level, ...] = ("error", "exception", "warning", "info", "plain")


@dataclass(frozen=True, slots=True)
class KnownLine:
    """A line of a log whose meaning is known, and what to say of it.

    Attributes:
        id: unique name of the entry.
        code: code of the finding; that of ``irtool check`` where it is a refusal.
        role: what the line is.
        severity: of the finding.
        parallel: only lines of the pass that shards operators.
        levels: of which level the line may be; exceptions match where plain lines do.
        templates: patterns of which one must match, in the order in which they are tried.
        words: lower-case words of which one must be in the line.
        functions: functions of MindSpore of which one must have written the line.
        message: the finding's sentence, with places for values; empty: MindSpore's own words.
        meaning: what it means and what to do.
        next: the command to type, with places.
        setting: key of the context, or of the environment, that is to be another.
        value: what to set it to, with places.
        reference: a page, or the part of MindSpore that says it.
        examples: lines that must match.
        seen: where they come from.
        unless: ids of entries whose lines make this one needless.
        above: numbers by the name of a value; a note is an error where the value is larger.
    """

    id: str
    code: str
    role: LineRole = "cause"
    severity: Severity = "error"
    parallel: bool = False
    levels: tuple[Level, ...] = ("error", "exception")
    templates: tuple[Template, ...] = ()
    words: tuple[str, ...] = ()
    functions: frozenset[str] = frozenset()
    message: str = ""
    meaning: str = ""
    next: str = ""
    setting: str = ""
    value: str = ""
    reference: str = ""
    examples: tuple[str, ...] = ()
    seen: str = ""
    unless: frozenset[str] = frozenset()
    above: Mapping[str, int] = field(default_factory=dict[str, int])

    def exceeds(self, values: Mapping[str, str]) -> bool:
        """Whether a value is beyond its limit."""
        return any(bounded_int(values.get(name, "0")) > limit for name, limit in self.above.items())

    def match(self, record: Record) -> dict[str, str] | None:
        """Values of the line by name, or None where it is another one."""
        if self.functions and record.function not in self.functions:
            return None
        values: dict[str, str] | None = None
        for each in self.templates:
            values = each.match(record.message)
            if values is not None:
                break
        if self.templates and values is None:
            return None
        if self.words:
            lower = record.message.lower()
            if not any(word in lower for word in self.words):
                return None
        return values or {}


class KnownLines:
    """All entries, sorted by what lines they can match."""

    def __init__(self, entries: tuple[KnownLine, ...]) -> None:
        self.entries = entries
        self._sorted: dict[tuple[Level, bool], tuple[KnownLine, ...]] = {
            (level, parallel): tuple(
                entry
                for entry in entries
                if level in entry.levels and (parallel or not entry.parallel)
            )
            for level in _LEVELS
            for parallel in (False, True)
        }

    def match(self, record: Record) -> tuple[KnownLine, dict[str, str]] | None:
        """The first entry that a line matches, with the values of the line."""
        for entry in self._sorted[record.level, record.is_parallel]:
            values = entry.match(record)
            if values is not None:
                return entry, values
        return None


@lru_cache(maxsize=1)
def known_lines() -> KnownLines:
    """The table that comes with irtool."""
    text = files("irtool.linting.failure").joinpath("known_lines.toml").read_text(encoding="utf-8")
    return KnownLines(tuple(read_known_lines(text)))


def read_known_lines(text: str) -> Iterator[KnownLine]:
    """The entries of a table of known lines.

    Args:
        text: of the table, TOML.

    Raises:
        ValueError: an entry makes no sense; the message names it.
    """
    table = tomllib.loads(text)
    defaults = cast("Mapping[str, Mapping[str, Any]]", table.get("defaults", {}))
    seen: set[str] = set()
    for entry in cast("list[Mapping[str, Any]]", table.get("line", [])):
        merged = {**defaults.get(str(entry.get("like", "")), {}), **entry}
        merged.pop("like", None)
        try:
            line = _entry(merged)
        except (TypeError, ValueError) as error:
            raise ValueError(f"entry {entry.get('id')!r}: {error}") from None
        if line.id in seen:
            raise ValueError(f"entry {line.id!r}: there are two of it")
        seen.add(line.id)
        yield line


def _entry(entry: dict[str, Any]) -> KnownLine:
    texts = _list(entry.pop("text", ()))
    role = entry.get("role", "cause")
    if role not in _ROLES:
        raise ValueError(f"no such role: {role!r}")
    levels = _list(entry.pop("levels", ("error", "exception")))
    if set(levels) - set(_LEVELS):
        raise ValueError(f"no such level: {levels!r}")
    if "plain" in levels:
        levels = (*levels, "exception")
    return KnownLine(
        templates=tuple(template(text) for text in texts),
        words=_list(entry.pop("words", ())),
        functions=frozenset(_list(entry.pop("functions", ()))),
        examples=_list(entry.pop("example", ())),
        unless=frozenset(_list(entry.pop("unless", ()))),
        levels=cast("tuple[Level, ...]", levels),
        **entry,
    )


def _list(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(str(item) for item in cast("list[object]", value))
