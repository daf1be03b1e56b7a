"""Names, paths and scopes of dumps replaced, the same by the same, so that a dump can be shown.

A name is taken apart into words (``layers.0.attentionBlock`` into layers, attention, Block), and
each word of a user gets another one; digits, punctuation and capitals stay, so that whatever goes
by the shape of a name finds what it found before; digits of paths (``/home/u012345``) do not.
Words of MindSpore's own stay: those of the format, of its Python package, and those of the
operators, types and attributes of the dump that are known to be its own (``mindspore_words.txt``:
words of its operators, and of what it writes into dumps of many networks).  A word that nobody
knows is taken for the user's.  In names of parameters and of cells, which are the user's, other
words are replaced as well, but for those that everybody's weights have and for MindSpore's own
cells (``mindspore_cells.txt``).  Lines of source code are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field, replace
from functools import lru_cache
from importlib.resources import files
from itertools import count

from irtool.ir.comments import CommentLine, Comments, Location, Remark, Scope
from irtool.ir.dataclass import dataclass
from irtool.ir.dump import Dump
from irtool.ir.framework import framework_part
from irtool.ir.graph import Graph, Item, Node
from irtool.ir.items import CommentBlock, Opaque, Property
from irtool.ir.statement import PrimitiveTarget
from irtool.ir.types import Abstract
from irtool.ir.values import Attributes, Dictionary, Sequence, String, Value, Word
from irtool.syntax.grammar_files import grammar_text
from irtool.syntax.printer import dumps, print_abstract

_WORD = re.compile(r"0x[0-9a-f]+|[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_a-zA-Z]+")
"""A word, or an address, which stays."""
_COMMENT = re.compile(r"//.*")
_NUMBER = re.compile(r"\d+")
_PATH = re.compile(r"(?<![\w.)~])(?:[A-Za-z]:)?(?:[/\\][\w.+~@-]+){2,}")
"""An absolute path; names of scopes begin with a word."""
_SHORTEST = 2
"""Letters of a word that tells something: ``x``, ``w`` and ``b`` are everybody's."""
_OF_NAMES = re.compile(r"[./ \\]")
"""What names and sentences have, and ``mean``, ``NCHW``, ``bij,bjk->bik`` have not."""
_SCOPES = (
    "Default Gradients recompute network construct optimizer Mirror Virtual Div forward "
    "redistribution hccl mccl nccl world group Train One Step With Loss Cell Micro Batch Pipeline "
    "Grad Accu Reducer"
)
"""Words that MindSpore itself puts into scopes, and into names of graphs and groups."""
_STATES = (
    "accu grads moments moment adam lamb lars momentum global step learning rate scale sense "
    "current iterator times cache"
)
"""Words of the names that MindSpore's optimizers and train steps give to what they keep."""


_OF_WEIGHTS = "weight bias gamma beta embedding table moving mean variance"
"""Words of the names that MindSpore's own cells give to their parameters."""
_PARAMETER = re.compile(r"([%:]para\d+_|\bref_key=:?)([\w.]+)")
_SCOPE = re.compile(r"(?<=[(;])(?:recompute_)?(?:Default|Gradients)/[^\s();]*")
_OPERATOR = re.compile(r".*-op\d+\w*")
"""What stands behind the cells of a scope."""


