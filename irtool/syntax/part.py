"""Parts of a record template: values with holes where runs of digits stand.

Statements repeat from layer to layer up to their numbers and names.  The grammar treats every run
of digits alike, so two records that differ only in such runs have the same parse.  A record is
therefore parsed once with each run replaced by its index (0, 1, 2, …); the parse, a tree of parts,
then gives the model of any record of that form when the holes are filled with its own runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from irtool.syntax.budget import READING, Aging

DIGITS = re.compile("([0-9]+)")
"""Splits a record into literal text (even places) and runs of digits (odd places)."""

Holes: TypeAlias = tuple[str, ...]
T = TypeVar("T")

_ENTRY = 400
"""Bytes of an entry of a memo, its key and value apart from their text."""
_HOLE = 150
"""Bytes of what stands in one hole, in the key of such an entry and in its value."""
_PER_CHARACTER = 6
"""Bytes that a character of a text takes in its key and, decoded, in its value."""


class Memo(Aging[T], Generic[T]):
    """Values by the text they were decoded from: equal texts share one immutable object."""

    __slots__ = ("_between", "_decode")

    def __init__(self, decode: Callable[[Any], T]) -> None:
        super().__init__()
        self._decode = decode
        # Those between which no template looks any more are gone.
        self._between: WeakValueDictionary[tuple[str, str], _Between[T]] = WeakValueDictionary()

    def __missing__(self, key: Any) -> T:
        size = _ENTRY + _PER_CHARACTER * len(key)
        value = self.again(key, size) if self.elder else None
        if value is None:
            value = self._decode(key)
            self.keep(key, value, size)
        return value

    def age(self) -> None:
        """Forget what was not asked for since this was last called, and what parts know of it."""
        super().age()
        for between in list(self._between.values()):
            between.age()

    def between(self, prefix: str, suffix: str) -> Aging[T]:
        """This memo's values, by what stands between two texts instead of by the whole text.

        Args:
            prefix: before what varies.
            suffix: behind what varies.
        """
        if not prefix and not suffix:
            return self
        memo = self._between.get((prefix, suffix))
        if memo is None:
            memo = _Between(self, prefix, suffix)
            READING.charge(_ENTRY + _PER_CHARACTER * len(prefix + suffix))
            self._between[prefix, suffix] = memo
        return memo


class _Between(Aging[T], Generic[T]):
    """Values of a memo by what stands between two texts; ages with it."""

    __slots__ = ("_all", "_prefix", "_suffix")

    def __init__(self, memo: Memo[T], prefix: str, suffix: str) -> None:
        super().__init__(None)
        self._all = memo
        self._prefix = prefix
        self._suffix = suffix

    def __missing__(self, hole: str) -> T:
        size = _ENTRY + _PER_CHARACTER * len(hole)
        value = self.again(hole, size) if self.elder else None
        if value is None:
            value = self._all[self._prefix + hole + self._suffix]
            self.keep(hole, value, size)
        return value


class Part(Generic[T]):
    """A constant (``fill`` is None), or a function of the holes ``start`` to ``stop``."""

    __slots__ = ("fill", "start", "stop", "value")

    def __init__(
        self,
        value: T | None = None,
        fill: Callable[[Holes], T] | None = None,
        start: int = 0,
        stop: int = 0,
    ) -> None:
        self.value = value
        self.fill = fill
        self.start = start
        self.stop = stop

    def __call__(self, holes: Holes) -> T:
        """The value for these holes."""
        if self.fill is None:
            return self.value  # type: ignore[return-value]  # a constant part has its value
        return self.fill(holes)

    def at(self, start: int) -> Part[T]:
        """This part in a record where its first hole is number ``start``.

        Raises:
            ValueError: only constants and what :func:`remember` made can stand elsewhere.
        """
        if self.fill is None:
            return self
        raise ValueError(start)


def leaf(text: str, memo: Memo[T], masked: bool) -> Part[T]:
    """The part for one token.

    Args:
        text: of the token; in a masked record its runs of digits are indices of holes, one after
            another.
        memo: that decodes texts of this kind of token.
        masked: whether the record is a template; else the token is taken as it stands.
    """
    if not masked:
        return Part(memo[text])
    pieces = DIGITS.split(text)
    if len(pieces) == 1:
        return Part(memo[text])
    start = int(pieces[1])
    stop = start + len(pieces) // 2
    if stop == start + 1:
        known = memo.between(pieces[0], pieces[2])
        return Part(None, lambda holes: known[holes[start]], start, stop)
    pattern = "%s".join(piece.replace("%", "%%") for piece in pieces[::2])
    return Part(None, lambda holes: memo[pattern % holes[start:stop]], start, stop)


def compose(build: Callable[..., T], parts: Sequence[Part[Any]]) -> Part[T]:
    """The part that builds a value from the values of ``parts``, which stand in text order.

    Args:
        build: called with the values, in order, for each filling of the holes.
        parts: constant or with holes.
    """
    variable = [(place, part.fill) for place, part in enumerate(parts) if part.fill is not None]
    values = [part.value for part in parts]
    if not variable:
        return Part(build(*values))
    start, stop = parts[variable[0][0]].start, parts[variable[-1][0]].stop
    if len(parts) == 1:
        only = variable[0][1]
        return Part(None, lambda holes: build(only(holes)), start, stop)

    def fill(holes: Holes) -> T:
        items = values.copy()
        for place, piece in variable:
            items[place] = piece(holes)
        return build(*items)

    return Part(None, fill, start, stop)


def gather(parts: Sequence[Part[Any]]) -> Part[tuple[Any, ...]]:
    """The part whose value is the tuple of the values of ``parts``.

    Args:
        parts: which stand in text order.
    """
    return compose(_as_tuple, parts)


class _Known(Aging[T], Generic[T]):
    """Values of a part by what is in its holes."""

    __slots__ = ("part",)

    def __init__(self, part: Part[T]) -> None:
        super().__init__()
        self.part = part

    def made(self, key: Holes) -> T:
        """The value for holes that were not asked for lately."""
        size = _ENTRY + _HOLE * len(key)
        value = self.again(key, size) if self.elder else None
        if value is None:
            value = self.part(("",) * self.part.start + key)
            # Keys that never repeat (unique ids) would only fill memory.
            if len(self) < _REMEMBER_LIMIT:
                self.keep(key, value, size)
        return value


class Repeated(Part[T], Generic[T]):
    """A part whose equal holes give the same object, wherever in a record these stand."""

    __slots__ = ("_known",)

    def __init__(self, known: _Known[T], start: int) -> None:
        stop = start + known.part.stop - known.part.start
        find, make = known.get, known.made

        def lookup(holes: Holes) -> T:
            key = holes[start:stop]
            value = find(key)
            return make(key) if value is None else value

        super().__init__(None, lookup, start, stop)
        self._known = known

    def at(self, start: int) -> Repeated[T]:
        return self if start == self.start else Repeated(self._known, start)


def remember(part: Part[T]) -> Part[T]:
    """A part for which equal holes give one and the same object.

    Args:
        part: constant (given back) or with holes.
    """
    return part if part.fill is None else Repeated(_Known(part), part.start)


_REMEMBER_LIMIT = 512


def _as_tuple(*items: Any) -> tuple[Any, ...]:
    return items
