"""A dump's model as bytes, and back: columns of numbers instead of text to parse.

Objects of the model are immutable and shared where they are equal, so the bytes hold each of them
once.  They form batches: all objects of one class that need nothing but what earlier batches hold.
A batch is a column a field, a column holds numbers of values.  Reading back is then a few passes in
C over whole columns instead of one call an object.  Comments stay text: their place in the dump is
kept, and they are read when first asked for, as ever.

The bytes are data.  Whatever they say, reading them back calls nothing but the classes below.
"""

from __future__ import annotations

import sys
from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import blake2b
from itertools import accumulate, repeat
from operator import attrgetter
from typing import Any, cast

import msgspec

from irtool.ir import items, statement, types, values
from irtool.ir.comments import NO_COMMENTS, CommentLine, Comments, CommentTexts, Scope
from irtool.ir.dump import Dump, LineEnds
from irtool.ir.graph import Graph, Node

Decode = Callable[[str], tuple[CommentLine, ...]]

_CLASSES: tuple[type, ...] = (
    tuple,
    Comments,
    Node,
    Scope,
    values.Attributes,
    *(
        kind
        for module in (items, statement, types, values)
        for _, kind in sorted(vars(module).items())
        if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
    ),
)
"""Classes of values, which the bytes name by number; graphs and the dump hold them."""
_NUMBERS = {kind: number for number, kind in enumerate(_CLASSES)}
_SET_BY_OWNER = {Node: "graph"}
"""Fields that whoever holds the object fills in."""
_SIZE = "I"


def _fields_of(kind: type) -> tuple[str, ...]:
    if kind is values.Attributes:
        return values.Attributes.__slots__
    own = (field.name for field in fields(kind))
    return tuple(name for name in own if name != _SET_BY_OWNER.get(kind))


@cache
def _parts_of(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    names = _FIELDS[kind]
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda value: (get(value),)


_FIELDS = {kind: _fields_of(kind) for kind in _CLASSES if kind not in (tuple, Comments)}


def form_of_model() -> str:
    """Changes when a class of the model, or a field of one, does: kept bytes are then void."""
    text = ";".join(f"{kind.__qualname__}:{','.join(names)}" for kind, names in _FIELDS.items())
    return blake2b(text.encode(), digest_size=8).hexdigest()


class _Batch(msgspec.Struct, array_like=True):
    """Objects of class number ``kind``: of a tuple lengths and items, else a column a field."""

    kind: int
    count: int
    columns: list[bytes | int]


class _Document(msgspec.Struct, array_like=True):
    """A dump; ``graphs`` and ``items`` hold numbers of values, a graph's number is negative."""

    texts: list[str]
    numbers: list[int]
    batches: list[_Batch]
    graphs: list[list[int]]
    items: list[int]
    dialect: str
    last: bool


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Document)


def can_be_kept(dump: Dump) -> bool:
    """Whether everything of a dump is in its model as usual: nothing unread, no odd line ends.

    Args:
        dump: as it was read.
    """
    usual = LineEnds("\n", frozenset(), dump.line_ends.last)
    return not dump.problems and not dump.bom and dump.line_ends == usual


# -- to bytes ----------------------------------------------------------------------------------


def model_bytes(dump: Dump, text: str, printed: Callable[[CommentLine], str]) -> bytes:
    """What :func:`model_from` makes the same dump of.

    Args:
        dump: a dump that can be kept (:func:`can_be_kept`).
        text: what it was read from.
        printed: prints a comment line, where the text of comments was given up when they were read.

    Raises:
        ValueError: comments of the dump are not in the text.
    """
    store = _Store(_Places(text, printed))
    graphs: list[list[int]] = []
    ordered: list[int] = []
    for item in dump.items:
        if isinstance(item, Graph):
            graphs.append(store.graph(item))
            ordered.append(-len(graphs))
        else:
            ordered.append(store.add(item))
    document = _Document(
        *store.finished(graphs, ordered),
        dialect=dump.dialect,
        last=dump.line_ends.last,
    )
    return _ENCODER.encode(document)