@dataclass(slots=True)
class Redaction:
    """Replaces words of names; one is shared by all dumps that are shown together.

    Attributes:
        kept: words that stay.
        names: words of names, paths and scopes that were seen.
        replaced: by small letters, the word that stands for another.
        numbers: of paths, the number that stands for another.
        in_names: likewise of words that stay elsewhere, in names of parameters and cells.
    """

    kept: set[str] = field(default_factory=set[str])
    names: dict[str, None] = field(default_factory=dict[str, None])
    replaced: dict[str, str] = field(default_factory=dict[str, str])
    numbers: dict[str, str] = field(default_factory=dict[str, str])
    in_names: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.kept |= _format_words()

    def look(self, dump: Dump) -> None:
        """Note what is the user's in a dump, before any text is changed."""
        for item in dump.items:
            self._look_at(item)
        own = _mindspore_words() | self.kept
        words = {word.lower() for word in _WORD.findall(dumps(self._bare_dump(dump)))}
        self._name(*sorted(words - own))

    def text_of(self, dump: Dump) -> str:
        """The text of a dump with the user's names, paths and scopes replaced."""
        if not self.replaced:
            self._replace()
        text = dumps(self._bare_dump(dump))
        text = _PARAMETER.sub(lambda match: match[1] + self._user_name(match[2]), text)
        text = _SCOPE.sub(lambda match: self._cells(match[0]), text)
        return self.name_of(_PATH.sub(lambda match: self._without_numbers(match[0]), text))

    def name_of(self, text: str) -> str:
        """Another text, such as a file's name, without what was noted."""
        return _WORD.sub(lambda match: self._other(match[0]), text)

    def _user_name(self, name: str) -> str:
        """A name of the user's own, without words that are MindSpore's elsewhere."""
        return _WORD.sub(lambda found: self._in_name(found[0]), name)

    def _cells(self, scope: str) -> str:
        """The cells of a scope: ``layers-CellList/0-Block``, the second class being the user's."""
        parts: list[str] = []
        for part in scope.split("/"):
            if _OPERATOR.fullmatch(part):
                parts.append(part)
                continue
            name, line, kind = part.partition("-")
            own = kind in _mindspore_cells()
            parts.append(self._user_name(name) + line + (kind if own else self._user_name(kind)))
        return "/".join(parts)

    def _in_name(self, word: str) -> str:
        small = word.lower()
        if len(word) < _SHORTEST or small in _common_words() or small not in self.kept:
            return word
        other = self.in_names.get(small)
        if other is None:
            used = {*self.kept, *self.names, *self.replaced.values(), *self.in_names.values()}
            other = self.in_names[small] = next(each for each in _words() if each not in used)
        return _as_written(other, word)

    def _without_numbers(self, path: str) -> str:
        """A path whose folders and files have other numbers, but for those of MindSpore's."""
        before, own = framework_part(path)
        return _NUMBER.sub(self._other_number, before) + own

    def _other_number(self, match: re.Match[str]) -> str:
        return self.numbers.setdefault(match[0], str(len(self.numbers) + 1))

    # -- what is whose -----------------------------------------------------------------------

    def _keep(self, *texts: str) -> None:
        """Keep the words that are MindSpore's own of what stands where it writes."""
        for text in texts:
            words = {word.lower() for word in _WORD.findall(text)}
            self.kept |= words & _mindspore_words()

    def _keep_path(self, text: str) -> None:
        """Keep what names a file of MindSpore's own package."""
        self.kept.update(word.lower() for word in _WORD.findall(text))

    def _name(self, *texts: str | None) -> None:
        for text in texts:
            for word in _WORD.findall(text or ""):
                if len(word) >= _SHORTEST and not word.startswith("0x"):
                    self.names.setdefault(word.lower())

    def _look_at(self, item: Item | Graph) -> None:
        match item:
            case Node():
                self._look_at_node(item)
            case Graph():
                self._name(item.name, item.parent)
                for inner in (*item.prelude, *item.items):
                    self._look_at(inner)
                for parameter in item.parameters:
                    self._name(parameter.label, parameter.name)
                    self._type(parameter.type)
            case CommentBlock():
                self._comments(item.comments)
            case Opaque():
                self._name(item.text)
            case Property():
                self._keep(item.key)
                self._name(item.value if "@" in item.value else "")
            case _:
                name = getattr(item, "name", None)
                if isinstance(name, str):
                    self._name(name)
                    self._type(getattr(item, "type", None))

    def _look_at_node(self, node: Node) -> None:
        self._name(node.name, node.instance_name, *node.callees)
        if isinstance(node.target, PrimitiveTarget):
            self._keep(node.op)
        for operand in node.operands:
            self._value(operand, is_operand=True)
        for block in (
            node.primitive_attributes, node.node_attributes, node.primal_attributes, node.strategy,
        ):  # fmt: skip
            self._attributes(block)
        for kind in (*node.input_types, node.output_type):
            self._type(kind)
        self._comments(node.comments)

    def _attributes(self, block: Attributes | None) -> None:
        for key, value in block.entries if block is not None else ():
            self._keep(key)
            if key == "group":
                self._name(value.text if isinstance(value, String) else "")
            else:
                self._value(value)

    def _value(self, value: Value, is_operand: bool = False) -> None:
        match value:
            case String() | Word():
                if _OF_NAMES.search(value.text):
                    self._name(value.text)
                else:
                    self._keep(value.text)
            case Sequence():
                for item in value.items:
                    self._value(item, is_operand)
            case Dictionary():
                for key, item in value.entries:
                    self._keep(key)
                    self._value(item, is_operand)
            case _:
                name = getattr(value, "name", None) or getattr(value, "label", None)
                if isinstance(name, str):
                    self._name(name)

    def _type(self, kind: Abstract | None) -> None:
        if isinstance(kind, Abstract):
            self._name(kind.ref_key)
            self._keep(print_abstract(replace(kind, ref_key=None)))

    def _comments(self, comments: Comments) -> None:
        for line in comments.lines:
            match line:
                case Scope():
                    self._name(line.name)
                case Location():
                    before, own = framework_part(line.path)
                    self._name(before)
                    self._keep_path(own)
                case Remark():
                    self._name(line.text)
                case _:
                    pass

    # -- what stands for it --------------------------------------------------------------------

    def _replace(self) -> None:
        used = self.kept | set(self.names)
        fresh = (word for word in _words() if word not in used)
        self.replaced = {word: next(fresh) for word in self.names if word not in self.kept}

    def _other(self, word: str) -> str:
        other = self.replaced.get(word.lower())
        if other is None:
            return word
        return _as_written(other, word)

    # -- lines of source code ----------------------------------------------------------------

    def _bare_dump(self, dump: Dump) -> Dump:
        return replace(dump, items=tuple(map(self._without_source, dump.items)))

    def _without_source(self, item: Item | Graph) -> Item | Graph:
        match item:
            case Node():
                return replace(item, comments=self._bare(item.comments), graph=None)
            case CommentBlock():
                return replace(item, comments=self._bare(item.comments))
            case Graph():
                inner = tuple(self._without_source(child) for child in item.items)
                prelude = tuple(self._without_source(child) for child in item.prelude)
                return Graph(item.head, inner, prelude, item.close)  # type: ignore[arg-type]  # no graph in a graph
            case _:
                return item

    def _bare(self, comments: Comments) -> Comments:
        lines: tuple[CommentLine, ...] = tuple(
            self._bare_location(line) if isinstance(line, Location) else line
            for line in comments.lines
        )
        return Comments(lines)

    def _bare_location(self, line: Location) -> Location:
        source = "/" + "/" * (line.source.count("/") > 1) if line.source else line.source
        return replace(line, source=source, path=self._without_numbers(line.path))