class _Places:
    """Where comments stand in the text of their dump."""

    def __init__(self, text: str, printed: Callable[[CommentLine], str]) -> None:
        self._text = text
        self._printed = printed
        self._from = 0

    def of(self, comments: Comments) -> tuple[int, int]:
        """First and last character of the text of comments, which are asked for in order."""
        own = comments.unread
        if own is None:
            own = "\n".join(self._printed(line) for line in comments.lines)
        start = self._text.find(own, self._from)
        if start < 0:
            start = self._text.find(own)
        if start < 0:
            raise ValueError("comments that the text does not have")
        self._from = start
        return start, start + len(own)


_ALWAYS: tuple[object, ...] = (None, False, True, NO_COMMENTS, ...)
"""The values that come first, whatever the dump."""


class _Store:
    """Values, each once, in batches by how deep they are nested; numbers are final at the end."""

    def __init__(self, places: _Places) -> None:
        self._places = places
        self._texts: dict[str, int] = {}
        self._integers: dict[int, int] = {}
        self._objects: dict[int, int] = {id(value): i for i, value in enumerate(_ALWAYS)}
        self._levels = [0] * len(_ALWAYS)
        self._batches: dict[tuple[int, int], list[tuple[int, Sequence[int]]]] = defaultdict(list)

    def graph(self, graph: Graph) -> list[int]:
        """A graph as head, closing line, count of lines before it, these lines, its items."""
        prelude = [self.add(item) for item in graph.prelude]
        body = [self.add(item) for item in graph.items]
        return [self.add(graph.head), self.add(graph.close), len(prelude), *prelude, *body]

    def add(self, value: Any) -> int:
        """The provisional number of a value; the dump holds it, so that its id stays its own."""
        known = self._objects.get(id(value))
        if known is not None:
            return known
        kind: type[Any] = value.__class__
        if kind is int:
            return self._plain(self._integers, value)
        if kind is str:
            number = self._objects[id(value)] = self._plain(self._texts, value)
            return number
        numbers, level = self._parts(kind, value)
        number = self._objects[id(value)] = len(self._levels)
        self._levels.append(level + 1)
        self._batches[level, _NUMBERS[kind]].append((number, numbers))
        return number

    def _plain(self, numbers: dict[Any, int], value: str | int) -> int:
        number = numbers.setdefault(value, len(self._levels))
        if number == len(self._levels):
            self._levels.append(0)
        return number

    def _parts(self, kind: type, value: Any) -> tuple[Sequence[int], int]:
        """Numbers of what a value consists of, and the deepest level among them."""
        if kind is Comments:
            places = [self._plain(self._integers, place) for place in self._places.of(value)]
            scope = self.add(value.scope)  # whoever asks next needs no parser for it
            return [*places, scope], self._levels[scope]
        objects, levels = self._objects, self._levels
        numbers: list[int] = []
        deepest = 0
        for part in value if kind is tuple else _parts_of(kind)(value):
            number = objects.get(id(part))
            if number is None:
                number = self.add(part)
            if levels[number] > deepest:
                deepest = levels[number]
            numbers.append(number)
        return numbers, deepest

    def finished(
        self, graphs: list[list[int]], ordered: list[int]
    ) -> tuple[list[str], list[int], list[_Batch], list[list[int]], list[int]]:
        """Texts, integers, batches, graphs and items of the dump, with their final numbers."""
        batches = [(kind, batch) for (_, kind), batch in sorted(self._batches.items())]
        order = [
            *range(len(_ALWAYS)),
            *self._texts.values(),
            *self._integers.values(),
            *(number for _, batch in batches for number, _ in batch),
        ]
        final = [0] * len(order)
        for place, number in enumerate(order):
            final[number] = place
        made = [_batch(kind, [parts for _, parts in batch], final) for kind, batch in batches]
        return (
            list(self._texts),
            list(self._integers),
            made,
            [_graph_numbers(graph, final) for graph in graphs],
            [number if number < 0 else final[number] for number in ordered],
        )