def _as_written(other: str, word: str) -> str:
    """A word with the capitals of another."""
    if word.isupper():
        return other.upper()
    return other.capitalize() if word[0].isupper() else other


@lru_cache(maxsize=1)
def _common_words() -> frozenset[str]:
    texts = (_SCOPES, _STATES, _OF_WEIGHTS)
    return frozenset(word.lower() for text in texts for word in _WORD.findall(text))


@lru_cache(maxsize=1)
def _mindspore_cells() -> frozenset[str]:
    text = files("irtool.syntax").joinpath("mindspore_cells.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


@lru_cache(maxsize=1)
def _format_words() -> frozenset[str]:
    texts = (_COMMENT.sub("", grammar_text("dump.lark")), _SCOPES, _STATES)
    return frozenset(word.lower() for text in texts for word in _WORD.findall(text))


@lru_cache(maxsize=1)
def _mindspore_words() -> frozenset[str]:
    text = files("irtool.syntax").joinpath("mindspore_words.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


def redacted(dump: Dump) -> str:
    """One dump's text without the user's names; see :class:`Redaction`."""
    made = Redaction()
    made.look(dump)
    return made.text_of(dump)


def _words() -> Iterator[str]:
    """``ba``, ``be``, …, ``baba``: short words that can be said."""
    syllables = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]
    for length in count(2):
        yield from _of_length(syllables, length)


def _of_length(syllables: list[str], length: int) -> Iterator[str]:
    if length == 0:
        yield ""
        return
    for rest in _of_length(syllables, length - 1):
        for syllable in syllables:
            yield rest + syllable