def _graph_numbers(graph: list[int], final: list[int]) -> list[int]:
    head, close, count, *rest = graph
    return [final[head], final[close], count, *(final[number] for number in rest)]


def _batch(kind: int, rows: list[Sequence[int]], final: list[int]) -> _Batch:
    if _CLASSES[kind] is tuple:
        lengths = _packed(map(len, rows))
        return _Batch(kind, len(rows), [lengths, _packed(final[n] for row in rows for n in row)])
    turned = cast("Iterable[tuple[int, ...]]", zip(*rows, strict=True))
    columns: list[bytes | int] = []
    for column in turned:
        same = column.count(column[0]) == len(column)
        columns.append(final[column[0]] if same else _packed(final[number] for number in column))
    return _Batch(kind, len(rows), columns)


def _packed(numbers: Iterable[int]) -> bytes:
    made = array(_SIZE, numbers)
    if sys.byteorder == "big":
        made.byteswap()
    return made.tobytes()


# -- from bytes --------------------------------------------------------------------------------


def model_from(data: bytes, text: str, path: str, decode: Decode) -> Dump:
    """The dump that :func:`model_bytes` made bytes of.

    Args:
        data: the bytes.
        text: what the dump was read from.
        path: what to call it.
        decode: reads comment lines.

    Raises:
        ValueError, LookupError: these are no such bytes.
    """
    document = _DECODER.decode(data)
    known: list[Any] = [*_ALWAYS, *document.texts, *document.numbers]
    texts = CommentTexts(decode)
    for batch in document.batches:
        kind = _CLASSES[batch.kind]
        if kind is tuple:
            known += _tuples(batch, known)
        elif kind is Comments:
            columns = (_values(column, batch.count, known) for column in batch.columns)
            known += [
                texts.with_scope(text[start:end], scope)
                for start, end, scope in zip(*columns, strict=False)  # constant columns have no end
            ]
        else:
            known += _objects(kind, batch, known)
    graphs = [_graph(numbers, known) for numbers in document.graphs]
    ordered = tuple(
        graphs[-number - 1] if number < 0 else known[number] for number in document.items
    )
    ends = LineEnds("\n", frozenset(), document.last)
    return Dump(ordered, path, (), document.dialect, ends, False, len(text) + document.last)


def _graph(numbers: list[int], known: list[Any]) -> Graph:
    head, close, count, *rest = numbers
    values = tuple(map(known.__getitem__, rest))
    return Graph(known[head], values[count:], values[:count], known[close])


def _values(column: bytes | int, count: int, known: list[Any]) -> Iterable[Any]:
    if isinstance(column, int):
        return repeat(known[column], count)
    return map(known.__getitem__, _unpacked(column))


def _unpacked(column: bytes | int) -> array[int]:
    made = array(_SIZE)
    made.frombytes(cast("bytes", column))
    if sys.byteorder == "big":
        made.byteswap()
    return made


def _tuples(batch: _Batch, known: list[Any]) -> list[tuple[Any, ...]]:
    lengths, numbers = map(_unpacked, batch.columns)
    flat = tuple(map(known.__getitem__, numbers))
    return [
        flat[end - length : end] for length, end in zip(lengths, accumulate(lengths), strict=True)
    ]


def _objects(kind: type, batch: _Batch, known: list[Any]) -> list[Any]:
    """Objects of a frozen class with slots, filled column by column without its constructor."""
    new = cast("Callable[[type], Any]", object.__new__)
    made: list[Any] = list(map(new, repeat(kind, batch.count)))
    for name, column in zip(_FIELDS[kind], batch.columns, strict=True):
        _put(kind, name, made, _values(column, batch.count, known))
    if owner := _SET_BY_OWNER.get(kind):
        _put(kind, owner, made, repeat(None))
    return made


def _put(kind: type, name: str, objects: list[Any], values_: Iterable[Any]) -> None:
    put: Callable[[Any, Any], None] = kind.__dict__[name].__set__
    deque(map(put, objects, values_), 0)
